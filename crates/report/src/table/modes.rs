//! Warning about figures with two modes: trials of one arm that lie in two groups, far from each
//! other. Where tasks were placed is the usual cause; a mean of both says nothing of either.

use crate::quantity::with_unit;
use crate::table::CellTable;
use model::{Severity, Trial, Warning};
use results::ResultSet;
use stats::summary::median;
use std::collections::BTreeSet;

/// Trials that must be there, and in each of the groups.
const LEAST: usize = 6;
const LEAST_IN_GROUP: usize = 2;
/// The gap between the groups, as a factor; a pair of netperf has one of 4 to 5.
const GAP: f64 = 1.5;
/// The gap is so many times as wide as either group. Of 20 000 simulated series with normal noise of
/// 30 %, this named 0.2 % at 6 to 40 trials each and 2.7 % at 6; none with noise of 10 %.
const WIDER: f64 = 2.0;

pub fn mode_warnings(results: &ResultSet, cells: &[CellTable]) -> Option<Warning> {
    let mut found = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        let names: BTreeSet<&str> = cell
            .deciding_comparisons()
            .map(|c| c.metric.as_str())
            .collect();
        for name in names {
            for (arm, of_arm) in results.experiment.arms.iter().enumerate() {
                let trials = results.trials.iter().map(|stored| &stored.trial);
                let counted = trials
                    .filter(|t: &&Trial| t.is_ok() && (t.place.cell, t.place.arm) == (index, arm));
                let all = counted.filter_map(|trial| trial.metric(name));
                let values: Vec<f64> = all.clone().map(|found| found.value).collect();
                let unit = all.clone().next().map_or("", |found| found.unit.as_str());
                let modes = modes(&values).map(|modes| modes.map(|mode| with_unit(mode, unit)));
                let of = &of_arm.name;
                found.extend(modes.map(|[low, high]| {
                    format!(
                        "{name} of {of} in {} (about {low} and about {high})",
                        cell.name
                    )
                }));
            }
        }
    }
    (!found.is_empty()).then(|| Warning {
        severity: Severity::Caution,
        what: format!("Trials of one arm lie in two groups: {}.", found.join("; ")),
        remedy:
            "Bind the tasks, so that their place is the same in each trial (`pair-cpus` of netperf \
                 and rr, `cpus` of a role); a change of the mean may be one of place alone."
                .to_owned(),
    })
}

/// The medians of the two groups that the values lie in; `None` where they are one group.
fn modes(values: &[f64]) -> Option<[f64; 2]> {
    let mut logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    if logarithms.len() < LEAST || logarithms.iter().any(|x| !x.is_finite()) {
        return None;
    }
    logarithms.sort_by(f64::total_cmp);
    let splits = LEAST_IN_GROUP..=logarithms.len() - LEAST_IN_GROUP;
    let gap = |at: &usize| logarithms[*at] - logarithms[*at - 1];
    let at = splits.max_by(|a, b| gap(a).total_cmp(&gap(b)))?;
    let (low, high) = logarithms.split_at(at);
    let width = |group: &[f64]| group[group.len() - 1] - group[0];
    let widest = width(low).max(width(high));
    let is_apart = gap(&at) >= GAP.ln() && gap(&at) >= WIDER * widest;
    is_apart.then_some([median(low)?.exp(), median(high)?.exp()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_two_placements_are_two_modes() {
        let found = modes(&[71_600.0, 13_700.0, 71_500.0, 16_500.0, 15_000.0, 71_700.0]);
        let [low, high] = found.unwrap();
        assert!((14_999.0..15_001.0).contains(&low), "{low}");
        assert!((71_599.0..71_601.0).contains(&high), "{high}");
    }

    #[test]
    fn noise_a_drift_and_one_outlier_are_one_group() {
        assert_eq!(modes(&[10.0, 14.0, 9.0, 13.0, 11.0, 16.0, 8.0]), None);
        assert_eq!(modes(&[10.0, 11.0, 10.5, 10.2, 10.1, 60.0]), None);
        assert_eq!(modes(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0]), None);
        assert_eq!(modes(&[10.0, 10.1, 50.0, 51.0]), None, "too few");
        assert_eq!(modes(&[0.0, 0.0, 0.0, 5.0, 5.0, 5.0]), None);
    }

    #[test]
    fn a_report_names_metric_arm_cell_and_both_modes() {
        let dir = tempfile::tempdir().unwrap();
        synthetic::write(dir.path(), &synthetic::quickstart()).unwrap();
        let mut results = ResultSet::read(dir.path()).unwrap();
        let said = |results: &ResultSet| {
            let table = crate::Table::from_results(results);
            let mut all = table.warnings.into_iter().map(|notice| notice.what);
            all.find(|what| what.contains("two groups"))
        };
        assert_eq!(said(&results), None);
        for stored in &mut results.trials {
            let trial = &mut stored.trial;
            let is_odd = trial.place.block % 2 == 1;
            let metrics = trial.result.metrics.iter_mut();
            for found in metrics.filter(|m| m.metric == "requests_per_sec" && is_odd) {
                found.value *= 4.5;
            }
        }
        let said = said(&results).unwrap();
        assert!(
            said.contains("requests_per_sec of default in wakeup 50%"),
            "{said}"
        );
    }
}
