//! A virtual machine with its own kernel, from any host and without root.
//!
//! `VmTarget` finds the kernel, makes an initramfs with this very program as init,
//! boots it under QEMU with the host's files (or an image) as its root, and talks to
//! the agent over a virtio serial port. What happens inside is in `init`.

pub mod accel;
pub mod boot;
pub mod cache;
pub mod check;
pub mod console;
mod elf;
pub mod failure;
pub mod frame;
pub mod host;
pub mod image;
pub mod init;
pub mod initramfs;
pub mod kernel;
pub mod link;
pub mod machine;
pub mod manage;
pub mod modules;
pub mod qemu;
pub mod qmp;
pub mod session;
mod sys;

use crate::{Boot, Session, Target, TargetError};
use accel::Choice;
use boot::Guest;
use failure::io;
use frame::{Ready, Setup};
use host::Watch;
use kernel::Kernel;
use model::{Experiment, Problem, Severity, VmSpec, Warning, parse_cpu_list};
use qemu::{Accel, CommandLine, Descriptors, Root};
use serde::{Deserialize, Serialize};
use session::VmSession;
use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

/// What a target needs besides the experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// A static program whose PID 1 is `init::main`; it is the agent as well.
    pub program: PathBuf,
    pub cache: PathBuf,
    /// Arguments that make it an agent.
    pub agent: Vec<String>,
    /// Working directory and environment in the guest.
    pub directory: PathBuf,
    pub environment: BTreeMap<String, String>,
}

impl Options {
    /// This program, here, with what matters of its environment.
    pub fn of_this_process() -> Result<Self, TargetError> {
        let here = Path::new("/proc/self");
        Ok(Options {
            program: env::current_exe().map_err(io("find this program", here))?,
            cache: cache::directory()?,
            agent: vec!["agent".to_owned()],
            directory: env::current_dir().map_err(io("find the current directory", here))?,
            environment: guest_environment(env::vars()),
        })
    }
}

/// What programs need to run as they do on the host; a session's own (display,
/// agents, tokens) stays outside.
fn guest_environment(vars: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
    const KEPT: [&str; 15] = [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "TERM",
        "TZ",
        "LANG",
        "JAVA_HOME",
        "CARGO_HOME",
        "RUSTUP_HOME",
        "XDG_CACHE_HOME",
        "XDG_DATA_HOME",
        "RUST_LOG",
        "RUST_BACKTRACE",
    ];
    let kept = |name: &str| {
        KEPT.contains(&name) || name.starts_with("LC_") || name.starts_with("SCHEDLAB_")
    };
    let mut environment: BTreeMap<String, String> = vars.filter(|(name, _)| kept(name)).collect();
    let path = environment.entry("PATH".to_owned()).or_default();
    // An ordinary user's PATH lacks what root runs in the guest.
    for directory in [
        "/usr/local/sbin",
        "/usr/local/bin",
        "/usr/sbin",
        "/usr/bin",
        "/sbin",
        "/bin",
    ] {
        if !path.split(':').any(|d| d == directory) {
            path.push_str(if path.is_empty() { "" } else { ":" });
            path.push_str(directory);
        }
    }
    environment.insert(frame::GUEST_VARIABLE.to_owned(), "1".to_owned());
    environment
}

/// A kernel that can be booted.
#[derive(Debug, Clone)]
pub struct Bootable {
    pub kernel: Kernel,
    pub initramfs: PathBuf,
}

/// Guests are booted as the runner asks for them, one at a time.
#[derive(Debug)]
pub struct VmTarget {
    spec: VmSpec,
    options: Options,
    bootable: BTreeMap<String, Bootable>,
    accel: Option<Choice>,
    facts: BTreeMap<String, String>,
    /// Boots that had to be tried again.
    died: u32,
}

impl VmTarget {
    pub fn new(spec: VmSpec, options: Options) -> Self {
        VmTarget {
            spec,
            options,
            bootable: BTreeMap::new(),
            accel: None,
            facts: BTreeMap::new(),
            died: 0,
        }
    }

