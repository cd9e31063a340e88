//! A virtual machine with its own kernel, from any host and without root.
//!
//! [`Vm`] finds the kernel, makes an initramfs with this very program as init, and
//! boots it under QEMU with the host's files (or an image) as its root. Bytes to and from
//! a program in the guest pass through a virtio serial port. What happens inside is in
//! `init`. The crate `machines` makes a place for trials of it.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod accel;
pub mod architecture;
pub mod boot;
pub mod cache;
mod check;
pub mod console;
pub mod device_tree;
pub mod disk;
pub mod elf;
pub mod failure;
pub mod forwards;
pub mod frame;
pub mod host;
mod hypervisor;
pub mod image;
pub mod init;
mod initramfs;
pub mod kernel;
pub mod keys;
mod launch;
pub mod link;
pub mod machine;
pub mod manage;
pub mod modules;
pub mod name;
mod options;
pub mod qemu;
mod qmp;
mod room;
mod saved_state;
pub mod scripted;
mod shared_files;
pub mod snapshot;
mod spec;
mod sys;
mod unpack;
mod view;
mod warning;
pub mod xen_keys;

pub use failure::VmError;
pub use options::Options;
pub use saved_state::Saved;
pub use spec::{Clock, Forward, Topology, VmSpec};

use accel::Choice;
use boot::Guest;
use failure::{io, unmet_error};
use forwards::Forwards;
use frame::{Ready, Setup, XenSetup};
use host::Watch;
use hypervisor::Hypervisor;
use kernel::Kernel;
use launch::Launch;
use model::{Experiment, Problem, Reset, Severity, Warning};
use qemu::{Accel, CommandLine, Descriptors, Root};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use view::{Settled, Wanted};

/// The name of this target in experiments.
pub const NAME: &str = "vm";
/// The name of a target with Xen below its kernel.
pub const XEN: &str = "xen";

/// A kernel that can be booted.
#[derive(Debug, Clone)]
pub struct Bootable {
    kernel: Kernel,
    initramfs: PathBuf,
    hypervisor: Option<Hypervisor>,
}

/// A virtual machine as an experiment describes it. Its guests are booted one at a time,
/// each with the kernel that is asked for.
#[derive(Debug)]
pub struct Vm {
    spec: VmSpec,
    options: Options,
    bootable: BTreeMap<String, Bootable>,
    accel: Option<Choice>,
    forwards: Forwards,
    /// Files and directories that the experiment names.
    named: Vec<PathBuf>,
    /// Programs that it names, for a guest that has no other files.
    programs: Vec<PathBuf>,
    /// Files that programs need which it names.
    needed: Vec<PathBuf>,
    interrupted: Arc<AtomicBool>,
    confined: Option<Settled>,
    facts: BTreeMap<String, String>,
    /// Boots that had to be tried again.
    died: u32,
    snapshot: snapshot::Named,
}

impl Vm {
    /// A machine of this description, with nothing of it checked, fetched or started yet.
    pub fn new(spec: VmSpec, options: Options) -> Self {
        Vm {
            spec,
            options,
            bootable: BTreeMap::new(),
            accel: None,
            forwards: Forwards::default(),
            named: Vec::new(),
            programs: Vec::new(),
            needed: Vec::new(),
            interrupted: Arc::default(),
            confined: None,
            facts: BTreeMap::new(),
            died: 0,
            snapshot: snapshot::Named::default(),
        }
    }

    /// Set from outside to end a boot that is under way.
    pub fn with_interrupt(mut self, interrupted: Arc<AtomicBool>) -> Self {
        self.interrupted = interrupted;
        self
    }

    /// Boot a guest with this kernel or, without one, that of the description. Without an
    /// agent it stays until it is told to power off.
    pub fn boot(&mut self, kernel: Option<&str>, agent: bool) -> Result<Guest, VmError> {
        let bootable = self.prepare(&self.kernel_name(kernel))?;
        let choice = self.accel(&bootable)?;
        let line = self.command_line(&bootable, choice.accel)?;
        let launch = self.launch(&bootable)?;
        let setup = self.setup(&bootable, &line.kernel, agent);
        self.note_start(&bootable);
        let guest = boot::boot(&line, &setup, &launch)?;
        self.died += guest.attempts - 1;
        self.note(&bootable, &guest);
        Ok(guest)
    }

