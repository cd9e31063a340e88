//! Trials of runs in virtual time, one by one: the same work gives the same figures to the bit.

use super::verdicts::better_direction;
use super::{Call, Check, GateError};
use crate::compare::pairing::Matched;
use crate::quantity::with_unit;
use model::{Better, Trial};
use results::{ResultSet, StoredTrial};
use std::collections::BTreeMap;
use std::fs;

/// Name of a check on all that decides nothing.
const REST: &str = "all else";

pub fn check_trials(
    matched: &Matched,
    stored: &ResultSet,
    new: &ResultSet,
) -> Result<Vec<Check>, GateError> {
    for (which, results) in [("the stored run", stored), ("the new run", new)] {
        if !results.system.in_virtual_time() {
            return Err(GateError::NotVirtual(which));
        }
    }
    let seeds = [stored, new].map(|r| r.experiment.seed);
    if seeds[0] != seeds[1] {
        return Err(GateError::OtherSeed(seeds[0], seeds[1]));
    }
    let mut checks = Vec::new();
    for &(cell, new_cell) in &matched.cells {
        for &(arm, new_arm) in &matched.arms {
            let pairs = pairs(stored, new, (cell, arm), (new_cell, new_arm));
            if !pairs.is_empty() {
                checks.extend(of_arm(stored, cell, arm, &pairs));
            }
        }
    }
    Ok(checks)
}

/// A trial of the stored run, and that of the same block in the new one.
type Pair<'a> = (&'a StoredTrial, Option<&'a StoredTrial>);

fn pairs<'a>(
    stored: &'a ResultSet,
    new: &'a ResultSet,
    then: (usize, usize),
    now: (usize, usize),
) -> Vec<Pair<'a>> {
    let of = |results: &'a ResultSet, (cell, arm): (usize, usize)| {
        let counts = results.trials.iter().filter(|s| s.trial.is_ok());
        counts
            .filter(|s| s.trial.place.cell == cell && s.trial.place.arm == arm)
            .map(|s| (s.trial.place.block, s))
            .collect::<BTreeMap<u32, &StoredTrial>>()
    };
    let now = of(new, now);
    let then = of(stored, then).into_iter();
    then.map(|(block, trial)| (trial, now.get(&block).copied()))
        .collect()
}

fn of_arm(stored: &ResultSet, cell: usize, arm: usize, pairs: &[Pair]) -> Vec<Check> {
    let workload = &stored.experiment.workloads[stored.plan.cells[cell].workload];
    let cell = &stored.plan.cells[cell].name;
    let arm = &stored.experiment.arms[arm].name;
    let smallest = stored.experiment.stop.smallest_effect;
    let mut checks: Vec<Check> = workload
        .metrics
        .iter()
        .filter_map(|metric| {
            let better = better_direction(stored, metric).unwrap_or(Better::Neither);
            let (ratio, call, figures) = of_metric(metric, better, smallest, pairs)?;
            Some(check(cell, metric, better, arm, ratio, call, figures))
        })
        .collect();
    let (call, figures) = rest(&workload.metrics, pairs);
    checks.push(check(cell, REST, Better::Neither, arm, None, call, figures));
    checks
}

fn check(
    cell: &str,
    metric: &str,
    better: Better,
    arm: &str,
    ratio: Option<f64>,
    call: Call,
    figures: String,
) -> Check {
    Check {
        cell: cell.to_owned(),
        metric: metric.to_owned(),
        better,
        arm: arm.to_owned(),
        ratio,
        low: None,
        high: None,
        difference: None,
        call,
        figures,
    }
}

