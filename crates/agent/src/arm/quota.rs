//! Arms that give the processes of a role a quota of CPU time: each is in a cgroup of its own
//! with `cpu.max` (v2) or `cpu.cfs_quota_us` (v1). The cgroup is made with the process (`roles`,
//! `trial`) and removed with it, so there is nothing to apply or undo here. Arms that take turns
//! change it where it is (`Roles::regroup`).

use super::ingredient::{Around, At, Change, Form, Ingredient, parse_text, problem, without_role};
use super::requirement::Asked;
use crate::roles;
use crate::roles::cgroup::Quota;
use crate::roles::cgroup::Settings;
use load::Keys;
use load::units::{parse_duration, parse_percent};
use model::readings::QUOTA;
use model::{Arm, Class, Fact, Invalid, KeyDef, Problem, Role, Workload};
use std::collections::BTreeSet;
use std::path::Path;

const KEY: &str = "quota";
const EXAMPLE: &str = "quota = \"50%\" (of one CPU), quota = { runtime = \"20ms\", period = \
                       \"40ms\" }, or \"max\" for a cgroup without a limit";
/// Limits of `tg_set_cfs_bandwidth` in kernel/sched/core.c.
const LEAST_US: u64 = 1_000;
const LONGEST_PERIOD_US: u64 = 1_000_000;
const MOST_PERCENT: f64 = 1e6;

pub struct RoleQuota;

impl Ingredient for RoleQuota {
    fn name(&self) -> &'static str {
        KEY
    }

    fn keys(&self) -> &'static [KeyDef] {
        const {
            &[KeyDef::new(
                "quota",
                "percent, table of `runtime` and `period`, or `\"max\"`",
                "",
                "CPU time of each process of the role with all that it starts (`cpu.max`), in place of \
                     that of its placement; `\"50%\"` is of one CPU, `\"max\"` is a cgroup without a limit.",
            )]
        }
    }

    fn read(&self, keys: &mut Keys, arm: &mut Arm) {
        let text = keys.text_or_table(KEY, |keys| {
            let mut time = |key| keys.get::<String>(key).unwrap_or_default();
            format!("{}/{}", time("runtime"), time("period"))
        });
        if let Some(text) = text {
            arm.ingredients.insert(KEY.to_owned(), text.into());
        }
    }

    fn forms(&self) -> &'static [Form] {
        &[(
            "quota=PERCENT, quota=RUNTIME/PERIOD",
            "CPU time of each process of the role with all that it starts (cpu.max): quota=50% of \
             one CPU, quota=20ms/40ms, quota=max",
        )]
    }

    fn parse(&self, change: &str, arm: &mut Arm) -> Option<Result<(), Invalid>> {
        parse_text(KEY, change, arm)
    }

    fn roles(&self) -> &'static [Role] {
        &Role::WITH_DAEMON
    }

    fn in_place(&self, _: &Arm) -> bool {
        true
    }

    /// The quota of a placement is one to go back to, and so is none.
    fn name_in_all(&self, arms: &mut [Arm], of: &Workload) {
        if arms.iter().all(|arm| of_arm(arm).is_none()) {
            return;
        }
        for arm in arms.iter_mut().filter(|arm| of_arm(arm).is_none()) {
            let mut placements = of.placements_of(&arm.to);
            let own = placements.find_map(|placement| placement.quota_percent);
            let text = own.map_or("max".to_owned(), |percent| format!("{percent}%"));
            arm.ingredients.insert(KEY.to_owned(), text.into());
        }
    }

    fn check(&self, arm: &Arm, _: &Around) -> Result<(), Invalid> {
        let Some(value) = arm.ingredients.get(KEY) else {
            return Ok(());
        };
        let wrong = |what: String| Invalid::new(KEY, what).with_remedy(EXAMPLE);
        let text = value.as_str();
        parse(text.ok_or_else(|| wrong("a quota is a text".to_owned()))?).map_err(wrong)?;
        let class = arm.policy.as_ref().map(|policy| policy.class);
        match class {
            Some(class @ (Class::Fifo | Class::Rr | Class::Deadline)) => {
                let what = format!(
                    "a quota does not count for `{}`: cpu.max limits neither the real-time \
                     classes nor the deadline class",
                    class.name()
                );
                let remedy = "leave out the quota, or take a fair policy (other, batch, idle)";
                Err(Invalid::new(KEY, what).with_remedy(remedy))
            }
            _ => Ok(()),
        }
    }

    fn require(&self, root: &Path, arm: &Arm, workloads: &[Workload]) -> Vec<Problem> {
        // The group of a daemon is there.
        if of_arm(arm).is_none() || arm.to == Role::Daemon {
            return Vec::new();
        }
        let without = without_role(arm, KEY, workloads);
        let missing = roles::cgroup::no_quota(root);
        let missing = missing.map(|(what, remedy)| problem(arm, what, &remedy));
        without.into_iter().chain(missing).collect()
    }

    fn asked_facts(&self, arm: &Arm) -> Vec<Asked> {
        let quota = of_arm(arm).map(|quota| Asked::of_role(&arm.to, QUOTA, quota.to_string()));
        quota.into_iter().collect()
    }

    fn make_change<'a>(&self, arm: &'a Arm, _: &'a Workload) -> Option<Box<dyn Change + 'a>> {
        let quota = of_arm(arm)?;
        Some(Box::new(Limited {
            role: &arm.to,
            quota,
        }))
    }
}

