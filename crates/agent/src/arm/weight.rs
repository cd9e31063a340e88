//! Arms that change the weight of the server's cgroup. The cgroup is made with the server
//! (`roles`) and removed with it, so there is nothing to apply or undo here.

use super::asked::Asked;
use super::ingredient::{At, Change, Ingredient, problem};
use crate::roles;
use model::readings::WEIGHT;
use model::{Arm, Fact, Problem, Role, Workload};
use std::path::Path;

pub struct ServerWeight;

impl Ingredient for ServerWeight {
    fn check(&self, root: &Path, arm: &Arm, _: &[Workload]) -> Vec<Problem> {
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

    fn change<'a>(&self, arm: &'a Arm, workload: &'a Workload) -> Box<dyn Change + 'a> {
        Box::new(OfServer {
            wanted: roles::server_weight(arm, workload),
        })
    }
}

struct OfServer {
    /// That of the arm, or else of the server's placement.
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