/// A metric in all blocks; none where the stored run does not have it.
fn of_metric(
    metric: &str,
    better: Better,
    smallest: f64,
    pairs: &[Pair],
) -> Option<(Option<f64>, Call, String)> {
    let value = |s: &StoredTrial| s.trial.metric(metric).map(|m| m.value);
    let unit = pairs.iter().find_map(|(then, _)| then.trial.metric(metric));
    let unit = &unit?.unit;
    let mut differing = Vec::new();
    let mut logs = Vec::new();
    for (then, now) in pairs {
        let Some(before) = value(then) else { continue };
        let Some(after) = now.and_then(value) else {
            let said = format!("block {} is missing", then.trial.place.block);
            return Some((None, Call::Unknown, said));
        };
        if before.to_bits() != after.to_bits() {
            differing.push((then.trial.place.block, before, after));
        }
        logs.push(log_ratio(before, after));
    }
    let blocks = crate::quantity::format_count(pairs.len(), "block");
    let Some(first) = differing.first() else {
        return Some((Some(1.0), Call::Same, format!("identical in {blocks}")));
    };
    let ratio = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
    // A mean that a 0 made infinite, or 0, is no number to tell: the block that made it is.
    let told = Some(ratio).filter(|ratio| ratio.is_finite() && *ratio > 0.0);
    let mut at_zero = differing.iter();
    let at_zero = at_zero.find(|(_, before, after)| *before == 0.0 || *after == 0.0);
    let (block, before, after) = at_zero.filter(|_| told.is_none()).unwrap_or(first);
    let figures = format!(
        "{} of {blocks} differ; block {block}: {}, now {}",
        differing.len(),
        with_unit(*before, unit),
        with_unit(*after, unit)
    );
    Some((told, changed(ratio, better, smallest), figures))
}

/// Logarithm of the ratio of two figures. What rose from 0 rose by more than any ratio, what fell
/// to 0 fell by more; figures below 0 have no ratio.
fn log_ratio(before: f64, after: f64) -> f64 {
    if before == after {
        0.0
    } else if before < 0.0 || after < 0.0 {
        f64::NAN
    } else {
        // The sign of a 0 says nothing.
        (after.abs() / before.abs()).ln()
    }
}

/// The call on a mean of ratios. One that is no number has no side: blocks rose from 0, and others
/// fell to 0.
fn changed(ratio: f64, better: Better, smallest: f64) -> Call {
    let (fell, rose) = (ratio < 1.0 / (1.0 + smallest), ratio > 1.0 + smallest);
    match (fell, rose, better) {
        (true, _, Better::Higher) | (_, true, Better::Lower) => Call::Regression,
        (true, _, Better::Lower) | (_, true, Better::Higher) => Call::Improvement,
        _ => Call::Changed,
    }
}

/// Every other figure and every file of the trials.
fn rest(deciding: &[String], pairs: &[Pair]) -> (Call, String) {
    for (then, now) in pairs {
        let block = then.trial.place.block;
        let Some(now) = now else {
            return (Call::Unknown, format!("block {block} is missing"));
        };
        if let Some(name) = other_metric(deciding, &then.trial, &now.trial) {
            return (Call::Changed, format!("{name} differs in block {block}"));
        }
        if let Some(name) = other_file(then, now) {
            return (Call::Changed, format!("{name} differs in block {block}"));
        }
    }
    let blocks = crate::quantity::format_count(pairs.len(), "block");
    (Call::Same, format!("identical in {blocks}"))
}

fn other_metric(deciding: &[String], then: &Trial, now: &Trial) -> Option<String> {
    let named = |trial: &Trial| -> BTreeMap<String, u64> {
        let all = trial.result.metrics.iter();
        let all = all.filter(|m| !deciding.contains(&m.metric) && !of_host(&m.metric));
        all.map(|m| (m.metric.clone(), m.value.to_bits())).collect()
    };
    first_difference(&named(then), &named(now))
}

/// Figures of the machine under the guest, which has the host's time.
fn of_host(metric: &str) -> bool {
    metric.starts_with("host_")
}

fn other_file(then: &StoredTrial, now: &StoredTrial) -> Option<String> {
    first_difference(&files(then), &files(now))
}

/// Histograms and tables by name. `trial.json` has stamps of the host, and its metrics are
/// compared by themselves; logs have the host's words.
fn files(stored: &StoredTrial) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(&stored.dir).into_iter().flatten().flatten();
    let read = entries.filter_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let counts = [".hlog", ".csv"].iter().any(|end| name.ends_with(end));
        Some((name, results::files::read(&entry.path()).ok()?)).filter(|_| counts)
    });
    read.collect()
}

fn first_difference<V: PartialEq>(
    then: &BTreeMap<String, V>,
    now: &BTreeMap<String, V>,
) -> Option<String> {
    let mut names = then.keys().chain(now.keys());
    names
        .find(|name| then.get(*name) != now.get(*name))
        .cloned()
}