    fn kernel_name(&self, kernel: Option<&str>) -> String {
        kernel.unwrap_or(&self.spec.kernel).to_owned()
    }

    /// The kernel that a boot takes, and the build ID in its image, where that can be
    /// unpacked.
    pub fn kernel(&mut self, kernel: Option<&str>) -> Result<(Kernel, Option<String>), VmError> {
        let kernel = self.prepare(&self.kernel_name(kernel))?.kernel;
        let (image, cache) = (&kernel.vmlinuz, &self.options.cache);
        let build_id = kernel::vmlinux::build_id(image, &kernel.key(), cache);
        Ok((kernel, build_id))
    }

    /// Continue a saved guest; `ready` is what it said when it booted.
    pub(crate) fn resume(
        &mut self,
        kernel: Option<&str>,
        incoming: PathBuf,
        ready: Ready,
    ) -> Result<Guest, VmError> {
        let bootable = self.prepare(&self.kernel_name(kernel))?;
        let choice = self.accel(&bootable)?;
        let line = CommandLine {
            incoming: Some(incoming),
            ..self.command_line(&bootable, choice.accel)?
        };
        self.note_start(&bootable);
        boot::resume(&line, ready, &self.launch(&bootable)?)
    }

    fn note_start(&mut self, bootable: &Bootable) {
        let kernel = bootable.kernel.vmlinuz.clone();
        let files = std::iter::once(kernel).chain(image_path(&self.spec.root));
        self.snapshot.note_start(files);
    }

    /// Continues a guest that was booted with this kernel, from where it was saved.
    pub fn go_on(&mut self, kernel: Option<&str>, saved: &Saved) -> Result<Guest, VmError> {
        self.resume(kernel, saved.path(), saved.ready.clone())
    }

    /// Directory for guests that are saved.
    pub fn snapshots(&self) -> PathBuf {
        self.options.cache.join("snapshots")
    }

    /// Find or fetch the kernel, and make its initramfs.
    pub fn prepare(&mut self, name: &str) -> Result<Bootable, VmError> {
        if let Some(bootable) = self.bootable.get(name) {
            return Ok(bootable.clone());
        }
        let architecture = self.spec.architecture();
        let program = self.program()?;
        let kernel = kernel::resolve(name, architecture, &self.options.cache)?;
        modules::check(&kernel, image_path(&self.spec.root).is_none())?;
        let hypervisor = self.hypervisor(&kernel)?;
        let initramfs = initramfs::prepare(&kernel, &program, &self.options.cache)?;
        let bootable = Bootable {
            kernel,
            initramfs,
            hypervisor,
        };
        self.bootable.insert(name.to_owned(), bootable.clone());
        Ok(bootable)
    }

    /// The program that is the first process of the guest.
    fn program(&self) -> Result<PathBuf, VmError> {
        let architecture = self.spec.architecture();
        let own = &self.options.program;
        if let Some(given) = &self.spec.agent {
            return Ok(given.clone());
        }
        if architecture.is_of_this_machine() {
            return Ok(own.clone());
        }
        architecture.find_program(own).ok_or_else(|| {
            let what = format!(
                "the guest is {0}, and there is no schedlab-{0} beside {1}",
                architecture.name,
                own.display()
            );
            let remedy = "put a build of the same schedlab there (docs/guide/arm64.md), or name \
                          it: agent = \"PATH\"";
            unmet_error("target vm", &what, remedy)
        })
    }

    fn hypervisor(&self, kernel: &Kernel) -> Result<Option<Hypervisor>, VmError> {
        let Some(name) = &self.spec.hypervisor else {
            return Ok(None);
        };
        hypervisor::check_dom0(kernel)?;
        hypervisor::resolve(name, &self.options.cache).map(Some)
    }

