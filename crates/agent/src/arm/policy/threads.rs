//! The scheduling policy of threads: sched_setattr(2), read back with sched_getattr(2).

use crate::arm::busy;
use collect::sys::{RESET_ON_FORK, SchedAttr, sched_getattr, sched_setattr};
use collect::tasks::{self, Pid};
use model::{Class, Policy};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error("set policy {policy} on thread {tid}{after}: {source}")]
    Set {
        policy: Box<Policy>,
        tid: Pid,
        /// ` after 7 others`, where that matters.
        after: String,
        source: io::Error,
    },
    #[error("set policy {wanted} on thread {tid}: the kernel made it {found}")]
    Ignored {
        wanted: Box<Policy>,
        found: Box<Policy>,
        tid: Pid,
    },
    #[error("policy {policy}: {what}")]
    Invalid { policy: Box<Policy>, what: String },
    /// It ended while the policy was set.
    #[error("thread {0} has ended")]
    Gone(Pid),
}

impl PolicyError {
    /// Advice on what to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            PolicyError::Set { policy, source, .. } => remedy(policy.class, source),
            PolicyError::Ignored { wanted, .. } if wanted.slice_ns.is_some() => {
                "slices of single threads need Linux 6.12 or later"
            }
            PolicyError::Ignored { .. } => "see sched_setattr(2)",
            PolicyError::Invalid { .. } => "see sched(7)",
            PolicyError::Gone(_) => "try again",
        }
    }
}

/// Does `found` agree with `wanted` in all that `wanted` names?
pub fn is_as_wanted(wanted: &Policy, found: &Policy) -> bool {
    let same = |wanted: Option<u64>, found: Option<u64>| wanted.is_none() || wanted == found;
    let wanted = with_defaults(wanted);
    wanted.class == found.class
        && (wanted.nice.is_none() || wanted.nice == found.nice)
        && (wanted.priority.is_none() || wanted.priority == found.priority)
        && same(wanted.slice_ns, found.slice_ns)
        && same(wanted.runtime_ns, found.runtime_ns)
        && same(wanted.deadline_ns, found.deadline_ns)
        && same(wanted.period_ns, found.period_ns)
}

/// The policy with the values that follow where none is written: priority 1, deadline = period.
pub fn with_defaults(policy: &Policy) -> Policy {
    let mut policy = policy.clone();
    match policy.class {
        Class::Fifo | Class::Rr => policy.priority = policy.priority.or(Some(1)),
        Class::Deadline => {
            policy.deadline_ns = policy.deadline_ns.or(policy.period_ns);
            policy.period_ns = policy.period_ns.or(policy.deadline_ns);
        }
        Class::Other | Class::Batch | Class::Idle | Class::Ext => {}
    }
    policy
}

/// Fault of a policy on any machine; `None` without one. Bounds: sched(7), and
/// `__setparam_fair` in kernel/sched/fair.c.
pub fn fault(policy: &Policy) -> Option<String> {
    let outside = |name, value: Option<i64>, low, high| {
        let value = value.filter(|value| !(low..=high).contains(value))?;
        Some(format!("{name} {value} is outside {low} to {high}"))
    };
    let ns = |value: Option<u64>| value.map(|ns| i64::try_from(ns).unwrap_or(i64::MAX));
    outside("nice", policy.nice.map(i64::from), -20, 19)
        .or_else(|| outside("priority", policy.priority.map(i64::from), 1, 99))
        .or_else(|| outside("a slice of (ns)", ns(policy.slice_ns), 100_000, 100_000_000))
        .or_else(|| deadline_fault(policy))
}

fn deadline_fault(policy: &Policy) -> Option<String> {
    if policy.class != Class::Deadline {
        return None;
    }
    let policy = with_defaults(policy);
    let (Some(runtime), Some(deadline), Some(period)) =
        (policy.runtime_ns, policy.deadline_ns, policy.period_ns)
    else {
        return Some("deadline needs a runtime and a period".to_owned());
    };
    if runtime < 1024 {
        return Some(format!(
            "a runtime of {runtime} ns is below the kernel's 1024 ns"
        ));
    }
    (runtime > deadline || deadline > period)
        .then(|| "runtime ≤ deadline ≤ period does not hold".to_owned())
}

