//! Which periods SCHED_DEADLINE takes: the bounds in force, and those that the arm
//! itself sets before its policy. `kernel.sched_deadline_period_{min,max}_us`,
//! compared in `__checkparam_dl` (kernel/sched/deadline.c). And how many threads it
//! admits: `sched_dl_overflow`, there too.

use super::threads::with_defaults;
use crate::arm::tunables::{Knob, normalise};
use model::{Arm, Class, Policy, Tunables, units::format_duration_ns};
use std::path::Path;

const SHORTEST: &str = "deadline_period_min_us";
const LONGEST: &str = "deadline_period_max_us";

/// Nanoseconds; a kernel before 5.4 has no bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bounds {
    shortest: u64,
    longest: u64,
}

impl Bounds {
    /// Bounds of this kernel, as they are now.
    fn now(root: &Path) -> Self {
        Bounds {
            shortest: now(root, SHORTEST).and_then(ns).unwrap_or(0),
            longest: now(root, LONGEST).and_then(ns).unwrap_or(u64::MAX),
        }
    }

    /// Bounds with what the arm sets.
    fn under(self, tunables: &Tunables) -> Self {
        Bounds {
            shortest: set(tunables, SHORTEST)
                .and_then(ns)
                .unwrap_or(self.shortest),
            longest: set(tunables, LONGEST).and_then(ns).unwrap_or(self.longest),
        }
    }
}

/// Value of a tunable on this kernel.
fn now(root: &Path, name: &str) -> Option<String> {
    Knob::find(root, name).ok()?.read().ok()
}

/// Value that an arm gives it, in the same form.
fn set(tunables: &Tunables, name: &str) -> Option<String> {
    normalise(name, tunables.get(name)?).ok()
}

/// Value of a tunable under an arm that may set it.
pub(super) fn value_under(root: &Path, tunables: &Tunables, name: &str) -> Option<String> {
    set(tunables, name).or_else(|| now(root, name))
}

/// From the microseconds of the sysctls.
fn ns(text: String) -> Option<u64> {
    text.parse::<u64>().ok()?.checked_mul(1000)
}

/// Reason why the kernel would refuse the arm's period, and the remedy.
pub fn fault(root: &Path, arm: &Arm) -> Option<(String, String)> {
    let period = period_of(arm.policy.as_ref()?)?;
    let Bounds { shortest, longest } = Bounds::now(root).under(&arm.tunables);
    let (word, bound, name) = match period {
        short if short < shortest => ("shorter", shortest, SHORTEST),
        long if long > longest => ("longer", longest, LONGEST),
        _ => return None,
    };
    let what = format!(
        "a deadline period of {} is {word} than the kernel's bound of {}",
        format_duration_ns(period),
        format_duration_ns(bound)
    );
    // The bound is in whole microseconds, and must not cut off the period.
    let micros = match word {
        "shorter" => period / 1000,
        _ => period.div_ceil(1000),
    };
    let remedy = format!("add the tunable {name} = \"{micros}us\" to the arm");
    Some((what, remedy))
}

/// Reason why the kernel does not admit `threads` threads under the arm's policy, and the
/// remedy. Other deadline work only makes it admit less.
pub fn overflow(root: &Path, arm: &Arm, threads: u32) -> Option<(String, String)> {
    let policy = arm.policy.as_ref()?;
    let period = period_of(policy)?;
    let share = Share::now(root, &arm.tunables)?;
    let each = ratio(policy.runtime_ns?, period);
    let wanted = each * u128::from(threads);
    if wanted <= share.each * u128::from(share.cpus) {
        return None;
    }
    let percent = |ratio: u128| 100.0 * ratio as f64 / UNIT as f64;
    let what = format!(
        "at least {threads} threads of {:.0} % of a CPU each are more than the kernel admits: \
         {:.0} % of each of {} CPUs (kernel.sched_rt_runtime_us of kernel.sched_rt_period_us)",
        percent(each),
        percent(share.each),
        share.cpus
    );
    let remedy = "use fewer threads, a shorter runtime or a longer period".to_owned();
    Some((what, remedy))
}

/// Share of the CPUs that deadline threads may have.
struct Share {
    cpus: u32,
    /// Share of each CPU, as a [`ratio`].
    each: u128,
}

impl Share {
    /// Share with what the arm sets; `None` where there is no bound, or it cannot be told.
    fn now(root: &Path, tunables: &Tunables) -> Option<Share> {
        let read = |name| {
            let text = value_under(root, tunables, name)?;
            // Without a bound the runtime is -1.
            text.parse::<u64>().ok()
        };
        let online = collect::read_trimmed(&root.join("sys/devices/system/cpu/online"))?;
        let cpus = model::parse_cpu_list(&online).ok()?;
        Some(Share {
            cpus: u32::try_from(cpus.len()).unwrap_or(u32::MAX),
            each: ratio(read("rt_runtime")?, read("rt_period").filter(|p| *p > 0)?),
        })
    }
}

/// One CPU, as `to_ratio` (kernel/sched/core.c) counts it.
const UNIT: u128 = 1 << 20;

fn ratio(runtime: u64, period: u64) -> u128 {
    u128::from(runtime) * UNIT / u128::from(period)
}

