//! The machines on which arms were measured, as far as a tool says them.
//!
//! Under one name two machines have no common level, so the second one is refused. Arms of different
//! machines may be what is compared; that is said.

use crate::{ImportError, Imported, ImportedArm};
use model::{Severity, Warning};
use std::path::Path;

/// Facts that two machines differ in, and two runs on one machine do not.
const OF_A_MACHINE: [&str; 2] = ["host", "hardware"];
const APART: &str =
    "import the files of each machine by themselves, or rename the runs of one of them";

impl ImportedArm {
    /// Takes facts of the file; an error, and nothing is taken, where they are those of another
    /// machine than before.
    pub(crate) fn learn_facts(
        &mut self,
        path: &Path,
        facts: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(), ImportError> {
        let facts: Vec<(String, String)> = facts.into_iter().collect();
        if let Some(fault) = facts.iter().find_map(|fact| self.contradicted(path, fact)) {
            return Err(fault);
        }
        for (name, value) in facts {
            self.told_in.insert(name.clone(), path.to_owned());
            self.facts.insert(name, value);
        }
        Ok(())
    }

    fn contradicted(&self, path: &Path, (name, value): &(String, String)) -> Option<ImportError> {
        let before = self.facts.get(name).filter(|before| *before != value)?;
        if !OF_A_MACHINE.contains(&name.as_str()) {
            return None;
        }
        let there = self.told_in.get(name)?;
        let what = format!(
            "`{}` is of two machines: its {name} is `{before}` in {} and `{value}` here",
            self.name,
            there.display()
        );
        Some(ImportError::in_file(path, what, APART))
    }
}

/// Warns of arms that were measured on different machines.
pub(crate) fn compare_machines(imported: &mut Imported) {
    let warnings = OF_A_MACHINE
        .iter()
        .filter_map(|fact| differing(imported, fact));
    let warnings: Vec<Warning> = warnings.collect();
    imported.warnings.extend(warnings);
}

fn differing(imported: &Imported, fact: &str) -> Option<Warning> {
    let known = imported.arms.iter().filter_map(|arm| {
        let value = arm
            .facts
            .get(fact)
            .filter(|value| !value.trim().is_empty())?;
        Some((arm, value))
    });
    let known: Vec<(&ImportedArm, &String)> = known.collect();
    let (_, first) = known.first()?;
    if known.iter().all(|(_, value)| value == first) {
        return None;
    }
    let listed = known.iter().map(|(arm, value)| {
        let file = arm.told_in.get(fact).map(|path| path.display().to_string());
        format!("{} on `{value}` ({})", arm.name, file.unwrap_or_default())
    });
    let listed: Vec<String> = listed.collect();
    Some(Warning {
        severity: Severity::Serious,
        what: format!(
            "The arms were measured on different machines, by their {fact}: {}. What the machines \
             differ in is mixed with the arms.",
            listed.join("; ")
        ),
        remedy: "Compare arms of one machine.".to_owned(),
    })
}
