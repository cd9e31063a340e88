//! The command line of QEMU as one object: all that differs between machines is
//! here. Options from qemu-system-x86_64(1); works with QEMU 7.2 and later.

use super::architecture::{Architecture, X86_64};
use super::frame::{AGENT_PORT, CONTROL_PORT, HOST_TAG, INIT_ARGUMENT};
use super::{Forward, Topology, disk};
use doors::started::tool_command;
use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// A panic ends QEMU at once (`panic=-1` with `-no-reboot`). The rest makes booting
/// faster and changes nothing after it: no self-tests of ciphers, and RCU in a hurry
/// until init runs.
const KERNEL_ARGUMENTS: &str = "quiet panic=-1 nokaslr cryptomgr.notests \
     rcupdate.rcu_expedited=1 rcupdate.rcu_normal_after_boot=1";

/// Memory of dom0, in MiB: the initramfs, the files that it has read, and the toolstack.
pub(crate) const DOM0_MIB: u64 = 768;
/// One CPU of its own for dom0, so that the others are the guests'. With lazy switches of the
/// floating-point unit, emulated CPUs corrupt the numbers of guests.
const XEN_ARGUMENTS: &str = "dom0_mem=768M,max:768M dom0_max_vcpus=1 dom0_vcpus_pin \
     spec-ctrl=eager-fpu com1=115200,8n1 console=com1 loglvl=warning guest_loglvl=error";

/// A CPU that counts instructions, below Xen. Xen sets the timer of an x2APIC by a write to a model
/// specific register, at which QEMU 10 does not know the count ("Bad icount read").
const COUNTED_CPU_OF_XEN: &str = "max,-smap,-erms,-x2apic";

/// A QEMU that answers and ends. Ctrl-C is not for it: one that was killed would be taken
/// for one that is not installed.
fn asked(architecture: &Architecture) -> Command {
    let mut command = tool_command(architecture.qemu);
    command.process_group(0);
    command
}

/// `7.2.22 (Debian …)`; `None` where it is not installed.
pub fn version(of: &Architecture) -> Option<String> {
    let output = doors::read::output_of(asked(of).arg("--version")).ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().next()?;
    Some(line.trim_start_matches("QEMU emulator version ").to_owned())
}

/// Which one that is: two on PATH, one after the other, may differ in more than a version.
pub(crate) fn path(of: &Architecture) -> Option<PathBuf> {
    which::which(of.qemu).ok()
}

/// Before QEMU 8.1 ("accel/tcg: Always lock pages before translation") a CPU can go
/// on with a stale translation of code that another one has just patched. The kernel
/// patches its branches whenever a sched_ext scheduler attaches, and dies of an int3
/// in `__schedule`. One thread for all CPUs cannot race, and is slower.
pub(crate) fn emulates_in_parallel(version: &str) -> bool {
    numbers(version) >= (8, 1)
}

/// From QEMU 9.0 on, an emulated guest with several dies that asks for the levels of its topology by
/// leaf 0x1f of CPUID until there is none ends QEMU (`encode_topo_cpuid1f` in target/i386/cpu.c, an
/// assertion; seen with 10.0.2).
fn dies_of_leaf_1f(version: &str) -> bool {
    numbers(version) >= (9, 0)
}

/// Major and minor number of a version.
fn numbers(version: &str) -> (u32, u32) {
    let mut numbers = version.split(['.', ' ']).map(str::parse::<u32>);
    let mut number = || numbers.next().and_then(Result::ok).unwrap_or(0);
    (number(), number())
}

fn tcg(architecture: &Architecture) -> &'static str {
    match version(architecture) {
        Some(version) if emulates_in_parallel(&version) => "tcg,thread=multi",
        _ => "tcg,thread=single",
    }
}

/// A QEMU that a guest broke out of starts no program, gains no rights, and changes no
/// priorities (seccomp(2); docs/system/invocation of QEMU).
const SANDBOX: &str = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";