    fn accel(&mut self, bootable: &Bootable) -> Result<Choice, VmError> {
        if let Some(choice) = &self.accel {
            return Ok(choice.clone());
        }
        let architecture = self.spec.architecture();
        let version =
            qemu::version(architecture).ok_or_else(|| machine::not_installed(architecture))?;
        let launch = self.launch(bootable)?;
        let wanted = match self.spec.is_virtual() {
            true => Some("tcg"),
            false => self.spec.accel.as_deref(),
        };
        let choice = accel::choose(
            wanted,
            (architecture, &version),
            &self.bzimage(bootable)?,
            &bootable.initramfs,
            &self.options.cache,
            &launch,
        )?;
        if launch.is_interrupted() {
            return Err(VmError::Interrupted);
        }
        let (accel, why) = (choice.accel.as_str().to_owned(), choice.why.clone());
        for (name, value) in [
            ("vm.qemu", version),
            ("vm.accel", accel),
            ("vm.accel_reason", why),
        ] {
            self.facts.insert(name.to_owned(), value);
        }
        self.accel = Some(choice.clone());
        Ok(choice)
    }

    /// The view of the guest, and as whom and until when it is started.
    fn launch(&mut self, bootable: &Bootable) -> Result<Launch, VmError> {
        let mut wanted = Wanted {
            exposed: view::exposed_paths(&self.spec.expose, &self.options.directory),
            ports: self.host_ports(),
            ..Wanted::default()
        };
        let kernel = &bootable.kernel;
        wanted.paths.extend(self.options.shown.iter().cloned());
        wanted.paths.extend(self.named.iter().cloned());
        wanted.paths.extend(self.needed.iter().cloned());
        wanted.paths.extend(kernel.modules_dir.clone());
        let mut needed = vec![self.bzimage(bootable)?, bootable.initramfs.clone()];
        if let Some(xen) = &bootable.hypervisor {
            needed.push(xen.image.clone());
            wanted.paths.insert(xen.tools.clone());
        }
        wanted.paths.extend(needed.iter().cloned());
        wanted.paths.extend([
            self.options.directory.clone(),
            self.options.cache.join(kernel::vmlinux::DIRECTORY),
            self.options.cache.join(device_tree::DIRECTORY),
        ]);
        let asked = view::confinement(&wanted)?;
        let known = self.confined.take().filter(|known| known.asked == asked);
        let settled = known.unwrap_or_else(|| Settled::settle_for(asked, &needed));
        let confinement = settled.works.clone();
        self.confined = Some(settled);
        Ok(Launch {
            confinement,
            cpus: self.spec.pinned_cpus(),
            interrupted: self.interrupted.clone(),
        })
    }

    /// The kernel's image, where QEMU can read it.
    fn bzimage(&self, bootable: &Bootable) -> Result<PathBuf, VmError> {
        let Kernel { vmlinuz, .. } = &bootable.kernel;
        cache::for_all(vmlinuz, &bootable.kernel.key(), &self.options.cache)
    }

    fn command_line(&self, bootable: &Bootable, accel: Accel) -> Result<CommandLine, VmError> {
        let Kernel { vmlinuz, .. } = &bootable.kernel;
        let unpacked = match accel {
            Accel::Tcg => {
                kernel::vmlinux::find_unpacked(vmlinuz, &bootable.kernel.key(), &self.options.cache)
            }
            Accel::Kvm => None,
        };
        let line = CommandLine {
            architecture: self.spec.architecture(),
            accel,
            cpus: self.spec.cpus,
            topology: self.spec.topology.clone(),
            memory_bytes: self.spec.memory_bytes,
            kernel: match unpacked {
                Some(kernel) => kernel,
                None => self.bzimage(bootable)?,
            },
            xen: bootable.hypervisor.as_ref().map(|xen| xen.image.clone()),
            xen_scheduler: None,
            initramfs: bootable.initramfs.clone(),
            append: self.spec.append.clone().unwrap_or_default(),
            root: match image_path(&self.spec.root) {
                Some(image) => Root::Image(image),
                None if self.spec.is_virtual() => Root::Nothing,
                None => Root::Host,
            },
            shared: PathBuf::from("/"),
            forwards: self.spec.forwards.clone(),
            forwards_later: self.snapshot.has_network || !self.forwards.ports().is_empty(),
            incoming: None,
            virtual_time: None,
            device_tree: None,
            descriptors: Descriptors::default(),
        };
        let capacities = self.spec.capacities.as_ref();
        let device_tree =
            capacities.map(|all| device_tree::prepare(&line, all, &self.options.cache));
        Ok(CommandLine {
            device_tree: device_tree.transpose()?,
            ..line
        })
    }

