//! An experiment of a command line as a file, so that it can be repeated and changed.

use crate::arm::usual_role;
use crate::build::CommandLine;
use crate::file::parse_experiment;
use crate::words::{self, Table};
use agent::arm::ingredient::INGREDIENTS;
use load::units::written_duration;
use model::{Arm, Experiment, Role, StopRule};
use serde_json::Value;

/// Name of the file, for errors.
const FILE: &str = "experiment.toml";

/// The text of an experiment file that means this experiment, which came from this command
/// line; `None` if a file cannot say the same.
pub fn experiment_file(line: &CommandLine, experiment: &Experiment) -> Option<String> {
    let text = text(line, experiment)?;
    let read = parse_experiment(FILE, &text).ok()?;
    (read == *experiment).then_some(text)
}

fn text(line: &CommandLine, experiment: &Experiment) -> Option<String> {
    let mut text =
        "# The experiment of a command line, which `schedlab run` with this file repeats.\n"
            .to_owned();
    let mut top = Table::new();
    top.insert("name".to_owned(), experiment.name.as_str().into());
    top.insert("seed".to_owned(), experiment.seed.into());
    if experiment.aa_arm.is_some() {
        top.insert("aa".to_owned(), true.into());
    }
    if !experiment.perf.is_empty() {
        top.insert("perf".to_owned(), experiment.perf.as_slice().into());
    }
    if let Some(trace) = &experiment.trace {
        top.insert("trace".to_owned(), trace.words().into());
    }
    text += &words::lines(&top)?;
    let stop = stop(&experiment.stop);
    if !stop.is_empty() {
        text += &table("[stop]", &stop)?;
    }
    if !line.target.is_empty() {
        text += &table("[target]", &line.target)?;
    }
    let (arms, usual) = (experiment.arms.iter(), usual_role(&experiment.workloads));
    for arm in arms.filter(|arm| Some(&arm.name) != experiment.aa_arm.as_ref()) {
        text += &table("[[arm]]", &keys_of_arm(arm, &usual))?;
    }
    for workload in words::workloads(line).ok()? {
        text += &table("[[workload]]", &workload)?;
    }
    Some(text)
}

/// Keys of the rule, where it is not the usual one.
fn stop(rule: &StopRule) -> Table {
    let usual = StopRule::default();
    let mut keys = Table::new();
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            keys.insert(key.to_owned(), value);
        }
    };
    set(
        "budget",
        rule.budget_ns.map(|ns| written_duration(ns).into()),
    );
    let effect = rule.smallest_effect;
    // Rounded, because 0.07 times 100 is not 7.
    let percent = (effect * 1e11).round() / 1e9;
    set(
        "smallest-effect",
        (effect != usual.smallest_effect).then(|| format!("{percent}%").into()),
    );
    set(
        "confidence",
        (rule.confidence != usual.confidence).then(|| rule.confidence.into()),
    );
    set(
        "max-blocks",
        (rule.max_blocks != usual.max_blocks).then(|| rule.max_blocks.into()),
    );
    keys
}

fn keys_of_arm(arm: &Arm, usual: &Role) -> Table {
    let mut keys = Table::new();
    keys.insert("name".to_owned(), arm.name.as_str().into());
    for ingredient in INGREDIENTS.all() {
        ingredient.write(arm, &mut keys);
    }
    let daemon = arm.daemon.as_ref();
    if let Some(daemon) = daemon.and_then(|daemon| serde_json::to_value(daemon).ok()) {
        keys.insert("to".to_owned(), daemon);
    } else if arm.to != *usual {
        keys.insert("to".to_owned(), arm.to.name().into());
    }
    keys
}

fn table(header: &str, keys: &Table) -> Option<String> {
    Some(format!("\n{header}\n{}", words::lines(keys)?))
}
