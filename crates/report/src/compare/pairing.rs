//! The cells and arms that two results have in common.

use model::{Place, Way, Workload, format_duration_ns};
use results::ResultSet;
use std::collections::{BTreeMap, BTreeSet};

/// Cells and arms that are the same on both sides, by name and by content.
pub struct Matched {
    /// Indices of the same cell.
    pub cells: Vec<(usize, usize)>,
    pub arms: Vec<(usize, usize)>,
    pub same_baseline: bool,
    pub unmatched: Vec<String>,
}

impl Matched {
    pub fn new(a: &ResultSet, b: &ResultSet) -> Matched {
        let work = |r: &ResultSet, cell: usize| {
            describe_work(&r.experiment.workloads[r.plan.cells[cell].workload])
        };
        let (cells, mut unmatched) = match_up(&names_of_cells(a), &names_of_cells(b), |i, j| {
            tell_works_apart(&work(a, i), &work(b, j))
        });
        let arms_of = |r: &ResultSet| -> Vec<String> {
            let arms = r.experiment.arms.iter();
            arms.map(|arm| format!("arm {}", arm.name)).collect()
        };
        let (arms, others) = match_up(&arms_of(a), &arms_of(b), |i, j| {
            let (a, b) = (&a.experiment.arms[i], &b.experiment.arms[j]);
            let how = || match (a.summary(), b.summary()) {
                (a, b) if a == b => "in a detail: see experiment.json of both".to_owned(),
                (a, b) => format!("{a} in A, {b} in B"),
            };
            (a != b).then(how)
        });
        unmatched.extend(others);
        let same_baseline = arms.contains(&(a.experiment.baseline, b.experiment.baseline));
        if !same_baseline {
            unmatched.push("the baselines are not the same: no effect is compared".to_owned());
        }
        Matched {
            cells,
            arms,
            same_baseline,
            unmatched,
        }
    }
}

fn names_of_cells(results: &ResultSet) -> Vec<String> {
    let cells = results.plan.cells.iter();
    cells.map(|cell| format!("cell {}", cell.name)).collect()
}

/// The work of a cell: its properties by name. Which metrics decide is none of them.
pub fn describe_work(workload: &Workload) -> BTreeMap<String, String> {
    let params = workload.kind.params().iter();
    let params = params.map(|(name, value)| (name.clone(), value.to_string()));
    let fixed = [
        ("kind", workload.kind.name().to_owned()),
        ("duration", format_duration_ns(workload.duration_ns)),
        ("warm-up", format_duration_ns(workload.warmup_ns)),
    ];
    let before = workload.snapshot_warmup_ns;
    let before = before.map(|ns| ("warm-up before the snapshot", format_duration_ns(ns)));
    let elsewhere = (workload.load_on == Place::Controller).then(|| {
        let way = match workload.load_way {
            Way::Tunnel => "the controller, through a tunnel",
            Way::Network => "the controller, over the network",
        };
        ("load on", way.to_owned())
    });
    let fixed = fixed.into_iter().chain(before).chain(elsewhere);
    let fixed = fixed.map(|(name, value)| (name.to_owned(), value));
    let beside = workload.co_runners.iter().map(|co_runner| {
        let own = co_runner.loads.first().map(ToString::to_string);
        let mut work = describe_work(co_runner);
        work.insert("load".to_owned(), own.unwrap_or_default());
        let client = co_runner.client.as_ref();
        let client = client.and_then(|client| serde_json::to_string(client).ok());
        work.extend(client.map(|client| ("client".to_owned(), client)));
        let work: Vec<String> = work
            .iter()
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        (format!("co-runner {}", co_runner.name), work.join(", "))
    });
    params.chain(fixed).chain(beside).collect()
}

/// Difference of two works: `duration 2s in A, 3s in B`; none where all is alike.
pub fn tell_works_apart(
    a: &BTreeMap<String, String>,
    b: &BTreeMap<String, String>,
) -> Option<String> {
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let value = |of: &BTreeMap<String, String>, name| of.get(name).cloned();
    let said = names.into_iter().filter_map(|name| {
        let (a, b) = (value(a, name), value(b, name));
        let shown = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
        (a != b).then(|| format!("{name} {} in A, {} in B", shown(a), shown(b)))
    });
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// Pairs of indices with the same name that are not `unlike`, and words for the rest.
fn match_up(
    a: &[String],
    b: &[String],
    unlike: impl Fn(usize, usize) -> Option<String>,
) -> (Vec<(usize, usize)>, Vec<String>) {
    let mut pairs = Vec::new();
    let mut unmatched = Vec::new();
    for (i, name) in a.iter().enumerate() {
        match b.iter().position(|other| other == name) {
            Some(j) => match unlike(i, j) {
                None => pairs.push((i, j)),
                Some(how) => unmatched.push(format!(
                    "{name}: not defined alike, so not compared ({how})"
                )),
            },
            None => unmatched.push(format!("{name}: only in A")),
        }
    }
    let only_b = b.iter().filter(|name| !a.contains(name));
    unmatched.extend(only_b.map(|name| format!("{name}: only in B")));
    (pairs, unmatched)
}
