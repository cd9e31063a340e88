//! One provocation of the list ([`crate::provoke`]): something that a guest's kernel allows, that schedulers meet in
//! the field, and that has thrown some of them out. In guests only.

use crate::provoke::{self, Act, PROVOCATIONS};
use load::roles::{AntagonistProgram, ProgramDef, words};
use load::{Keys, Params, SELF, Work};
use model::{Invalid, KeyDef};
use serde::{Deserialize, Serialize};

/// The kind `provoke`.
pub static ANTAGONIST: ProgramDef<dyn AntagonistProgram> = ProgramDef {
    name: "provoke",
    summary: "a provocation of a hunt, in guests only: `schedlab list provocations`",
    keys: &[KeyDef::new(
        "what",
        "provocation",
        "needed",
        "Name of the provocation: `hotplug`, `affinity`, `forks`.",
    )],
    work: Work::for_params::<Provoke>(),
    tasks: &[],
    program: None,
};

/// One provocation, by its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Provoke {
    /// Name in the list.
    pub what: String,
}

impl Params for Provoke {
    fn read(keys: &mut Keys) -> Self {
        let what: Option<String> = keys.get("what");
        Provoke {
            what: what.unwrap_or_default(),
        }
    }
}

impl AntagonistProgram for Provoke {
    fn check(&self) -> Result<(), Invalid> {
        if provoke::find(&self.what).is_some() {
            return Ok(());
        }
        let names = PROVOCATIONS.iter().map(|known| known.name);
        let remedy = match model::find_nearest(&self.what, names.clone()) {
            Some(near) => format!("did you mean `{near}`? `schedlab list provocations` has all"),
            None => format!("there are {}", names.collect::<Vec<_>>().join(", ")),
        };
        let what = format!("there is no provocation `{}`", self.what);
        Err(Invalid::new("what", what).with_remedy(remedy))
    }

    fn command(&self) -> Vec<String> {
        match provoke::find(&self.what).map(|known| known.act) {
            Some(Act::StressNg(args)) => [words(&["stress-ng"]), words(args)].concat(),
            _ => Vec::new(),
        }
    }

    fn guests_only(&self) -> Option<&str> {
        Some(&self.what)
    }

    fn launch(&self, _: &model::Placement, _: &model::Calibration) -> load::Launch {
        load::Launch::new(match self.command() {
            own if own.is_empty() => words(&[SELF, "provoke", &self.what]),
            stress_ng => stress_ng,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Calibration, Placement};

    fn provoke(what: &str) -> Provoke {
        Provoke {
            what: what.to_owned(),
        }
    }

    #[test]
    fn a_provocation_is_ours_or_of_stress_ng() {
        let argv = |what| {
            let launch = provoke(what).launch(&Placement::default(), &Calibration::default());
            launch.argv
        };
        assert_eq!(argv("hotplug")[1..], ["provoke", "hotplug"]);
        assert_eq!(argv("stress-switch")[..2], ["stress-ng", "--switch"]);
        assert_eq!(provoke("stress-switch").command()[0], "stress-ng");
        assert!(provoke("hotplug").command().is_empty());
    }

    #[test]
    fn a_name_that_is_not_in_the_list_is_refused_with_the_nearest() {
        let error = provoke("hotplg").check().unwrap_err();
        assert!(error.remedy.contains("did you mean `hotplug`?"), "{error}");
        assert!(PROVOCATIONS.iter().all(|p| provoke(p.name).check().is_ok()));
    }
}
