//! A bound of a latency that trials of the baseline say, before the first block: `p99.9 of the baseline`,
//! `3 x p99 of the baseline`.

use crate::error::PlanError;
use ::load::kind;
use model::{OfBaseline, RareEvent, Workload};

/// Words behind the quantile.
const OF_BASELINE: &str = "of the baseline";
const EXAMPLES: &str =
    "write: request > p99.9 of the baseline, or request > 3 x p99 of the baseline";
/// Largest factor.
const MOST_TIMES: u32 = 1_000;

/// The rule that the words of a bound are; `None` where they are none, but a time.
pub(crate) fn parse_rule(bound: &str) -> Option<Result<OfBaseline, PlanError>> {
    let words = bound.strip_suffix(OF_BASELINE)?.trim();
    let (times, quantile) = match words.split_once(['x', '*']) {
        // The word `max` has an x as well.
        Some((times, quantile)) if !times.trim().starts_with("ma") => (times.trim(), quantile),
        _ => ("1", words),
    };
    let read = times.parse().ok().filter(|n| (1..=MOST_TIMES).contains(n));
    let Some(times) = read else {
        let what = format!("`{times}` is no whole number from 1 to {MOST_TIMES}");
        return Some(Err(PlanError::new(what).with_help(EXAMPLES)));
    };
    let quantile = quantile.trim().replace('.', "");
    let is_quantile = quantile == "max"
        || quantile
            .strip_prefix('p')
            .is_some_and(|digits| digits.parse::<u32>().is_ok());
    Some(match is_quantile {
        true => Ok(OfBaseline { quantile, times }),
        false => {
            let what = format!("`{words}` names no quantile of the baseline");
            Err(PlanError::new(what).with_help(EXAMPLES))
        }
    })
}

/// Checks that the workload measures the quantile of which the bound is a multiple.
pub(crate) fn check_rule(workload: &Workload, event: &RareEvent) -> Result<(), PlanError> {
    let Some((metric, _)) = event.when.metric_of_baseline() else {
        return Ok(());
    };
    let Some(def) = kind::find(workload.kind.name()) else {
        return Ok(());
    };
    if def.metrics.iter().any(|of_kind| of_kind.name == metric) {
        return Ok(());
    }
    let log = metric.rsplit_once('_').map_or("", |(log, _)| log);
    let is_of_log = |name: &&str| {
        let end = name.strip_prefix(log).and_then(|end| end.strip_prefix('_'));
        end.is_some_and(|end| end == "max" || end.starts_with('p'))
    };
    let known = def.metrics.iter().map(|metric| metric.name);
    let known: Vec<&str> = known.filter(is_of_log).collect();
    let what = format!(
        "event `{}`: the workload `{}` does not measure {metric}",
        event.name, workload.name
    );
    Err(PlanError::new(what).with_help(format!("it measures {}", known.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Option<Result<(String, u32), String>> {
        let read = parse_rule(text)?;
        Some(
            read.map(|rule| (rule.quantile, rule.times))
                .map_err(|e| e.to_string()),
        )
    }

    #[test]
    fn a_bound_is_a_quantile_of_the_baseline_or_a_multiple_of_it() {
        for (text, quantile, times) in [
            ("p99.9 of the baseline", "p999", 1),
            ("max of the baseline", "max", 1),
            ("3 x p99 of the baseline", "p99", 3),
            ("2x max of the baseline", "max", 2),
        ] {
            assert_eq!(rule(text), Some(Ok((quantile.to_owned(), times))), "{text}");
        }
        assert_eq!(rule("100ms"), None);
        for (text, why) in [
            ("0 x p99 of the baseline", "no whole number from 1"),
            ("p of the baseline", "names no quantile"),
            ("mean of the baseline", "names no quantile"),
        ] {
            let error = rule(text).unwrap().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