/// Set the policy on one thread and read it back.
pub fn apply(tid: Pid, policy: &Policy) -> Result<(), PolicyError> {
    apply_with(tid, policy, 0)
}

/// The same for a thread that is about to start others: a deadline thread may not
/// fork unless its children start with the default policy.
pub fn apply_before_exec(tid: Pid, policy: &Policy) -> Result<(), PolicyError> {
    let flags = match policy.class {
        Class::Deadline => RESET_ON_FORK,
        _ => 0,
    };
    apply_with(tid, policy, flags)
}

/// Sets the attributes. A deadline thread may have to wait for the bandwidth of one that has ended.
pub fn set(tid: Pid, attr: &SchedAttr) -> io::Result<()> {
    const LIMIT: Duration = Duration::from_millis(300);
    let deadline = Class::from_number(attr.policy) == Some(Class::Deadline);
    let is_busy = |e: &io::Error| deadline && e.kind() == io::ErrorKind::ResourceBusy;
    busy::waited_for(LIMIT, is_busy, || sched_setattr(tid, attr))
}

fn apply_with(tid: Pid, policy: &Policy, flags: u64) -> Result<(), PolicyError> {
    let wanted = with_defaults(policy);
    let current = sched_getattr(tid).map_err(|e| refused(&wanted, tid, e))?;
    let attr = SchedAttr {
        flags,
        ..attributes(&wanted, current.nice)
    };
    set(tid, &attr).map_err(|e| refused(&wanted, tid, e))?;
    let found = collect::policy::read(tid).map_err(|e| refused(&wanted, tid, e))?;
    if is_as_wanted(&wanted, &found) {
        return Ok(());
    }
    Err(PolicyError::Ignored {
        wanted: Box::new(wanted),
        found: Box::new(found),
        tid,
    })
}

/// `nice` is kept where the policy does not name it.
fn attributes(policy: &Policy, nice: i32) -> SchedAttr {
    let fair = matches!(
        policy.class,
        Class::Other | Class::Batch | Class::Idle | Class::Ext
    );
    SchedAttr {
        policy: policy.class.kernel_number(),
        nice: if fair { policy.nice.unwrap_or(nice) } else { 0 },
        priority: policy.priority.filter(|_| !fair).unwrap_or(0),
        runtime_ns: policy.runtime_ns.or(policy.slice_ns).unwrap_or(0),
        deadline_ns: policy.deadline_ns.unwrap_or(0),
        period_ns: policy.period_ns.unwrap_or(0),
        ..SchedAttr::default()
    }
}

fn refused(policy: &Policy, tid: Pid, source: io::Error) -> PolicyError {
    if source.raw_os_error() == Some(libc::ESRCH) {
        return PolicyError::Gone(tid);
    }
    PolicyError::Set {
        after: String::new(),
        policy: Box::new(policy.clone()),
        tid,
        source,
    }
}

/// Practical meaning of the error numbers of sched_setattr(2).
fn remedy(class: Class, error: &io::Error) -> &'static str {
    match (error.raw_os_error(), class) {
        (Some(libc::EBUSY), Class::Deadline) => {
            "the kernel admits deadline threads only while the sum of runtime/period stays below \
             the CPUs' share (kernel.sched_rt_runtime_us of kernel.sched_rt_period_us, 95 % by \
             default): use fewer threads, a shorter runtime or a longer period"
        }
        (Some(libc::EPERM), Class::Deadline) => {
            "a deadline policy needs root, and threads that may run on all CPUs of their root domain"
        }
        (Some(libc::EPERM | libc::EACCES), _) => {
            "run as root, or with CAP_SYS_NICE or high enough limits of RLIMIT_NICE and RLIMIT_RTPRIO"
        }
        (Some(libc::EINVAL), Class::Deadline) => {
            "its period must be within the tunables deadline_period_min_us and \
             deadline_period_max_us, which the arm may set too"
        }
        (Some(libc::EINVAL), Class::Ext) => "use a kernel with CONFIG_SCHED_CLASS_EXT (Linux 6.12)",
        (Some(libc::EAGAIN), _) => "a deadline thread may not start others",
        _ => "see sched_setattr(2)",
    }
}

