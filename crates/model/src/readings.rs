//! Readings of the kernel as facts, with the names that they have in results.

use crate::arm::{Class, Policy, Role};
use crate::evidence::{RolePolicy, SchedExt};
use crate::fact::Fact;
use std::collections::BTreeSet;

/// The release of the kernel, uname(2).
pub const KERNEL_RELEASE: &str = "kernel release";
/// The sched_ext scheduler in force, or [`NONE`].
pub const SCHEDULER: &str = "sched_ext scheduler";
/// The kernel's own scheduler of ordinary tasks: CFS, EEVDF or BORE.
pub const FAIR_SCHEDULER: &str = "own scheduler of the kernel";
/// Number of sched_ext schedulers that were attached since boot (`enable_seq`).
pub const ATTACHES: &str = "number of sched_ext attaches since boot";
/// Number of tasks that the scheduler refused (`nr_rejected`).
pub const REJECTED: &str = "number of tasks that the scheduler rejected";
/// The tasks that the scheduler runs (`switch_all`).
pub const REACH: &str = "reach of the scheduler";
/// The [`REACH`] of a scheduler that does not leave some tasks to the fair class.
pub const ALL_TASKS: &str = "all fair tasks";
/// `cpu.weight` of the cgroup of a role.
pub const WEIGHT: &str = "cgroup weight";
/// CPUs that the threads of a role may run on.
pub const CPUS: &str = "CPUs";
/// CPU time of the cgroup of a role in each period.
pub const QUOTA: &str = "cgroup quota";
/// Lower utilization clamp of the threads of a role, of 1024.
pub const UCLAMP_MIN: &str = "uclamp.min";
/// Upper utilization clamp of the threads of a role, of 1024.
pub const UCLAMP_MAX: &str = "uclamp.max";
/// Scheduler of the CPU pool of Xen in which guests of the load run.
pub const POOL_SCHEDULER: &str = "scheduler of the CPU pool";
/// Physical CPUs of that pool.
pub const POOL_CPUS: &str = "CPUs of the CPU pool";
/// Metric that marks a trial in which others did the work of a command: 1 or 0.
pub const WORK_ELSEWHERE: &str = "work_elsewhere";
/// Commands whose processes were found as the daemon that an arm is for.
pub const PROCESSES: &str = "processes";
/// Value where there is nothing of the kind.
pub const NONE: &str = "none";

/// The name of the fact about a tunable.
pub fn tunable_fact_name(name: &str) -> String {
    format!("tunable {name}")
}

/// The name of the fact about an environment variable of the processes of a role.
pub fn variable_fact_name(name: &str) -> String {
    format!("variable {name}")
}

/// The scheduler in force; a kernel without sched_ext has none.
pub fn scheduler_fact(state: Option<&SchedExt>) -> Fact {
    let found = match state {
        None => NONE.to_owned(),
        Some(SchedExt { state, ops, .. }) => match (state.as_str(), ops.as_str()) {
            ("disabled", "") => NONE.to_owned(),
            ("enabled", ops) if !ops.is_empty() => ops.to_owned(),
            (state, "") => format!("(unnamed), {state}"),
            (state, ops) => format!("{ops}, {state}"),
        },
    };
    Fact::new(SCHEDULER, found)
}

/// A value that differs between the threads of a role is told as all of its values.
pub fn policy_facts(found: &[RolePolicy]) -> Vec<Fact> {
    let mut facts = Vec::new();
    for role in Role::WITH_DAEMON {
        let of_role = found.iter().filter(|entry| entry.role == role);
        let parts: Vec<_> = of_role
            .flat_map(|entry| entry.policy.named_values())
            .collect();
        for name in POLICY_PARTS {
            let values = parts.iter().filter(|(part, _)| *part == name);
            let values: BTreeSet<&str> = values.map(|(_, value)| value.as_str()).collect();
            if !values.is_empty() {
                let values: Vec<&str> = values.into_iter().collect();
                facts.push(Fact::new(name, values.join(" and ")).about_role(&role));
            }
        }
    }
    facts
}

const POLICY_PARTS: [&str; 3] = ["policy", "nice", "slice"];

impl Policy {
    /// Each thing that it names, by the name of the fact about it.
    pub fn named_values(&self) -> Vec<(&'static str, String)> {
        let [policy, nice, slice] = POLICY_PARTS;
        let mut parts = vec![(policy, self.class_and_numbers())];
        parts.extend(self.nice.map(|value| (nice, value.to_string())));
        parts.extend(self.slice_ns.map(|ns| (slice, exact(ns))));
        parts
    }

    fn class_and_numbers(&self) -> String {
        let class = self.class.name();
        match self.class {
            Class::Fifo | Class::Rr => match self.priority {
                Some(priority) => format!("{class}:{priority}"),
                None => class.to_owned(),
            },
            Class::Deadline => {
                let times = [self.runtime_ns, self.deadline_ns, self.period_ns];
                let times = times.map(|ns| exact(ns.unwrap_or(0)));
                format!("{class}:{}", times.join("/"))
            }
            _ => class.to_owned(),
        }
    }
}

/// A time without any rounding, since facts are compared as text.
fn exact(ns: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let whole = UNITS.iter().find(|(size, _)| ns.is_multiple_of(*size));
    let (size, unit) = whole.unwrap_or(&(1, "ns"));
    format!("{}{unit}", ns / size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(role: Role, policy: Policy) -> RolePolicy {
        RolePolicy {
            role,
            policy,
            threads: 1,
        }
    }

    #[test]
    fn threads_that_agree_make_one_value_and_others_all_of_theirs() {
        let nice = |nice| Policy {
            nice: Some(nice),
            ..Policy::new(Class::Other)
        };
        let facts = policy_facts(&[
            threads(Role::Server, Policy::new(Class::Fifo)),
            threads(Role::Load, nice(5)),
            threads(Role::Load, nice(0)),
        ]);
        let expected = [
            Fact::new("policy", "other").about_role(&Role::Load),
            Fact::new("nice", "0 and 5").about_role(&Role::Load),
            Fact::new("policy", "fifo").about_role(&Role::Server),
        ];
        assert_eq!(facts, expected);
    }

    #[test]
    fn all_numbers_of_a_class_are_in_its_policy() {
        let mut policy = Policy::new(Class::Deadline);
        policy.runtime_ns = Some(2_000_001);
        policy.deadline_ns = Some(4_500_000);
        policy.period_ns = Some(5_000_000);
        let expected = "deadline:2000001ns/4500us/5ms";
        assert_eq!(policy.named_values(), [("policy", expected.to_owned())]);
        let mut fifo = Policy::new(Class::Fifo);
        fifo.priority = Some(7);
        assert_eq!(fifo.named_values()[0].1, "fifo:7");
    }

    #[test]
    fn a_scheduler_that_comes_or_goes_is_neither_there_nor_absent() {
        let found = |state: &str, ops: &str| {
            let (state, ops) = (state.to_owned(), ops.to_owned());
            let read = SchedExt {
                state,
                ops,
                ..SchedExt::default()
            };
            scheduler_fact(Some(&read)).found
        };
        assert_eq!(found("enabled", "rusty_1"), "rusty_1");
        assert_eq!(found("disabled", ""), NONE);
        assert_eq!(found("disabling", ""), "(unnamed), disabling");
        assert_eq!(found("enabling", "rusty_1"), "rusty_1, enabling");
        assert_eq!(scheduler_fact(None).found, NONE);
    }
}
