//! Rare events of each arm beside those of its baseline.

use crate::table::{CellTable, Verdict};
use judge::events::{judge_events, pair_events};
use judge::{Family, find_survivors, is_aa};
use model::{RareEvent, Trial, When};
use results::ResultSet;
use serde::Serialize;
use stats::events::{Counted, Judgement};

/// Share of all requests from which on an event is none that is rare.
const FREQUENT: f64 = 0.5;
/// Requests of an arm over those of its baseline that are as good as the same.
const EVEN: std::ops::Range<f64> = 0.8..1.25;
/// Messages of an arm that are kept.
const MOST_MESSAGES: usize = 5;

/// An event of one arm and of its baseline in one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventComparison {
    pub cell: String,
    /// Name of the event.
    pub event: String,
    /// Words for an arm that had it, for sentences.
    #[serde(skip)]
    pub past: Option<Past>,
    pub arm: String,
    pub baseline: String,
    /// True if the arm repeats the baseline.
    pub aa: bool,
    /// True of an event that ends its window, such as an ejection.
    pub ends_window: bool,
    pub arm_events: EventCount,
    pub baseline_events: EventCount,
    /// Rate of the arm over that of the baseline; none where the baseline had no event.
    pub ratio: Option<f64>,
    /// Lower end of its interval; none while there is none.
    pub low: Option<f64>,
    /// Upper end; none while there is none, as where the baseline had no event.
    pub high: Option<f64>,
    pub confidence: f64,
    /// Evidence against "the label makes no difference".
    pub e_value: f64,
    pub blocks: u32,
    pub verdict: Verdict,
    /// Verdict of earlier blocks that all of them together no longer support.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withdrawn: Option<Verdict>,
    /// True if the call holds among those of all events; none where nothing is called.
    pub survives_ebh: Option<bool>,
    /// For `unknown`: blocks in all after which a call is to be expected if the rates stay.
    pub blocks_needed: Option<u32>,
    /// Time in nanoseconds that those that are missing are likely to take.
    pub more_ns: Option<f64>,
    /// Messages of the kernel or a program about the events of the arm, each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<String>,
}

/// Words for an arm that had an event: `thrown out`, `was`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Past {
    pub words: &'static str,
    pub auxiliary: &'static str,
}

/// Events of one arm in the blocks of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EventCount {
    /// Number of events; a cluster is one.
    pub count: u32,
    /// Time in which they could happen.
    pub exposure_ns: f64,
    pub per_minute: Option<f64>,
    /// Where there was no event: the rate that it is below, at the confidence of the report.
    pub below_per_minute: Option<f64>,
    /// Requests that could have been such events; none of what is not of requests.
    pub requests: Option<u64>,
    /// Share of the requests that were such events, each for itself; none of what is not of requests.
    pub share_of_requests: Option<f64>,
}

impl EventComparison {
    /// Requests of the arm over those of its baseline in the same time, where that is far from 1: the one that
    /// does more has more occasions.
    pub fn uneven_requests(&self) -> Option<f64> {
        let rate = |side: &EventCount| Some(side.requests? as f64 / side.exposure_ns);
        let ratio = rate(&self.arm_events)? / rate(&self.baseline_events)?;
        (!EVEN.contains(&ratio) && ratio.is_finite()).then_some(ratio)
    }

    /// More than half of all requests are such events, under either arm.
    pub fn is_frequent(&self) -> bool {
        let sides = [self.arm_events, self.baseline_events];
        let mut shares = sides.iter().filter_map(|side| side.share_of_requests);
        shares.any(|share| share > FREQUENT)
    }
}

/// All events of all cells, by cell, event and arm.
pub fn compare_events(results: &ResultSet, cells: &[CellTable]) -> Vec<EventComparison> {
    let events = &results.experiment.observe.events;
    let mut all: Vec<EventComparison> = cells
        .iter()
        .enumerate()
        .flat_map(|(cell, table)| {
            let of_event = move |event| compare_event(results, (cell, table), event);
            events.iter().flat_map(of_event)
        })
        .collect();
    mark_survivors(&mut all, results);
    all
}

/// Events are a family of their own: they make no call on a metric harder.
fn mark_survivors(all: &mut [EventComparison], results: &ResultSet) {
    let members: Vec<(Option<Family>, f64)> = all
        .iter()
        .map(|c| {
            let family = Family::for_comparison(false, c.aa, c.blocks as usize);
            (family, c.e_value)
        })
        .collect();
    let survive = find_survivors(&members, &results.experiment.stop);
    for (comparison, survives) in all.iter_mut().zip(survive) {
        comparison.survives_ebh = survives.filter(|_| comparison.verdict.is_call());
    }
}

