//! A latency over the offered rate, for each arm, with its knee.

use super::{GeometricMean, Measured, deciding, figures, geometric_mean, is_overloaded};
use model::Better;
use results::{ResultSet, overload};
use serde::Serialize;

/// Fewer rates make no curve.
const FEWEST_RATES: usize = 3;
/// Past the knee the latency is above this many times its lowest.
pub const KNEE: f64 = 3.0;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scan {
    pub workload: String,
    #[serde(flatten)]
    pub measured: Measured,
    pub arms: Vec<ScanArm>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScanArm {
    pub arm: String,
    /// By rate.
    pub points: Vec<ScanPoint>,
    /// Planned rates at which no trial of the arm counts.
    pub unmeasured_per_sec: Vec<f64>,
    #[serde(flatten)]
    pub knee: Knee,
}

/// Between two neighbouring rates the latency leaves [`KNEE`] times its lowest, or the
/// load is no longer carried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Knee {
    /// The last rate before; none without a knee, or where the rate was not measured.
    pub knee_per_sec: Option<f64>,
    /// The first rate beyond; none without a knee.
    pub beyond_per_sec: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ScanPoint {
    pub rate_per_sec: f64,
    #[serde(flatten)]
    pub latency: GeometricMean,
    /// The load was not carried: the value is that of a queue.
    pub overloaded: bool,
}

/// One for each workload with rates enough and a latency that decides.
pub fn find_scans(results: &ResultSet) -> Vec<Scan> {
    let workloads = 0..results.experiment.workloads.len();
    workloads.filter_map(|index| scan(results, index)).collect()
}

fn scan(results: &ResultSet, workload: usize) -> Option<Scan> {
    let mut cells = Vec::new();
    for (index, cell) in results.plan.cells.iter().enumerate() {
        if let Some(rate) = results.rate_per_sec(cell)
            && cell.workload == workload
        {
            cells.push((rate, index));
        }
    }
    if cells.len() < FEWEST_RATES {
        return None;
    }
    cells.sort_by(|a, b| a.0.total_cmp(&b.0));
    let measured = cells
        .iter()
        .find_map(|(_, cell)| deciding(results, *cell))?;
    if measured.better != Better::Lower {
        return None;
    }
    let arms = (0..results.experiment.arms.len())
        .map(|arm| scan_arm(results, &cells, arm, &measured.metric))
        .filter(|arm| !arm.points.is_empty())
        .collect();
    Some(Scan {
        workload: results.experiment.workloads[workload].name.clone(),
        measured,
        arms,
    })
}

fn scan_arm(results: &ResultSet, cells: &[(f64, usize)], arm: usize, metric: &str) -> ScanArm {
    let alpha = 1.0 - results.experiment.stop.confidence;
    let mut points = Vec::new();
    let mut unmeasured_per_sec = Vec::new();
    for (rate, cell) in cells {
        let overloaded = is_overloaded(results, *cell, arm);
        let values = values(results, *cell, arm, metric, overloaded);
        match geometric_mean(&values, alpha) {
            Some(latency) => points.push(ScanPoint {
                rate_per_sec: *rate,
                latency,
                overloaded,
            }),
            None => unmeasured_per_sec.push(*rate),
        }
    }
    ScanArm {
        arm: results.experiment.arms[arm].name.clone(),
        knee: knee(&points, &unmeasured_per_sec),
        points,
        unmeasured_per_sec,
    }
}

/// The positive values of an arm in a cell. An overloaded trial counts only where the
/// whole cell is `overloaded`.
fn values(
    results: &ResultSet,
    cell: usize,
    arm: usize,
    metric: &str,
    overloaded: bool,
) -> Vec<f64> {
    figures(results, cell, arm, metric)
        .filter(|(trial, _)| overloaded || !overload::is_overloaded(trial, metric))
        .map(|(_, value)| value)
        .collect()
}

fn knee(points: &[ScanPoint], unmeasured: &[f64]) -> Knee {
    let carried = points.iter().filter(|p| !p.overloaded);
    let lowest = carried
        .map(|p| p.latency.value)
        .fold(f64::INFINITY, f64::min);
    let is_beyond = |p: &ScanPoint| p.overloaded || p.latency.value > KNEE * lowest;
    let Some(at) = points.iter().position(is_beyond) else {
        return Knee::default();
    };
    let beyond = points[at].rate_per_sec;
    let before = at.checked_sub(1).map(|last| points[last].rate_per_sec);
    // A curve that begins above its own knee has none.
    if before.is_none() && !points[at].overloaded {
        return Knee::default();
    }
    let hole = unmeasured
        .iter()
        .any(|rate| *rate < beyond && before.is_none_or(|before| before < *rate));
    Knee {
        knee_per_sec: before.filter(|_| !hole),
        beyond_per_sec: Some(beyond),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: &[f64]) -> Vec<ScanPoint> {
        let numbered = values.iter().enumerate();
        numbered
            .map(|(i, value)| ScanPoint {
                rate_per_sec: 1_000.0 * (i + 1) as f64,
                latency: geometric_mean(&[*value], 0.05).unwrap(),
                overloaded: false,
            })
            .collect()
    }

    fn between(last: f64, beyond: f64) -> Knee {
        Knee {
            knee_per_sec: Some(last),
            beyond_per_sec: Some(beyond),
        }
    }

    #[test]
    fn the_knee_is_between_the_rates_where_the_latency_leaves() {
        let found = knee(&points(&[1.0, 1.2, 2.9, 40.0]), &[]);
        assert_eq!(found, between(3_000.0, 4_000.0));
        assert_eq!(knee(&points(&[1.0, 1.2, 1.3]), &[]), Knee::default());
        assert_eq!(knee(&points(&[9.0, 1.0, 1.3]), &[]), Knee::default());
    }

    #[test]
    fn the_first_rate_that_is_not_carried_ends_the_knee_whatever_its_latency() {
        let mut points = points(&[5.0, 6.0, 2.0]);
        points[2].overloaded = true;
        assert_eq!(knee(&points, &[]), between(2_000.0, 3_000.0));
        points.iter_mut().for_each(|p| p.overloaded = true);
        let below_all = Knee {
            knee_per_sec: None,
            beyond_per_sec: Some(1_000.0),
        };
        assert_eq!(knee(&points, &[]), below_all);
    }

    #[test]
    fn there_is_no_knee_across_a_rate_that_was_not_measured() {
        let points = points(&[1.0, 1.2, 40.0]);
        let found = knee(&points, &[2_500.0]);
        assert_eq!(found.knee_per_sec, None);
        assert_eq!(found.beyond_per_sec, Some(3_000.0));
        assert_eq!(knee(&points, &[1_500.0]), between(2_000.0, 3_000.0));
    }

    #[test]
    fn a_point_is_the_geometric_mean_with_an_interval_where_a_comparison_may_have_one() {
        let values = [1.0, 4.0, 1.0, 4.0, 2.0, 2.0];
        let four = geometric_mean(&values[..4], 0.05).unwrap();
        assert!((four.value - 2.0).abs() < 1e-12);
        assert_eq!((four.low, four.blocks), (None, 4));
        let six = geometric_mean(&values, 0.05).unwrap();
        // Tables of t with 5 degrees of freedom: 2.5706 standard errors, each of ln(2) * sqrt(0.8 / 6).
        let ratio = six.high.unwrap() / six.value;
        assert!((ratio.ln() - 2.570_581_8 * 2f64.ln() * (0.8 / 6f64).sqrt()).abs() < 1e-6);
    }

    #[test]
    fn an_interval_is_missing_where_that_of_a_comparison_is() {
        let spread = [1.0, 1.1, 0.9, 1.05, 0.95, 1.02, 1.07];
        for blocks in 2..=spread.len() {
            let logs: Vec<f64> = spread[..blocks].iter().map(|x: &f64| x.ln()).collect();
            let prior = stats::randomization::Prior::BLOCKS;
            let comparison = stats::randomization::confidence_sequence(&logs, 0.05, prior);
            let point = geometric_mean(&spread[..blocks], 0.05).unwrap();
            assert_eq!(point.low.is_some(), comparison.is_some(), "{blocks}");
        }
    }
}
