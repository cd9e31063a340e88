//! Arms that change the weight of the server's cgroup. The cgroup is made with the server
//! (`roles`) and removed with it, so there is nothing to apply or undo here. Arms that take turns change it
//! where it is (`Roles::regroup`).

use super::asked::Asked;
use super::ingredient::{Around, At, Change, Form, Ingredient, problem, twice, value_of};
use crate::roles;
use load::Keys;
use model::readings::WEIGHT;
use model::{Arm, Fact, Invalid, Problem, Role, Workload};
use serde_json::Map;
use std::path::Path;

/// Weight of a new cgroup (`CGROUP_WEIGHT_DFL` in include/linux/cgroup.h).
const USUAL_WEIGHT: u32 = 100;

pub struct ServerWeight;

impl Ingredient for ServerWeight {
    fn name(&self) -> &'static str {
        "weight"
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
            "cgroup weight (cpu.weight) of the server of each workload, 1 to 10000",
        )]
    }

    fn parse(&self, change: &str, arm: &mut Arm) -> Option<Result<(), Invalid>> {
        let text = value_of(change, "weight")?;
        let Ok(weight) = text.parse() else {
            let what = format!("`{text}` is not a weight");
            return Some(Err(Invalid::new("weight", what).with_remedy("1 to 10000")));
        };
        Some(match arm.weight.replace(weight) {
            Some(first) => Err(twice("weight", first, weight)),
            None => Ok(()),
        })
    }

    fn in_place(&self, _: &Arm) -> bool {
        true
    }

    /// The weight of the server's placement is one to go back to, and so is that of a new cgroup.
    fn name_in_all(&self, arms: &mut [Arm], of: &Workload) {
        if arms.iter().any(|arm| arm.weight.is_some()) {
            let own = of.server.as_ref().and_then(|s| s.placement.weight);
            for arm in arms {
                arm.weight = arm.weight.or(own).or(Some(USUAL_WEIGHT));
            }
        }
    }

    fn check(&self, arm: &Arm, around: &Around) -> Result<(), Invalid> {
        let Some(weight) = arm.weight else {
            return Ok(());
        };
        check_weight(weight)?;
        let Some(without) = around.workloads.iter().find(|w| w.server.is_none()) else {
            return Ok(());
        };
        let what = format!(
            "`weight` is the cgroup weight of the server, and the workload `{}` has no server",
            without.name
        );
        Err(Invalid::new("weight", what).with_remedy(
            "leave out the workload, or use nice = -5 in a policy instead of the weight",
        ))
    }

    fn require(&self, root: &Path, arm: &Arm, _: &[Workload]) -> Vec<Problem> {
        let missing = arm.weight.and_then(|_| roles::cgroup::missing(root));
        missing
            .map(|(what, remedy)| problem(arm, what, &remedy))
            .into_iter()
            .collect()
    }

    fn asks(&self, arm: &Arm) -> Vec<Asked> {
        let weight = arm.weight.map(|weight| weight.to_string());
        weight
            .map(|weight| Asked::of_role(&Role::Server, WEIGHT, weight))
            .into_iter()
            .collect()
    }

    fn change<'a>(&self, arm: &'a Arm, workload: &'a Workload) -> Option<Box<dyn Change + 'a>> {
        Some(Box::new(OfServer {
            wanted: roles::server_weight(arm, workload),
        }))
    }
}

/// Refuses a weight that `cpu.weight` of a cgroup does not take.
pub fn check_weight(weight: u32) -> Result<(), Invalid> {
    if (1..=10_000).contains(&weight) {
        return Ok(());
    }
    Err(Invalid::new("weight", "a weight is 1 to 10000").with_remedy("weight = 100 is usual"))
}

struct OfServer {
    /// Weight of the arm, or else of the server's placement.
    wanted: Option<u32>,
}

impl Change for OfServer {
    fn facts(&self, at: &At) -> Vec<Fact> {
        let Some(wanted) = self.wanted else {
            return Vec::new();
        };
        let found = at.roles.server_weight();
        let found = found.map_or("not read".to_owned(), |weight| weight.to_string());
        let fact = Fact::found(WEIGHT, found).of(&Role::Server);
        vec![fact.wants(wanted.to_string())]
    }
}
