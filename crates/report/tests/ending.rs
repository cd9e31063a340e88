//! A run that ends with its answer is more often lucky than not; the change that a report gives is not.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)] // In a test a panic is the message.

use report::{Comparison, Table, Verdict};
use results::ResultSet;
use stats::coins::find_first_decision;
use stats::randomization::estimate_centre;
use stats::{Better, Params};

const PARAMS: Params = Params {
    alpha: 0.05,
    smallest_effect: 0.02,
    better: Better::Lower,
};
const METRIC: &str = "hackbench_time";

/// Log-ratios of blocks that vary by about 10 %, until they are decided.
fn decided_blocks(change: f64) -> Vec<f64> {
    const NOISE: [f64; 14] = [
        0.11, -0.09, 0.04, 0.12, -0.05, 0.01, 0.07, -0.12, 0.02, -0.03, -0.06, 0.05, -0.02, 0.03,
    ];
    let all: Vec<f64> = NOISE.iter().map(|noise| change + noise).collect();
    let end = find_first_decision(&all, &PARAMS).unwrap() as usize;
    all[..end].to_vec()
}

/// Results in which these arms have these log-ratios to the baseline, and all blocks are measured.
fn results(arms: &[(&str, &[f64])]) -> ResultSet {
    let blocks = arms.iter().map(|(_, xs)| xs.len()).max().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let scenario = synthetic::few_blocks(u32::try_from(blocks).unwrap());
    synthetic::write(dir.path(), &scenario).unwrap();
    let mut results = ResultSet::read(dir.path()).unwrap();
    let named = |name: &str| arms.iter().find(|(arm, _)| *arm == name);
    let baseline = results.experiment.arms[results.experiment.baseline]
        .name
        .clone();
    results.trials.retain(|stored| {
        let trial = &stored.trial;
        let is_measured = |xs: &[f64]| (trial.place.block as usize) <= xs.len();
        trial.arm == baseline || named(&trial.arm).is_some_and(|(_, xs)| is_measured(xs))
    });
    for stored in &mut results.trials {
        let trial = &mut stored.trial;
        let block = trial.place.block as usize - 1;
        let log_ratio = named(&trial.arm).map_or(0.0, |(_, xs)| xs[block]);
        for measured in &mut trial.result.metrics {
            if measured.metric == METRIC {
                measured.value = 2.0 * log_ratio.exp();
            }
        }
    }
    results
}

fn find_comparison(results: &ResultSet, arm: &str) -> Comparison {
    let table = Table::from_results(results);
    let mut all = table.cells.into_iter().flat_map(|cell| cell.comparisons);
    all.find(|c| c.arm == arm && c.metric == METRIC).unwrap()
}

#[test]
fn the_change_of_a_run_that_ended_with_its_answer_is_nearer_to_none_than_its_blocks() {
    let xs = decided_blocks(-0.1);
    let mut results = results(&[("batch", &xs)]);
    assert!(xs.len() > 7, "{}", xs.len());
    let found = find_comparison(&results, "batch");
    assert_eq!(found.verdict, Verdict::Better);
    let centre = estimate_centre(&xs).unwrap().exp();
    assert!((found.centre.unwrap() - centre).abs() < 1e-9, "{found:?}");
    let ratio = found.ratio.unwrap();
    assert!(
        centre + 0.003 < ratio && ratio < found.high.unwrap(),
        "{ratio} and {centre}"
    );
    let note = found
        .notes
        .iter()
        .find(|said| said.contains("the blocks lie around"));
    assert!(note.is_some(), "{:?}", found.notes);

    // Blocks that are measured in any case end nothing.
    results.experiment.stop.min_blocks = u32::try_from(xs.len()).unwrap();
    let fixed = find_comparison(&results, "batch");
    assert_eq!((fixed.ratio, fixed.centre), (found.centre, None));
}

#[test]
fn a_comparison_that_went_on_for_another_has_the_centre_of_its_blocks() {
    let slow = decided_blocks(-0.1);
    let clear: Vec<f64> = slow.iter().map(|x| x - 0.5).collect();
    let results = results(&[("batch", &slow), ("slice=0.3ms", &clear)]);
    assert!(find_comparison(&results, "batch").centre.is_some());
    assert_eq!(find_comparison(&results, "slice=0.3ms").centre, None);
}
