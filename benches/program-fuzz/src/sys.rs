//! The program in a child that is forked and starts no other: its own function is called there. This
//! is the only unsafe code here.

use crate::judge::{CPU_SECONDS, LIMIT, MEMORY_BYTES};
use rustix::process::{Pid, Resource, Rlimit, WaitOptions, setrlimit, waitpid};
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;

/// Exit code of a panic, as that of the program itself.
const PANICKED: i32 = 101;

/// Runs the program with these words in `dir`; gives its exit code, or the signal that ended it.
pub fn run(
    words: &[OsString],
    dir: &Path,
    environment: &[(&str, OsString)],
    streams: [&File; 2],
) -> (Option<i32>, Option<i32>) {
    let threads = fs::read_dir("/proc/self/task").expect("/proc").count();
    assert_eq!(threads, 1, "a lock of another thread would stay held");
    // SAFETY: this process has one thread, so the child has all of it.
    match unsafe { libc::fork() } {
        0 => child(words, dir, environment, streams),
        pid => ended(Pid::from_raw(pid).expect("a child: there is memory for it")),
    }
}

fn ended(pid: Pid) -> (Option<i32>, Option<i32>) {
    let waited = rustix::io::retry_on_intr(|| waitpid(Some(pid), WaitOptions::empty()));
    let (_, status) = waited.expect("it is ours").expect("it has ended");
    (status.exit_status(), status.terminating_signal())
}

fn child(
    words: &[OsString],
    dir: &Path,
    environment: &[(&str, OsString)],
    [out, err]: [&File; 2],
) -> ! {
    std::env::set_current_dir(dir).expect("the directory of the campaign");
    for (name, value) in environment {
        // SAFETY: nobody else reads it, since this process has one thread.
        unsafe { std::env::set_var(name, value) };
    }
    let null = File::open("/dev/null").expect("/dev/null");
    for (number, file) in [&null, out, err].into_iter().enumerate() {
        let number = i32::try_from(number).expect("0, 1 or 2");
        // SAFETY: nobody holds these three by another name.
        let made = unsafe { libc::dup2(file.as_raw_fd(), number) };
        assert_eq!(made, number, "a standard stream");
    }
    limit(Resource::Core, 0);
    limit(Resource::As, MEMORY_BYTES);
    limit(Resource::Cpu, CPU_SECONDS);
    let seconds = u32::try_from(LIMIT.as_secs()).expect("some minutes");
    // SAFETY: it takes no memory of ours.
    unsafe { libc::alarm(seconds) };
    let ran = catch_unwind(AssertUnwindSafe(|| schedlab::run(words.iter().cloned())));
    std::process::exit(ran.map_or(PANICKED, number))
}

fn limit(resource: Resource, most: u64) {
    let limit = Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    setrlimit(resource, limit).expect("a lower limit is allowed");
}

/// An exit code says its number to nobody but the system.
fn number(code: ExitCode) -> i32 {
    let is_it = |number: &u8| ExitCode::from(*number) == code;
    (0..=u8::MAX).find(is_it).map_or(-1, i32::from)
}
