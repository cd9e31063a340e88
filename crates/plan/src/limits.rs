//! Limits of a placement that count for some arms and not for others: `cpu.max` and
//! `cpu.weight` of a cgroup count for the fair classes only, a nice value too
//! (sched(7), Documentation/admin-guide/cgroup-v2.rst).

use crate::error::PlanError;
use model::{Arm, Class, Placement, Policy, Role, Severity, Warning, Workload};

/// A role of a workload under an arm.
struct Placed<'a> {
    /// `server`, `antagonist batch`.
    name: String,
    placement: &'a Placement,
    /// The arm's where it is for this role, otherwise its own.
    policy: Option<&'a Policy>,
    /// The weight of its cgroup: the arm's, for the server.
    weight: Option<u32>,
}

fn placed<'a>(arm: &'a Arm, workload: &'a Workload) -> Vec<Placed<'a>> {
    let policy = |role: Role, placement: &'a Placement| {
        let of_arm = arm.policy.as_ref().filter(|_| arm.to == role);
        of_arm.or(placement.policy.as_ref())
    };
    let server = workload.server.as_ref().map(|server| Placed {
        name: "server".to_owned(),
        placement: &server.placement,
        policy: policy(Role::Server, &server.placement),
        weight: arm.weight.or(server.placement.weight),
    });
    let services = workload.services.iter().map(|service| Placed {
        name: format!("service {}", service.name),
        placement: &service.placement,
        policy: policy(Role::Server, &service.placement),
        weight: service.placement.weight,
    });
    let antagonists = workload.antagonists.iter().map(|antagonist| Placed {
        name: format!("antagonist {}", antagonist.name),
        placement: &antagonist.placement,
        policy: policy(Role::Antagonist, &antagonist.placement),
        weight: antagonist.placement.weight,
    });
    server
        .into_iter()
        .chain(services)
        .chain(antagonists)
        .collect()
}

impl Placed<'_> {
    /// Its class, where that is above the fair ones.
    fn above_fair(&self) -> Option<Class> {
        let class = self.policy?.class;
        matches!(class, Class::Fifo | Class::Rr | Class::Deadline).then_some(class)
    }

    /// What of its placement does not count under its policy.
    fn uncounted(&self) -> Vec<&'static str> {
        let mut keys = Vec::new();
        keys.extend(self.weight.map(|_| "weight"));
        keys.extend(self.placement.nice.map(|_| "nice"));
        keys
    }
}

/// An arm must not lift a quota that holds for the others.
pub(crate) fn check_quota(arm: &Arm, workload: &Workload) -> Result<(), PlanError> {
    for role in placed(arm, workload) {
        let (Some(class), Some(quota)) = (role.above_fair(), role.placement.quota_percent) else {
            continue;
        };
        return Err(PlanError::new(format!(
            "the quota of {quota}% of the {} does not count for `{}`: cpu.max limits neither the \
             real-time classes nor the deadline class, so under this arm it would have more CPU \
             than under the others (workload `{}`)",
            role.name,
            class.as_str(),
            workload.name
        ))
        .with_help("leave out the quota, or limit all arms by `cpus`"));
    }
    Ok(())
}

/// What of the placements does not count under an arm.
pub(crate) fn warnings(arm: &Arm, workload: &Workload) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for role in placed(arm, workload) {
        let place = format!("the {} of {}", role.name, workload.name);
        if let Some(class) = role.above_fair() {
            let class = class.as_str();
            warnings.extend(role.uncounted().into_iter().map(|key| Warning {
                severity: Severity::Caution,
                what: format!(
                    "{}: the {key} of {place} does not count while it is `{class}`; it counts for \
                     the fair classes only",
                    arm.name
                ),
                remedy: format!("leave out the {key}, or compare fair policies with each other"),
            }));
        }
        let quota = role.placement.quota_percent;
        if let (Some(scheduler), Some(_)) = (&arm.scheduler, quota) {
            warnings.push(Warning {
                severity: Severity::Caution,
                what: format!(
                    "{}: {place} has a quota, and most sched_ext schedulers do not implement \
                     cpu.max; under {} it may have more CPU than under the others",
                    arm.name, scheduler.program
                ),
                remedy: "leave out the quota, or limit all arms by `cpus`".to_owned(),
            });
        }
    }
    warnings
}

