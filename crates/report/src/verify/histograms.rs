//! The quantiles of the trials against their histograms.

use super::{Difference, Verification, is_near, windows};
use crate::hlog::add_log;
use hdrhistogram::Histogram;
use model::{Load, Measurement, Workload};
use results::{ResultSet, StoredTrial};
use std::collections::BTreeMap;
use std::fs;

/// Histograms keep three digits.
const SAME_QUANTILE: f64 = 2e-3;

/// The log that a figure of a workload at a load comes from, if it comes from one.
pub type LogOf<'a> = &'a dyn Fn(&Workload, &Load, &str) -> Option<&'static str>;

/// The quantiles and maxima of every trial that counts, against its histograms. A figure
/// whose log is missing or empty differs; one that comes from no log is counted as taken.
pub fn verify_histograms(results: &ResultSet, log_of: LogOf) -> Verification {
    let mut verification = Verification::default();
    let mut buffer = Vec::new();
    for stored in results.trials.iter().filter(|stored| stored.trial.is_ok()) {
        let cell = &results.plan.cells[stored.trial.place.cell];
        let workload = &results.experiment.workloads[cell.workload];
        let mut by_log: BTreeMap<String, Vec<&Measurement>> = BTreeMap::new();
        for name in names_of_logs(stored) {
            by_log.entry(name).or_default();
        }
        if let Some(of_arm) = &stored.trial.result.windows {
            let logs = names_of_logs(stored);
            let stored = Stored(stored);
            windows::check_windows(&stored, of_arm, &logs, &mut buffer, &mut verification);
            continue;
        }
        for measured in &stored.trial.result.metrics {
            let log = log_of(workload, &cell.load, &measured.metric);
            match log.map(str::to_owned).or_else(|| among(&by_log, measured)) {
                Some(log) => by_log.entry(log).or_default().push(measured),
                None => {
                    *verification
                        .taken
                        .entry(measured.metric.clone())
                        .or_default() += 1
                }
            }
        }
        for (log, measured) in by_log {
            check_log(stored, &log, &measured, &mut buffer, &mut verification);
        }
    }
    verification
}

/// A stored trial, as it is checked.
pub(super) struct Stored<'a>(&'a StoredTrial);

impl Stored<'_> {
    /// Name of its directory.
    pub(super) fn dir_name(&self) -> String {
        let name = self.0.dir.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Text of an interval log.
    pub(super) fn read_log(&self, log: &str) -> Result<Vec<u8>, String> {
        let path = self.0.dir.join(format!("{log}.hlog"));
        results::files::read(&path).map_err(|e| e.to_string())
    }

    /// Its figures.
    pub(super) fn stored_metrics(&self) -> &[Measurement] {
        &self.0.trial.result.metrics
    }
}

/// A log that is there, whether or not it must be.
fn among(logs: &BTreeMap<String, Vec<&Measurement>>, measured: &Measurement) -> Option<String> {
    let mut logs = logs.keys();
    logs.find(|log| quantile_of(log, &measured.metric).is_some())
        .cloned()
}

fn names_of_logs(stored: &StoredTrial) -> Vec<String> {
    let entries = fs::read_dir(&stored.dir).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names
        .filter_map(|name| Some(name.strip_suffix(".hlog")?.to_owned()))
        .collect()
}

fn check_log(
    stored: &StoredTrial,
    log: &str,
    measured: &[&Measurement],
    buffer: &mut Vec<u8>,
    verification: &mut Verification,
) {
    let trial = stored.dir.file_name().unwrap_or_default().to_string_lossy();
    let mut differs = |place: String, said: String, found: String| {
        verification
            .differences
            .push(Difference { place, said, found });
    };
    let histogram = match read_log(stored, log, buffer) {
        Ok(histogram) => histogram,
        Err(why) => {
            let names: Vec<&str> = measured.iter().map(|m| m.metric.as_str()).collect();
            let said = match names[..] {
                [] => "a histogram".to_owned(),
                _ => format!("the histogram of {}", names.join(", ")),
            };
            return differs(format!("trials/{trial}/{log}.hlog"), said, why);
        }
    };
    for measured in measured {
        let found =
            quantile_of(log, &measured.metric).and_then(|name| read_quantile(&histogram, name));
        let said = measured.value.to_string();
        let place = || format!("trials/{trial}/trial.json, {}", measured.metric);
        match found {
            None => differs(place(), said, "nothing: the histogram is empty".to_owned()),
            Some(found) if !is_near(measured.value, found, SAME_QUANTILE) => {
                differs(place(), said, found.to_string());
            }
            Some(_) => {}
        }
    }
    verification.numbers += measured.len();
}

/// `p50` of `generator_lateness_p50` in `generator-lateness.hlog`.
pub(super) fn quantile_of<'a>(log: &str, metric: &'a str) -> Option<&'a str> {
    let rest = metric.strip_prefix(&log.replace('-', "_"))?;
    rest.strip_prefix('_').filter(|name| is_quantile(name))
}

fn read_log(
    stored: &StoredTrial,
    log: &str,
    buffer: &mut Vec<u8>,
) -> Result<Histogram<u64>, String> {
    let path = stored.dir.join(format!("{log}.hlog"));
    if path.symlink_metadata().is_err() {
        return Err("no such file".to_owned());
    }
    let text = results::files::read(&path).map_err(|e| e.to_string())?;
    let mut histogram = Histogram::new(3).map_err(|e| e.to_string())?;
    histogram.auto(true);
    add_log(&text, &mut histogram, buffer)?;
    Ok(histogram)
}

/// Value of `p50`, `p999` or `max`; `None` for any other name and for an empty histogram.
pub(super) fn read_quantile(histogram: &Histogram<u64>, name: &str) -> Option<f64> {
    if histogram.is_empty() {
        return None;
    }
    let value = match name.strip_prefix('p') {
        Some(digits) if is_quantile(name) => {
            histogram.value_at_quantile(format!("0.{digits}").parse().ok()?)
        }
        None if name == "max" => histogram.max(),
        _ => return None,
    };
    Some(value as f64)
}

/// `p50`, `p999`, `max`.
fn is_quantile(name: &str) -> bool {
    match name.strip_prefix('p') {
        Some(digits) => !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()),
        None => name == "max",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_read_from_their_names() {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        (1..=1000).for_each(|n| histogram.record(n).unwrap());
        assert_eq!(read_quantile(&histogram, "p50"), Some(500.0));
        assert_eq!(read_quantile(&histogram, "p999"), Some(999.0));
        assert_eq!(read_quantile(&histogram, "max"), Some(1000.0));
        assert_eq!(read_quantile(&histogram, "per_sec"), None);
        assert_eq!(read_quantile(&histogram, "p"), None);
    }
}
