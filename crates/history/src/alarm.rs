//! Alarms: changes of a series that were told, and what became of them.

use crate::digest::hash_value;
use crate::series::{Series, SeriesKey};
use jiff::Timestamp;
use model::Better;
use serde::{Deserialize, Serialize};
use stats::change::{Change, Shape};

/// Direction of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Turn {
    /// The arm became worse against its anchor.
    Worse,
    /// It became better.
    Better,
}

impl Turn {
    /// Word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Turn::Worse => "worse",
            Turn::Better => "better",
        }
    }

    /// Direction of a change of the logarithm of a ratio.
    pub fn from_change(log: f64, better: Better) -> Turn {
        match (log > 0.0) == (better == Better::Higher) {
            true => Turn::Better,
            false => Turn::Worse,
        }
    }
}

/// A change of a series, as it was told for the first time. It is never changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alarm {
    /// Hash of series and runs.
    pub id: String,
    /// Hash of the series.
    pub series: String,
    /// Key that its figures share.
    pub key: SeriesKey,
    /// Title of the series.
    pub title: String,
    /// Last run before the change.
    pub before: String,
    /// First run that has it.
    pub first: String,
    /// Run with which it was seen.
    pub seen: String,
    /// Beginning of the run with which it was seen.
    pub seen_at: Timestamp,
    /// True if it came little by little.
    pub is_drift: bool,
    /// Better or worse.
    pub turn: Turn,
    /// Size: the ratio after over the ratio before.
    pub change: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Evidence with which it was seen.
    pub evidence: f64,
    /// Moment at which it was told.
    pub raised: Timestamp,
}

impl Alarm {
    /// The alarm for a change of a series.
    pub fn from_change(series: &Series, change: &Change, now: Timestamp) -> Alarm {
        let run = |index: usize| series.points[index].0;
        let (first, seen) = (run(change.first), run(change.seen));
        let better = series.points[change.first].1.better;
        Alarm {
            id: hash_value(&(&series.id, &first.id, &seen.id)),
            series: series.id.clone(),
            key: series.key.clone(),
            title: series.title(),
            before: run(change.first.saturating_sub(1)).id.clone(),
            first: first.id.clone(),
            seen: seen.id.clone(),
            seen_at: seen.created,
            is_drift: change.shape == Shape::Drift,
            turn: Turn::from_change(change.size, better),
            change: change.size.exp(),
            low: change.interval.low.exp(),
            high: change.interval.high.exp(),
            evidence: change.evidence,
            raised: now,
        }
    }
}

/// How an alarm stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Nobody has looked.
    Open,
    /// Both versions were measured beside each other, and differ as it says.
    Confirmed,
    /// They were measured, and do not.
    NotConfirmed,
    /// One of the versions cannot be made any more.
    CannotBeBuilt,
    /// Somebody closed it.
    Closed,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Outcome; 5] = [
        Outcome::Open,
        Outcome::Confirmed,
        Outcome::NotConfirmed,
        Outcome::CannotBeBuilt,
        Outcome::Closed,
    ];

    /// Word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Open => "open",
            Outcome::Confirmed => "confirmed",
            Outcome::NotConfirmed => "not confirmed",
            Outcome::CannotBeBuilt => "cannot be built",
            Outcome::Closed => "closed",
        }
    }
}

/// The end of an alarm, or a measurement that left it open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Hash of the alarm.
    pub alarm: String,
    /// How it stands now.
    pub outcome: Outcome,
    /// Moment.
    pub at: Timestamp,
    /// Reason in words.
    pub why: String,
    /// Results directory of the measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<String>,
}

/// An alarm and its end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tracked {
    /// The alarm.
    #[serde(flatten)]
    pub alarm: Alarm,
    /// How it stands.
    pub outcome: Outcome,
    /// Measurements of both versions that did not decide.
    pub attempts: u32,
    /// Its end; none while it is open.
    pub end: Option<End>,
}

impl Tracked {
    /// True for an arm that became worse, unless that was found to be wrong or was closed.
    pub fn is_regression(&self) -> bool {
        let stands = matches!(self.outcome, Outcome::Open | Outcome::Confirmed);
        stands && self.alarm.turn == Turn::Worse
    }
}
