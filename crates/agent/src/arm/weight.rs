//! Arms that change the weight of cgroups: of the antagonists where an arm is for them, else of the server
//! and the services, each of which has a cgroup of its own. It is made with the process (`roles`) and removed
//! with it, so there is nothing to undo here. Arms that take turns change it where it is
//! (`Roles::regroup`).

use super::ingredient::{Around, At, Change, Form, Ingredient, problem, twice_error, value_of};
use super::requirement::Asked;
use crate::roles::cgroup::Settings;
use crate::roles::{self, placement};
use load::Keys;
use model::readings::WEIGHT;
use model::{Arm, Fact, Invalid, KeyDef, Problem, Role, Workload};
use serde_json::Map;
use std::collections::BTreeSet;
use std::path::Path;

/// Weight of a new cgroup (`CGROUP_WEIGHT_DFL` in include/linux/cgroup.h).
const USUAL_WEIGHT: u32 = 100;

pub struct RoleWeight;

impl Ingredient for RoleWeight {
    fn name(&self) -> &'static str {
        "weight"
    }

    fn keys(&self) -> &'static [KeyDef] {
        const {
            &[KeyDef::new(
                "weight",
                "1 to 10000",
                "",
                "Weight of the cgroups of the server and the services (`cpu.weight`), or of the antagonists \
                     where `to` says so, in place of those of their placements.",
            )]
        }
    }

    fn read(&self, keys: &mut Keys, arm: &mut Arm) {
        arm.weight = keys.get("weight");
    }

    fn write(&self, arm: &Arm, keys: &mut Map<String, serde_json::Value>) {
        if let Some(weight) = arm.weight {
            keys.insert("weight".to_owned(), weight.into());
        }
    }

    fn forms(&self) -> &'static [Form] {
        &[(
            "weight=N",
            "cgroup weight (cpu.weight) of the server and the services of each workload, 1 to 10000; \
             antagonist:weight=N is that of each antagonist",
        )]
    }

    fn parse(&self, change: &str, arm: &mut Arm) -> Option<Result<(), Invalid>> {
        let text = value_of(change, "weight")?;
        let Ok(weight) = text.parse() else {
            let what = format!("`{text}` is not a weight");
            return Some(Err(Invalid::new("weight", what).with_remedy("1 to 10000")));
        };
        Some(match arm.weight.replace(weight) {
            Some(first) => Err(twice_error("weight", first, weight)),
            None => Ok(()),
        })
    }

    fn roles(&self) -> &'static [Role] {
        &[Role::Server, Role::Antagonist, Role::Daemon]
    }

    fn in_place(&self, _: &Arm) -> bool {
        true
    }

    /// The weight of the placement is one to go back to, and so is that of a new cgroup.
    fn name_in_all(&self, arms: &mut [Arm], of: &Workload) {
        if arms.iter().all(|arm| arm.weight.is_none()) {
            return;
        }
        for arm in arms.iter_mut().filter(|arm| arm.weight.is_none()) {
            let role = arm.weighed_role();
            let own = of.placements_of(&role).find_map(|place| place.weight);
            arm.weight = own.or(Some(USUAL_WEIGHT));
        }
    }

    fn check(&self, arm: &Arm, around: &Around) -> Result<(), Invalid> {
        let Some(weight) = arm.weight else {
            return Ok(());
        };
        check_weight(weight)?;
        let role = arm.weighed_role();
        if role == Role::Daemon {
            return Ok(());
        }
        let has_none = |workload: &&Workload| workload.placements_of(&role).next().is_none();
        let Some(without) = around.workloads.iter().find(has_none) else {
            return Ok(());
        };
        let (whose, remedy) = match role {
            Role::Antagonist => (
                "antagonist",
                "leave out the workload, or give it an antagonist",
            ),
            _ => (
                "server",
                "leave out the workload, use nice = -5 in a policy instead of the weight, or say that \
                 it is for the antagonists: to = \"antagonist\", or antagonist:weight=N",
            ),
        };
        let what = format!(
            "`weight` is the cgroup weight of the {whose}, and the workload `{}` has no {whose}",
            without.name
        );
        Err(Invalid::new("weight", what).with_remedy(remedy))
    }

    fn require(&self, root: &Path, arm: &Arm, _: &[Workload]) -> Vec<Problem> {
        // The group of a daemon is there.
        let made = arm.weight.filter(|_| arm.to != Role::Daemon);
        let missing = made.and_then(|_| roles::cgroup::find_obstacle(root));
        missing
            .map(|(what, remedy)| problem(arm, what, &remedy))
            .into_iter()
            .collect()
    }

    fn asked_facts(&self, arm: &Arm) -> Vec<Asked> {
        let weight = arm.weight.map(|weight| weight.to_string());
        weight
            .map(|weight| Asked::of_role(&arm.weighed_role(), WEIGHT, weight))
            .into_iter()
            .collect()
    }

    fn make_change<'a>(
        &self,
        arm: &'a Arm,
        workload: &'a Workload,
    ) -> Option<Box<dyn Change + 'a>> {
        let roles = [Role::Server, Role::Antagonist];
        let wanted = roles.map(|role| (wanted(arm, workload, &role), role));
        let weighed = wanted.into_iter().filter(|(wanted, _)| !wanted.is_empty());
        let weighed: Vec<_> = weighed.collect();
        (!weighed.is_empty()).then(|| Box::new(Weighed { arm, weighed }) as _)
    }
}

