//! From recorded latencies to metrics, histograms and warnings, the same for all native
//! loads.

use crate::Parsed;
use crate::latency::Quantile;
use crate::recording::{Recorder, Recording, samples_needed};
use model::{Measurement, MetricDef, Severity, TrialFile, Warning};
use std::collections::BTreeSet;
use std::time::SystemTime;

/// The figures of one load, as they come together.
#[derive(Debug)]
pub struct Figures {
    /// Wall-clock time at which the window opened.
    opened: SystemTime,
    /// Figures, files and warnings so far.
    pub parsed: Parsed,
    /// Quantiles with too few samples.
    missing: Vec<Quantile>,
}

impl Figures {
    /// No figures yet; the window opened at `opened`.
    pub fn new(opened: SystemTime) -> Self {
        Figures {
            opened,
            parsed: Parsed::default(),
            missing: Vec::new(),
        }
    }

    /// Quantiles and histogram of one kind of latency.
    pub fn latency(
        &mut self,
        name: &str,
        quantiles: &[Quantile],
        recorders: Vec<Recorder>,
    ) -> Result<Recording, String> {
        let recording = merge_recorders(recorders)?;
        for (def, permille) in quantiles {
            let value = match permille {
                Some(permille) => recording.quantile_ns(*permille),
                None => recording.max_ns(),
            };
            match value {
                Some(ns) => self.push(*def, ns as f64),
                None => self.missing.push((*def, *permille)),
            }
        }
        let what = format!("{} latency", name.replace('-', " "));
        let text = recording.interval_log(&what, self.opened)?;
        self.parsed.late.extend(recording.late_values(name));
        self.parsed.worst = self.parsed.worst.or(recording.worst_value());
        let name = format!("{name}.hlog");
        self.parsed.files.push(TrialFile { name, text });
        Ok(recording)
    }

    /// One more figure.
    pub fn push(&mut self, def: MetricDef, value: f64) {
        self.parsed.metrics.push(def.to_measurement(value));
    }

    /// One more warning.
    pub fn warn(&mut self, severity: Severity, what: String, remedy: &str) {
        self.parsed.warnings.push(Warning {
            severity,
            what,
            remedy: remedy.to_owned(),
        });
    }

    /// Stalls of each kind of latency, by name.
    pub fn stalls(&mut self, all: &[(&str, MetricDef, &Recording)]) {
        self.parsed.metrics.extend(stall_counts(all));
        self.parsed.files.extend(stall_file(all));
    }

    /// All figures, with a note of the quantiles that are left out.
    pub fn finish(mut self) -> Parsed {
        if !self.missing.is_empty() {
            self.note_missing();
        }
        self.parsed
    }

    fn note_missing(&mut self) {
        let names: Vec<&str> = self.missing.iter().map(|(def, _)| def.name).collect();
        // The same words for all such trials: reports count equal warnings.
        let what = format!("too few requests for {}: left out", names.join(", "));
        let remedy = format!(
            "a longer duration (`--duration`): {}",
            needed(&self.missing)
        );
        self.warn(Severity::Note, what, &remedy);
    }
}

/// `1000 requests for p99, 10000 for p999`.
fn needed(missing: &[Quantile]) -> String {
    let permilles: BTreeSet<u32> = missing
        .iter()
        .filter_map(|(_, permille)| *permille)
        .collect();
    let mut words = Vec::new();
    for permille in permilles {
        let unit = if words.is_empty() { " requests" } else { "" };
        let name = match permille % 10 {
            0 => permille / 10,
            _ => permille,
        };
        words.push(format!("{}{unit} for p{name}", samples_needed(permille)));
    }
    words.join(", ")
}

/// The distribution of all threads.
pub fn merge_recorders(recorders: Vec<Recorder>) -> Result<Recording, String> {
    Recording::merge(recorders).ok_or_else(|| "the load had no threads".to_owned())
}

/// Number of stalls of each kind of latency.
fn stall_counts(recordings: &[(&str, MetricDef, &Recording)]) -> Vec<Measurement> {
    let count = |(_, def, recording): &(&str, MetricDef, &Recording)| {
        def.to_measurement(recording.stalls().count() as f64)
    };
    recordings.iter().map(count).collect()
}

/// `stalls.csv`: what it was, when in the window, and how long it took.
/// `None` without any.
fn stall_file(recordings: &[(&str, MetricDef, &Recording)]) -> Option<TrialFile> {
    let mut text = "what,at_ns,took_ns\n".to_owned();
    let head = text.len();
    for (name, _, recording) in recordings {
        for stall in recording.stalls().worst_stalls() {
            let at = recording.offset_ns(stall.at_ns);
            text.push_str(&format!("{name},{at},{}\n", stall.took_ns));
        }
    }
    (text.len() > head).then(|| TrialFile {
        name: "stalls.csv".to_owned(),
        text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency as m;
    use crate::recording::Window;
    use crate::stalls::{WAKEUP_NS, WAKEUP_STALLS};

    #[test]
    fn each_quantile_that_is_missing_says_what_it_needs() {
        let all = [m::REQUEST, m::SERVICE].concat();
        let expected =
            "20 requests for p50, 100 for p90, 200 for p95, 1000 for p99, 10000 for p999";
        assert_eq!(needed(&all), expected);
    }

    #[test]
    fn the_file_says_when_in_the_window_and_is_left_out_without_stalls() {
        let recording = |took_ns| {
            let window = Window {
                begin_ns: 1_000,
                end_ns: 1_000_001_000,
            };
            let mut recorder = Recorder::new(1_000_000_000, 1_000_000_000)
                .unwrap()
                .with_stalls_from(WAKEUP_NS);
            recorder.open(window);
            recorder.record(5_000, took_ns);
            Recording::merge([recorder]).unwrap()
        };
        let (short, long) = (recording(10), recording(20_000_000));
        assert_eq!(stall_file(&[("wakeup", WAKEUP_STALLS, &short)]), None);
        let all = [("wakeup", WAKEUP_STALLS, &long)];
        assert_eq!(
            stall_file(&all).unwrap().text,
            "what,at_ns,took_ns\nwakeup,4000,20000000\n"
        );
        assert_eq!(stall_counts(&all)[0].value, 1.0);
    }
}
