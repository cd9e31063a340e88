//! The first process of a guest. It loads modules, puts the host's files (or an
//! image) below a tmpfs, starts the agent on its serial port, serves the control
//! port, reaps what is orphaned, and powers off when the agent ends.
//!
//! It runs as PID 1 from the initramfs and never returns; what fails is told to the
//! host over the control port where there is one, and on the console.

#![expect(
    clippy::disallowed_methods,
    reason = "the first process of a guest, in which nobody else is yet"
)]

mod children;
mod command;
mod initramfs_root;
mod mounts;
mod network;
mod port;
mod root;
mod serve;
mod xen;

use super::elf;
use super::frame::{self, Frame, FrameKind, Ready, Setup};
use doors::shown::{print_note, raw_output};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// A step of init that failed: what, and why.
#[derive(Debug)]
struct Failure(String);

/// For `map_err`: the step that an error belongs to.
fn at(step: impl std::fmt::Display) -> impl FnOnce(io::Error) -> Failure {
    move |e| Failure(format!("{step}: {e}"))
}

/// The kernel's configuration in the initramfs.
pub(crate) const CONFIG: &str = "config";
/// Groups of modules in the initramfs.
pub(crate) const ALWAYS: &str = "always";
pub(crate) const FOR_IMAGE: &str = "image";
pub(crate) const FOR_NETWORK: &str = "network";
pub(crate) const FOR_XEN: &str = "xen";

/// True if this process is the first one of a guest. The first process of a container is not:
/// it is what its arguments say.
pub fn is_wanted() -> bool {
    let initramfs = Path::new("/modules").is_dir();
    is_init(std::process::id(), std::env::args_os(), initramfs)
}

/// The kernel starts `/init` of the initramfs with the words of its command line that it
/// does not know itself, and then with those after `--` (init/main.c), of which ours is
/// the last.
fn is_init(pid: u32, mut args: impl Iterator<Item = OsString>, initramfs: bool) -> bool {
    let from_initramfs = args.next().is_some_and(|a| a == "/init");
    pid == 1
        && initramfs
        && from_initramfs
        && args.last().is_some_and(|a| a == frame::INIT_ARGUMENT)
}

/// The life of a guest, from its first process to its power-off. It never returns.
pub fn main() -> ! {
    if let Err(Failure(why)) = early() {
        log(&format!("init failed: {why}"));
    }
    power_off()
}

/// Up to the control port there is only the console to complain on.
fn early() -> Result<(), Failure> {
    mounts::mount_early()?;
    load_modules(ALWAYS)?;
    if kernel_argument(frame::PROBE_ARGUMENT) {
        let mut console = raw_output("the console of a guest, which the host reads");
        return writeln!(console, "{}", frame::PROBE_ANSWER).map_err(at("answer the probe"));
    }
    if initramfs_root::is_there() {
        return initramfs_root::run();
    }
    let mut control = port::open(frame::CONTROL_PORT)?;
    let result = serve_host(&mut control);
    if let Err(Failure(why)) = &result {
        let failed = Frame::new(FrameKind::Failed, 0, why.as_bytes());
        // The console has it too.
        let _ = failed.write(&mut control);
    }
    result
}

fn serve_host(control: &mut File) -> Result<(), Failure> {
    let mut setup = read_setup(control)?;
    prepare(&setup)?;
    start_xen(&mut setup)?;
    let agent = match &setup.agent {
        Some(args) => Some((args.clone(), port::open(frame::AGENT_PORT)?)),
        None => None,
    };
    Frame::json(FrameKind::Ready, 0, &ready())
        .and_then(|frame| frame.write(control))
        .map_err(at("greet the host"))?;
    serve::run(control, &setup, agent)
}

fn ready() -> Ready {
    Ready {
        release: release(),
        version: version(),
        build_id: build_id(),
        uptime_ns: uptime_ns(),
    }
}

fn read_setup(control: &mut File) -> Result<Setup, Failure> {
    let frame = Frame::read(control).map_err(at("read the setup"))?;
    match frame {
        Some(frame) if frame.kind == FrameKind::Setup => {
            frame.parse().map_err(at("read the setup"))
        }
        _ => Err(Failure("the host sent no setup".to_owned())),
    }
}