/// A cgroup of its own is a difference by itself.
pub(crate) fn only_some_weighted(arms: &[Arm], workload: &Workload) -> Option<Warning> {
    let placement = &workload.server.as_ref()?.placement;
    if placement.wants_cgroup() {
        return None;
    }
    let with = arms.iter().find(|arm| arm.weight.is_some())?;
    let without = arms.iter().find(|arm| arm.weight.is_none())?;
    Some(Warning {
        severity: Severity::Caution,
        what: format!(
            "the server of {} has a cgroup of its own under {} but not under {}, so more than \
             the weight differs",
            workload.name, with.name, without.name
        ),
        remedy: "give the other arms weight = 100".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use crate::{parse_experiment, plan, warnings};

    const SERVICE: &str = r#"
        [[arm]]
        name = "default"
        [[arm]]
        name = "other"
        policy = { class = "batch" }
        [[workload]]
        kind = "http"
        [workload.server]
        kind = "echo"
        weight = 100
    "#;

    fn said(changes: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let mut text = SERVICE.to_owned();
        for (from, to) in changes {
            assert!(text.contains(from));
            text = text.replace(from, to);
        }
        let experiment = parse_experiment("x.toml", &text).map_err(|e| e.to_string())?;
        let warnings = warnings(&experiment, &plan(&experiment));
        Ok(warnings.into_iter().map(|w| w.what).collect())
    }

    const QUOTA: (&str, &str) = ("weight = 100", "quota = \"50%\"");
    const DEADLINE: &str = "class = \"deadline\", runtime = \"1ms\", period = \"5ms\"";

    #[test]
    fn a_quota_that_an_arm_lifts_is_an_error() {
        assert_eq!(said(&[QUOTA]), Ok(Vec::new()));
        for class in ["class = \"fifo\"", "class = \"rr\"", DEADLINE] {
            let error = said(&[QUOTA, ("class = \"batch\"", class)]).unwrap_err();
            assert!(
                error.starts_with("arm `other`: the quota of 50% of the server"),
                "{error}"
            );
        }
        let of_load = (
            "{ class = \"batch\" }",
            "{ class = \"fifo\" }\nto = \"load\"",
        );
        assert_eq!(said(&[QUOTA, of_load]), Ok(Vec::new()));
    }

    #[test]
    fn a_weight_or_nice_value_that_does_not_count_is_a_warning() {
        assert_eq!(said(&[]), Ok(Vec::new()));
        let fifo = ("class = \"batch\"", "class = \"fifo\"");
        let warnings = said(&[fifo, ("weight = 100", "weight = 100\nnice = 5")]).unwrap();
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[0].starts_with("other: the weight of the server of http does not"));
        assert!(warnings[1].starts_with("other: the nice of the server of http does not"));
    }

    #[test]
    fn a_quota_under_sched_ext_is_a_warning() {
        let scheduler = (
            "policy = { class = \"batch\" }",
            "scheduler = \"scx_rusty\"",
        );
        let warnings = said(&[QUOTA, scheduler]).unwrap();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains("most sched_ext schedulers do not implement cpu.max"));
    }

    #[test]
    fn arms_of_which_only_some_have_a_cgroup_are_warned_of() {
        let heavy = ("policy = { class = \"batch\" }", "weight = 1000");
        assert_eq!(said(&[heavy]), Ok(Vec::new()));
        let warnings = said(&[("weight = 100", ""), heavy]).unwrap();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(
            warnings[0].contains("under other but not under default"),
            "{warnings:?}"
        );
    }
}
