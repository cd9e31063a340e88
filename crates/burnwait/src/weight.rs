//! The weight by which the kernel shares out CPU time among threads that want it.
//!
//! Source: `sched_prio_to_weight` and `WEIGHT_IDLEPRIO` of the kernel (kernel/sched/core.c,
//! kernel/sched/sched.h), and sched(7). sched_ext schedulers are told the same weights.

use rustix::process::{getpriority_process, setpriority_process};
use std::ops::RangeInclusive;

/// Nice values that there are.
pub const NICE: RangeInclusive<i32> = -20..=19;

/// The weight of nice 0.
pub const USUAL: u32 = 1024;
/// The weight of a thread under SCHED_IDLE, whatever its nice value.
const IDLE: u32 = 3;
/// The weight of each nice value, from -20 on: a step changes it by about a quarter.
const OF_NICE: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];

/// Gives the calling thread a nice value. Linux keeps one for each thread, unlike POSIX.
pub fn take_nice(nice: i32) -> Result<(), String> {
    setpriority_process(None, nice).map_err(|e| format!("set the nice value {nice}: {e}"))
}

/// The weight that the calling thread has now. Real-time policies know no weights: all threads
/// under one are equals.
pub fn own_weight() -> u32 {
    let nice = getpriority_process(None).unwrap_or(0);
    match doors::read::kernel_text("/proc/thread-self/stat") {
        Ok(stat) => of_policy(policy_in(&stat), nice),
        Err(_) => of_nice(nice),
    }
}

/// The policy in `/proc/PID/stat`, its 41st field (proc_pid_stat(5)).
fn policy_in(stat: &str) -> Option<u32> {
    // The second field, the name, may have spaces and brackets.
    let (_, from_third) = stat.rsplit_once(')')?;
    from_third.split_whitespace().nth(41 - 3)?.parse().ok()
}

fn of_policy(policy: Option<u32>, nice: i32) -> u32 {
    // include/uapi/linux/sched.h
    const FIFO: u32 = 1;
    const RR: u32 = 2;
    const SCHED_IDLE: u32 = 5;
    const DEADLINE: u32 = 6;
    match policy {
        Some(SCHED_IDLE) => IDLE,
        Some(FIFO | RR | DEADLINE) => USUAL,
        _ => of_nice(nice),
    }
}

/// The weight of a nice value.
pub fn of_nice(nice: i32) -> u32 {
    let index = nice.clamp(*NICE.start(), *NICE.end()) - NICE.start();
    let index = usize::try_from(index).unwrap_or_default();
    OF_NICE.get(index).copied().unwrap_or(USUAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_those_of_the_kernel() {
        assert_eq!(
            [of_nice(-20), of_nice(0), of_nice(1), of_nice(19)],
            [88_761, 1024, 820, 15]
        );
    }

    #[test]
    fn nice_values_count_under_time_sharing_policies_only() {
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 \
                    28 29 30 31 32 33 34 35 36 37 5 0";
        assert_eq!(policy_in(stat), Some(5));
        assert_eq!(of_policy(Some(5), -20), 3);
        assert_eq!(of_policy(Some(1), 10), USUAL);
        assert_eq!(of_policy(Some(3), 10), 110);
    }

    #[test]
    fn a_thread_has_the_weight_of_the_nice_value_that_it_took() {
        let weight = std::thread::spawn(|| {
            take_nice(5).unwrap();
            own_weight()
        });
        assert_eq!(weight.join().unwrap(), 335);
        // Other threads keep theirs.
        assert_eq!(own_weight(), of_nice(getpriority_process(None).unwrap()));
    }
}
