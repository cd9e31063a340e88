//! From what the workers recorded to metrics, histograms and warnings.

use super::config::Config;
use super::metrics as m;
use super::worker::Records;
use crate::Parsed;
use crate::overload::{achieved_percent, is_overload};
use crate::recording::{Recorder, Recording, samples_needed};
use crate::{stalls, steady};
use model::{Measurement, MetricDef, Severity, TrialFile, Warning};
use std::time::SystemTime;

/// All that the threads of one load bring back.
#[derive(Debug)]
pub struct Recorded {
    pub records: Vec<Records>,
    /// Requests intended inside the window; 0 in a closed loop.
    pub offered: u64,
}

/// The figures of a load whose window opened at `opened`.
pub fn parsed(config: &Config, recorded: Recorded, opened: SystemTime) -> Result<Parsed, String> {
    let Recorded { records, offered } = recorded;
    let mut wakeup = Vec::new();
    let mut request = Vec::new();
    let mut service = Vec::new();
    for record in records {
        wakeup.push(record.wakeup);
        request.push(record.request);
        service.extend(record.service);
    }
    let mut figures = Figures {
        opened,
        parsed: Parsed::default(),
        missing: Vec::new(),
    };
    let wakeup = figures.latency("wakeup", m::WAKEUP, wakeup)?;
    let request = figures.latency("request", m::REQUEST, request)?;
    let done = request.count();
    if done == 0 {
        return Err(nothing_done(config));
    }
    figures.rate(config, done);
    let drift = match config.rate_per_sec {
        None => steady::judge(&request),
        // A queue that fills makes latency rise, and is said below.
        Some(_) if is_overload(offered, done, config.workers) => (None, None),
        Some(_) => steady::judge_latency(&request),
    };
    figures.explain(&wakeup, &request, drift);
    if config.rate_per_sec.is_some() {
        figures.latency("service", m::SERVICE, service)?;
        figures.open_loop(config, offered, done);
    }
    figures.warn_of_missing();
    Ok(figures.parsed)
}

fn nothing_done(config: &Config) -> String {
    format!(
        "no request was completed in the window of {}; use a longer duration or fewer operations",
        model::format_duration_ns(config.duration_ns)
    )
}

struct Figures {
    opened: SystemTime,
    parsed: Parsed,
    /// Quantiles with too few samples.
    missing: Vec<&'static str>,
}

impl Figures {
    /// Quantiles and histogram of one kind of latency.
    fn latency(
        &mut self,
        name: &str,
        quantiles: &[(MetricDef, Option<u32>)],
        recorders: Vec<Recorder>,
    ) -> Result<Recording, String> {
        let recording = Recording::merge(recorders).ok_or("the load had no workers")?;
        for (def, permille) in quantiles {
            let value = match permille {
                Some(permille) => recording.quantile_ns(*permille),
                None => recording.max_ns(),
            };
            match value {
                Some(ns) => self.push(def.measured(ns as f64)),
                None => self.missing.push(def.name),
            }
        }
        let text = recording.interval_log(&format!("{name} latency"), self.opened)?;
        self.parsed.files.push(TrialFile {
            name: format!("{name}.hlog"),
            text,
        });
        Ok(recording)
    }

    fn push(&mut self, measurement: Measurement) {
        self.parsed.metrics.push(measurement);
    }

    fn rate(&mut self, config: &Config, done: u64) {
        let per_sec = done as f64 / seconds(config);
        self.push(m::REQUESTS_PER_SEC.measured(per_sec));
    }

    /// Stalls, and whether the load was steady.
    fn explain(
        &mut self,
        wakeup: &Recording,
        request: &Recording,
        (drift, warning): (Option<Measurement>, Option<Warning>),
    ) {
        let both = [
            ("wakeup", stalls::WAKEUP_STALLS, wakeup),
            ("request", stalls::REQUEST_STALLS, request),
        ];
        self.parsed.metrics.extend(stalls::figures(&both));
        self.parsed.files.extend(stalls::file(&both));
        self.parsed.metrics.extend(drift);
        self.parsed.warnings.extend(warning);
    }

    fn open_loop(&mut self, config: &Config, offered: u64, done: u64) {
        let achieved = achieved_percent(offered, done);
        let offered_per_sec = offered as f64 / seconds(config);
        self.push(m::OFFERED_PER_SEC.measured(offered_per_sec));
        self.push(m::ACHIEVED_PERCENT.measured(achieved));
        let overloaded = is_overload(offered, done, config.workers);
        self.push(m::OVERLOADED.measured(f64::from(u8::from(overloaded))));
        if overloaded {
            self.parsed.warnings.push(Warning {
                severity: Severity::Caution,
                what: format!(
                    "overload: {achieved:.1} % of the offered requests were completed, so request \
                     latency grows with the length of the window"
                ),
                remedy: "offer a lower rate, or judge requests_per_sec".to_owned(),
            });
        }
    }

    fn warn_of_missing(&mut self) {
        if self.missing.is_empty() {
            return;
        }
        let quantiles = [m::WAKEUP, m::REQUEST, m::SERVICE].into_iter().flatten();
        let needed = quantiles
            .filter(|(def, _)| self.missing.contains(&def.name))
            .filter_map(|(_, permille)| permille.map(samples_needed))
            .max()
            .unwrap_or(0);
        self.parsed.warnings.push(Warning {
            severity: Severity::Note,
            // The same words for all such trials: reports count equal warnings.
            what: format!("too few requests for {}: left out", self.missing.join(", ")),
            remedy: format!("a longer duration: {needed} requests are needed"),
        });
    }
}

fn seconds(config: &Config) -> f64 {
    config.duration_ns as f64 / 1e9
}
