//! Figures of windows of arms that took turns: each quantile against the histogram of its window,
//! and each level of a trial against its windows.

use super::histograms::{Stored, quantile_of, read_quantile};
use super::{Difference, Verification, is_near};
use crate::hlog::read_intervals;
use hdrhistogram::Histogram;
use model::Windows;

/// Histograms keep three digits.
const SAME_QUANTILE: f64 = 2e-3;
/// Sums of some thousand logarithms.
const SAME_LEVEL: f64 = 1e-9;

/// Checks a trial with windows. `logs` are the names of its interval logs.
pub(super) fn check_windows(
    stored: &Stored,
    windows: &Windows,
    logs: &[String],
    buffer: &mut Vec<u8>,
    verification: &mut Verification,
) {
    for log in logs {
        let of_log = |metric: &&String| quantile_of(log, metric).is_some();
        let metrics: Vec<&String> = windows.figures.keys().filter(of_log).collect();
        match read(stored, log, buffer) {
            Ok(found) => metrics.iter().for_each(|metric| {
                check_metric(stored, windows, log, metric, &found, verification);
            }),
            Err(found) => verification.differences.push(Difference {
                place: format!("trials/{}/{log}.hlog", stored.dir_name()),
                said: "a histogram of each window".to_owned(),
                found,
            }),
        }
    }
    check_levels(stored, windows, verification);
}

fn read(stored: &Stored, log: &str, buffer: &mut Vec<u8>) -> Result<Vec<Histogram<u64>>, String> {
    let text = stored.read_log(log)?;
    let histograms = read_intervals(&text).map(|interval| {
        let mut histogram = Histogram::new(3).map_err(|e| e.to_string())?;
        histogram.auto(true);
        interval?.add_to(&mut histogram, buffer)?;
        Ok(histogram)
    });
    histograms.collect()
}

fn check_metric(
    stored: &Stored,
    windows: &Windows,
    log: &str,
    metric: &str,
    histograms: &[Histogram<u64>],
    verification: &mut Verification,
) {
    let values = windows.figures.get(metric).into_iter().flatten();
    for (index, said) in values.enumerate() {
        let Some(said) = said else {
            continue;
        };
        verification.numbers += 1;
        let name = quantile_of(log, metric).unwrap_or_default();
        let found = histograms
            .get(index)
            .and_then(|histogram| read_quantile(histogram, name));
        if found.is_none_or(|found| !is_near(*said, found, SAME_QUANTILE)) {
            verification.differences.push(Difference {
                place: format!(
                    "trials/{}/trial.json, {metric} of window {index}",
                    stored.dir_name()
                ),
                said: said.to_string(),
                found: found.map_or_else(|| "nothing".to_owned(), |found| found.to_string()),
            });
        }
    }
}

/// A level is a mean over the windows that count.
fn check_levels(stored: &Stored, windows: &Windows, verification: &mut Verification) {
    for measured in stored.stored_metrics() {
        let Some(found) = windows.level_of(&measured.metric) else {
            let taken = verification.taken.entry(measured.metric.clone());
            *taken.or_default() += 1;
            continue;
        };
        verification.numbers += 1;
        if !is_near(measured.value, found, SAME_LEVEL) {
            verification.differences.push(Difference {
                place: format!(
                    "trials/{}/trial.json, {}",
                    stored.dir_name(),
                    measured.metric
                ),
                said: measured.value.to_string(),
                found: found.to_string(),
            });
        }
    }
}
