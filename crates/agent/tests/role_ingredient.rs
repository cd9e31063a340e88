//! One entry is all that an ingredient of a role needs, too: one that is known nowhere else is given to the
//! process of the load before that runs its program, and proven.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

mod entry;
mod few;

use agent::arm::Asked;
use agent::arm::ingredient::{self, At, Change, Form, Ingredient};
use agent::arm::table::INGREDIENTS;
use entry::{trial, wrong};
use load::Keys;
use model::{Arm, Fact, Invalid, Role, TrialState, Workload};
use std::fs;
use std::path::Path;

/// An ingredient of a role: how readily the kernel kills its processes where memory is short.
struct Score;

impl Ingredient for Score {
    fn name(&self) -> &'static str {
        "oom-score"
    }

    fn read(&self, keys: &mut Keys, arm: &mut Arm) {
        if let Some(value) = keys.get::<u64>(self.name()) {
            arm.ingredients.insert(self.name().to_owned(), value.into());
        }
    }

    fn forms(&self) -> &'static [Form] {
        &[(
            "oom-score=N",
            "how readily processes of the role are killed",
        )]
    }

    fn parse(&self, change: &str, arm: &mut Arm) -> Option<Result<(), Invalid>> {
        ingredient::parse_text("oom-score", change, arm)
    }

    fn roles(&self) -> &'static [Role] {
        &Role::ALL
    }

    fn asked_facts(&self, arm: &Arm) -> Vec<Asked> {
        let value = arm.ingredients.get(self.name());
        value
            .map(|value| Asked::of_role(&arm.to, "OOM score", value.to_string()))
            .into_iter()
            .collect()
    }

    fn make_change<'a>(&self, arm: &'a Arm, _: &'a Workload) -> Option<Box<dyn Change + 'a>> {
        let score = arm.ingredients.get(self.name())?.to_string();
        Some(Box::new(Scored {
            role: &arm.to,
            score,
        }))
    }
}

struct Scored<'a> {
    role: &'a Role,
    score: String,
}

impl Change for Scored<'_> {
    fn before_exec(&self, root: &Path, role: &Role, pid: i32) -> Result<(), String> {
        if role != self.role {
            return Ok(());
        }
        let path = root.join(format!("proc/{pid}/oom_score_adj"));
        fs::write(&path, &self.score).map_err(|e| format!("{}: {e}", path.display()))
    }

    fn facts(&self, at: &At) -> Vec<Fact> {
        let of_role = at.leaders.iter().filter(|(role, _)| role == self.role);
        let score = |pid| fs::read_to_string(at.root.join(format!("proc/{pid}/oom_score_adj")));
        let found = of_role.filter_map(|(_, pid)| score(pid).ok());
        found
            .map(|found| Fact::new("OOM score", found.trim()).about_role(self.role))
            .collect()
    }
}

#[test]
fn an_ingredient_of_a_role_is_one_entry() {
    few::install();
    INGREDIENTS.add_entry(&Score);
    let file = "[[arm]]\nname = \"a\"\noom-score = 300\n[[workload]]\nkind = \"command\"\n\
                command = [\"sleep\", \"0.3\"]\n";
    assert_eq!(wrong(&file.replace("300", "\"far\"")).0, 3);
    let experiment = plan::parse_experiment("x.toml", file).unwrap();
    let (problems, result) = trial(&experiment);
    assert_eq!(problems, &[]);
    assert_eq!(result.state, TrialState::Ok);
    let found: Vec<&str> = result
        .evidence
        .all_facts()
        .filter(|fact| fact.what == "OOM score" && fact.role == Some(Role::Load))
        .map(|fact| fact.found.as_str())
        .collect();
    assert_eq!(found, ["300"], "given to the load, and read back");
}