/// Set the policy on every thread of a process tree, and again on those that came
/// meanwhile, until a scan finds none new. Gives the number of threads.
pub fn apply_to_tree(root: &Path, pid: Pid, policy: &Policy) -> Result<usize, PolicyError> {
    let mut done = BTreeSet::new();
    loop {
        let new: Vec<Pid> = tasks::threads_of_tree(root, pid, usize::MAX)
            .into_iter()
            .filter(|tid| !done.contains(tid))
            .collect();
        if new.is_empty() {
            return Ok(done.len());
        }
        for tid in new {
            match apply(tid, policy) {
                Ok(()) | Err(PolicyError::Gone(_)) => done.insert(tid),
                Err(error) => return Err(with_count(error, policy, &done)),
            };
        }
    }
}

/// The admission of deadline threads depends on how many came before.
fn with_count(mut error: PolicyError, policy: &Policy, done: &BTreeSet<Pid>) -> PolicyError {
    if let PolicyError::Set { after, .. } = &mut error
        && policy.class == Class::Deadline
    {
        *after = format!(" after {} others", done.len());
    }
    error
}

/// Can the policy be set here at all? Tried on a thread made for it.
pub fn try_on_this_machine(policy: &Policy) -> Result<(), PolicyError> {
    try_on(policy, None)
}

/// Does the kernel refuse the policy to a thread that may run on these CPUs only? It does
/// so for a deadline policy unless they are all CPUs of their root domain
/// (`__sched_setscheduler` in kernel/sched/syscalls.c).
pub fn is_refused_on(policy: &Policy, cpus: &[u32]) -> bool {
    matches!(
        try_on(policy, Some(cpus)),
        Err(PolicyError::Set { source, .. }) if source.raw_os_error() == Some(libc::EPERM)
    )
}

fn try_on(policy: &Policy, cpus: Option<&[u32]>) -> Result<(), PolicyError> {
    if let Some(what) = fault(policy) {
        return Err(PolicyError::Invalid {
            policy: Box::new(policy.clone()),
            what,
        });
    }
    std::thread::scope(|scope| {
        let own = || rustix::thread::gettid().as_raw_nonzero().get();
        scope
            .spawn(move || {
                if let Some(cpus) = cpus {
                    keep_to(cpus).map_err(|e| refused(policy, own(), e))?;
                }
                apply(own(), policy)
            })
            .join()
            .unwrap_or(Err(PolicyError::Gone(0)))
    })
}

