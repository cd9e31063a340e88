//! Lacks of a run: what was not measured. A check that finds nothing because nothing was measured must not pass, so
//! `report --fail-on`, `gate`, `compare` and JUnit name each of these.

use crate::compare::levels;
use crate::compare::pairing::Matched;
use crate::table::{CellTable, Table};
use crate::words;
use results::{ResultSet, RunState, StoredTrial};
use std::collections::BTreeMap;
use std::fmt;

/// Something that was to be measured or compared and was not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// Name of the cell; none for the run as a whole.
    pub cell: Option<String>,
    /// Sentence without its full stop.
    pub what: String,
}

impl Lack {
    fn of_run(what: impl Into<String>) -> Lack {
        let (cell, what) = (None, what.into());
        Lack { cell, what }
    }

    fn of_cell(cell: &str, what: impl Into<String>) -> Lack {
        let (cell, what) = (Some(cell.to_owned()), what.into());
        Lack { cell, what }
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match &self.cell {
            Some(cell) => write!(f, "{cell}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// Lacks of one run that is to answer by itself; empty where everything that decides was compared.
pub fn find_lacks(table: &Table, results: &ResultSet) -> Vec<Lack> {
    let mut lacks: Vec<Lack> = of_state(results).into_iter().map(Lack::of_run).collect();
    let nothing = words::nothing_measured(table);
    lacks.extend(nothing.map(|what| Lack::of_run(what.trim_end_matches('.'))));
    lacks.extend(without_verdicts(table, results).map(Lack::of_run));
    for (index, cell) in table.cells.iter().enumerate() {
        lacks.extend(of_cell(results, index, cell));
    }
    lacks.extend(lost_places(results).map(Lack::of_run));
    lacks
}

/// A run that did not come to its end.
fn of_state(results: &ResultSet) -> Option<&'static str> {
    match results.manifest.state {
        RunState::Done => None,
        RunState::Running => Some("the run is under way, or its process died (state: running)"),
        RunState::Interrupted => Some("the run was interrupted before it was done"),
        RunState::Aborted => Some("the run was ended by an error (state: aborted)"),
    }
}

/// Results that cannot have a verdict, whatever was measured.
fn without_verdicts(table: &Table, results: &ResultSet) -> Option<String> {
    match (results.experiment.import_source(), table.arms.len()) {
        (Some(from), _) => Some(format!(
            "{} measured these runs, and no verdict is given on them",
            from.tool
        )),
        (None, 1) => Some("there is one arm, which is compared with nothing in its run".to_owned()),
        (None, _) => None,
    }
}

fn of_cell(results: &ResultSet, index: usize, cell: &CellTable) -> Vec<Lack> {
    if let Some(why) = words::cell_not_measured(cell) {
        return vec![Lack::of_cell(&cell.name, why)];
    }
    let arms = cell.not_measured.iter().map(words::arm_not_measured);
    let mut found: Vec<String> = arms.collect();
    found.extend(vanished_of_plan(results, index, cell));
    let is_measured = |arm: &str| cell.not_measured.iter().all(|n| n.arm != arm);
    let apart = cell
        .deciding_comparisons()
        .filter(|c| !c.aa && c.has_no_change());
    let apart = apart.filter(|c| is_measured(&c.arm) && is_measured(&c.baseline));
    found.extend(apart.map(|c| {
        let (metric, arm, baseline) = (&c.metric, &c.arm, &c.baseline);
        match c.blocks {
            0 => format!("{metric}: no block compares {arm} with {baseline}"),
            _ => format!("{metric}: {arm} cannot be compared with {baseline}"),
        }
    }));
    let lack = |what| Lack::of_cell(&cell.name, what);
    found.into_iter().map(lack).collect()
}

/// Metrics that the experiment names to decide, and that no trial of the cell has.
fn vanished_of_plan(results: &ResultSet, index: usize, cell: &CellTable) -> Vec<String> {
    if results.experiment.import_source().is_some() {
        return Vec::new();
    }
    let workload = &results.experiment.workloads[results.plan.cells[index].workload];
    let is_there = |name: &String| cell.metrics.iter().any(|row| row.metric == *name);
    let vanished = workload.metrics.iter().filter(|name| !is_there(name));
    vanished
        .map(|name| format!("{name} decides, and no trial that counts has it"))
        .collect()
}

/// Places of the plan that were tried and have no trial that counts. One that was repeated with
/// success lacks nothing.
pub fn lost_places(results: &ResultSet) -> Option<String> {
    let mut counts: BTreeMap<u32, bool> = BTreeMap::new();
    for trial in results.trials.iter().map(|stored| &stored.trial) {
        *counts.entry(trial.place.index).or_default() |= trial.is_ok();
    }
    let lost = counts.values().filter(|counts| !*counts).count();
    let places = crate::quantity::format_count(lost, "place");
    (lost > 0).then(|| format!("{places} of the plan: no trial counts"))
}

/// Two runs that are put beside each other, with what they are called.
pub(crate) struct Pair<'a> {
    pub(crate) matched: &'a Matched,
    pub(crate) runs: [&'a ResultSet; 2],
    pub(crate) names: [&'a str; 2],
}

impl Pair<'_> {
    /// Lacks of both: what one of them did not measure cannot be compared.
    pub(crate) fn common_lacks(&self) -> Vec<String> {
        let mut lacks = Vec::new();
        for (run, name) in self.runs.iter().zip(self.names) {
            lacks.extend(of_state(run).map(|what| format!("{name}: {what}")));
            if !run.trials.iter().any(|stored| stored.trial.is_ok()) {
                lacks.push(format!("{name}: no trial counts"));
            }
        }
        for &cells in &self.matched.cells {
            let arms = self.matched.arms.iter();
            lacks.extend(arms.flat_map(|&arms| self.of_arm(cells, arms)));
        }
        lacks
    }

    fn of_arm(&self, cells: (usize, usize), arms: (usize, usize)) -> Vec<String> {
        let [a, b] = self.runs;
        let (cell, arm) = (&a.plan.cells[cells.0].name, &a.experiment.arms[arms.0].name);
        let place = format!("{cell}, {arm}");
        let of = |run, cell, arm| counted(run, cell, arm).collect::<Vec<_>>();
        let trials = [of(a, cells.0, arms.0), of(b, cells.1, arms.1)];
        let mut unmeasured = self.names.iter().zip(&trials);
        if let Some((name, _)) = unmeasured.find(|(_, trials)| trials.is_empty()) {
            return vec![format!("{place}: {name} has no trial that counts")];
        }
        let has = |trials: &[&StoredTrial], metric: &str| {
            trials.iter().any(|s| s.trial.metric(metric).is_some())
        };
        let lacking = |metric: String| {
            let mut sides = self.names.iter().zip(&trials);
            let (name, _) = sides.find(|(_, trials)| !has(trials, &metric))?;
            Some(format!("{place}: {metric} is in no trial of {name}"))
        };
        let metrics = levels::judged_metrics(a, cells.0, false).into_iter();
        metrics.filter_map(lacking).collect()
    }
}

fn counted(run: &ResultSet, cell: usize, arm: usize) -> impl Iterator<Item = &StoredTrial> {
    let all = run.trials.iter();
    all.filter(move |s| s.trial.is_ok() && s.trial.place.cell == cell && s.trial.place.arm == arm)
}