    /// Boot a guest; without an agent it stays until it is told to power off.
    pub fn boot(&mut self, boot: &Boot, agent: bool) -> Result<Guest, TargetError> {
        let name = boot
            .kernel
            .clone()
            .unwrap_or_else(|| self.spec.kernel.clone());
        let bootable = self.prepare(&name)?;
        let choice = self.accel(&bootable)?;
        let line = self.command_line(&bootable, choice.accel);
        let guest = boot::boot(&line, &self.setup(&bootable, agent))?;
        self.died += guest.attempts - 1;
        self.note(&bootable, &choice, &guest);
        Ok(guest)
    }

    /// Continue a saved guest; `ready` is what it said when it booted.
    pub fn resume(&mut self, incoming: String, ready: Ready) -> Result<Guest, TargetError> {
        let name = self.spec.kernel.clone();
        let bootable = self.prepare(&name)?;
        let choice = self.accel(&bootable)?;
        let line = CommandLine {
            incoming: Some(incoming),
            ..self.command_line(&bootable, choice.accel)
        };
        boot::resume(&line, ready)
    }

    /// Find or fetch the kernel, and make its initramfs.
    pub fn prepare(&mut self, name: &str) -> Result<Bootable, TargetError> {
        if let Some(bootable) = self.bootable.get(name) {
            return Ok(bootable.clone());
        }
        let kernel = kernel::resolve(name, &self.options.cache)?;
        modules::check(&kernel, image_path(&self.spec.root).is_none())?;
        let initramfs = initramfs::prepare(&kernel, &self.options.program, &self.options.cache)?;
        let bootable = Bootable { kernel, initramfs };
        self.bootable.insert(name.to_owned(), bootable.clone());
        Ok(bootable)
    }

    fn accel(&mut self, bootable: &Bootable) -> Result<Choice, TargetError> {
        if let Some(choice) = &self.accel {
            return Ok(choice.clone());
        }
        let version = qemu::version().ok_or_else(machine::not_installed)?;
        let choice = accel::choose(
            self.spec.accel.as_deref(),
            &version,
            &bootable.kernel.vmlinuz,
            &bootable.initramfs,
            &self.options.cache,
        )?;
        self.facts.insert("vm.qemu".to_owned(), version);
        self.accel = Some(choice.clone());
        Ok(choice)
    }

    fn command_line(&self, bootable: &Bootable, accel: Accel) -> CommandLine {
        let Kernel { vmlinuz, .. } = &bootable.kernel;
        let unpacked = match accel {
            Accel::Tcg => {
                kernel::vmlinux::cached(vmlinuz, &bootable.kernel.key(), &self.options.cache)
            }
            Accel::Kvm => None,
        };
        CommandLine {
            accel,
            cpus: self.spec.cpus,
            topology: self.spec.topology.clone(),
            memory_bytes: self.spec.memory_bytes,
            kernel: unpacked.unwrap_or_else(|| vmlinuz.clone()),
            initramfs: bootable.initramfs.clone(),
            append: self.spec.append.clone().unwrap_or_default(),
            root: match image_path(&self.spec.root) {
                Some(image) => Root::Image(image),
                None => Root::Host,
            },
            forwards: self.spec.forwards.clone(),
            incoming: None,
            descriptors: Descriptors::default(),
        }
    }

    fn setup(&self, bootable: &Bootable, agent: bool) -> Setup {
        Setup {
            hostname: "schedlab".to_owned(),
            environment: self.options.environment.clone(),
            directory: self.options.directory.clone(),
            agent: agent.then(|| self.options.agent.clone()),
            image: image_path(&self.spec.root).is_some(),
            modules: bootable.kernel.modules_dir.clone(),
            network: !self.spec.forwards.is_empty(),
        }
    }

    fn note(&mut self, bootable: &Bootable, choice: &Choice, guest: &Guest) {
        let memory = format!("{} MiB", self.spec.memory_bytes >> 20);
        for (name, value) in [
            ("vm.accel", choice.accel.as_str().to_owned()),
            ("vm.accel_reason", choice.why.clone()),
            ("vm.kernel", guest.ready.release.clone()),
            ("vm.kernel_origin", bootable.kernel.origin.clone()),
            ("vm.cpus", self.spec.cpus.to_string()),
            ("vm.memory", memory),
            ("vm.root", self.spec.root.clone()),
            ("vm.boot_time_ms", guest.boot_time.as_millis().to_string()),
            ("vm.boots_tried_again", self.died.to_string()),
        ] {
            self.facts.insert(name.to_owned(), value);
        }
    }

