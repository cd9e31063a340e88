//! From what the workers recorded to metrics, histograms and warnings.

use super::config::Config;
use super::worker::Records;
use load::figures::Figures;
use load::latency as m;
use load::overload::{achieved_percent, is_overload};
use load::recording::Recorder;
use load::turn_values::InTurns;
use load::{Parsed, stalls, steady};
use model::{Severity, Turns};
use std::time::SystemTime;

/// All that the threads of one load bring back.
#[derive(Debug)]
pub struct Recorded {
    pub records: Vec<Records>,
    /// Requests intended inside the window; 0 in a closed loop.
    pub offered: u64,
}

/// The figures of a load whose window opened at `opened`.
pub fn compute_figures(
    config: &Config,
    recorded: Recorded,
    opened: SystemTime,
) -> Result<Parsed, String> {
    let Recorded { records, offered } = recorded;
    let mut wakeup = Vec::new();
    let mut request = Vec::new();
    let mut service = Vec::new();
    for record in records {
        wakeup.push(record.wakeup);
        request.push(record.request);
        service.extend(record.service);
    }
    if let Some(turns) = &config.turns {
        let turned = in_turns(config, turns, [wakeup, request, service], offered, opened)?;
        return Ok(turned);
    }
    let mut figures = Figures::new(opened);
    let wakeup = figures.latency("wakeup", m::WAKEUP, wakeup)?;
    let request = figures.latency("request", m::REQUEST, request)?;
    let done = request.count();
    if done == 0 {
        return Err(nothing_done(config));
    }
    figures.push(m::REQUESTS_PER_SEC, done as f64 / seconds(config));
    let (drift, warning) = match config.rate_per_sec {
        None => steady::judge(&request),
        // A queue that fills makes latency rise, and is said below.
        Some(_) if is_overload(offered, done, config.workers) => (None, None),
        Some(_) => steady::judge_latency(&request, &(0..config.duration_ns)),
    };
    figures.stalls(&[
        ("wakeup", stalls::WAKEUP_STALLS, &wakeup),
        ("request", stalls::REQUEST_STALLS, &request),
    ]);
    figures.parsed.metrics.extend(drift);
    figures.parsed.warnings.extend(warning);
    if config.rate_per_sec.is_some() {
        figures.latency("service", m::SERVICE, service)?;
        open_loop(&mut figures, config, offered, done);
    }
    Ok(figures.finish())
}

/// Figures of each turn of arms that change places.
fn in_turns(
    config: &Config,
    turns: &Turns,
    [wakeup, request, service]: [Vec<Recorder>; 3],
    offered: u64,
    opened: SystemTime,
) -> Result<Parsed, String> {
    let mut figures = InTurns::new(turns, opened);
    figures.latency("wakeup", m::WAKEUP, None, wakeup)?;
    let done = figures.latency("request", m::REQUEST, Some(m::REQUESTS_PER_SEC), request)?;
    if done == 0 {
        return Err(nothing_done(config));
    }
    if config.rate_per_sec.is_some() {
        figures.latency("service", m::SERVICE, None, service)?;
        if is_overload(offered, done, config.workers) {
            figures.void(format!(
                "overload: {:.1} % of the offered requests were completed, and the queue of one \
                 arm's turn is served in that of another; offer a lower rate",
                achieved_percent(offered, done)
            ));
        }
    }
    Ok(figures.finish())
}

fn nothing_done(config: &Config) -> String {
    format!(
        "no request was completed in the window of {}; use a longer duration or fewer operations",
        model::format_duration_ns(config.duration_ns)
    )
}

fn open_loop(figures: &mut Figures, config: &Config, offered: u64, done: u64) {
    let achieved = achieved_percent(offered, done);
    figures.push(m::OFFERED_PER_SEC, offered as f64 / seconds(config));
    figures.push(m::ACHIEVED_PERCENT, achieved);
    let overloaded = is_overload(offered, done, config.workers);
    figures.push(m::OVERLOADED, f64::from(u8::from(overloaded)));
    if overloaded {
        let what = format!(
            "overload: {achieved:.1} % of the offered requests were completed, so request \
             latency grows with the length of the window"
        );
        let remedy = "offer a lower rate, or judge requests_per_sec";
        figures.warn(Severity::Caution, what, remedy);
    }
}

fn seconds(config: &Config) -> f64 {
    config.duration_ns as f64 / 1e9
}