/// From now on the caller runs on these CPUs only.
fn keep_to(cpus: &[u32]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for cpu in cpus.iter().filter(|cpu| (**cpu as usize) < CpuSet::MAX_CPU) {
        set.set(*cpu as usize);
    }
    Ok(sched_setaffinity(None, &set)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch() -> Policy {
        Policy::new(Class::Batch)
    }

    fn deadline(runtime_ns: u64, period_ns: u64) -> Policy {
        Policy {
            runtime_ns: Some(runtime_ns),
            period_ns: Some(period_ns),
            ..Policy::new(Class::Deadline)
        }
    }

    /// `None` where this user or kernel may not do it.
    fn applied(policy: &Policy) -> Option<Result<(), PolicyError>> {
        let result = try_on_this_machine(policy);
        if let Err(PolicyError::Set { source, .. }) = &result
            && source.kind() == io::ErrorKind::PermissionDenied
        {
            ::tests::skipped(format!("{policy} is not permitted here"));
            return None;
        }
        Some(result)
    }

    #[test]
    fn batch_and_nice_are_in_force_after_they_are_set() {
        let policy = Policy {
            nice: Some(5),
            ..batch()
        };
        applied(&policy).unwrap().unwrap();
    }

    #[test]
    fn realtime_classes_are_in_force_after_they_are_set() {
        for class in [Class::Fifo, Class::Rr] {
            let policy = Policy {
                priority: Some(7),
                ..Policy::new(class)
            };
            if let Some(result) = applied(&policy) {
                result.unwrap();
            }
        }
    }

    #[test]
    fn a_deadline_without_a_deadline_takes_the_period() {
        if let Some(result) = applied(&deadline(1_000_000, 10_000_000)) {
            result.unwrap();
        }
    }

    #[test]
    fn a_slice_is_read_back_or_the_kernel_is_said_to_ignore_it() {
        let policy = Policy {
            slice_ns: Some(300_000),
            ..Policy::new(Class::Other)
        };
        match try_on_this_machine(&policy) {
            Ok(()) => {}
            Err(error) => assert!(error.remedy().contains("6.12"), "{error}"),
        }
    }

    #[test]
    fn more_deadline_work_than_cpus_is_refused_with_the_reason() {
        let mut sleepers: Vec<_> = (0..2 * collect::machine::usable_cpus())
            .map(|_| {
                std::process::Command::new("sleep")
                    .arg("60")
                    .spawn()
                    .unwrap()
            })
            .collect();
        let policy = deadline(9_000_000, 10_000_000);
        let results: Vec<_> = sleepers
            .iter()
            .map(|child| apply(child.id() as Pid, &policy))
            .collect();
        for child in &mut sleepers {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let errors: Vec<&str> = results
            .into_iter()
            .filter_map(|r| Some(r.err()?.remedy()))
            .collect();
        if errors.iter().all(|e| e.contains("needs root")) {
            ::tests::skipped("deadline is not permitted here");
            return;
        }
        assert!(errors[0].contains("fewer threads"), "{errors:?}");
    }

    #[test]
    fn a_deadline_thread_must_be_free_to_run_on_all_cpus() {
        let policy = deadline(1_000_000, 100_000_000);
        let all = load::allowed_cpus();
        let free = applied(&policy).is_some_and(|result| result.is_ok());
        if !free || all.len() < 2 {
            ::tests::skipped("deadline is not permitted here, or there is one CPU");
            return;
        }
        assert!(!is_refused_on(&policy, &all));
        assert!(is_refused_on(&policy, &all[..1]));
        assert!(!is_refused_on(&batch(), &all[..1]));
    }

    #[test]
    fn what_an_arm_does_not_name_is_not_compared() {
        let found = Policy {
            nice: Some(3),
            slice_ns: Some(2_800_000),
            ..batch()
        };
        assert!(is_as_wanted(&batch(), &found));
        let wanted = Policy {
            nice: Some(5),
            ..batch()
        };
        assert!(!is_as_wanted(&wanted, &found));
        assert!(!is_as_wanted(&Policy::new(Class::Other), &found));
    }

    #[test]
    fn values_outside_their_bounds_are_refused_before_anything_is_set() {
        let nice = Policy {
            nice: Some(20),
            ..batch()
        };
        assert_eq!(
            fault(&nice).as_deref(),
            Some("nice 20 is outside -20 to 19")
        );
        let slice = Policy {
            slice_ns: Some(1),
            ..batch()
        };
        assert!(fault(&slice).unwrap().contains("100000 to 100000000"));
        assert!(fault(&deadline(5, 3)).unwrap().contains("1024"));
        assert!(fault(&deadline(5_000, 3_000)).unwrap().contains('≤'));
        assert!(
            fault(&Policy::new(Class::Deadline))
                .unwrap()
                .contains("runtime")
        );
        assert_eq!(fault(&batch()), None);
    }
}