    fn setup(&self, bootable: &Bootable, kernel: &Path, agent: bool) -> Setup {
        let xen = bootable.hypervisor.as_ref();
        Setup {
            hostname: "schedlab".to_owned(),
            environment: self.options.environment.clone(),
            directory: self.options.directory.clone(),
            agent: agent.then(|| self.options.agent.clone()),
            image: image_path(&self.spec.root).is_some(),
            modules: bootable.kernel.modules_dir.clone(),
            network: !self.host_ports().is_empty(),
            packed: false,
            xen: xen.map(|xen| XenSetup {
                tools: xen.tools.clone(),
                kernel: kernel.to_owned(),
            }),
        }
    }

    /// Ports of this machine that QEMU listens on, sooner or later.
    fn host_ports(&self) -> Vec<u16> {
        let of_spec = self.spec.forwards.iter().map(|f| f.host_port);
        of_spec
            .chain(self.forwards.ports().iter().copied())
            .collect()
    }

    /// Ports of the guest that are forwarded while it runs: none yet.
    pub fn forwards(&self) -> Forwards {
        self.forwards.clone()
    }

    fn note(&mut self, bootable: &Bootable, guest: &Guest) {
        let memory = format!("{} MiB", self.spec.memory_bytes >> 20);
        for (name, value) in [
            ("vm.kernel", guest.ready.release.clone()),
            ("vm.architecture", self.spec.architecture().name.to_owned()),
            ("vm.kernel_origin", bootable.kernel.origin.clone()),
            ("vm.cpus", self.spec.cpus.to_string()),
            ("vm.memory", memory),
            ("vm.root", self.spec.root.clone()),
            ("vm.boot_time_ms", guest.boot_time.as_millis().to_string()),
            ("vm.boots_tried_again", self.died.to_string()),
            ("vm.user", self.user_name()),
            ("vm.exposed", self.spec.expose.join(" ")),
            ("vm.host_cpus", host::usable_cpus().len().to_string()),
        ] {
            self.facts.insert(name.to_owned(), value);
        }
        self.note_hypervisor(bootable);
        if let Some(model) = host::cpu_model() {
            self.facts.insert("vm.host_cpu".to_owned(), model);
        }
    }

    fn note_hypervisor(&mut self, bootable: &Bootable) {
        if let Some(xen) = &bootable.hypervisor {
            let origin = xen.origin.clone();
            self.facts.insert("vm.hypervisor".to_owned(), origin);
        }
    }

    /// Whom QEMU runs as.
    fn user_name(&self) -> String {
        let settled = self.confined.as_ref();
        let user = settled.and_then(|settled| settled.works.user.as_ref());
        let own = || rustix::process::geteuid().as_raw().to_string();
        user.map_or_else(own, |user| user.name.clone())
    }

    /// Give each vCPU thread a CPU of its own where there are enough, else all of
    /// the set.
    pub fn pin(&mut self, guest: &Guest) -> Result<Watch, VmError> {
        let failed = |e| io("pin the vCPUs of", Path::new(self.spec.architecture().qemu))(e);
        let threads = guest.machine.monitor();
        let vcpus = match threads.and_then(|mut monitor| monitor.vcpu_threads()) {
            Ok(vcpus) => vcpus,
            // It has died since it was ready. Who uses it learns that with the end of its console.
            Err(error) => match error.kind() {
                ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof => {
                    return Ok(Watch::new(guest.machine.pid(), Vec::new(), 0));
                }
                _ => return Err(failed(error)),
            },
        };
        let set = self.spec.pinned_cpus();
        if !set.is_empty() {
            for (index, tid) in vcpus.iter().enumerate() {
                let own = if set.len() >= vcpus.len() {
                    &set[index..=index]
                } else {
                    &set[..]
                };
                sys::pin_thread(*tid, own).map_err(failed)?;
            }
            let list = self.spec.host_cpus.clone().unwrap_or_default();
            self.facts.insert("vm.pinned_cpus".to_owned(), list);
        }
        Ok(Watch::new(guest.machine.pid(), vcpus, set.len()))
    }
}

impl Vm {
    /// The description that the machine was made from.
    pub fn spec(&self) -> &VmSpec {
        &self.spec
    }