/// `50%`, `20ms/40ms`, `max`.
fn parse(text: &str) -> Result<Quota, String> {
    if text.trim() == "max" {
        return Ok(Quota::NONE);
    }
    let Some((runtime, period)) = text.split_once('/') else {
        let percent = parse_percent(text)?;
        return match (1.0..=MOST_PERCENT).contains(&percent) {
            true => Ok(Quota::of_percent(percent)),
            false => Err("a quota is at least 1% of a CPU".to_owned()),
        };
    };
    let whole_us = |name: &str, text: &str| {
        let ns = parse_duration(text).map_err(|e| format!("the {name} of a quota: {e}"))?;
        match ns % 1_000 {
            0 => Ok(ns / 1_000),
            _ => Err(format!("the {name} of a quota is in whole microseconds")),
        }
    };
    let (runtime_us, period_us) = (whole_us("runtime", runtime)?, whole_us("period", period)?);
    if !(LEAST_US..=LONGEST_PERIOD_US).contains(&period_us) {
        return Err("the period of a quota is 1ms to 1s".to_owned());
    }
    if runtime_us < LEAST_US {
        return Err("the runtime of a quota is at least 1ms".to_owned());
    }
    if runtime_us as f64 / period_us as f64 > MOST_PERCENT / 100.0 {
        return Err("the runtime of a quota is more than ten thousand CPUs have".to_owned());
    }
    Ok(Quota {
        runtime_us: Some(runtime_us),
        period_us,
    })
}

fn of_arm(arm: &Arm) -> Option<Quota> {
    parse(arm.ingredients.get(KEY)?.as_str()?).ok()
}

/// The quota of a role under an arm.
pub fn of_role(arm: &Arm, role: &Role) -> Option<Quota> {
    of_arm(arm).filter(|_| arm.to == *role)
}

struct Limited<'a> {
    role: &'a Role,
    quota: Quota,
}

impl Change for Limited<'_> {
    fn group_settings(&self, role: &Role) -> Settings {
        Settings {
            quota: (role == self.role).then_some(self.quota),
            ..Settings::default()
        }
    }

    fn facts(&self, at: &At) -> Vec<Fact> {
        let leaders = at.leaders.iter().filter(|(role, _)| role == self.role);
        let quota = |pid| match at.roles.quota_of(at.root, pid) {
            Some(quota) => quota.to_string(),
            None => "not read".to_owned(),
        };
        let found: BTreeSet<String> = leaders.map(|(_, pid)| quota(*pid)).collect();
        let found: Vec<String> = found.into_iter().collect();
        match found.is_empty() {
            true => Vec::new(),
            false => vec![Fact::new(QUOTA, found.join(" and ")).about_role(self.role)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Policy;

    fn arm(quota: &str) -> Arm {
        let mut arm = Arm::unchanged("a");
        let change = format!("quota={quota}");
        RoleQuota.parse(&change, &mut arm).unwrap().unwrap();
        arm
    }

    #[test]
    fn a_quota_is_a_share_of_a_cpu_or_a_runtime_in_each_period() {
        let quota = |runtime_us, period_us| {
            Ok(Quota {
                runtime_us,
                period_us,
            })
        };
        assert_eq!(parse("50%"), quota(Some(50_000), 100_000));
        assert_eq!(parse("250%"), quota(Some(250_000), 100_000));
        assert_eq!(parse("20ms/40ms"), quota(Some(20_000), 40_000));
        assert_eq!(parse("max"), quota(None, 100_000));
        for wrong in [
            "50",
            "0.5%",
            "0.5ms/40ms",
            "20ms/2s",
            "20ms/500us",
            "20ms",
            "/40ms",
            "",
            "1500ns/40ms",
            "3h/1ms",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_table_and_a_text_of_an_arm_say_the_same() {
        let table = serde_json::json!({ "quota": { "runtime": "20ms", "period": "40ms" } });
        let mut read = Arm::unchanged("a");
        let mut keys = Keys::new(table.as_object().unwrap().clone());
        RoleQuota.read(&mut keys, &mut read);
        assert_eq!(read, arm("20ms/40ms"));
    }

    #[test]
    fn a_quota_of_real_time_threads_is_refused() {
        let around = Around {
            boots: false,
            reboots: false,
            workloads: &[],
        };
        let mut arm = arm("50%");
        assert_eq!(RoleQuota.check(&arm, &around), Ok(()));
        arm.policy = Some(Policy::new(Class::Rr));
        let error = RoleQuota.check(&arm, &around).unwrap_err();
        assert!(error.what.contains("does not count for `rr`"), "{error}");
    }
}
