//! From recorded latencies to metrics, histograms and warnings, the same for all native
//! loads.

use crate::latency::Quantile;
use crate::recording::{Recorder, Recording, samples_needed};
use crate::{Parsed, stalls};
use model::{MetricDef, Severity, TrialFile, Warning};
use std::time::SystemTime;

/// The figures of one load, as they come together.
pub struct Figures {
    /// Wall-clock time at which the window opened.
    opened: SystemTime,
    pub parsed: Parsed,
    /// Quantiles with too few samples.
    missing: Vec<Quantile>,
}

impl Figures {
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
        let recording = merged(recorders)?;
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
        let name = format!("{name}.hlog");
        self.parsed.files.push(TrialFile { name, text });
        Ok(recording)
    }

    pub fn push(&mut self, def: MetricDef, value: f64) {
        self.parsed.metrics.push(def.measured(value));
    }

    pub fn warn(&mut self, severity: Severity, what: String, remedy: &str) {
        self.parsed.warnings.push(Warning {
            severity,
            what,
            remedy: remedy.to_owned(),
        });
    }

    /// Stalls of each kind of latency, by name.
    pub fn stalls(&mut self, all: &[(&str, MetricDef, &Recording)]) {
        self.parsed.metrics.extend(stalls::figures(all));
        self.parsed.files.extend(stalls::file(all));
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
        let needed = self.missing.iter().filter_map(|(_, permille)| *permille);
        let needed = needed.map(samples_needed).max().unwrap_or(0);
        let remedy = format!("a longer duration: {needed} requests are needed");
        self.warn(Severity::Note, what, &remedy);
    }
}

/// The distribution of all threads.
pub fn merged(recorders: Vec<Recorder>) -> Result<Recording, String> {
    Recording::merge(recorders).ok_or_else(|| "the load had no threads".to_owned())
}
