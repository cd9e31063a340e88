//! The service at both ends of each window: one window in a whole trial, one for each turn where arms
//! take turns.

use super::Attach;
use super::logs::Logs;
use super::lookout::Lookout;
use super::moment::Moment;
use super::rail::Rail;
use super::scrape::Scraper;
use load::gate::Timing;
use load::phase::{NativeError, Phases};
use load::{Job, Parsed, TurnFigures};
use model::{Severity, Turns, Warning};
use std::collections::BTreeMap;

/// Looks at the service through the trial, and gives its figures.
pub(super) fn watch(
    attach: &Attach,
    job: &Job,
    phases: &mut Phases,
) -> Result<Parsed, NativeError> {
    let failed = NativeError::Generator;
    let mut seen = Seen::new(attach);
    // A service that is not there fails before anything is changed.
    seen.look().map_err(failed)?;
    seen.moments.clear();
    let logs = Logs::follow(attach).map_err(failed)?;
    phases.report_ready()?;
    let lookout = Lookout::start(attach)?;
    let timing = Timing::from_now(job.workload.warmup_ns, job.measured_ns());
    let window = timing.window;
    if job.turns.is_some() {
        phases.announce_window(window.begin_ns)?;
    }
    lookout.wait_until(phases, window.begin_ns)?;
    phases.begin_window(window.begin_ns)?;
    for at_ns in moments(job.turns.as_ref(), window.begin_ns, window.end_ns) {
        lookout.wait_until(phases, at_ns)?;
        let looked = lookout.wait_for(phases, || seen.look())?;
        looked.map_err(|why| lookout.give_up(phases, why))?;
    }
    phases.end_window(window.end_ns)?;
    phases.wait_until_seen()?;
    let parsed = match &job.turns {
        Some(turns) => seen.by_turns(turns),
        None => seen.whole(),
    };
    let mut parsed = parsed.map_err(failed)?;
    logs.add_to(&mut parsed, attach, job, &timing)
        .map_err(failed)?;
    let unseen = lookout.unseen_rails(attach).into_iter();
    parsed.warnings.extend(unseen.map(unseen_warning));
    Ok(parsed)
}

/// Moments at which the service is looked at: both ends and the middle of each window of turns, or both
/// ends of the one window.
fn moments(turns: Option<&Turns>, begin_ns: u64, end_ns: u64) -> Vec<u64> {
    let Some(turns) = turns else {
        return vec![begin_ns, end_ns];
    };
    let lengths = turns.lengths;
    let starts = (0..turns.order.len() as u64).map(|turn| begin_ns + turn * lengths.turn_ns());
    let of_turn = |start: u64| {
        let open = start + lengths.washout_ns;
        [open, open + lengths.window_ns / 2, open + lengths.window_ns]
    };
    starts.flat_map(of_turn).collect()
}

struct Seen<'a> {
    attach: &'a Attach,
    scraper: Scraper,
    moments: Vec<Moment>,
    /// The first reason for which a figure is missing, by its metric.
    missing: BTreeMap<String, String>,
}

impl<'a> Seen<'a> {
    fn new(attach: &'a Attach) -> Self {
        Seen {
            attach,
            scraper: Scraper::default(),
            moments: Vec::new(),
            missing: BTreeMap::new(),
        }
    }

    fn look(&mut self) -> Result<(), String> {
        self.moments.push(Moment::take(self.attach, &self.scraper)?);
        Ok(())
    }

    /// Figures by metric between two moments.
    fn between(&mut self, first: usize, last: usize) -> BTreeMap<String, f64> {
        let (Some(first), Some(last)) = (self.moments.get(first), self.moments.get(last)) else {
            return BTreeMap::new();
        };
        let figures = last.figures_since(first, self.attach);
        for (name, why) in figures.missing {
            self.missing.entry(name).or_insert(why);
        }
        figures.values
    }

    fn whole(mut self) -> Result<Parsed, String> {
        let figures = self.between(0, 1);
        self.into_parsed(Vec::new(), &figures)
    }

    fn by_turns(mut self, turns: &Turns) -> Result<Parsed, String> {
        let figures = (0..turns.order.len()).map(|turn| {
            let [open, middle, close] = [0, 1, 2].map(|moment| 3 * turn + moment);
            TurnFigures {
                whole: self.between(open, close),
                halves: [self.between(open, middle), self.between(middle, close)],
            }
        });
        let figures: Vec<TurnFigures> = figures.collect();
        // The value is that of each arm's windows.
        let names = figures.iter().flat_map(|turn| turn.whole.keys().cloned());
        let measured = names.map(|name| (name, 0.0)).collect();
        self.into_parsed(figures, &measured)
    }

    /// The figures of the trial. A metric that decides and has no figure at all fails it, with the reason.
    fn into_parsed(
        mut self,
        turns: Vec<TurnFigures>,
        measured: &BTreeMap<String, f64>,
    ) -> Result<Parsed, String> {
        let own = self
            .attach
            .metrics
            .iter()
            .map(|metric| metric.name.as_str());
        for name in own.chain(super::DECIDING.iter().copied()) {
            if let (None, Some(why)) = (measured.get(name), self.missing.get(name)) {
                return Err(format!("the metric `{name}` has no figure: {why}"));
            }
        }
        let last = self.moments.pop();
        let answer = |url: &str| last.as_ref()?.answer(url);
        let usual = super::METRICS
            .iter()
            .filter_map(|def| Some(def.to_measurement(*measured.get(def.name)?)));
        let own = self.attach.metrics.iter().filter_map(|metric| {
            let value = *measured.get(&metric.name)?;
            Some(metric.to_measurement(value, answer(&metric.prometheus)))
        });
        Ok(Parsed {
            metrics: usual.chain(own).collect(),
            turns,
            warnings: self
                .missing
                .iter()
                .map(|(name, why)| missing(name, why))
                .collect(),
            ..Parsed::default()
        })
    }
}

fn unseen_warning(rail: &Rail) -> Warning {
    Warning {
        severity: Severity::Caution,
        what: format!(
            "the rail `{}` watched over nothing: `{}` had no figure in any ten seconds",
            rail.written(),
            rail.metric()
        ),
        remedy: "a lower quantile, which needs fewer requests, or a rail on a count".to_owned(),
    }
}

fn missing(name: &str, why: &str) -> Warning {
    Warning {
        severity: Severity::Note,
        what: format!("a window has no figure of `{name}`: {why}"),
        remedy: "longer turns where requests are too few; else see the service's own log"
            .to_owned(),
    }
}