/// Weights that the cgroups of a role are to have under an arm: that of the arm or those of the
/// placements; none where nobody asks for one. A group that is there for its quota has the usual one.
fn wanted(arm: &Arm, workload: &Workload, role: &Role) -> BTreeSet<u32> {
    let places = workload.placements_of(role);
    let of_arm = settings_of(arm, role);
    let groups: Vec<_> = places
        .map(|place| placement::group_settings(place).overlaid(of_arm))
        .filter(|group| *group != Settings::default())
        .collect();
    match groups.iter().any(|group| group.weight.is_some()) {
        true => groups
            .iter()
            .map(|group| group.weight.unwrap_or(USUAL_WEIGHT))
            .collect(),
        false => BTreeSet::new(),
    }
}

/// Settings that an arm asks of the cgroup of a role.
pub fn settings_of(arm: &Arm, role: &Role) -> Settings {
    Settings {
        weight: arm.weight_of(role),
        quota: super::quota::of_role(arm, role),
    }
}

/// Refuses a weight that `cpu.weight` of a cgroup does not take.
pub fn check_weight(weight: u32) -> Result<(), Invalid> {
    if (1..=10_000).contains(&weight) {
        return Ok(());
    }
    Err(Invalid::new("weight", "a weight is 1 to 10000").with_remedy("weight = 100 is usual"))
}

/// Roles whose cgroups have weights.
struct Weighed<'a> {
    arm: &'a Arm,
    /// The weights that are wanted of each role.
    weighed: Vec<(BTreeSet<u32>, Role)>,
}

impl Change for Weighed<'_> {
    fn group_settings(&self, role: &Role) -> Settings {
        Settings {
            weight: self.arm.weight_of(role),
            ..Settings::default()
        }
    }

    fn facts(&self, at: &At) -> Vec<Fact> {
        let facts = self.weighed.iter().map(|(wanted, role)| {
            let found: BTreeSet<_> = at.roles.weights_of(role).into_iter().collect();
            let found: Vec<String> = found.into_iter().map(in_words).collect();
            let found = match found.is_empty() {
                true => in_words(None),
                false => found.join(" and "),
            };
            let wanted: Vec<String> = wanted.iter().map(u32::to_string).collect();
            Fact::new(WEIGHT, found)
                .about_role(role)
                .with_wanted(wanted.join(" and "))
        });
        facts.collect()
    }
}

fn in_words(weight: Option<u32>) -> String {
    weight.map_or("not read".to_owned(), |weight| weight.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Antagonist, Kind, Placement};

    fn disturbed(weights: [Option<u32>; 2]) -> Workload {
        let mut workload = Workload::new(kinds::wakeup::KIND.read(&mut Keys::new(Map::new())));
        workload
            .antagonists
            .extend(weights.map(|weight| Antagonist {
                name: "spinner".to_owned(),
                program: Kind::new("spinner"),
                placement: Placement {
                    weight,
                    ..Placement::default()
                },
            }));
        workload
    }

    fn for_antagonists(weight: Option<u32>) -> Arm {
        Arm {
            weight,
            to: Role::Antagonist,
            ..Arm::unchanged("calm")
        }
    }

    #[test]
    fn each_role_is_to_have_the_weights_of_the_arm_or_of_its_placements() {
        let of = |arm: &Arm, weights| {
            let wanted = wanted(arm, &disturbed(weights), &Role::Antagonist);
            wanted.into_iter().collect::<Vec<u32>>()
        };
        assert_eq!(of(&for_antagonists(Some(20)), [None, Some(50)]), [20]);
        assert_eq!(of(&for_antagonists(None), [Some(300), Some(50)]), [50, 300]);
        assert!(of(&for_antagonists(None), [None, None]).is_empty());
        let of_server = Arm {
            weight: Some(20),
            ..Arm::unchanged("heavy")
        };
        assert_eq!(of(&of_server, [None, Some(50)]), [50]);
    }

    #[test]
    fn turns_give_the_antagonists_their_own_weight_back() {
        let mut arms = [for_antagonists(None), for_antagonists(Some(20))];
        RoleWeight.name_in_all(&mut arms, &disturbed([Some(50), Some(50)]));
        assert_eq!(arms.map(|arm| arm.weight), [Some(50), Some(20)]);
        let mut arms = [for_antagonists(None), for_antagonists(Some(20))];
        RoleWeight.name_in_all(&mut arms, &disturbed([None, None]));
        assert_eq!(arms[0].weight, Some(USUAL_WEIGHT));
    }

    #[test]
    fn a_weight_of_antagonists_needs_some_and_no_server() {
        let mut workload = disturbed([None, None]);
        let check = |workload: &Workload| {
            let around = Around {
                boots: false,
                reboots: false,
                workloads: std::slice::from_ref(workload),
            };
            RoleWeight.check(&for_antagonists(Some(20)), &around)
        };
        assert_eq!(check(&workload), Ok(()));
        workload.antagonists.clear();
        let said = check(&workload).unwrap_err().to_string();
        assert!(said.contains("has no antagonist"), "{said}");
    }
}
