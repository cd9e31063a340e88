//! Hardware events of a process tree, by perf_event_open(2): cycles, instructions
//! and cache misses. Most guests have none of them.
//!
//! Opened like [`crate::perf::Counters`]. Where there are fewer counters in the CPU
//! than events, the kernel lets them take turns, and a count is scaled up by the
//! share of the time in which it was counted.

use crate::perf::of_tree;
use perf_event::Counter;
use perf_event::events::Hardware as Event;
use std::io;

/// Scaled counts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Counts {
    /// Cycles in which a CPU was at work for the tree.
    pub cycles: f64,
    /// Instructions that were completed.
    pub instructions: f64,
    /// Accesses to the cache, as a rule the last level (`PERF_COUNT_HW_CACHE_REFERENCES`).
    pub cache_references: f64,
    /// Accesses that the cache could not serve (`PERF_COUNT_HW_CACHE_MISSES`).
    pub cache_misses: f64,
}

impl Counts {
    /// Counts since `earlier`.
    pub fn counts_since(self, earlier: Counts) -> Counts {
        Counts {
            cycles: self.cycles - earlier.cycles,
            instructions: self.instructions - earlier.instructions,
            cache_references: self.cache_references - earlier.cache_references,
            cache_misses: self.cache_misses - earlier.cache_misses,
        }
    }
}

/// Open counters of one process tree.
#[derive(Debug)]
pub struct Hardware {
    cycles: Counter,
    instructions: Counter,
    cache_references: Counter,
    cache_misses: Counter,
}

impl Hardware {
    /// For a child that has not run its program yet. All or none.
    pub fn on_exec(pid: i32) -> io::Result<Self> {
        let open = |event| of_tree(pid, event);
        Ok(Hardware {
            cycles: open(Event::CPU_CYCLES)?,
            instructions: open(Event::INSTRUCTIONS)?,
            cache_references: open(Event::CACHE_REFERENCES)?,
            cache_misses: open(Event::CACHE_MISSES)?,
        })
    }

    /// Counts since the exec. An error where a counter cannot be read.
    pub fn read(&mut self) -> io::Result<Counts> {
        Ok(Counts {
            cycles: scaled(&mut self.cycles)?,
            instructions: scaled(&mut self.instructions)?,
            cache_references: scaled(&mut self.cache_references)?,
            cache_misses: scaled(&mut self.cache_misses)?,
        })
    }
}

fn scaled(counter: &mut Counter) -> io::Result<f64> {
    let read = counter.read_count_and_time()?;
    Ok(scale(read.count, read.time_enabled, read.time_running))
}

fn scale(count: u64, enabled: u64, running: u64) -> f64 {
    match running {
        0 => 0.0,
        running => count as f64 * enabled as f64 / running as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_count_is_scaled_by_the_share_of_time_in_which_it_was_counted() {
        assert_eq!(scale(10, 200, 100), 20.0);
        assert_eq!(scale(10, 100, 100), 10.0);
        assert_eq!(scale(0, 100, 0), 0.0);
    }

    /// Counts of a shell that waits until it may run the program, as the agent's children do.
    fn counts_of(program: &str) -> io::Result<Counts> {
        let mut child = Command::new("sh")
            .args(["-c", "read line; exec sh -c \"$0\"", program])
            .stdin(Stdio::piped())
            .spawn()?;
        let counters = Hardware::on_exec(i32::try_from(child.id()).unwrap());
        drop(child.stdin.take());
        child.wait()?;
        counters?.read()
    }

    #[test]
    fn instructions_of_a_program_are_counted() {
        match counts_of("i=0; while [ $i -lt 1000 ]; do i=$((i+1)); done") {
            Ok(counts) => assert!(counts.instructions > 10_000.0, "{counts:?}"),
            Err(error) => ::tests::skipped(format!("no hardware counters: {error}")),
        }
    }
}
