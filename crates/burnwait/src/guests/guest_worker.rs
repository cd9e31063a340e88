//! The worker in its guest, where it is the first process and the only one: it is told its task
//! over the console, works, and says what it recorded.

use super::super::wire::{ARGUMENT, Said};
use super::super::worker_process;
use rustix::mount::{MountFlags, mount};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use std::ffi::OsString;
use std::io;

/// True if this process is the first one of a guest that is a worker.
pub fn is_wanted() -> bool {
    is_worker(std::process::id(), std::env::args_os())
}

/// The kernel starts `/init` with the words after `--` of its command line, of which ours is the
/// last.
fn is_worker(pid: u32, mut args: impl Iterator<Item = OsString>) -> bool {
    let from_initramfs = args.next().is_some_and(|arg| arg == "/init");
    pid == 1 && from_initramfs && args.last().is_some_and(|arg| arg == ARGUMENT)
}

/// The life of a worker in its guest. It never returns: dom0 destroys the guest.
pub fn main() -> ! {
    match open_console() {
        Ok(()) => worker_process::live(worker_process::Home::Guest),
        Err(why) => worker_process::send_line(&Said::Failed(why)),
    }
    loop {
        std::thread::park();
    }
}

fn open_console() -> Result<(), String> {
    doors::written::make_directory(std::path::Path::new("/proc"))
        .map_err(|e| format!("make /proc: {e}"))?;
    mount("proc", "/proc", "proc", MountFlags::empty(), c"")
        .map_err(|e| format!("mount /proc: {e}"))?;
    let console = io::stdin();
    // Lines may be longer than a terminal has them, and are not to be echoed.
    let mut modes = tcgetattr(&console).map_err(|e| format!("the console: {e}"))?;
    modes.make_raw();
    tcsetattr(&console, OptionalActions::Now, &modes).map_err(|e| format!("the console: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_process_of_a_workers_guest_is_a_worker() {
        let is_worker = |pid, args: &[&str]| is_worker(pid, args.iter().map(OsString::from));
        assert!(is_worker(1, &["/init", "nokaslr", ARGUMENT]));
        assert!(!is_worker(7, &["/init", ARGUMENT]));
        assert!(!is_worker(1, &["/init", "schedlab.init"]));
        assert!(!is_worker(1, &["schedlab", ARGUMENT]));
    }
}