    /// Everything that this host lacks for the experiment, before anything is started.
    pub fn check(&mut self, experiment: &Experiment) -> Vec<Problem> {
        if self.shows_the_host() {
            self.named = view::named_by(experiment, &self.options.directory);
            self.programs = scripted::pack::programs(experiment, &self.options);
            let files = self.named.iter().filter(|path| path.is_file());
            let programs: Vec<_> = self.programs.iter().chain(files).cloned().collect();
            self.needed = view::needs_of(&programs);
        }
        let mut problems = self.check_host();
        problems.extend(check::snapshot(&self.spec, experiment));
        match Forwards::for_experiment(experiment) {
            Ok(forwards) => self.forwards = forwards,
            Err(e) => {
                let failed = io("choose", Path::new("free ports"))(e);
                problems.push(check::as_problem("target vm", failed));
            }
        }
        if problems.is_empty() {
            problems = self.check_kernels(experiment);
        }
        if problems.is_empty() {
            problems = self.check_snapshot(experiment);
        }
        if problems.is_empty() {
            problems = self.check_what_is_named();
        }
        problems
    }

    /// Warnings for every reader of the results (such as: emulated CPUs).
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = check::warnings(&self.spec, host::usable_cpus().len());
        let emulated = self.accel.as_ref().filter(|c| c.accel == Accel::Tcg);
        if self.spec.is_virtual() {
            warnings.insert(0, scripted::warning());
        } else if let Some(choice) = emulated {
            let version = self.facts.get("vm.qemu").map_or("", String::as_str);
            warnings.insert(0, warning::of_emulation(&choice.why, version));
        }
        warnings.extend(self.lacks_of_confinement());
        warnings.extend(self.unseen_directory());
        if self.died > 0 {
            warnings.push(Warning {
                severity: Severity::Note,
                what: format!("{} boots of the guest died and were tried again", self.died),
                remedy: String::new(),
            });
        }
        let machine = match self.spec.hypervisor {
            Some(_) => "Xen host",
            None => "guest",
        };
        // In virtual time each trial is a boot, whatever the key says.
        let reset = match self.spec.is_virtual() {
            true => Reset::Trial,
            false => self.spec.reset,
        };
        warnings.push(match &self.spec.snapshot {
            Some(name) => warning::goes_on_from(name, self.recall_snapshot()),
            None => warning::starts_from(reset, machine),
        });
        warnings
    }

    /// True if its CPUs are emulated, as far as that is known yet.
    pub fn is_emulated(&self) -> bool {
        let tcg = |choice: &Choice| choice.accel == Accel::Tcg;
        self.accel.as_ref().is_some_and(tcg)
    }

    /// Facts of this machine (`vm.accel`, `vm.qemu`, …).
    pub fn facts(&self) -> BTreeMap<String, String> {
        self.facts.clone()
    }
}

impl Vm {
    fn check_kernels(&mut self, experiment: &Experiment) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (name, needs) in check::kernels(&self.spec, experiment) {
            match self.prepare(&name) {
                Ok(bootable) => problems.extend(check::kernel(&bootable.kernel, &needs)),
                Err(e) => problems.push(check::as_problem(&format!("kernel {name}"), e)),
            }
        }
        if problems.is_empty()
            && let Some(bootable) = self.bootable.values().next().cloned()
            && let Err(e) = self.accel(&bootable)
        {
            problems.push(check::as_problem("target vm", e));
        }
        problems
    }
}

impl Vm {
    /// Everything but the kernels.
    pub(crate) fn check_host(&self) -> Vec<Problem> {
        let mut problems = check::host(&self.spec);
        let exposed = view::exposed_paths(&self.spec.expose, &self.options.directory);
        problems.extend(check::check_exposed(&exposed));
        problems
    }

    fn shows_the_host(&self) -> bool {
        image_path(&self.spec.root).is_none()
    }
}

/// Path of the image in a guest's `root = "image:PATH"`; `None` for other roots.
pub fn image_path(root: &str) -> Option<PathBuf> {
    root.strip_prefix("image:").map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_image_root_names_an_image() {
        assert_eq!(
            image_path("image:/i/sid.ext4"),
            Some(PathBuf::from("/i/sid.ext4"))
        );
        assert_eq!(image_path("host"), None);
    }
}
