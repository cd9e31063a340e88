//! Series: the figures of runs that may be compared, in the order in which the runs began.

use crate::digest::hash_value;
use crate::run::{Figure, MachineClass, Run, describe_roles};
use model::{Experiment, Workload};
use report::compare::{describe_work, tell_works_apart};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Key that figures must share to be compared. The arm is followed by its name; what it changes is its version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SeriesKey {
    /// Name of the cell.
    pub cell: String,
    /// Hash of its work.
    pub work: String,
    /// Name of the metric.
    pub metric: String,
    /// Name of the arm.
    pub arm: String,
    /// Hash of what the anchor changes.
    pub anchor_is: String,
    /// Machines on which it was measured.
    pub class: MachineClass,
}

impl SeriesKey {
    /// Key of the series that a figure of a run belongs to.
    pub fn from_figure(run: &Run, figure: &Figure) -> SeriesKey {
        SeriesKey {
            cell: figure.cell.clone(),
            work: figure.work.clone(),
            metric: figure.metric.clone(),
            arm: figure.arm.clone(),
            anchor_is: figure.anchor_is.clone(),
            class: run.class.clone(),
        }
    }

    /// True for a figure of the series. It copies nothing, since it is asked of each figure of a history.
    pub fn has_figure(&self, run: &Run, figure: &Figure) -> bool {
        self.metric == figure.metric
            && self.arm == figure.arm
            && self.cell == figure.cell
            && self.work == figure.work
            && self.anchor_is == figure.anchor_is
            && self.class == run.class
    }

    /// Hash of the series.
    pub fn identify_series(&self) -> String {
        hash_value(self)
    }
}

/// Figures that may be compared, the oldest first.
#[derive(Debug, Clone)]
pub struct Series<'a> {
    /// Hash of the key.
    pub id: String,
    /// Key that they share.
    pub key: SeriesKey,
    /// Runs with their figures.
    pub points: Vec<(&'a Run, &'a Figure)>,
}

impl Series<'_> {
    /// `hackbench: throughput of batch over default`.
    pub fn title(&self) -> String {
        let anchor = self.points.last().map_or("", |(_, figure)| &figure.anchor);
        let SeriesKey {
            cell, metric, arm, ..
        } = &self.key;
        format!("{cell}: {metric} of {arm} over {anchor}")
    }
}

/// All series of some runs, which are in the order in which they began.
pub fn group_series(runs: &[Run]) -> Vec<Series<'_>> {
    let mut grouped: BTreeMap<SeriesKey, Vec<(&Run, &Figure)>> = BTreeMap::new();
    for run in runs {
        for figure in &run.figures {
            let key = SeriesKey::from_figure(run, figure);
            grouped.entry(key).or_default().push((run, figure));
        }
    }
    let series = grouped.into_iter().map(|(key, points)| Series {
        id: key.identify_series(),
        key,
        points,
    });
    series.collect()
}

/// Reasons for which figures of two runs are in no series together, each once; empty where all of them are.
pub fn tell_runs_apart(a: (&Run, &Experiment), b: (&Run, &Experiment)) -> Vec<String> {
    let (run_a, run_b) = (a.0, b.0);
    let classes = run_a
        .class
        .list_properties()
        .into_iter()
        .zip(run_b.class.list_properties());
    let differing = classes.filter(|((_, a), (_, b))| a != b);
    let machine =
        differing.map(|((what, a), (_, b))| format!("machine: {what} {a} in A, {b} in B"));
    let mut reasons: BTreeSet<String> = machine.collect();
    let pairs = [(run_a, run_b, "A"), (run_b, run_a, "B")];
    for (one, other, only) in pairs {
        let apart = one
            .figures
            .iter()
            .filter_map(|figure| tell_apart(figure, other, only, (a.1, b.1)));
        reasons.extend(apart);
    }
    reasons.into_iter().collect()
}

/// The nearest thing that a figure lacks in another run.
fn tell_apart(
    figure: &Figure,
    other: &Run,
    only: &str,
    experiments: (&Experiment, &Experiment),
) -> Option<String> {
    let has = |test: &dyn Fn(&Figure) -> bool| other.figures.iter().any(test);
    let (cell, arm, metric) = (&figure.cell, &figure.arm, &figure.metric);
    if !has(&|f| f.cell == *cell) {
        return Some(format!("cell {cell}: only in {only}"));
    }
    if !has(&|f| f.cell == *cell && f.work == figure.work) {
        return Some(format!(
            "cell {cell}: {}",
            tell_cells_apart(figure, experiments)
        ));
    }
    if !has(&|f| f.anchor_is == figure.anchor_is) {
        let [a, b] = [experiments.0, experiments.1].map(|e| e.arms[e.baseline].summary());
        return Some(format!("anchor: {a} in A, {b} in B"));
    }
    if !has(&|f| f.arm == *arm) {
        return Some(format!("arm {arm}: only in {only}"));
    }
    (!has(&|f| f.cell == *cell && f.arm == *arm && f.metric == *metric))
        .then(|| format!("{metric} of {arm} in {cell}: only in {only}"))
}

fn tell_cells_apart(figure: &Figure, (a, b): (&Experiment, &Experiment)) -> String {
    fn find<'a>(experiment: &'a Experiment, name: &str) -> Option<&'a Workload> {
        experiment.workloads.iter().find(|w| w.name == name)
    }
    let workloads = find(a, &figure.workload).zip(find(b, &figure.workload));
    let Some((a, b)) = workloads else {
        return "of workloads with different names".to_owned();
    };
    if let Some(apart) = tell_works_apart(&describe_work(a), &describe_work(b)) {
        return apart;
    }
    let roles = describe_roles(a).into_iter().zip(describe_roles(b));
    let differing: Vec<&str> = roles
        .filter(|(a, b)| a != b)
        .map(|((role, _), _)| role)
        .collect();
    format!("not the same {}", differing.join(", "))
}