/// The network of a guest, as the monitor calls it.
pub(crate) const NETWORK: &str = "network";

/// True if this QEMU was built with its sandbox. Not every one is.
pub(crate) fn sandbox_works(of: &'static Architecture) -> bool {
    static WORKS: Mutex<BTreeMap<&str, bool>> = Mutex::new(BTreeMap::new());
    let mut works = WORKS.lock().unwrap_or_else(PoisonError::into_inner);
    *works.entry(of.qemu).or_insert_with(|| {
        let tried = doors::read::output_of(asked(of).args(["-sandbox", SANDBOX, "-version"]));
        tried.is_ok_and(|output| output.status.success())
    })
}

/// Source of the guest's CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accel {
    Kvm,
    /// Emulation.
    Tcg,
}

impl Accel {
    pub fn as_str(self) -> &'static str {
        match self {
            Accel::Kvm => "kvm",
            Accel::Tcg => "tcg",
        }
    }
}

/// Descriptors that QEMU gets open. Host ends are socket pairs, so no file is left behind
/// whatever happens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Descriptors {
    pub console: RawFd,
    pub monitor: RawFd,
    pub control: RawFd,
    pub agent: RawFd,
    /// The disk of a guest that has one.
    pub image: Option<RawFd>,
    /// The state that a saved guest continues from.
    pub memory: Option<RawFd>,
    /// The initramfs of a guest that has one of its own.
    pub initramfs: Option<RawFd>,
}

impl Descriptors {
    pub fn raw_fds(&self) -> Vec<RawFd> {
        let mut all = vec![self.console, self.monitor, self.control, self.agent];
        all.extend(self.image);
        all.extend(self.memory);
        all.extend(self.initramfs);
        all
    }
}

/// Source of the guest's root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Root {
    Host,
    /// A disk image; nothing of the host is shared.
    Image(PathBuf),
    /// None: a probe ends before it needs one, and a guest in virtual time has its files in memory.
    Nothing,
}

