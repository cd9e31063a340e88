//! Limits of a placement that count for some arms and not for others: `cpu.max` and
//! `cpu.weight` of a cgroup count for the fair classes only, a nice value too
//! (sched(7), Documentation/admin-guide/cgroup-v2.rst).

use model::{Arm, Class, Invalid, Placement, Policy, Role, Severity, Warning, Workload};

/// A role of a workload under an arm.
struct Placed<'a> {
    /// `server`, `antagonist batch`.
    name: String,
    placement: &'a Placement,
    /// The arm's where it is for this role, otherwise its own.
    policy: Option<&'a Policy>,
    /// The weight of its cgroup: the arm's where it is for this role, otherwise its own.
    weight: Option<u32>,
    /// The quota of its cgroup, as it is written: the arm's where it is for this role.
    quota: Option<String>,
}

/// The quota of an arm, which the agent reads.
fn quota_of(arm: &Arm) -> Option<&str> {
    arm.ingredients.get("quota")?.as_str()
}

fn placed<'a>(arm: &'a Arm, workload: &'a Workload) -> Vec<Placed<'a>> {
    let policy = |role: Role, placement: &'a Placement| {
        let of_arm = arm.policy.as_ref().filter(|_| arm.to == role);
        of_arm.or(placement.policy.as_ref())
    };
    let quota = |role: Role, placement: &Placement| {
        let of_arm = quota_of(arm).filter(|_| arm.to == role).map(str::to_owned);
        of_arm.or_else(|| Some(format!("{}%", placement.quota_percent?)))
    };
    let weight = |role: Role, placement: &Placement| arm.weight_of(&role).or(placement.weight);
    let server = workload.server.as_ref().map(|server| Placed {
        name: "server".to_owned(),
        placement: &server.placement,
        policy: policy(Role::Server, &server.placement),
        weight: weight(Role::Server, &server.placement),
        quota: quota(Role::Server, &server.placement),
    });
    let services = workload.services.iter().map(|service| Placed {
        name: format!("service {}", service.name),
        placement: &service.placement,
        policy: policy(Role::Server, &service.placement),
        weight: weight(Role::Server, &service.placement),
        quota: quota(Role::Server, &service.placement),
    });
    let antagonists = workload.antagonists.iter().map(|antagonist| Placed {
        name: format!("antagonist {}", antagonist.name),
        placement: &antagonist.placement,
        policy: policy(Role::Antagonist, &antagonist.placement),
        weight: weight(Role::Antagonist, &antagonist.placement),
        quota: quota(Role::Antagonist, &antagonist.placement),
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

    /// Weights and nice values do not add up: a nice value counts among the tasks of one cgroup.
    fn is_nice_in_a_cgroup(&self) -> bool {
        let of_policy = self.policy.is_some_and(|policy| policy.nice.is_some());
        let has_cgroup = self.weight.is_some() || self.quota.is_some();
        has_cgroup && (of_policy || self.placement.nice.is_some())
    }

    /// Parts of its placement that do not count under its policy.
    fn uncounted(&self) -> Vec<&'static str> {
        let mut keys = Vec::new();
        keys.extend(self.weight.map(|_| "weight"));
        keys.extend(self.placement.nice.map(|_| "nice"));
        keys
    }
}

/// An arm must not lift a quota that holds for the others.
pub fn check_quota(arm: &Arm, workload: &Workload) -> Result<(), Invalid> {
    for role in placed(arm, workload) {
        let (Some(class), Some(quota)) = (role.above_fair(), &role.quota) else {
            continue;
        };
        let what = format!(
            "the quota of {quota} of the {} does not count for `{}`: cpu.max limits neither the \
             real-time classes nor the deadline class, so under this arm it would have more CPU \
             than under the others (workload `{}`)",
            role.name,
            class.name(),
            workload.name
        );
        return Err(Invalid::new("policy", what)
            .with_remedy("leave out the quota, or limit all arms by `cpus`"));
    }
    Ok(())
}

