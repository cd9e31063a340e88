//! Does a report say what its results say? Every number is made again, from the
//! trials to the report and from the raw histograms to the trials.

use crate::certificate::Certificate;
use crate::hlog::add_log;
use crate::{Format, Options, ReportError, Table, render};
use hdrhistogram::Histogram;
use model::printable::one_line;
use model::{Load, Measurement, Workload};
use results::{ResultSet, StoredTrial};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs;

/// Another machine's logarithm may differ in the last digit, its report must not.
const SAME_NUMBER: f64 = 1e-9;
/// Histograms keep three digits.
const SAME_QUANTILE: f64 = 2e-3;
/// Differences of one report beyond these say nothing new.
const MOST_DIFFERENCES: usize = 200;

/// One place where what was said is not what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub place: String,
    pub said: String,
    pub found: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [place, said, found] = [&self.place, &self.said, &self.found].map(|t| one_line(t));
        write!(f, "{place}: says {said}, recomputed {found}")
    }
}

/// What was compared, and what differs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verification {
    /// Numbers that were recomputed.
    pub numbers: usize,
    /// Figures that nothing can be compared with, and how many there are of each.
    pub taken: BTreeMap<String, usize>,
    pub differences: Vec<Difference>,
}

/// The JSON report `said` against the one that `results` give now. What only the
/// newer of the two formats has is not compared.
pub fn report(results: &ResultSet, said: &str) -> Result<Verification, ReportError> {
    let table = Table::from_results(results);
    let found = render(Format::Json, &table, results, &Options::default())?;
    let mut said = serde_json::from_str(said)?;
    leave_out_old_statements(&mut said);
    compared("report", said, serde_json::from_str(&found)?)
}

/// Before format 1.4 a report told the evidence in other statements, several facts in one.
fn leave_out_old_statements(said: &mut Value) {
    let minor = said.pointer("/format/minor").and_then(Value::as_i64);
    if minor.is_none_or(|minor| minor >= 4) {
        return;
    }
    let arms = said.get_mut("arms").and_then(Value::as_array_mut);
    for arm in arms.into_iter().flatten().filter_map(Value::as_object_mut) {
        arm.remove("evidence");
    }
}

/// The certificate `said` against the one that `results` give now.
pub fn certificate(results: &ResultSet, said: &str) -> Result<Verification, ReportError> {
    let found = serde_json::to_value(Certificate::of(results))?;
    compared("certificate", serde_json::from_str(said)?, found)
}

fn compared(place: &str, mut said: Value, found: Value) -> Result<Verification, ReportError> {
    let mut walk = Walk {
        same_format: said.get("format") == found.get("format"),
        verification: Verification::default(),
    };
    if let (false, Some(fields)) = (walk.same_format, said.as_object_mut()) {
        fields.remove("format");
    }
    walk.compare(place, &said, &found);
    Ok(walk.verification)
}

struct Walk {
    same_format: bool,
    verification: Verification,
}

impl Walk {
    fn compare(&mut self, place: &str, said: &Value, found: &Value) {
        match (said, found) {
            (Value::Object(said), Value::Object(found)) => self.fields(place, said, found),
            (Value::Array(said), Value::Array(found)) if said.len() == found.len() => {
                for (index, (said, found)) in said.iter().zip(found).enumerate() {
                    let name = found.get("name").or_else(|| found.get("metric"));
                    let name = name.and_then(Value::as_str).unwrap_or_default();
                    self.compare(&format!("{place}[{index}{}]", spaced(name)), said, found);
                }
            }
            (Value::Number(a), Value::Number(b)) => {
                self.verification.numbers += 1;
                let (a, b) = (
                    a.as_f64().unwrap_or(f64::NAN),
                    b.as_f64().unwrap_or(f64::NAN),
                );
                if !is_near(a, b, SAME_NUMBER) {
                    self.differs(place, said, found);
                }
            }
            _ if said == found => {}
            _ => self.differs(place, said, found),
        }
    }

    fn fields(&mut self, place: &str, said: &Map<String, Value>, found: &Map<String, Value>) {
        for (key, value) in said {
            let place = format!("{place}.{key}");
            self.compare(&place, value, found.get(key).unwrap_or(&Value::Null));
        }
        if self.same_format {
            for (key, value) in found.iter().filter(|(key, _)| !said.contains_key(*key)) {
                self.differs(&format!("{place}.{key}"), &Value::Null, value);
            }
        }
    }

    fn differs(&mut self, place: &str, said: &Value, found: &Value) {
        let differences = &mut self.verification.differences;
        if differences.len() < MOST_DIFFERENCES {
            differences.push(Difference {
                place: place.to_owned(),
                said: short(said),
                found: short(found),
            });
        }
    }
}

