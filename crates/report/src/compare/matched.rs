//! The cells and arms that two results have in common.

use results::ResultSet;

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
        let (cells, mut unmatched) = match_up(&names_of_cells(a), &names_of_cells(b), |i, j| {
            let work = |r: &ResultSet, cell: usize| {
                let workload = &r.experiment.workloads[r.plan.cells[cell].workload];
                // Which metrics decide is no part of the work.
                (
                    workload.kind.clone(),
                    workload.duration_ns,
                    workload.warmup_ns,
                )
            };
            work(a, i) == work(b, j)
        });
        let arms_of = |r: &ResultSet| -> Vec<String> {
            let arms = r.experiment.arms.iter();
            arms.map(|arm| format!("arm {}", arm.name)).collect()
        };
        let (arms, others) = match_up(&arms_of(a), &arms_of(b), |i, j| {
            a.experiment.arms[i] == b.experiment.arms[j]
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

/// Pairs of indices with the same name that `are_same`, and words for the rest.
fn match_up(
    a: &[String],
    b: &[String],
    are_same: impl Fn(usize, usize) -> bool,
) -> (Vec<(usize, usize)>, Vec<String>) {
    let mut pairs = Vec::new();
    let mut unmatched = Vec::new();
    for (i, name) in a.iter().enumerate() {
        match b.iter().position(|other| other == name) {
            Some(j) if are_same(i, j) => pairs.push((i, j)),
            Some(_) => unmatched.push(format!("{name}: not defined alike, so not compared")),
            None => unmatched.push(format!("{name}: only in A")),
        }
    }
    let only_b = b.iter().filter(|name| !a.contains(name));
    unmatched.extend(only_b.map(|name| format!("{name}: only in B")));
    (pairs, unmatched)
}
