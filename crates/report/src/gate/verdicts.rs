//! Changes with an interval: of effects, and of levels.

use super::events::check_events;
use super::{Call, Check};
use crate::compare::levels;
use crate::compare::pairing::Matched;
use crate::quantity::{format_change, format_interval, with_unit};
use crate::shift::Shift;
use crate::table::{CellTable, Comparison, Table};
use model::Better;
use results::ResultSet;

/// Is any arm compared with a baseline?
pub fn has_effects(results: &ResultSet) -> bool {
    let table = Table::verdicts_only(results);
    table.arms.iter().any(|arm| !arm.baseline && !arm.aa)
}

/// Change of the effect of each arm, for all that decides in the stored run.
pub fn check_effects(matched: &Matched, stored: &ResultSet, new: &ResultSet) -> Vec<Check> {
    let tables = [stored, new].map(Table::verdicts_only);
    let smallest = stored.experiment.stop.smallest_effect;
    let mut checks = Vec::new();
    for &(then, now) in &matched.cells {
        let (then, now) = (&tables[0].cells[then], &tables[1].cells[now]);
        let judged = then.comparisons.iter().filter(|c| c.deciding && !c.aa);
        checks.extend(judged.map(|c| effect(&then.name, c, counterpart(now, c), smallest)));
    }
    checks.extend(check_events(&tables[0], &tables[1]));
    checks
}

fn counterpart<'a>(cell: &'a CellTable, of: &Comparison) -> Option<&'a Comparison> {
    let mut all = cell.comparisons.iter();
    all.find(|c| c.arm == of.arm && c.metric == of.metric)
}

/// A figure of one of them has no ratio.
fn is_of_differences(then: &Comparison, now: Option<&Comparison>) -> bool {
    then.difference.is_some() || now.is_some_and(|now| now.difference.is_some())
}

/// In the unit of the metric; of runs of which one has ratios, too.
fn effect_in_unit(cell: &str, then: &Comparison, now: Option<&Comparison>, smallest: f64) -> Check {
    let of = |comparison: &Comparison| Shift::of_effect(comparison, smallest);
    let (before, after) = (of(then), now.and_then(of));
    let shown = |shift: &Option<Shift>| shift.as_ref().map(Shift::in_words);
    let told = |shift| shown(shift).unwrap_or_else(|| "no figure".to_owned());
    let figures = format!("{}, now {}", told(&before), told(&after));
    let difference = before
        .zip(after)
        .map(|(then, now)| Shift::between_runs(&then, &now));
    Check {
        cell: cell.to_owned(),
        metric: then.metric.clone(),
        better: then.better,
        arm: then.arm.clone(),
        ratio: None,
        low: None,
        high: None,
        call: call_in_unit(difference.as_ref(), then.better),
        difference,
        figures,
    }
}

/// The interval holds wherever both intervals hold: no assumption, and wider than needed.
fn effect(cell: &str, then: &Comparison, now: Option<&Comparison>, smallest: f64) -> Check {
    if is_of_differences(then, now) {
        return effect_in_unit(cell, then, now, smallest);
    }
    let bounds = |c: &Comparison| c.low.zip(c.high);
    let interval = bounds(then).zip(now.and_then(bounds));
    let interval =
        interval.map(|((low, high), (new_low, new_high))| (new_low / high, new_high / low));
    let ratio = then.ratio.zip(now.and_then(|c| c.ratio));
    Check {
        cell: cell.to_owned(),
        metric: then.metric.clone(),
        better: then.better,
        arm: then.arm.clone(),
        ratio: ratio.map(|(then, now)| now / then),
        low: interval.map(|i| i.0),
        high: interval.map(|i| i.1),
        difference: None,
        call: call_ratio(interval, then.better, smallest),
        figures: format!("{}, now {}", shown(Some(then)), shown(now)),
    }
}

fn shown(comparison: Option<&Comparison>) -> String {
    let bounds = |c: &Comparison| c.low.zip(c.high).map(|(l, h)| format_interval(l, h));
    match comparison.and_then(|c| Some((c.ratio?, bounds(c)))) {
        Some((ratio, Some(interval))) => format!("{} {interval}", format_change(ratio)),
        Some((ratio, None)) => format_change(ratio),
        None => "no figure".to_owned(),
    }
}

/// Change of the bare figures of each arm.
pub fn check_levels(matched: &Matched, stored: &ResultSet, new: &ResultSet) -> Vec<Check> {
    let smallest = stored.experiment.stop.smallest_effect;
    let all = levels::compare_levels(matched, stored, new, false);
    let checks = all.into_iter().filter_map(|level| {
        let better = better_direction(stored, &level.metric)?;
        let interval = level.low.zip(level.high);
        let shown = |value| with_unit(value, &level.unit);
        Some(Check {
            figures: format!(
                "{} in {} trials, now {} in {}",
                shown(level.a_median),
                level.a_trials,
                shown(level.b_median),
                level.b_trials
            ),
            cell: level.cell,
            metric: level.metric,
            better,
            arm: level.arm,
            ratio: level.ratio,
            low: level.low,
            high: level.high,
            call: match &level.difference {
                Some(difference) => call_in_unit(Some(difference), better),
                None => call_ratio(interval, better, smallest),
            },
            difference: level.difference,
        })
    });
    checks.collect()
}

/// Side of a metric that is better; none where neither is.
pub fn better_direction(results: &ResultSet, metric: &str) -> Option<Better> {
    let mut trials = results.trials.iter();
    let measured = trials.find_map(|stored| stored.trial.metric(metric))?;
    (measured.better != Better::Neither).then_some(measured.better)
}

/// The call on a ratio. The smallest effect is as wide in both directions on the scale of ratios.
pub fn call_ratio(interval: Option<(f64, f64)>, better: Better, smallest: f64) -> Call {
    called(interval, (1.0 / (1.0 + smallest), 1.0 + smallest), better)
}

/// The call on a change in the unit of the metric.
fn call_in_unit(difference: Option<&Shift>, better: Better) -> Call {
    let smallest = difference.map_or(0.0, |shift| shift.smallest_effect);
    called(
        difference.and_then(Shift::interval_bounds),
        (-smallest, smallest),
        better,
    )
}

/// The call on an interval by the changes that are of no interest.
fn called(interval: Option<(f64, f64)>, (least, most): (f64, f64), better: Better) -> Call {
    let Some((low, high)) = interval else {
        return Call::Unknown;
    };
    let (fell, rose) = (high < least, low > most);
    let inside = low >= least && high <= most;
    match (fell, rose, better) {
        (true, _, Better::Higher) | (_, true, Better::Lower) => Call::Regression,
        (true, _, Better::Lower) | (_, true, Better::Higher) => Call::Improvement,
        _ if inside => Call::Same,
        _ => Call::Unknown,
    }
}
