//! Rare events of a new run against those of a stored one.

use super::{Call, Check};
use crate::table::across::EventComparison;
use crate::table::{Table, Verdict};
use model::Better;

/// Events of each arm that the new run counted, by how they are beside those of its baseline.
pub fn check_events(stored: &Table, new: &Table) -> Vec<Check> {
    let judged = new.across.events.iter().filter(|c| !c.aa);
    let check = |now: &EventComparison| {
        let mut before = stored.across.events.iter();
        let is_same =
            |c: &&EventComparison| (&c.cell, &c.event, &c.arm) == (&now.cell, &now.event, &now.arm);
        check_event(before.find(is_same), now)
    };
    judged.map(check).collect()
}

fn check_event(then: Option<&EventComparison>, now: &EventComparison) -> Check {
    let interval = then.and_then(|then| {
        let low = now.low? / then.high?;
        Some((low, now.high? / then.low?))
    });
    let counts =
        |c: &EventComparison| format!("{} against {}", c.arm_events.count, c.baseline_events.count);
    let before = then.map_or_else(|| "not counted".to_owned(), counts);
    Check {
        cell: now.cell.clone(),
        metric: now.event.clone(),
        better: Better::Lower,
        arm: now.arm.clone(),
        ratio: then
            .and_then(|then| Some(now.ratio? / then.ratio?))
            .filter(|ratio| ratio.is_finite()),
        low: interval.map(|ends| ends.0),
        high: interval.map(|ends| ends.1),
        difference: None,
        call: call(then, now, interval),
        figures: format!("{before}, now {}", counts(now)),
    }
}

/// An arm that was not known to have more events, and has more now, became worse; where both runs say so, the
/// ratios tell.
fn call(
    then: Option<&EventComparison>,
    now: &EventComparison,
    interval: Option<(f64, f64)>,
) -> Call {
    let before = then.map_or(Verdict::Unknown, |then| then.verdict);
    match (before, now.verdict, interval) {
        (_, _, Some((low, _))) if low > 1.0 => Call::Regression,
        (_, _, Some((_, high))) if high < 1.0 => Call::Improvement,
        (Verdict::Same, Verdict::Same, _) => Call::Same,
        (Verdict::Worse, Verdict::Worse, _) | (Verdict::Better, Verdict::Better, _) => {
            Call::Unknown
        }
        (_, Verdict::Worse, _) | (Verdict::Better, Verdict::Same, _) => Call::Regression,
        (_, Verdict::Better, _) | (Verdict::Worse, Verdict::Same, _) => Call::Improvement,
        _ => Call::Unknown,
    }
}