fn prepare(setup: &Setup) -> Result<(), Failure> {
    let config = doors::read::small_file_bytes(Path::new("/").join(CONFIG)).unwrap_or_default();
    if setup.image {
        load_modules(FOR_IMAGE)?;
    }
    if setup.network {
        load_modules(FOR_NETWORK)?;
    }
    if setup.xen.is_some() {
        load_modules(FOR_XEN)?;
    }
    root::enter(setup)?;
    mounts::mount_all();
    root::name_loopback(setup);
    root::show_kernel(setup, &release(), &config);
    rustix::system::sethostname(setup.hostname.as_bytes())
        .map_err(|e| at("set the hostname")(e.into()))?;
    network::bring_up(setup.network)?;
    raise_limits();
    // From here on the kernel's words go to the console: ejections, oopses, panics.
    let _ = fs::write("/proc/sys/kernel/printk", "7 4 1 7");
    Ok(())
}

/// Starts the toolstack of a dom0; any other guest has none.
fn start_xen(setup: &mut Setup) -> Result<(), Failure> {
    let dom0 = setup.xen.clone();
    dom0.map_or(Ok(()), |dom0| {
        xen::start(&dom0, &release(), &mut setup.environment)
    })
}

fn load_modules(group: &str) -> Result<(), Failure> {
    let dir = Path::new("/modules");
    let list = doors::read::small_file_text(dir.join(group)).unwrap_or_default();
    for name in list.lines() {
        let path = dir.join(format!("{name}.ko"));
        let module = File::open(&path).map_err(at(path.display()))?;
        match rustix::system::finit_module(&module, c"", 0) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(e) => return Err(at(format!("load module {name}"))(e.into())),
        }
        // The initramfs is memory.
        let _ = fs::remove_file(path);
    }
    Ok(())
}

/// Raises limits as a service manager does: a program may open more than 1024 files.
fn raise_limits() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let files = Rlimit {
        current: Some(65_536),
        maximum: Some(1_048_576),
    };
    let unlimited = Rlimit {
        current: None,
        maximum: None,
    };
    for (resource, limit) in [(Resource::Nofile, files), (Resource::Memlock, unlimited)] {
        if let Err(e) = setrlimit(resource, limit) {
            log(&format!("raise the limit {resource:?}: {e}"));
        }
    }
}

fn kernel_argument(name: &str) -> bool {
    let line = doors::read::kernel_text("/proc/cmdline").unwrap_or_default();
    line.split_whitespace().any(|word| word == name)
}

fn release() -> String {
    rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned()
}

fn version() -> String {
    rustix::system::uname()
        .version()
        .to_string_lossy()
        .into_owned()
}

fn build_id() -> Option<String> {
    elf::build_id_of_notes(&doors::read::kernel_bytes("/sys/kernel/notes").ok()?)
}

fn uptime_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Into the kernel log, and so on the console.
fn log(line: &str) {
    let written = File::options()
        .write(true)
        .open("/dev/kmsg")
        .and_then(|mut kmsg| kmsg.write_all(format!("<4>schedlab: {line}\n").as_bytes()));
    if written.is_err() {
        print_note(format_args!("schedlab: {line}"));
    }
}

fn power_off() -> ! {
    let _ = raw_output("the console of a guest").flush();
    let _ = rustix::system::reboot(rustix::system::RebootCommand::PowerOff);
    // Ending is a panic of the kernel, which ends the guest as well.
    std::process::exit(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_process_of_a_guest_is_its_init() {
        let is_init = |pid, args: &[&str], initramfs| {
            is_init(pid, args.iter().map(OsString::from), initramfs)
        };
        let ours = frame::INIT_ARGUMENT;
        assert!(is_init(1, &["/init", ours], true));
        assert!(is_init(1, &["/init", "nokaslr", ours], true));
        assert!(!is_init(2, &["/init", ours], true));
        assert!(
            !is_init(1, &["/init", ours], false),
            "a container without /modules"
        );
        assert!(!is_init(1, &["/init"], true));
        assert!(!is_init(1, &["/init", "verify", "x.tar.gz"], true));
        assert!(!is_init(1, &["schedlab", ours], true));
        assert!(!is_init(1, &["schedlab", "verify", "x.tar.gz"], false));
        assert!(!is_init(1, &[], true));
    }
}
