//! The kernel calls of the generators: clock_gettime(2), clock_nanosleep(2), futex(2),
//! getcpu(2), prctl(2), sched_setaffinity(2), setrlimit(2).
//!
//! rustix wraps all of them safely, so this module needs no `unsafe`. Times are
//! nanoseconds of CLOCK_MONOTONIC.

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{
    ClockId, CpuSet, NanosleepRelativeResult, futex, sched_getaffinity, sched_setaffinity,
};
use rustix::time::Timespec;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::atomic::AtomicU32;

const NS_PER_SEC: u64 = 1_000_000_000;

/// CLOCK_MONOTONIC through the vDSO: no system call.
pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * NS_PER_SEC + now.tv_nsec as u64
}

/// ID of the calling thread.
pub fn thread_id() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Lead of CLOCK_MONOTONIC over CLOCK_REALTIME; both run at the same speed, and the second one
/// may be set (clock_gettime(2)).
pub fn monotonic_minus_realtime_ns() -> i64 {
    // The closest of three, since a thread may lose its CPU between two readings.
    let readings = [(); 3].map(|()| {
        let before_ns = now_ns();
        let real = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let after_ns = now_ns();
        let real_ns = real.tv_sec as u64 * NS_PER_SEC + real.tv_nsec as u64;
        let middle_ns = u64::midpoint(before_ns, after_ns);
        (after_ns - before_ns, middle_ns as i64 - real_ns as i64)
    });
    let closest = readings.into_iter().min();
    closest.map_or(0, |(_, difference_ns)| difference_ns)
}

/// Sleeps until this time, or a signal, with the timer slack that the thread has.
pub fn sleep_until(at_ns: u64) {
    // Callers look at the clock again.
    let _ = rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &timespec(at_ns));
}

/// Sleeps at least this long, with the timer slack that the thread has.
pub fn sleep_ns(duration_ns: u64) {
    let mut left = timespec(duration_ns);
    while let NanosleepRelativeResult::Interrupted(rest) =
        rustix::thread::clock_nanosleep_relative(ClockId::Monotonic, &left)
    {
        left = rest;
    }
}

/// Waits while `word` holds `expected`. May return early: callers check again.
pub fn futex_wait(word: &AtomicU32, expected: u32) {
    // Every error (EAGAIN: the word has changed; EINTR) means the same here: look again.
    let _ = futex::wait(word, futex::Flags::PRIVATE, expected, None);
}

/// Waits while `word` holds `expected`, at most until `deadline_ns`.
/// `true` if the deadline has passed.
pub fn futex_wait_until(word: &AtomicU32, expected: u32, deadline_ns: u64) -> bool {
    let deadline = timespec(deadline_ns);
    let waited = futex::wait_bitset(
        word,
        futex::Flags::PRIVATE,
        expected,
        Some(&deadline),
        NonZeroU32::MAX,
    );
    waited == Err(Errno::TIMEDOUT)
}

/// Wakes at most `waiters` threads that wait on `word`.
pub fn futex_wake(word: &AtomicU32, waiters: u32) {
    // FUTEX_WAKE on a valid address does not fail.
    let _ = futex::wake(word, futex::Flags::PRIVATE, waiters);
}

/// The CPU that runs the caller, through the vDSO.
pub fn current_cpu() -> usize {
    rustix::thread::sched_getcpu()
}

/// An upper bound of what [`current_cpu`] returns, plus one.
pub fn possible_cpus() -> usize {
    let text = doors::read::kernel_text("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = text
        .trim()
        .rsplit(['-', ','])
        .next()
        .and_then(|n| n.parse::<usize>().ok());
    match last {
        Some(last) => last + 1,
        None => std::thread::available_parallelism().map_or(1, |n| n.get()),
    }
}

/// CPU time of the calling thread.
pub fn thread_cpu_ns() -> u64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    used.tv_sec as u64 * NS_PER_SEC + used.tv_nsec as u64
}

/// CPU time of a process and all its threads; `None` if it is gone.
pub fn process_cpu_ns(pid: u32) -> Option<u64> {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(pid).ok()?);
    let used = nix::time::clock_getcpuclockid(pid).ok()?.now().ok()?;
    Some(used.tv_sec() as u64 * NS_PER_SEC + used.tv_nsec() as u64)
}

/// CPUs that the caller may run on.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a CPU is below CpuSet::MAX_CPU"
)]
pub fn allowed_cpus() -> Vec<u32> {
    let set = sched_getaffinity(None).unwrap_or_default();
    let all = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
    all.map(|cpu| cpu as u32).collect()
}

/// From now on the caller runs on one CPU only.
pub fn pin_to(cpu: u32) -> std::io::Result<()> {
    keep_to(&[cpu])
}

/// From now on the caller, and what it starts, run on these CPUs only.
pub fn keep_to(cpus: &[u32]) -> std::io::Result<()> {
    let mut set = CpuSet::new();
    for cpu in cpus.iter().map(|cpu| *cpu as usize) {
        if cpu >= CpuSet::MAX_CPU {
            return Err(std::io::ErrorKind::InvalidInput.into());
        }
        set.set(cpu);
    }
    Ok(sched_setaffinity(None, &set)?)
}

/// Files that the caller may open at most; `None`: there is no limit.
pub fn most_files() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}

/// Raises the limit of open files to `count`, as far as it may be raised.
pub fn allow_files(count: u64) -> Result<(), String> {
    let limits = getrlimit(Resource::Nofile);
    if limits.current.is_none_or(|current| current >= count) {
        return Ok(());
    }
    let raised = Rlimit {
        current: Some(count),
        maximum: limits.maximum,
    };
    setrlimit(Resource::Nofile, raised).map_err(|e| {
        let most = limits.maximum.unwrap_or(u64::MAX);
        format!("open {count} files: {e}; the hard limit is {most} (ulimit -Hn)")
    })
}

/// Lets the caller's timers expire when they are due instead of up to 50 µs later.
pub fn precise_timers() {
    // Where it fails, timers stay 50 µs late at most: visible in the figures, not wrong.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// Nanoseconds as the kernel takes them.
pub fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: (ns / NS_PER_SEC) as i64,
        tv_nsec: (ns % NS_PER_SEC) as _,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_does_not_run_backwards() {
        let first = now_ns();
        sleep_ns(1_000);
        assert!(now_ns() >= first + 1_000);
    }

    #[test]
    fn the_current_cpu_is_below_the_number_of_possible_cpus() {
        assert!(current_cpu() < possible_cpus());
    }

    #[test]
    fn a_futex_wait_ends_at_its_deadline() {
        let word = AtomicU32::new(7);
        let deadline = now_ns() + 1_000_000;
        while !futex_wait_until(&word, 7, deadline) {}
        assert!(now_ns() >= deadline);
    }

    #[test]
    fn a_futex_wait_returns_at_once_when_the_word_has_changed() {
        let word = AtomicU32::new(1);
        futex_wait(&word, 0);
        assert!(!futex_wait_until(&word, 0, u64::MAX / 2));
    }
}
