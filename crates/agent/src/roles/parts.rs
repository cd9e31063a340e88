//! Cgroups of parts of a load ([`load::Driver::groups`]): made before the load starts, which puts its
//! processes there, and removed with those of the roles.

use super::Roles;
use super::cgroup::{Cgroup, CgroupError, Quota, Settings, find_obstacle, no_quota};
use crate::journal::Journal;
use crate::stop::Stop;
use load::{GroupAt, PartGroup};
use model::{Arm, Class, Problem, Role, Workload};
use std::path::Path;

/// The group of a part.
#[derive(Debug)]
pub struct Made {
    part: PartGroup,
    group: Cgroup,
}

impl Roles {
    /// Makes the groups, whose names begin with `name`.
    pub fn make_parts(
        &mut self,
        root: &Path,
        name: &str,
        parts: Vec<PartGroup>,
        journal: &mut Journal,
    ) -> Result<Vec<GroupAt>, CgroupError> {
        // Those of an earlier load on the same stage are removed with the stage.
        self.parts.clear();
        let mut made = Vec::new();
        for (index, part) in parts.into_iter().enumerate() {
            let name = format!("{name}-part-{index}");
            let group = self.groups.make(root, &name, settings(&part), journal)?;
            if let Some(group) = group {
                made.push(GroupAt {
                    part: part.part.clone(),
                    path: group.path().to_owned(),
                });
                self.parts.push(Made { part, group });
            }
        }
        Ok(made)
    }

    /// The groups still have what they were given.
    pub fn prove_parts(&self) -> Result<(), Stop> {
        for Made { part, group } in &self.parts {
            if let Some(what) = group.find_difference(settings(part)) {
                return Err(Stop::Void(format!("the {} of the load: {what}", part.part)));
            }
        }
        Ok(())
    }
}

fn settings(part: &PartGroup) -> Settings {
    Settings {
        weight: Some(part.weight),
        quota: part
            .quota_percent
            .map(|quota| Quota::of_percent(quota.into())),
    }
}

/// Problems of an arm with workloads whose load has groups, and of this machine with them.
pub fn require(root: &Path, arm: &Arm, workloads: &[Workload]) -> Vec<Problem> {
    let groups = |workload: &&Workload| {
        let driver = load::driver(&workload.kind);
        driver.map(|driver| driver.groups()).unwrap_or_default()
    };
    let mut problems = Vec::new();
    for workload in workloads {
        let groups = groups(&workload);
        if groups.is_empty() {
            continue;
        }
        let object = format!("workload {}", workload.name);
        let lacks = match groups.iter().any(|group| group.quota_percent.is_some()) {
            true => no_quota(root),
            false => find_obstacle(root),
        };
        problems.extend(lacks.map(|(what, remedy)| Problem {
            object: object.clone(),
            what,
            remedy,
        }));
        problems.extend(collides(arm).map(|(what, remedy)| Problem {
            object: format!("arm {}", arm.name),
            what: format!("{what}, and parts of the {object} are in cgroups of their own"),
            remedy: remedy.to_owned(),
        }));
    }
    problems
}

/// A change of the load by an arm that would not be one, or would take the groups their meaning.
fn collides(arm: &Arm) -> Option<(String, &'static str)> {
    if arm.to != Role::Load {
        return None;
    }
    let settings = crate::arm::settings_of(arm, &Role::Load);
    if settings.quota.is_some_and(|quota| quota != Quota::NONE) {
        let what = "its quota is for the whole load".to_owned();
        return Some((what, "leave out the quota, or weight and quota of the sets"));
    }
    let class = arm.policy.as_ref().map(|policy| policy.class);
    match class {
        Some(class @ (Class::Fifo | Class::Rr | Class::Deadline)) => Some((
            format!("neither weight nor quota counts for `{}`", class.name()),
            "take a fair policy (other, batch, idle), or leave out weight and quota of the sets",
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Policy;

    fn part() -> PartGroup {
        PartGroup {
            part: "A".to_owned(),
            weight: 200,
            quota_percent: Some(50),
        }
    }

    #[test]
    fn groups_that_were_changed_meanwhile_are_told() {
        let root = ::tests::tree(&[
            ("sys/fs/cgroup/cgroup.controllers", "cpu"),
            ("sys/fs/cgroup/cgroup.subtree_control", "cpu"),
        ]);
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path()).unwrap();
        let mut roles = Roles::default();
        let made = roles
            .make_parts(root.path(), "x", vec![part()], &mut journal)
            .unwrap();
        assert_eq!(made[0].part, "A");
        assert!(made[0].path.ends_with("x-part-0"), "{made:?}");
        roles.prove_parts().unwrap();
        std::fs::write(made[0].path.join("cpu.max"), "max 100000\n").unwrap();
        let Err(Stop::Void(why)) = roles.prove_parts() else {
            panic!("a quota that is gone was not seen");
        };
        assert!(why.contains("max and not 50000 of 100000 us"), "{why}");
    }

    #[test]
    fn arms_for_which_no_weight_counts_are_refused() {
        let mut arm = Arm::unchanged("a");
        assert!(collides(&arm).is_none());
        arm.policy = Some(Policy::new(Class::Batch));
        assert!(collides(&arm).is_none());
        arm.policy = Some(Policy::new(Class::Fifo));
        assert!(collides(&arm).unwrap().0.contains("fifo"));
        // A policy of another role is nothing to the load.
        arm.to = Role::Server;
        assert!(collides(&arm).is_none());
    }
}
