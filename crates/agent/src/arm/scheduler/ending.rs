//! The end of a scheduler that nobody asked to end: thrown out by the kernel, or by itself.

use collect::kernel_log::Record;
use model::When;

/// A change that ended within a trial, without being asked to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// The event that this is.
    pub when: When,
    /// Moment by the clock of the kernel's log, which is that of CLOCK_MONOTONIC; `None` where it said nothing.
    pub at_us: Option<u64>,
    /// Words of the kernel and of the scheduler, the most telling first.
    pub messages: Vec<String>,
}

/// Reasons for which the kernel throws a scheduler out (`scx_exit_reason` of kernel/sched/ext.c); any other is
/// of one that ended.
const EJECTIONS: [&str; 3] = ["runnable task stall", "runtime error", "scx_bpf_error"];

impl Ending {
    /// By the records of the kernel since the scheduler began, and what it printed about its end.
    pub fn new(kernel: &[Record], own: Vec<String>) -> Self {
        let is_end = |record: &&Record| record.message.contains("disabled");
        let end = kernel.iter().position(|record| is_end(&record));
        // What follows the reason is the message, such as which task stalled for how long.
        let said = end.map_or(&[][..], |at| &kernel[at..]);
        let told = said.iter().map(|record| record.message.clone());
        let messages: Vec<String> = told.take(2).chain(own).collect();
        let is_ejection =
            |message: &String| EJECTIONS.iter().any(|reason| message.contains(reason));
        Ending {
            when: match messages.iter().any(is_ejection) {
                true => When::Ejected,
                false => When::ErrorExit,
            },
            at_us: end.map(|at| kernel[at].at_us),
            messages,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(at_us: u64, message: &str) -> Record {
        Record {
            at_us,
            message: message.to_owned(),
        }
    }

    #[test]
    fn a_stall_is_an_ejection_with_the_moment_and_the_message_of_the_kernel() {
        let kernel = [
            record(5, "sched_ext: BPF scheduler \"lavd\" enabled"),
            record(
                90,
                "sched_ext: BPF scheduler \"lavd\" disabled (runnable task stall)",
            ),
            record(
                91,
                "sched_ext: lavd: kworker/1:2[77] failed to run for 31.2s",
            ),
        ];
        let found = Ending::new(&kernel, Vec::new());
        assert_eq!((found.when, found.at_us), (When::Ejected, Some(90)));
        assert!(
            found.messages[1].contains("failed to run"),
            "{:?}",
            found.messages
        );
    }

    #[test]
    fn without_the_kernels_log_the_words_of_the_scheduler_tell() {
        let own = |text: &str| Ending::new(&[], vec![text.to_owned()]).when;
        assert_eq!(own("EXIT: runnable task stall (watchdog)"), When::Ejected);
        assert_eq!(own("EXIT: unregistered from user space"), When::ErrorExit);
        assert_eq!(Ending::new(&[], Vec::new()).when, When::ErrorExit);
    }
}
