//! Realtime policies that would leave the agent no CPU to end them on.

use super::deadline::value_under;
use model::{Arm, Class, Policy};
use std::path::Path;

/// From this version on the kernel's fair server (kernel/sched/deadline.c) keeps a part of each CPU
/// for all other threads, whatever kernel.sched_rt_runtime_us is.
const FAIR_SERVER: (u32, u32) = (6, 12);

/// Reason why threads under the arm's policy could keep all others from running for good, and the
/// remedy. The agent would be one of them, and nobody could end the trial.
pub fn fault(root: &Path, arm: &Arm, policy: &Policy) -> Option<(String, String)> {
    if !matches!(policy.class, Class::Fifo | Class::Rr) || has_fair_server(root) {
        return None;
    }
    let number = |name| value_under(root, &arm.tunables, name)?.parse::<i64>().ok();
    let (runtime, period) = (number("rt_runtime")?, number("rt_period")?);
    if (0..period).contains(&runtime) {
        return None;
    }
    let what = format!(
        "this kernel, older than 6.12, lets its threads have all of a CPU for good \
         (kernel.sched_rt_runtime_us is {runtime} of kernel.sched_rt_period_us {period}): nothing \
         could end them"
    );
    let remedy = "leave rt_runtime below rt_period, or use a kernel from 6.12 on".to_owned();
    Some((what, remedy))
}

fn has_fair_server(root: &Path) -> bool {
    let release = collect::read_trimmed(&root.join("proc/sys/kernel/osrelease"));
    let version = |release: String| {
        let mut numbers = release.split(['.', '-']).map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    };
    // One that does not say its version is taken for an old one.
    release
        .and_then(version)
        .is_some_and(|v: (u32, u32)| v >= FAIR_SERVER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tests::tree;

    fn is_refused(
        release: &str,
        runtime_now: &str,
        class: Class,
        tunables: &[(&str, &str)],
    ) -> bool {
        let root = tree(&[
            ("proc/sys/kernel/osrelease", release),
            ("proc/sys/kernel/sched_rt_runtime_us", runtime_now),
            ("proc/sys/kernel/sched_rt_period_us", "1000000"),
        ]);
        let pairs = tunables.iter().map(|(k, v)| (k.to_string(), v.to_string()));
        let policy = Policy::new(class);
        let arm = Arm {
            policy: Some(policy.clone()),
            tunables: pairs.collect(),
            ..Arm::unchanged("fifo")
        };
        fault(root.path(), &arm, &policy).is_some()
    }

    #[test]
    fn threads_that_could_starve_the_agent_are_refused() {
        let lifted = [("rt_runtime", "-1")];
        assert!(is_refused("6.1.0-50-amd64", "950000", Class::Fifo, &lifted));
        assert!(is_refused(
            "6.11.2",
            "950000",
            Class::Rr,
            &[("rt_runtime", "1s")]
        ));
        assert!(is_refused("5.10.0", "-1", Class::Fifo, &[]));
        assert!(is_refused("unknown", "-1", Class::Fifo, &[]));
    }

    #[test]
    fn threads_that_leave_the_agent_a_part_of_each_cpu_are_not() {
        let lifted = [("rt_runtime", "-1")];
        for release in ["6.12.9-amd64", "6.18.44", "7.0.0"] {
            assert!(
                !is_refused(release, "950000", Class::Fifo, &lifted),
                "{release}"
            );
        }
        assert!(!is_refused("6.1.0", "950000", Class::Fifo, &[]));
        assert!(!is_refused(
            "6.1.0",
            "-1",
            Class::Fifo,
            &[("rt_runtime", "900ms")]
        ));
        assert!(!is_refused("6.1.0", "950000", Class::Batch, &lifted));
    }
}