fn spaced(name: &str) -> String {
    match name {
        "" => String::new(),
        name => format!(" {name}"),
    }
}

fn short(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Array(list) => format!("a list of {}", list.len()),
        value => value.to_string().chars().take(120).collect(),
    }
}

fn is_near(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * a.abs().max(b.abs())
}

/// The log that a figure of a workload at a load comes from, if it comes from one.
pub type LogOf<'a> = &'a dyn Fn(&Workload, &Load, &str) -> Option<&'static str>;

/// The quantiles and maxima of every trial that counts, against its histograms. A figure
/// whose log is missing or empty differs; one that comes from no log is counted as taken.
pub fn histograms(results: &ResultSet, log_of: LogOf) -> Verification {
    let mut verification = Verification::default();
    let mut buffer = Vec::new();
    for stored in results.trials.iter().filter(|stored| stored.trial.is_ok()) {
        let cell = &results.plan.cells[stored.trial.place.cell];
        let workload = &results.experiment.workloads[cell.workload];
        let mut by_log: BTreeMap<String, Vec<&Measurement>> = BTreeMap::new();
        for name in names_of_logs(stored) {
            by_log.entry(name).or_default();
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

/// A log that is there, whether or not it must be.
fn among(logs: &BTreeMap<String, Vec<&Measurement>>, measured: &Measurement) -> Option<String> {
    let mut logs = logs.keys();
    logs.find(|log| quantile_of(log, measured).is_some())
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
        let found = quantile_of(log, measured).and_then(|name| quantile(&histogram, name));
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
fn quantile_of<'a>(log: &str, measured: &'a Measurement) -> Option<&'a str> {
    let rest = measured.metric.strip_prefix(&log.replace('-', "_"))?;
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

/// Of `p50`, `p999` or `max`; `None` for any other name and for an empty histogram.
fn quantile(histogram: &Histogram<u64>, name: &str) -> Option<f64> {
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
    use tempfile::TempDir;

    fn stored() -> (TempDir, ResultSet) {
        let dir = tempfile::tempdir().unwrap();
        synthetic::write(dir.path(), &synthetic::quickstart()).unwrap();
        let results = ResultSet::read(dir.path()).unwrap();
        (dir, results)
    }

    fn json(results: &ResultSet) -> String {
        let table = Table::from_results(results);
        render(Format::Json, &table, results, &Options::default()).unwrap()
    }

    #[test]
    fn a_report_agrees_with_the_results_that_it_was_made_from() {
        let (_dir, results) = stored();
        let verification = report(&results, &json(&results)).unwrap();
        assert_eq!(verification.differences, []);
        assert!(verification.numbers > 100);
    }

    #[test]
    fn a_changed_ratio_is_named() {
        let (_dir, results) = stored();
        let mut said: Value = serde_json::from_str(&json(&results)).unwrap();
        said["comparisons"][2]["ratio"] = Value::from(2.5);
        let differences = report(&results, &said.to_string()).unwrap().differences;
        assert_eq!(differences.len(), 1);
        assert!(
            differences[0].place.contains("comparisons[2"),
            "{differences:?}"
        );
        assert_eq!(differences[0].said, "2.5");
    }

    #[test]
    fn what_a_report_leaves_out_is_named() {
        let (_dir, results) = stored();
        let mut said: Value = serde_json::from_str(&json(&results)).unwrap();
        said.as_object_mut().unwrap().remove("warnings");
        let differences = report(&results, &said.to_string()).unwrap().differences;
        assert_eq!(differences[0].place, "report.warnings");
    }

    #[test]
    fn what_an_older_format_could_not_say_is_no_difference() {
        let (_dir, results) = stored();
        let mut said: Value = serde_json::from_str(&json(&results)).unwrap();
        said.as_object_mut().unwrap().remove("warnings");
        said["format"]["minor"] = Value::from(-1);
        said["arms"][0]["evidence"] = Value::Array(Vec::new());
        let differences = report(&results, &said.to_string()).unwrap().differences;
        assert_eq!(differences, []);
    }

    #[test]
    fn quantiles_are_read_from_their_names() {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        (1..=1000).for_each(|n| histogram.record(n).unwrap());
        assert_eq!(quantile(&histogram, "p50"), Some(500.0));
        assert_eq!(quantile(&histogram, "p999"), Some(999.0));
        assert_eq!(quantile(&histogram, "max"), Some(1000.0));
        assert_eq!(quantile(&histogram, "per_sec"), None);
        assert_eq!(quantile(&histogram, "p"), None);
    }
}
