//! Arms that put a profile of tunables in force: values that were written for some kernel,
//! brought to what the running one has.
//!
//! Unlike `tunables`, of which each must be there, a profile is taken as far as the kernel has
//! it: old names are translated, settings that this kernel no longer has are skipped, and the
//! report lists them. A profile of which nothing is left is a problem.

mod file;
mod tuned;

use super::ingredient::{
    Around, At, Change, Form, Ground, Ingredient, Undone, problem, twice_error, value_of,
};
use super::tunables::{self, Applied, Knob, TunableError, is_settable, normalise};
use crate::stop::Stop;
use load::Keys;
use model::{Arm, Fact, Invalid, KeyDef, Problem, Severity, Tunables, Warning, Workload, readings};
use serde_json::Value;
use std::path::Path;

const KEY: &str = "profile";

/// Tunables that mean the same on kernels before and after Linux 6.6, where EEVDF took the
/// place of CFS: the time that a task may run before another one is looked for.
const TRANSLATED: [[&str; 2]; 2] = [
    ["min_granularity", "base_slice"],
    ["base_slice", "min_granularity"],
];

pub(super) struct Profile;

impl Ingredient for Profile {
    fn name(&self) -> &'static str {
        KEY
    }

    fn keys(&self) -> &'static [KeyDef] {
        const {
            &[KeyDef::new(
                "profile",
                "table of tunables, or path",
                "",
                "Tunables that are taken as far as the kernel has them: old names are translated \
                     (`min_granularity` is `base_slice` from Linux 6.6 on), and settings that the \
                     kernel does not have are skipped and listed.",
            )]
        }
    }

    fn read(&self, keys: &mut Keys, arm: &mut Arm) {
        let read = match keys.get::<Value>(KEY) {
            None => return,
            Some(Value::String(path)) => file::read(Path::new(&path)),
            Some(Value::Object(table)) => {
                let pairs = table.into_iter().map(|(name, value)| match value {
                    Value::String(text) => (name, text),
                    other => (name, other.to_string()),
                });
                file::from_pairs(pairs)
            }
            Some(_) => Err("a profile is a table of tunables, or the path of a file".to_owned()),
        };
        match read {
            Ok(profile) => put(arm, &profile),
            Err(what) => keys.refuse(Invalid::new(KEY, what)),
        }
    }

    fn forms(&self) -> &'static [Form] {
        &[(
            "profile=FILE",
            "tunables from a file of NAME=VALUE lines or a profile of TuneD, as far as the kernel has \
             them: profile=low_latency.conf",
        )]
    }

    fn parse(&self, change: &str, arm: &mut Arm) -> Option<Result<(), Invalid>> {
        let path = value_of(change, KEY)?;
        if arm.ingredients.contains_key(KEY) {
            return Some(Err(twice_error(KEY, "the first", path)));
        }
        let read = file::read(Path::new(path)).map_err(|what| Invalid::new(KEY, what));
        Some(read.map(|profile| put(arm, &profile)))
    }

    fn in_place(&self, _: &Arm) -> bool {
        true
    }

    /// Names, units and ranges that are wrong on any kernel, and what two keys would set.
    fn check(&self, arm: &Arm, _: &Around) -> Result<(), Invalid> {
        for (name, text) in of(arm).iter().filter(|(name, _)| is_settable(name)) {
            normalise(name, text).map_err(|what| Invalid::new(KEY, what))?;
            if let Some(own) = arm.tunables.get(name) {
                return Err(twice_error(
                    "tunable",
                    format!("{name}={own}"),
                    format!("{name}={text}"),
                ));
            }
        }
        Ok(())
    }

    fn require(&self, root: &Path, arm: &Arm, _: &[Workload]) -> Vec<Problem> {
        let profile = of(arm);
        if profile.is_empty() {
            return Vec::new();
        }
        let taken = Taken::of(root, &profile);
        let mut errors = taken.errors;
        errors.extend(tunables::check(root, &taken.tunables));
        let mut problems: Vec<Problem> = errors
            .iter()
            .map(|error| problem(arm, error.to_string(), &error.remedy()))
            .collect();
        if problems.is_empty() && taken.tunables.is_empty() {
            let what = format!(
                "this kernel has none of the tunables of the profile: {}",
                taken.left_out.join(", ")
            );
            let remedy = "use a kernel that has them, or a profile for this one (base_slice, \
                          migration_cost, nr_migrate from Linux 6.6 on)";
            problems.push(problem(arm, what, remedy));
        }
        problems
    }

    fn make_change<'a>(&self, arm: &'a Arm, _: &'a Workload) -> Option<Box<dyn Change + 'a>> {
        let profile = of(arm);
        (!profile.is_empty()).then(|| {
            Box::new(InForce {
                profile,
                applied: Applied::default(),
            }) as Box<dyn Change + 'a>
        })
    }
}

