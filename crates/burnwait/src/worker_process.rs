//! A worker that is told its task over its standard streams: it works, and says what it recorded.

use super::wire::{Order, Report, Said, Task};
use super::worker::{self, Member, Own, Shape};
use super::{Settled, baseline, burn};
use doors::read::line_within;
use load::gate::{Gate, Timing};
use load::recording::Window;
use load::sys;
use std::ffi::CString;
use std::io::{self, Write};

/// Surroundings of a worker that is told its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// A process among others.
    Process,
    /// A guest, from which others can take its time.
    Guest,
}

/// From the first line to the report, or to why there is none.
pub fn live(home: Home) {
    if let Err(why) = obey(home) {
        send_line(&Said::Failed(why));
    }
}

/// A worker that is a process: the life of `schedlab worker`.
pub fn process_main() -> Result<(), String> {
    // The parent is to know it by the name that a thread of its own would have.
    let name = CString::new(worker::THREAD).map_err(|e| e.to_string())?;
    rustix::thread::set_name(&name).map_err(|e| format!("set the name of the process: {e}"))?;
    // Where the load is killed, nobody else would end its workers before their window ends.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(|e| format!("be ended with the load: {e}"))?;
    live(Home::Process);
    // What it used is read while it is there: the load closes the pipe or ends it.
    doors::read::discard_rest(io::stdin().lock()).map_err(|e| format!("wait: {e}"))?;
    Ok(())
}

fn obey(home: Home) -> Result<(), String> {
    send_line(&Said::Ready);
    match read()? {
        Task::Work {
            set,
            duration_ns,
            interval_ns,
            operations_per_kop,
            after_ns,
            seed,
            reads_per_ms,
        } => {
            let shape = Shape {
                duration_ns,
                interval_ns,
                operations_per_kop,
            };
            let own = Own {
                after_ns,
                seed,
                reads_per_ms,
                ..Own::default()
            };
            // Who it is among all, its load knows.
            work(Settled::new(Member::default(), &set, shape, own)?, home)
        }
        Task::Alone {
            sets,
            operations_per_us,
            interval_ns,
        } => {
            let operations_per_us = operations_per_us.unwrap_or_else(burn::operations_per_us);
            let wants = baseline::measure_wants(&sets, interval_ns, operations_per_us)?;
            send_line(&Said::Wants {
                operations_per_us,
                wants,
            });
            Ok(())
        }
    }
}

fn work(worker: Settled, home: Home) -> Result<(), String> {
    send_line(&Said::Waiting);
    let go = loop {
        match read()? {
            Order::TellClock => send_line(&Said::Clock(sys::now_ns())),
            Order::Go(go) => break go,
        }
    };
    let window = Window {
        begin_ns: go.begin_ns,
        end_ns: go.end_ns,
    };
    let late_ns = sys::now_ns().saturating_sub(window.begin_ns);
    // A guest's is no longer the common window. A process that is late was starved: so it is measured.
    if late_ns > 0 && home == Home::Guest {
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
    let is_guest = home == Home::Guest;
    let stolen = is_guest.then(|| std::thread::spawn(move || stolen_ns(window)));
    let record = worker.run(&gate);
    // One that panicked leaves nothing to say.
    let steal_ns = stolen
        .and_then(|thread| thread.join().ok())
        .unwrap_or_default();
    send_line(&Said::Report(Report::from_record(&record?, steal_ns)));
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
    let stat = doors::read::kernel_text("/proc/stat").unwrap_or_default();
    steal_ticks(&stat).unwrap_or_default() * 10_000_000
}

fn steal_ticks(stat: &str) -> Option<u64> {
    let words = stat.lines().next()?.strip_prefix("cpu ")?;
    words.split_whitespace().nth(7)?.parse().ok()
}

/// The most of a line that a worker is told.
const MOST_LINE_BYTES: u64 = 64 << 20;

fn read<T: serde::de::DeserializeOwned>() -> Result<T, String> {
    let line = line_within(&mut io::stdin().lock(), MOST_LINE_BYTES);
    let line = line.map_err(|e| format!("read what it is told: {e}"))?;
    serde_json::from_slice(&line.unwrap_or_default())
        .map_err(|e| format!("it was told what cannot be read: {e}"))
}

/// The terminal of a guest is raw, so a line ends as it is written.
pub fn send_line(said: &Said) {
    let mut output =
        doors::shown::raw_output("the console of a guest, which the host reads").lock();
    // Nobody else could be told.
    let _ = output.write_all(format!("\r\n{}\r\n", said.line()).as_bytes());
    let _ = output.flush();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_the_eighth_number() {
        let stat = "cpu  1 2 3 4 5 6 7 42 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(steal_ticks(stat), Some(42));
        assert_eq!(steal_ticks("intr 5"), None);
    }
}
