//! The 95th percentile of an arm's requests over all of its trials, for cells in which a trial has
//! too few requests for one of its own.
//!
//! It is a description: no interval and no verdict comes from pooled samples.

use crate::hlog::{FEWEST_BEYOND, add_log, new_histogram};
use hdrhistogram::Histogram;
use results::{ResultSet, StoredTrial};
use serde::Serialize;

/// A metric that only loads with several kinds of request have.
pub const MARK: &str = "request_mean";
/// Metric that is pooled.
pub const P95: &str = "request_p95";
const QUANTILE: f64 = 0.95;
/// Percent of the requests that are beyond it.
const PERCENT_BEYOND: u64 = 5;
/// Log that it is a quantile of.
const LOG: &str = "request.hlog";

/// A quantile of the requests of all trials of an arm in one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pooled {
    /// Name of the metric of which trials have no value.
    pub metric: String,
    pub unit: String,
    /// Name of the arm.
    pub arm: String,
    pub value: f64,
    /// Number of the requests.
    pub samples: u64,
    /// Number of the trials.
    pub trials: usize,
}

/// Quantile of each arm with enough requests, unless each trial of the cell has a value of its own: so
/// the arms of a cell are described alike.
pub fn pool_quantiles(results: &ResultSet, cell: usize) -> Vec<Pooled> {
    let trials: Vec<&StoredTrial> = results
        .trials
        .iter()
        .filter(|stored| stored.trial.place.cell == cell && stored.trial.is_ok())
        .collect();
    let have = |metric: &str| {
        trials
            .iter()
            .filter(|t| t.trial.metric(metric).is_some())
            .count()
    };
    if have(MARK) == 0 || have(P95) == trials.len() {
        return Vec::new();
    }
    let arms = results.experiment.arms.iter().enumerate();
    arms.filter_map(|(arm, info)| {
        let of_arm = trials.iter().filter(|t| t.trial.place.arm == arm);
        let of_arm: Vec<&StoredTrial> = of_arm.copied().collect();
        let requests = merged(&of_arm, LOG)?;
        // In whole numbers: rounded, 190 requests would have ten beyond.
        let beyond = requests.len() * PERCENT_BEYOND / 100;
        (beyond as f64 >= FEWEST_BEYOND).then(|| Pooled {
            metric: P95.to_owned(),
            unit: "ns".to_owned(),
            arm: info.name.clone(),
            value: requests.value_at_quantile(QUANTILE) as f64,
            samples: requests.len(),
            trials: of_arm.len(),
        })
    })
    .collect()
}

/// The values of a log of all of these trials; none where one is missing or damaged, since a part of
/// them would be another distribution.
pub fn merged(trials: &[&StoredTrial], log: &str) -> Option<Histogram<u64>> {
    let (mut all, mut buffer) = (new_histogram(), Vec::new());
    for stored in trials {
        let text = results::files::read(&stored.dir.join(log)).ok()?;
        add_log(&text, &mut all, &mut buffer).ok()?;
    }
    Some(all)
}