fn put(arm: &mut Arm, profile: &Tunables) {
    let table = profile
        .iter()
        .map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    arm.ingredients
        .insert(KEY.to_owned(), Value::Object(table.collect()));
}

/// The profile of an arm, empty where it has none.
fn of(arm: &Arm) -> Tunables {
    let table = arm.ingredients.get(KEY).and_then(Value::as_object);
    let pairs = table.into_iter().flatten();
    pairs
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// The part of a profile that a kernel takes.
#[derive(Debug, Default)]
struct Taken {
    /// By the names that this kernel has.
    tunables: Tunables,
    /// Names that it has not, nor anything that means the same.
    left_out: Vec<String>,
    /// Names that schedlab does not set on any kernel.
    not_set: Vec<String>,
    /// Reason for which it cannot be seen.
    errors: Vec<TunableError>,
}

impl Taken {
    fn of(root: &Path, profile: &Tunables) -> Self {
        let mut taken = Taken::default();
        let mut foreign = Vec::new();
        for (name, value) in profile {
            if !is_settable(name) {
                taken.not_set.push(name.clone());
                continue;
            }
            match Knob::find(root, name) {
                Ok(_) => {
                    taken.tunables.insert(name.clone(), value.clone());
                }
                Err(TunableError::Absent { .. }) => foreign.push((name, value)),
                Err(error) => taken.errors.push(error),
            }
        }
        for (name, value) in foreign {
            // What the profile itself says of the new name goes before a translation.
            let translated = translation(name)
                .filter(|own| !taken.tunables.contains_key(*own) && Knob::find(root, own).is_ok());
            match translated {
                Some(own) => {
                    taken.tunables.insert(own.to_owned(), value.clone());
                }
                None => taken.left_out.push(name.clone()),
            }
        }
        taken
    }
}

fn translation(name: &str) -> Option<&'static str> {
    let entry = TRANSLATED.iter().find(|[from, _]| *from == name);
    entry.map(|[_, to]| *to)
}

fn left_out(what: String) -> Warning {
    Warning {
        severity: Severity::Note,
        what,
        remedy: "read what was in force in the proof of the treatment".to_owned(),
    }
}

struct InForce {
    profile: Tunables,
    applied: Applied,
}

impl Change for InForce {
    fn apply(&mut self, ground: Ground) -> Result<(), Stop> {
        let taken = Taken::of(ground.root, &self.profile);
        tunables::apply(
            ground.root,
            &taken.tunables,
            ground.journal,
            &mut self.applied,
        )
        .map_err(|e| Stop::Void(format!("{e}; {}", e.remedy())))
    }

    fn facts(&self, at: &At) -> Vec<Fact> {
        let taken = Taken::of(at.root, &self.profile);
        let mut facts = tunables::read_facts(at.root, &taken.tunables);
        for fact in &mut facts {
            let named =
                |(name, _): &(&String, &String)| readings::tunable_fact_name(name) == fact.what;
            if let Some((name, text)) = taken.tunables.iter().find(named) {
                fact.wanted = normalise(name, text).ok();
            }
        }
        facts
    }

    fn warnings(&self, root: &Path) -> Vec<Warning> {
        let taken = Taken::of(root, &self.profile);
        let mut warnings = Vec::new();
        if !taken.left_out.is_empty() {
            warnings.push(left_out(format!(
                "this kernel has no {}, so that part of the profile was left out",
                taken.left_out.join(", ")
            )));
        }
        if !taken.not_set.is_empty() {
            warnings.push(left_out(format!(
                "schedlab sets no {}, so that part of the profile was left out",
                taken.not_set.join(", ")
            )));
        }
        warnings.extend(tunables::unchecked_warning(&taken.tunables));
        warnings
    }

    fn undo(&mut self, _: &Path) -> Undone {
        let failed = std::mem::take(&mut self.applied).undo().err();
        let errors = failed.into_iter().flatten();
        Undone {
            errors: errors.map(|e| e.to_string()).collect(),
            log: None,
        }
    }
}

#[cfg(test)]
mod tests;