/// The policy to try on this machine before the arm's tunables are set: with the
/// same share of a CPU, and a period that the kernel takes already.
pub fn to_try(root: &Path, policy: &Policy) -> Policy {
    let Some(period) = period_of(policy) else {
        return policy.clone();
    };
    let Bounds { shortest, longest } = Bounds::now(root);
    let taken = period.clamp(shortest.min(longest), longest);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "at most `taken`: a checked policy has no time that is longer than its period"
    )]
    let scale = |ns: u64| (u128::from(ns) * u128::from(taken) / u128::from(period)) as u64;
    match taken == period {
        true => policy.clone(),
        false => Policy {
            runtime_ns: policy.runtime_ns.map(scale),
            deadline_ns: policy.deadline_ns.map(scale),
            period_ns: Some(taken),
            ..policy.clone()
        },
    }
}

fn period_of(policy: &Policy) -> Option<u64> {
    let period = with_defaults(policy).period_ns.filter(|ns| *ns > 0);
    period.filter(|_| policy.class == Class::Deadline)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tests::tree;

    /// A kernel with its own bounds: 100 us to 4 s.
    fn machine() -> tempfile::TempDir {
        let file = |name: &str| format!("proc/sys/kernel/sched_{name}");
        tree(&[(&file(SHORTEST), "100\n"), (&file(LONGEST), "4194304\n")])
    }

    fn deadline(runtime_ns: u64, period_ns: u64) -> Policy {
        Policy {
            runtime_ns: Some(runtime_ns),
            period_ns: Some(period_ns),
            ..Policy::new(Class::Deadline)
        }
    }

    fn arm(policy: Policy, tunables: &[(&str, &str)]) -> Arm {
        let pairs = tunables.iter().map(|(k, v)| (k.to_string(), v.to_string()));
        Arm {
            policy: Some(policy),
            tunables: pairs.collect(),
            ..Arm::unchanged("deadline")
        }
    }

    #[test]
    fn a_period_below_the_kernels_bound_is_refused_with_the_tunable_that_admits_it() {
        let (what, remedy) = fault(machine().path(), &arm(deadline(20_000, 40_000), &[])).unwrap();
        assert!(what.contains("40us is shorter than"), "{what}");
        assert!(remedy.contains("deadline_period_min_us = \"40us\""));
        let long = arm(deadline(20_000, 5_000_000_000), &[]);
        let (what, remedy) = fault(machine().path(), &long).unwrap();
        assert!(what.contains("longer than"), "{what}");
        assert!(remedy.contains("deadline_period_max_us = \"5000000us\""));
    }

    #[test]
    fn the_remedy_is_one() {
        let short = arm(deadline(20_000, 40_500), &[]);
        let (_, remedy) = fault(machine().path(), &short).unwrap();
        let value = remedy.split('"').nth(1).unwrap();
        let cured = arm(deadline(20_000, 40_500), &[(SHORTEST, value)]);
        assert_eq!(fault(machine().path(), &cured), None);
    }

    #[test]
    fn a_bound_that_the_arm_raises_counts_too() {
        let raised = arm(deadline(20_000, 200_000), &[(SHORTEST, "1ms")]);
        assert!(fault(machine().path(), &raised).is_some());
    }

    #[test]
    fn a_kernel_without_bounds_and_other_policies_have_no_fault() {
        let short = arm(deadline(2_000, 4_000), &[]);
        assert_eq!(fault(tree(&[]).path(), &short), None);
        let batch = arm(Policy::new(Class::Batch), &[]);
        assert_eq!(fault(machine().path(), &batch), None);
    }

    #[test]
    fn more_threads_than_are_admitted_are_refused() {
        let machine = |runtime: &str| {
            tree(&[
                ("proc/sys/kernel/sched_rt_runtime_us", runtime),
                ("proc/sys/kernel/sched_rt_period_us", "1000000\n"),
                ("sys/devices/system/cpu/online", "0-1\n"),
            ])
        };
        let full = arm(deadline(5_000_000, 5_000_000), &[]);
        let usual = machine("950000\n");
        assert_eq!(overflow(usual.path(), &full, 1), None);
        let (what, remedy) = overflow(usual.path(), &full, 2).unwrap();
        assert!(what.contains("at least 2 threads of 100 %"), "{what}");
        assert!(what.contains("95 % of each of 2 CPUs"), "{what}");
        assert!(remedy.contains("fewer threads"), "{remedy}");
        // Just as much as there is.
        let exact = arm(deadline(95_000, 100_000), &[]);
        assert_eq!(overflow(usual.path(), &exact, 2), None);
        assert_eq!(overflow(machine("-1\n").path(), &full, 9), None);
        assert_eq!(overflow(tree(&[]).path(), &full, 9), None);
        let raised = arm(deadline(5_000_000, 5_000_000), &[("rt_runtime", "1s")]);
        assert_eq!(overflow(usual.path(), &raised, 2), None);
    }

    #[test]
    fn what_is_tried_has_the_same_share_and_a_period_within_the_bounds() {
        let root = machine();
        let tried = to_try(root.path(), &deadline(20_000, 40_000));
        assert_eq!(tried, deadline(50_000, 100_000));
        let fits = deadline(2_000_000, 5_000_000);
        assert_eq!(to_try(root.path(), &fits), fits);
    }
}