    /// Give each vCPU thread a CPU of its own where there are enough, else all of
    /// the set.
    fn pin(&mut self, guest: &Guest) -> Result<Watch, TargetError> {
        let failed = |e| io("pin the vCPUs of", Path::new(qemu::PROGRAM))(e);
        let vcpus = guest
            .machine
            .monitor()
            .and_then(|mut m| m.vcpu_threads())
            .map_err(failed)?;
        let set = self
            .spec
            .host_cpus
            .as_deref()
            .and_then(|list| parse_cpu_list(list).ok())
            .unwrap_or_default();
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

impl Target for VmTarget {
    fn kind(&self) -> &'static str {
        "vm"
    }

    fn check(&mut self, experiment: &Experiment) -> Vec<Problem> {
        let mut problems = check::host(&self.spec);
        if problems.is_empty() {
            problems = self.check_kernels(experiment);
        }
        problems
    }

    fn open(&mut self, boot: &Boot) -> Result<Box<dyn Session>, TargetError> {
        let guest = self.boot(boot, true)?;
        tracing::debug!(
            "guest {} is ready after {:.1} s",
            guest.ready.release,
            guest.boot_time.as_secs_f64()
        );
        let watch = self.pin(&guest)?;
        let session = VmSession::new(guest, watch);
        Ok(Box::new(
            session.map_err(io("talk to", Path::new("the agent")))?,
        ))
    }

    fn warnings(&self) -> Vec<Warning> {
        let mut warnings = check::warnings(&self.spec, host::usable_cpus().len());
        if let Some(choice) = self.accel.as_ref().filter(|c| c.accel == Accel::Tcg) {
            let version = self.facts.get("vm.qemu").map_or("", String::as_str);
            warnings.insert(0, emulation_warning(&choice.why, version));
        }
        if self.died > 0 {
            warnings.push(Warning {
                severity: Severity::Note,
                what: format!("{} boots of the guest died and were tried again", self.died),
                remedy: String::new(),
            });
        }
        warnings
    }

    fn facts(&self) -> BTreeMap<String, String> {
        self.facts.clone()
    }
}

impl VmTarget {
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

/// The first file of this name on PATH.
fn on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let mut places = env::split_paths(&path).map(|directory| directory.join(program));
    places.find(|place| place.is_file())
}

fn image_path(root: &str) -> Option<PathBuf> {
    root.strip_prefix("image:").map(PathBuf::from)
}

fn emulation_warning(why: &str, version: &str) -> Warning {
    let mut remedy = format!("for performance, run on a host where KVM works (here: {why})");
    if !qemu::emulates_in_parallel(version) {
        remedy += "; QEMU from 8.1 on (in Debian 12: from bookworm-backports) emulates the CPUs of \
                   a guest in parallel, this one runs them in turns";
    }
    Warning {
        severity: Severity::Serious,
        what:
            "CPUs are emulated (TCG): figures show function and order of magnitude, not performance"
                .to_owned(),
        remedy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_gets_what_programs_need_and_no_secrets() {
        let vars = [
            ("PATH", "/opt/bin:/usr/bin"),
            ("SCHEDLAB_SCHEDULERS", "/s"),
            ("LC_ALL", "C"),
            ("API_TOKEN", "secret"),
            ("DISPLAY", ":0"),
        ];
        let environment =
            guest_environment(vars.map(|(k, v)| (k.to_owned(), v.to_owned())).into_iter());
        assert_eq!(
            environment["PATH"],
            "/opt/bin:/usr/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/bin"
        );
        assert_eq!(environment["SCHEDLAB_SCHEDULERS"], "/s");
        assert_eq!(environment["LC_ALL"], "C");
        assert!(!environment.contains_key("API_TOKEN") && !environment.contains_key("DISPLAY"));
    }

    #[test]
    fn a_qemu_whose_cpus_take_turns_is_told_of() {
        let remedy = |version| emulation_warning("no /dev/kvm", version).remedy;
        assert!(remedy("7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)").contains("in turns"));
        assert!(!remedy("8.1.0").contains("in turns"));
        assert!(!remedy("10.0.2 (Debian 1:10.0.2+ds-2)").contains("in turns"));
    }

    #[test]
    fn only_an_image_root_names_an_image() {
        assert_eq!(
            image_path("image:/i/sid.ext4"),
            Some(PathBuf::from("/i/sid.ext4"))
        );
        assert_eq!(image_path("host"), None);
    }
}