/// Warnings of the parts of placements that do not count under an arm.
pub(crate) fn placement_warnings(arm: &Arm, workload: &Workload) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for role in placed(arm, workload) {
        let place = format!("the {} of {}", role.name, workload.name);
        if let Some(class) = role.above_fair() {
            let class = class.name();
            warnings.extend(role.uncounted().into_iter().map(|key| Warning {
                severity: Severity::Caution,
                what: format!(
                    "{}: the {key} of {place} does not count while it is `{class}`; it counts for \
                     the fair classes only",
                    arm.name
                ),
                remedy: format!("leave out the {key}, or compare fair policies with each other"),
            }));
        } else if role.is_nice_in_a_cgroup() {
            warnings.push(Warning {
                severity: Severity::Caution,
                what: format!(
                    "{}: the nice value of {place} counts only inside its cgroup, so not against \
                     anybody else",
                    arm.name
                ),
                remedy:
                    "leave out its weight and quota, or compare weights in place of nice values"
                        .to_owned(),
            });
        }
        warnings.extend(role.quota.and_then(|_| ignored_quota(arm, &place)));
    }
    if arm.to == Role::Load && quota_of(arm).is_some() {
        warnings.extend(ignored_quota(
            arm,
            &format!("the load of {}", workload.name),
        ));
    }
    warnings
}

fn ignored_quota(arm: &Arm, place: &str) -> Option<Warning> {
    let scheduler = arm.scheduler.as_ref()?;
    Some(Warning {
        severity: Severity::Caution,
        what: format!(
            "{}: {place} has a quota, and most sched_ext schedulers do not implement cpu.max; \
             under {} it may have more CPU than under the others",
            arm.name, scheduler.program
        ),
        remedy: "leave out the quota, or limit all arms by `cpus`".to_owned(),
    })
}

/// A cgroup of its own is a difference by itself, also one with a quota.
pub(crate) fn only_some_limited(arms: &[Arm]) -> Option<Warning> {
    let with = arms.iter().find(|arm| quota_of(arm).is_some())?;
    let without = arms.iter().find(|arm| quota_of(arm).is_none())?;
    Some(Warning {
        severity: Severity::Note,
        what: format!(
            "the {} has a cgroup of its own under {} but not under {}, so more than the quota \
             differs",
            with.to.name(),
            with.name,
            without.name
        ),
        remedy: "give the other arms quota = \"max\", a cgroup without a limit".to_owned(),
    })
}

/// A cgroup of its own is a difference by itself.
pub(crate) fn only_some_weighted(arms: &[Arm], workload: &Workload) -> Option<Warning> {
    // Arms that take turns in one process have one cgroup there, with a weight in each turn.
    if workload.in_place.is_some_and(|lengths| !lengths.pilot) {
        return None;
    }
    let roles = [Role::Server, Role::Antagonist].into_iter();
    roles
        .filter_map(|role| only_some_of_role(arms, workload, &role))
        .next()
}

fn only_some_of_role(arms: &[Arm], workload: &Workload, role: &Role) -> Option<Warning> {
    let mut places = workload.placements_of(role);
    places.find(|placement| !placement.wants_cgroup())?;
    let with = arms.iter().find(|arm| arm.weight_of(role).is_some())?;
    let without = arms.iter().find(|arm| arm.weight_of(role).is_none())?;
    let whose = match role {
        Role::Antagonist => "an antagonist",
        _ if workload.services.is_empty() => "the server",
        _ => "a service",
    };
    Some(Warning {
        severity: Severity::Caution,
        what: format!(
            "{whose} of {} has a cgroup of its own under {} but not under {}, so more than \
             the weight differs",
            workload.name, with.name, without.name
        ),
        remedy: match arms.iter().any(gains_nothing_by_a_weight) {
            true => "compare weights with each other, and nice values and real-time policies in \
                     an experiment of their own"
                .to_owned(),
            false => "give the other arms weight = 100".to_owned(),
        },
    })
}

/// A nice value would count inside the cgroup only, and a weight not at all for real time.
fn gains_nothing_by_a_weight(arm: &Arm) -> bool {
    let policy = arm.policy.as_ref().filter(|_| arm.weight.is_none());
    policy.is_some_and(|policy| {
        let fair = matches!(
            policy.class,
            Class::Other | Class::Batch | Class::Idle | Class::Ext
        );
        policy.nice.is_some() || !fair
    })
}
