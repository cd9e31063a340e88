//! Guests in virtual time: told everything before they boot, and heard when they have ended.
//!
//! A byte that comes from outside arrives between two instructions that nobody can choose, and from
//! there on two boots differ. So the requests to the agent are in the initramfs, beside the files
//! that they need; there is one boot for each, and the guest has no disk, no network and no
//! host's files. What it answers leaves it when all is over.

mod libraries;
pub mod pack;

use crate::boot::{death, gone_error};
use crate::failure::io;
use crate::frame::{Head, PACKED_REQUESTS, PACKED_ROOT, PACKED_SETUP, Ready, Setup};
use crate::initramfs::{DIRECTORY, FILE, add_entry};
use crate::kernel::Kernel;
use crate::launch::Launch;
use crate::machine::Machine;
use crate::qemu::{Accel, CommandLine, DOM0_MIB};
use crate::{Bootable, Vm, VmError};
use cpio::newc::trailer;
use model::system::{CLOCK, VIRTUAL};
use model::{Severity, Warning};
use pack::Packed;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The initramfs of a boot is found by the kernel in whole units of this.
const ALIGNMENT: usize = 512;
const SHELL: &str = "/bin/sh";

/// A machine whose boots are told everything beforehand.
#[derive(Debug)]
pub struct Scripted {
    line: CommandLine,
    launch: Launch,
    setup: Setup,
    packed: Packed,
    /// Kernel of all boots.
    pub kernel: Kernel,
}

/// A boot under way.
#[derive(Debug)]
pub struct Running {
    machine: Machine,
}

/// Remains of a guest: the kernel that it ran, and the lines of its agent.
#[derive(Debug)]
pub struct Answer {
    /// Greeting of the guest, with its kernel.
    pub ready: Ready,
    /// How the agent ended.
    pub agent: String,
    /// Replies of the agent, one a line.
    pub lines: Vec<Vec<u8>>,
    /// Text of the console.
    pub console: String,
}

impl Vm {
    /// A machine for boots in virtual time with this kernel or, without one, that of the
    /// description.
    pub fn prepare_scripted(&mut self, kernel: Option<&str>) -> Result<Scripted, VmError> {
        let bootable = self.prepare(&self.kernel_name(kernel))?;
        self.accel(&bootable)?;
        let launch = self.launch(&bootable)?;
        let exposed = crate::view::exposed_paths(&self.spec.expose, &self.options.directory);
        let shown = |path: &&std::path::PathBuf| launch.confinement.view.is_visible(path);
        // The toolstack is called by scripts.
        let shell = self.spec.hypervisor.as_ref().map(|_| PathBuf::from(SHELL));
        let named = self.programs.iter().chain(&self.named).filter(shown);
        let named = named.chain(&shell);
        let memory_bytes = match self.spec.hypervisor {
            Some(_) => DOM0_MIB << 20,
            None => self.spec.memory_bytes,
        };
        let mut packed = pack::pack(named.chain(&exposed), memory_bytes / 4, &launch.confinement)?;
        let line = self.command_line(&bootable, Accel::Tcg)?;
        let setup = Setup {
            packed: true,
            // They are not there.
            modules: None,
            ..self.setup(&bootable, &line.kernel, true)
        };
        if let Some(xen) = &setup.xen {
            packed.add_root(&xen.tools)?;
            packed.add_file(&xen.kernel)?;
        }
        self.note_virtual(&bootable, &packed);
        Ok(Scripted {
            setup,
            line,
            launch,
            packed,
            kernel: bootable.kernel,
        })
    }

    fn note_virtual(&mut self, bootable: &Bootable, packed: &Packed) {
        let kernel = &bootable.kernel;
        let memory = format!("{} MiB", self.spec.memory_bytes >> 20);
        for (name, value) in [
            (CLOCK, VIRTUAL.to_owned()),
            ("vm.kernel", kernel.release.clone()),
            ("vm.kernel_origin", kernel.origin.clone()),
            ("vm.cpus", self.spec.cpus.to_string()),
            ("vm.memory", memory),
            ("vm.root", format!("{} files in memory", packed.files())),
        ] {
            self.facts.insert(name.to_owned(), value);
        }
        self.note_hypervisor(bootable);
    }
}