fn compare_event(
    results: &ResultSet,
    (cell, table): (usize, &CellTable),
    event: &RareEvent,
) -> Vec<EventComparison> {
    let experiment = &results.experiment;
    let baseline = experiment.baseline;
    let arms = (0..experiment.arms.len()).filter(|arm| *arm != baseline);
    arms.filter_map(|arm| {
        let blocks = pair_events(trials(results), cell, event, [arm, baseline]);
        if blocks.is_empty() {
            return None;
        }
        let merged = results.manifest.sources.len() > 1;
        let judged = judge_events(&blocks, event, &experiment.stop, merged);
        let alpha = judge::error_rate(&experiment.stop);
        let side = |arm, counted| side(results, cell, event, arm, counted, alpha);
        let missing = |needed: u32| f64::from(needed.saturating_sub(judged.blocks));
        Some(EventComparison {
            cell: table.name.clone(),
            event: event.name.clone(),
            past: past_words(event),
            arm: experiment.arms[arm].name.clone(),
            baseline: experiment.arms[baseline].name.clone(),
            aa: is_aa(experiment, arm),
            ends_window: event.when.ends_window(),
            arm_events: side(arm, judged.arm),
            baseline_events: side(baseline, judged.baseline),
            ratio: judged.ratio,
            low: judged.low,
            high: judged.high,
            confidence: experiment.stop.confidence,
            e_value: judged.e_value,
            blocks: judged.blocks,
            verdict: judged.supported_verdict(),
            withdrawn: withdrawn(&judged),
            survives_ebh: None,
            blocks_needed: judged.blocks_needed,
            more_ns: judged
                .blocks_needed
                .map(missing)
                .zip(table.block_ns)
                .map(|(n, ns)| n * ns / results.count_at_once() as f64),
            messages: messages(results, cell, event, arm),
        })
    })
    .collect()
}

fn withdrawn(judged: &Judgement) -> Option<Verdict> {
    (!judged.upheld).then_some(judged.verdict)
}

fn trials(results: &ResultSet) -> impl Iterator<Item = &Trial> {
    results.trials.iter().map(|stored| &stored.trial)
}

fn of_arm(results: &ResultSet, cell: usize, arm: usize) -> impl Iterator<Item = &Trial> {
    trials(results)
        .filter(move |trial| (trial.place.cell, trial.place.arm) == (cell, arm) && trial.is_ok())
}

fn side(
    results: &ResultSet,
    cell: usize,
    event: &RareEvent,
    arm: usize,
    counted: Counted,
    alpha: f64,
) -> EventCount {
    let minute = |per_sec: f64| per_sec * 60.0;
    let below = stats::events::bound_without_event(counted.exposure, alpha);
    let (events, requests) = count_requests(of_arm(results, cell, arm), event);
    EventCount {
        count: counted.count,
        exposure_ns: counted.exposure * 1e9,
        per_minute: counted.rate().map(minute),
        below_per_minute: below.filter(|_| counted.count == 0).map(minute),
        requests: (requests > 0).then_some(requests),
        share_of_requests: (requests > 0).then(|| events as f64 / requests as f64),
    }
}

/// Events, each for itself, and the requests that they are among.
fn count_requests<'a>(trials: impl Iterator<Item = &'a Trial>, event: &RareEvent) -> (u64, u64) {
    let found = trials.filter_map(|trial| {
        let happened = trial.find_event(&event.name)?;
        Some((happened.count(), happened.requests?))
    });
    found.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
}

fn messages(results: &ResultSet, cell: usize, event: &RareEvent, arm: usize) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let said = of_arm(results, cell, arm).filter_map(|trial| trial.find_event(&event.name));
    for message in said.flat_map(|happened| &happened.messages) {
        let is_alike = |known: &String| crate::fold::is_alike(known, message);
        if found.len() < MOST_MESSAGES && !found.iter().any(is_alike) {
            found.push(message.clone());
        }
    }
    found
}

/// Words for an arm that had such an event, for sentences.
fn past_words(event: &RareEvent) -> Option<Past> {
    let (words, auxiliary) = match event.when {
        When::Ejected => ("thrown out", "was"),
        When::ErrorExit => ("ended by itself", "did"),
        When::GuestDeath => ("brought its guest down", "did"),
        _ => return None,
    };
    Some(Past { words, auxiliary })
}
