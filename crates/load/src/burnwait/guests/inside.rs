//! The worker in its guest, where it is the first process and the only one: it is told its task
//! over the console, works, and says what it recorded.

use super::super::worker::{Own, Shape, Worker};
use super::super::{alone, burn};
use super::wire::{ARGUMENT, Order, Report, Said, Task, pair};
use crate::gate::{Gate, Timing};
use crate::recording::Window;
use crate::sys;
use rustix::mount::{MountFlags, mount};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use std::ffi::OsString;
use std::io::{self, BufRead, Write};

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
    if let Err(why) = live() {
        say(&Said::Failed(why));
    }
    loop {
        std::thread::park();
    }
}

fn live() -> Result<(), String> {
    std::fs::create_dir_all("/proc").map_err(|e| format!("make /proc: {e}"))?;
    mount("proc", "/proc", "proc", MountFlags::empty(), c"")
        .map_err(|e| format!("mount /proc: {e}"))?;
    let console = io::stdin();
    // Lines may be longer than a terminal has them, and are not to be echoed.
    let mut modes = tcgetattr(&console).map_err(|e| format!("the console: {e}"))?;
    modes.make_raw();
    tcsetattr(&console, OptionalActions::Now, &modes).map_err(|e| format!("the console: {e}"))?;
    say(&Said::Ready);
    match read()? {
        Task::Work {
            set,
            duration_ns,
            interval_ns,
            operations_per_kop,
            after_ns,
            seed,
        } => {
            let shape = Shape {
                duration_ns,
                interval_ns,
                operations_per_kop,
            };
            let own = Own {
                after_ns,
                seed,
                ..Own::default()
            };
            work(Worker::new(0, &set, shape, own)?)
        }
        Task::Alone { sets, interval_ns } => {
            let operations_per_us = burn::operations_per_us();
            let wants = alone::wants(&sets, interval_ns, operations_per_us)?;
            let wants = wants.into_iter().map(pair).collect();
            say(&Said::Wants {
                operations_per_us,
                wants,
            });
            Ok(())
        }
    }
}

fn work(worker: Worker) -> Result<(), String> {
    say(&Said::Waiting);
    let go = loop {
        match read()? {
            Order::TellClock => say(&Said::Clock(sys::now_ns())),
            Order::Go(go) => break go,
        }
    };
    let window = Window {
        begin_ns: go.begin_ns,
        end_ns: go.end_ns,
    };
    let late_ns = sys::now_ns().saturating_sub(window.begin_ns);
    if late_ns > 0 {
        let late = model::format_duration_ns(late_ns);
        return Err(format!(
            "it was told to start {late} after its window had begun; use a longer warm-up"
        ));
    }
    let gate = Gate::default();
    gate.open(Timing {
        start_ns: go.start_ns,
        window,
    });
    let stolen = std::thread::spawn(move || stolen_ns(window));
    let record = worker.run(&gate);
    // One that panicked leaves nothing to say.
    let steal_ns = stolen.join().unwrap_or_default();
    say(&Said::Report(Report::of(&record, steal_ns)));
    Ok(())
}

/// Time of the window in which the guest could have run and another one did.
fn stolen_ns(window: Window) -> u64 {
    sys::sleep_until(window.begin_ns);
    let before = steal_ns();
    sys::sleep_until(window.end_ns);
    steal_ns().saturating_sub(before)
}

/// The eighth number of the first line of `/proc/stat`, in hundredths of a second (proc_stat(5)).
fn steal_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    steal_ticks(&stat).unwrap_or_default() * 10_000_000
}

fn steal_ticks(stat: &str) -> Option<u64> {
    let words = stat.lines().next()?.strip_prefix("cpu ")?;
    words.split_whitespace().nth(7)?.parse().ok()
}

fn read<T: serde::de::DeserializeOwned>() -> Result<T, String> {
    let mut line = String::new();
    io::stdin()
        .lock()
        .read_line(&mut line)
        .map_err(|e| format!("read the console: {e}"))?;
    serde_json::from_str(&line).map_err(|e| format!("it was told what cannot be read: {e}"))
}

/// The terminal is raw, so a line ends as it is written.
fn say(said: &Said) {
    let mut console = io::stdout().lock();
    // Nobody else could be told.
    let _ = console.write_all(format!("\r\n{}\r\n", said.line()).as_bytes());
    let _ = console.flush();
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

    #[test]
    fn stolen_time_is_the_eighth_number() {
        let stat = "cpu  1 2 3 4 5 6 7 42 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(steal_ticks(stat), Some(42));
        assert_eq!(steal_ticks("intr 5"), None);
    }
}
