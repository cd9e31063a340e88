//! A latency over the offered rate, for each arm, with its knee.

use super::{Measured, by_block, deciding};
use model::{Better, Load};
use results::ResultSet;
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
    /// The last rate before the latency is above [`KNEE`] times its lowest; none
    /// where it never is.
    pub knee_per_sec: Option<f64>,
}

/// Geometric mean of the blocks and its t-interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ScanPoint {
    pub rate_per_sec: f64,
    pub value: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub blocks: usize,
}

/// One for each workload with rates enough and a latency that decides.
pub fn scans(results: &ResultSet) -> Vec<Scan> {
    let workloads = 0..results.experiment.workloads.len();
    workloads.filter_map(|index| scan(results, index)).collect()
}

fn scan(results: &ResultSet, workload: usize) -> Option<Scan> {
    let mut cells = Vec::new();
    for (index, cell) in results.plan.cells.iter().enumerate() {
        if let Load::RatePerSec(rate) = cell.load
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
    let points: Vec<ScanPoint> = cells
        .iter()
        .filter_map(|(rate, cell)| {
            let values: Vec<f64> = by_block(results, *cell, arm, metric)
                .into_values()
                .collect();
            point(*rate, &values, 1.0 - results.experiment.stop.confidence)
        })
        .collect();
    ScanArm {
        arm: results.experiment.arms[arm].name.clone(),
        knee_per_sec: knee(&points),
        points,
    }
}

fn point(rate_per_sec: f64, values: &[f64], alpha: f64) -> Option<ScanPoint> {
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let mean = stats::summary::mean(&logs)?;
    let interval = stats::t_test::one_sample(&logs, alpha).map(|test| test.interval);
    let end = |end: f64| Some(end.exp()).filter(|value| value.is_finite());
    Some(ScanPoint {
        rate_per_sec,
        value: mean.exp(),
        low: interval.and_then(|i| end(i.low)),
        high: interval.and_then(|i| end(i.high)),
        blocks: values.len(),
    })
}

fn knee(points: &[ScanPoint]) -> Option<f64> {
    let lowest = points.iter().map(|p| p.value).fold(f64::INFINITY, f64::min);
    let beyond = points.iter().position(|p| p.value > KNEE * lowest)?;
    // A curve that begins above its own knee has none.
    let last = points.get(beyond.checked_sub(1)?)?;
    Some(last.rate_per_sec)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: &[f64]) -> Vec<ScanPoint> {
        let numbered = values.iter().enumerate();
        numbered
            .filter_map(|(i, value)| point(1_000.0 * (i + 1) as f64, &[*value], 0.05))
            .collect()
    }

    #[test]
    fn the_knee_is_the_last_rate_before_the_latency_leaves() {
        assert_eq!(knee(&points(&[1.0, 1.2, 2.9, 40.0])), Some(3_000.0));
        assert_eq!(knee(&points(&[1.0, 1.2, 1.3])), None);
        assert_eq!(knee(&points(&[9.0, 1.0, 1.3])), None);
    }

    #[test]
    fn a_point_is_the_geometric_mean_with_an_interval_from_two_blocks_on() {
        let one = point(1.0, &[4.0], 0.05).unwrap();
        assert_eq!((one.low, one.blocks), (None, 1));
        let two = point(1.0, &[1.0, 4.0], 0.05).unwrap();
        assert!((two.value - 2.0).abs() < 1e-12);
        // t.interval(0.95, 1) of scipy 1.14: 12.706 standard errors of ln 2.
        let ratio = two.high.unwrap() / two.value;
        assert!((ratio.ln() - 12.706_204_7 * 2f64.ln()).abs() < 1e-6);
    }
}
