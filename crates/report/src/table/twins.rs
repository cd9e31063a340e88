//! Warning about arms that were the same on this kernel: two profiles, of which one differs in
//! what the kernel has no more, are two names for one treatment.

use model::{Arm, Severity, Trial, Warning};
use results::ResultSet;
use std::collections::{BTreeMap, BTreeSet};

/// Facts that tell such arms apart.
const TUNABLE: &str = "tunable ";
/// Ingredient of an arm that is taken as far as the kernel has it.
const PROFILE: &str = "profile";

pub fn twin_warnings(results: &ResultSet) -> Vec<Warning> {
    let mut same: BTreeMap<BTreeSet<String>, Vec<&Arm>> = BTreeMap::new();
    for (index, arm) in results.experiment.arms.iter().enumerate() {
        let is_repeated = results.experiment.aa_arm.as_ref() == Some(&arm.name);
        let tunables = tunables(results, index);
        if arm.ingredients.contains_key(PROFILE) && !is_repeated && !tunables.is_empty() {
            same.entry(tunables).or_default().push(arm);
        }
    }
    same.values().filter_map(|arms| warning(arms)).collect()
}

/// All that was read of the tunables in the trials of an arm.
fn tunables(results: &ResultSet, arm: usize) -> BTreeSet<String> {
    let trials = results.trials.iter().map(|stored| &stored.trial);
    let counted = trials.filter(|t: &&Trial| t.is_ok() && t.place.arm == arm);
    let facts = counted.flat_map(|trial| trial.result.evidence.all_facts());
    let tunables = facts.filter(|fact| fact.what.starts_with(TUNABLE));
    tunables
        .map(|fact| format!("{} {}", fact.what, fact.found))
        .collect()
}

fn warning(arms: &[&Arm]) -> Option<Warning> {
    let (first, rest) = arms.split_first()?;
    let twins = rest.iter().filter(|arm| is_twin(first, arm));
    let names: Vec<&str> = twins.map(|arm| arm.name.as_str()).collect();
    (!names.is_empty()).then(|| Warning {
        severity: Severity::Caution,
        what: format!(
            "{} and {} were the same on this kernel: what their profiles differ in, it has not.",
            first.name,
            names.join(", ")
        ),
        remedy: "Leave out all but one of them, or take a differing one as what chance does."
            .to_owned(),
    })
}

/// True if the arms differ in nothing but their names and profiles.
fn is_twin(one: &Arm, other: &Arm) -> bool {
    let rest = |arm: &Arm| {
        let mut rest = Arm {
            name: String::new(),
            grid: BTreeMap::new(),
            ..arm.clone()
        };
        rest.ingredients.remove(PROFILE);
        rest
    };
    rest(one) == rest(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Fact;
    use serde_json::json;

    /// The warnings of a synthetic run whose two arms are profiles that set so much.
    fn warned(slices: [&str; 2], change: impl Fn(&mut Arm)) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        synthetic::write(dir.path(), &synthetic::quickstart()).unwrap();
        let mut results = ResultSet::read(dir.path()).unwrap();
        for (arm, slice) in results.experiment.arms.iter_mut().zip(["1ms", "2ms"]) {
            let profile = json!({ "latency": slice });
            arm.policy = None;
            arm.ingredients.insert(PROFILE.to_owned(), profile);
        }
        change(&mut results.experiment.arms[1]);
        for stored in &mut results.trials {
            if let Some(found) = slices.get(stored.trial.place.arm) {
                let fact = Fact::new("tunable base_slice", *found);
                stored.trial.result.evidence.facts.push(fact);
            }
        }
        let warnings = twin_warnings(&results).into_iter();
        warnings.map(|warning| warning.what).collect()
    }

    #[test]
    fn profiles_that_came_to_the_same_are_named() {
        let said = warned(["3000000", "3000000"], |_| {});
        assert_eq!(said.len(), 1);
        assert!(said[0].contains("were the same on this kernel"), "{said:?}");
    }

    #[test]
    fn profiles_that_differ_in_what_was_read_or_elsewhere_are_not() {
        assert!(warned(["3000000", "1000000"], |_| {}).is_empty());
        let weight = |arm: &mut Arm| arm.weight = Some(5);
        assert!(warned(["3000000", "3000000"], weight).is_empty());
        let without = |arm: &mut Arm| arm.ingredients.clear();
        assert!(warned(["3000000", "3000000"], without).is_empty());
    }
}