impl Root {
    pub fn image(&self) -> Option<&Path> {
        match self {
            Root::Image(image) => Some(image),
            Root::Host | Root::Nothing => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandLine {
    pub architecture: &'static Architecture,
    pub accel: Accel,
    pub cpus: u32,
    pub topology: Option<Topology>,
    pub memory_bytes: u64,
    pub kernel: PathBuf,
    pub initramfs: PathBuf,
    /// The hypervisor below the kernel, a multiboot image.
    pub xen: Option<PathBuf>,
    /// Scheduler of the hypervisor's first pool, where dom0 is; `None`: the usual one.
    pub xen_scheduler: Option<String>,
    /// Description of the machine in place of QEMU's own.
    pub device_tree: Option<PathBuf>,
    /// Kernel arguments after our own.
    pub append: String,
    pub root: Root,
    /// The directory that is the guest's `/` where its root is the host's.
    pub shared: PathBuf,
    pub forwards: Vec<Forward>,
    /// Will ports be forwarded while it runs?
    pub forwards_later: bool,
    /// The memory of a saved guest to continue from.
    pub incoming: Option<PathBuf>,
    /// Seed of a guest in virtual time.
    pub virtual_time: Option<u64>,
    pub descriptors: Descriptors,
}

impl CommandLine {
    pub fn args(&self) -> Vec<String> {
        let mut args = Vec::new();
        self.machine(&mut args);
        self.processors(&mut args);
        self.boot(&mut args);
        self.channels(&mut args);
        self.file_systems(&mut args);
        self.network(&mut args);
        if let Some(memory) = self.descriptors.memory {
            push(&mut args, &["-incoming", &format!("fd:{memory}")]);
        }
        if sandbox_works(self.architecture) {
            push(&mut args, &["-sandbox", SANDBOX]);
        }
        args
    }

    /// Arguments with which QEMU writes the device tree of this machine into a file, and ends.
    pub fn dump_args(&self, into: &Path) -> Vec<String> {
        let mut args = Vec::new();
        self.machine(&mut args);
        self.processors(&mut args);
        let dump = format!("dumpdtb={}", without_commas(&text(into)));
        push(&mut args, &["-machine", &dump]);
        args
    }

    fn machine(&self, args: &mut Vec<String>) {
        push(args, &["-nodefaults", "-no-user-config", "-no-reboot"]);
        push(args, &["-display", "none", "-name", "schedlab"]);
        push(args, &["-machine", self.architecture.board]);
        if let Some(seed) = self.virtual_time {
            return self.virtual_clock(args, seed);
        }
        match self.accel {
            Accel::Kvm => push(args, &["-accel", "kvm", "-cpu", "host"]),
            Accel::Tcg => {
                let tcg = tcg(self.architecture);
                push(args, &["-accel", tcg, "-cpu", self.emulated_cpu()]);
            }
        }
    }

    /// An instruction takes 2 ns, and a CPU that has nothing to do goes on to the next timer at once
    /// (docs/system/invocation of QEMU, -icount). All that a guest could learn of this machine's
    /// time or chance is fixed: the clock's start, and by the seed what QEMU draws for it.
    ///
    /// QEMU's main loop moves the clock on when the CPU is idle. Without a lock it may do so between
    /// the last instruction of a CPU that goes idle and the moment at which that one is counted, and
    /// then the clock is ahead by some instructions: of 16 boots 3 were. A recording has that lock
    /// (docs/devel/replay); the record itself is of no use.
    fn virtual_clock(&self, args: &mut Vec<String>, seed: u64) {
        push(args, &["-accel", "tcg,thread=single"]);
        let cpu = match self.xen {
            Some(_) => COUNTED_CPU_OF_XEN,
            None => self.emulated_cpu(),
        };
        push(args, &["-cpu", cpu]);
        let recorded = "shift=1,sleep=off,rr=record,rrfile=/dev/null";
        push(args, &["-icount", recorded]);
        push(args, &["-rtc", "base=2026-01-01T00:00:00,clock=vm"]);
        push(args, &["-seed", &seed.to_string()]);
    }

    /// QEMU tells which CPUs of a PC share a last-level cache by Intel's leaf 4 of CPUID, and Linux does
    /// not ask an AMD for it.
    fn emulated_cpu(&self) -> &'static str {
        match &self.topology {
            Some(t) if t.llcs > 1 && *self.architecture == X86_64 => match version(&X86_64) {
                // Without leaf 0x1f Linux asks leaf 0xb, which has threads and cores.
                Some(version) if dies_of_leaf_1f(&version) => {
                    "max,-smap,-erms,vendor=GenuineIntel,level=30"
                }
                _ => "max,-smap,-erms,vendor=GenuineIntel",
            },
            _ => self.architecture.emulated_cpu,
        }
    }

    fn processors(&self, args: &mut Vec<String>) {
        let smp = match &self.topology {
            Some(t) => format!(
                "{},sockets={},{}={},cores={},threads={}",
                self.cpus, t.sockets, self.architecture.caches, t.llcs, t.cores, t.threads
            ),
            None => format!("{},sockets=1,cores={},threads=1", self.cpus, self.cpus),
        };
        push(
            args,
            &["-smp", &smp, "-m", &format!("{}B", self.memory_bytes)],
        );
        let nodes = self.topology.as_ref().map_or(1, |t| t.numa_nodes);
        if nodes > 1 {
            self.numa_nodes(args, nodes);
        }
    }

    /// CPUs and memory in equal, contiguous shares; the last node has the rest.
    fn numa_nodes(&self, args: &mut Vec<String>, nodes: u32) {
        const PAGE: u64 = 2 << 20;
        let share = self.memory_bytes / u64::from(nodes) / PAGE * PAGE;
        let cpus = self.cpus / nodes;
        for node in 0..nodes {
            let last = node + 1 == nodes;
            let size = if last {
                self.memory_bytes - share * u64::from(nodes - 1)
            } else {
                share
            };
            let to = if last { self.cpus } else { (node + 1) * cpus } - 1;
            let memory = format!("memory-backend-ram,id=memory{node},size={size}");
            let cpus = format!(
                "node,nodeid={node},cpus={}-{to},memdev=memory{node}",
                node * cpus
            );
            push(args, &["-object", &memory, "-numa", &cpus]);
        }
    }

    fn boot(&self, args: &mut Vec<String>) {
        let console = match self.xen {
            Some(_) => "hvc0",
            None => self.architecture.console,
        };
        let append = format!(
            "console={console} {KERNEL_ARGUMENTS} {} {} -- {INIT_ARGUMENT}",
            self.clock(),
            self.append
        );
        if let Some(xen) = &self.xen {
            let modules = format!(
                "{} {},{}",
                without_commas(&text(&self.kernel)),
                without_commas(&append),
                without_commas(&self.initramfs_path())
            );
            push(args, &["-kernel", &text(xen), "-initrd", &modules]);
            let scheduler = self.xen_scheduler.as_ref();
            let scheduler = scheduler.map(|name| format!(" sched={name}"));
            let append = XEN_ARGUMENTS.to_owned() + &scheduler.unwrap_or_default();
            push(args, &["-append", &append]);
            return;
        }
        push(
            args,
            &[
                "-kernel",
                &text(&self.kernel),
                "-initrd",
                &self.initramfs_path(),
            ],
        );
        push(args, &["-append", &append]);
        if let Some(tree) = &self.device_tree {
            push(args, &["-dtb", &text(tree)]);
        }
    }

    fn initramfs_path(&self) -> String {
        match self.descriptors.initramfs {
            Some(fd) => format!("/proc/self/fd/{fd}"),
            None => text(&self.initramfs),
        }
    }

    fn clock(&self) -> &'static str {
        match (self.accel, &self.xen) {
            // The clock that the guests of Xen have. Dom0 prefers the time-stamp counter, which
            // Xen's time drifts away from where the host is busy.
            (_, Some(_)) => "clocksource=xen",
            (Accel::Tcg, None) if self.virtual_time.is_some() => self.architecture.counted_clock,
            (Accel::Tcg, None) => self.architecture.emulated_clock,
            (Accel::Kvm, None) => "",
        }
    }

    fn channels(&self, args: &mut Vec<String>) {
        if self.virtual_time.is_some() {
            return self.ends_in_files(args);
        }
        let fds = self.descriptors;
        for (id, fd) in [
            ("console", fds.console),
            ("monitor", fds.monitor),
            ("control", fds.control),
            ("agent", fds.agent),
        ] {
            push(args, &["-chardev", &format!("socket,id={id},fd={fd}")]);
        }
        push(
            args,
            &[
                "-serial",
                "chardev:console",
                "-mon",
                "chardev=monitor,mode=control",
            ],
        );
        push(args, &["-device", "virtio-serial-pci"]);
        for (id, name) in [("control", CONTROL_PORT), ("agent", AGENT_PORT)] {
            push(
                args,
                &[
                    "-device",
                    &format!("virtserialport,chardev={id},name={name}"),
                ],
            );
        }
    }

    /// In virtual time the guest only writes, and into files. A socket takes some hundred single
    /// bytes and then makes the guest wait for whoever reads, and one that is closed is an event in
    /// the guest. A notice to a device is dealt with where the guest gives it, not by another thread
    /// some instructions later (`ioeventfd`).
    fn ends_in_files(&self, args: &mut Vec<String>) {
        let fds = self.descriptors;
        for (set, id, fd) in [(2, "console", fds.console), (3, "agent", fds.agent)] {
            push(args, &["-add-fd", &format!("fd={fd},set={set}")]);
            let file = format!("file,id={id},path=/dev/fdset/{set}");
            push(args, &["-chardev", &file]);
        }
        push(args, &["-serial", "chardev:console"]);
        push(args, &["-device", "virtio-serial-pci,ioeventfd=off"]);
        let port = format!("virtserialport,chardev=agent,name={AGENT_PORT}");
        push(args, &["-device", &port]);
    }

    fn file_systems(&self, args: &mut Vec<String>) {
        match &self.root {
            Root::Host => self.share_root(args),
            Root::Image(image) => {
                // Opened by who starts QEMU; it is told the format and guesses nothing.
                let format = disk::format(image);
                let fd = self.descriptors.image.unwrap_or_default();
                let drive = format!("if=virtio,read-only=on,format={format},file=/dev/fdset/1");
                push(args, &["-add-fd", &format!("fd={fd},set=1")]);
                push(args, &["-drive", &drive]);
            }
            Root::Nothing => {}
        }
    }

    /// Read-only; what the user may not read on the host cannot be read in the guest.
    fn share_root(&self, args: &mut Vec<String>) {
        let share = format!(
            "local,path={},mount_tag={HOST_TAG},security_model=none,readonly=on,multidevs=remap",
            text(&self.shared)
        );
        push(args, &["-virtfs", &share]);
    }

    /// Off unless a port is forwarded, now or later; then nothing but the forwards.
    fn network(&self, args: &mut Vec<String>) {
        if self.forwards.is_empty() && !self.forwards_later {
            push(args, &["-nic", "none"]);
            return;
        }
        let mut nic = format!("user,id={NETWORK},model=virtio-net-pci,restrict=on");
        for forward in &self.forwards {
            nic.push_str(&format!(
                ",hostfwd=tcp:127.0.0.1:{}-:{}",
                forward.host_port, forward.guest_port
            ));
        }
        push(args, &["-nic", &nic]);
    }
}

/// QEMU ends a module of `-initrd` at a comma that is not doubled.
fn without_commas(text: &str) -> String {
    text.replace(',', ",,")
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn push(args: &mut Vec<String>, more: &[&str]) {
    args.extend(more.iter().map(|&a| a.to_owned()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> CommandLine {
        CommandLine {
            architecture: &X86_64,
            accel: Accel::Tcg,
            cpus: 2,
            topology: None,
            memory_bytes: 1 << 30,
            kernel: "/k/vmlinuz".into(),
            initramfs: "/c/i.cpio".into(),
            xen: None,
            xen_scheduler: None,
            device_tree: None,
            append: "nosmt".to_owned(),
            root: Root::Host,
            shared: "/".into(),
            forwards: Vec::new(),
            forwards_later: false,
            incoming: None,
            virtual_time: None,
            descriptors: Descriptors {
                console: 3,
                monitor: 4,
                control: 5,
                agent: 6,
                ..Descriptors::default()
            },
        }
    }

    fn joined(line: &CommandLine) -> String {
        line.args().join(" ")
    }

    #[test]
    fn the_host_is_shared_read_only_and_the_network_is_off() {
        let args = joined(&line());
        assert!(args.contains("path=/,mount_tag=schedlab-host,security_model=none,readonly=on"));
        assert!(args.contains("-nic none"));
        assert!(args.contains("-no-reboot"));
        assert!(args.contains("-m 1073741824B"));
        assert!(args.contains("panic=-1") && args.contains(" tsc=reliable nosmt -- schedlab.init"));
    }

    #[test]
    fn forwards_are_bound_to_loopback_and_nothing_else_gets_out() {
        let args = joined(&CommandLine {
            forwards: vec![Forward {
                name: "http".to_owned(),
                host_port: 18080,
                guest_port: 80,
            }],
            ..line()
        });
        assert!(
            args.contains("restrict=on,hostfwd=tcp:127.0.0.1:18080-:80"),
            "{args}"
        );
    }

    #[test]
    fn numa_nodes_share_cpus_and_memory_without_a_rest() {
        let args = joined(&CommandLine {
            cpus: 5,
            memory_bytes: (1 << 30) + (3 << 20),
            topology: Some(Topology {
                sockets: 1,
                llcs: 1,
                cores: 5,
                threads: 1,
                numa_nodes: 2,
            }),
            ..line()
        });
        assert!(args.contains("-smp 5,sockets=1,dies=1,cores=5,threads=1"));
        assert!(
            args.contains("nodeid=0,cpus=0-1") && args.contains("nodeid=1,cpus=2-4"),
            "{args}"
        );
        let sizes: u64 = args
            .split("size=")
            .skip(1)
            .map(|rest| rest.split(' ').next().unwrap().parse::<u64>().unwrap())
            .sum();
        assert_eq!(sizes, (1 << 30) + (3 << 20));
    }

    #[test]
    fn an_image_is_a_read_only_disk_that_is_open_already() {
        let mut with_image = CommandLine {
            root: Root::Image("/images/a,b.qcow2".into()),
            ..line()
        };
        with_image.descriptors.image = Some(9);
        let args = joined(&with_image);
        assert!(args.contains("-add-fd fd=9,set=1 -drive if=virtio,read-only=on,format=qcow2"));
        assert!(args.contains("file=/dev/fdset/1"));
        assert!(!args.contains("-virtfs"));
    }

    #[test]
    fn virtual_time_counts_instructions_and_is_seeded() {
        let mut virtual_time = CommandLine {
            virtual_time: Some(7),
            root: Root::Nothing,
            ..line()
        };
        virtual_time.descriptors.initramfs = Some(9);
        let args = joined(&virtual_time);
        assert!(args.contains("-icount shift=1,sleep=off,rr=record") && args.contains("-seed 7"));
        assert!(args.contains("-accel tcg,thread=single") && args.contains("clock=vm"));
        assert!(args.contains(" pti=on "), "{args}");
        assert!(args.contains("-initrd /proc/self/fd/9") && !args.contains("-virtfs"));
        assert!(args.contains("virtio-serial-pci,ioeventfd=off"));
        assert!(args.contains("-add-fd fd=3,set=2 -chardev file,id=console,path=/dev/fdset/2"));
    }

    #[test]
    fn xen_in_virtual_time_has_the_scheduler_of_its_boot() {
        let mut line = CommandLine {
            virtual_time: Some(7),
            root: Root::Nothing,
            xen: Some("/x/xen.elf".into()),
            xen_scheduler: Some("credit".to_owned()),
            ..line()
        };
        line.descriptors.initramfs = Some(9);
        let args = joined(&line);
        assert!(args.contains("guest_loglvl=error sched=credit"), "{args}");
        assert!(
            args.contains("-cpu max,-smap,-erms,-x2apic")
                && args.contains(",/proc/self/fd/9 -append")
        );
    }

    #[test]
    fn xen_is_the_kernel_and_the_kernel_its_first_module() {
        let args = joined(&CommandLine {
            xen: Some("/x/xen.elf".into()),
            append: "a=1,2".to_owned(),
            ..line()
        });
        let modules = "-kernel /x/xen.elf -initrd /k/vmlinuz console=hvc0 ";
        assert!(args.contains(modules), "{args}");
        assert!(args.contains("a=1,,2 -- schedlab.init,/c/i.cpio -append dom0_mem=768M,max:768M"));
        assert!(!args.contains("ttyS0"));
    }

    #[test]
    fn kvm_uses_the_cpu_of_the_host() {
        let args = joined(&CommandLine {
            accel: Accel::Kvm,
            ..line()
        });
        assert!(args.contains("-accel kvm -cpu host"));
    }
}