impl Scripted {
    /// True if whoever uses it was asked from outside to end.
    pub fn is_interrupted(&self) -> bool {
        self.launch.is_interrupted()
    }

    /// Boots a guest whose agent gets these requests, lines of bytes, and nothing else. A Xen host has
    /// this scheduler.
    pub fn start(
        &self,
        requests: &[u8],
        seed: u64,
        xen_scheduler: Option<String>,
    ) -> Result<Running, VmError> {
        let failed = |e| io("make", Path::new("the initramfs of a trial"))(e);
        let initramfs = self.initramfs(requests).map_err(failed)?;
        let line = CommandLine {
            virtual_time: Some(seed),
            xen_scheduler,
            initramfs: format!("/proc/self/fd/{}", initramfs.as_raw_fd()).into(),
            ..self.line.clone()
        };
        let (machine, _no_channels) = Machine::start(line, &self.launch)?;
        Ok(Running { machine })
    }

    /// In memory, so that nothing of it is left whatever happens.
    fn initramfs(&self, requests: &[u8]) -> std::io::Result<File> {
        use rustix::fs::{MemfdFlags, memfd_create};
        let mut file = File::from(memfd_create("initramfs", MemfdFlags::CLOEXEC)?);
        let base = doors::read::open_file(&self.line.initramfs)?;
        let size = doors::read::copy_within(base, &mut file, doors::read::LARGE_FILE_BYTES)?;
        let size = usize::try_from(size).map_err(std::io::Error::other)?;
        file.write_all(&vec![0; size.next_multiple_of(ALIGNMENT) - size])?;
        let mut out = Vec::new();
        add_entry(
            &mut out,
            PACKED_SETUP,
            FILE,
            &serde_json::to_vec(&self.setup)?,
        )?;
        add_entry(&mut out, PACKED_REQUESTS, FILE, requests)?;
        add_entry(&mut out, PACKED_ROOT, DIRECTORY, b"")?;
        self.packed.write(&mut out)?;
        trailer(&mut out)?;
        file.write_all(&out)?;
        Ok(file)
    }
}

impl Running {
    /// Remains of the guest, if it ends within `wait`.
    pub fn answer(&self, wait: Duration) -> Result<Option<Answer>, VmError> {
        let console = &self.machine.console;
        let end = self.machine.wait_for_end(wait);
        let unread = io("read", Path::new("the output of a guest"));
        self.machine.follow_console().map_err(unread)?;
        if end.is_none() && console.panic().is_none() {
            return Ok(None);
        }
        let unread = io("read", Path::new("the output of a guest"));
        let bytes = self.machine.read_written().map_err(unread)?;
        let mut lines = bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty());
        let Some(head) = lines.next() else {
            return Err(gone_error(death(&self.machine), console));
        };
        let head: Head =
            serde_json::from_slice(head).map_err(|e| VmError::Garbled(e.to_string()))?;
        Ok(Some(Answer {
            ready: head.ready,
            agent: head.agent,
            lines: lines.map(<[u8]>::to_vec).collect(),
            console: console.take_text(),
        }))
    }

    /// Error for an agent that did not answer, with the last lines of the console.
    pub fn gone_error(&self, why: String) -> VmError {
        gone_error(why, &self.machine.console)
    }
}

/// Findings that this mode allows.
pub(crate) fn warning() -> Warning {
    Warning {
        severity: Severity::Note,
        what: "virtual time: an instruction takes 2 ns, and the same seed gives the same trial; \
               decisions, order, shares and lateness by that clock can be told, speed and anything \
               between two CPUs cannot"
            .to_owned(),
        remedy: String::new(),
    }
}
