//! Changes in the unit of a metric, where a figure is 0 or below it and has no ratio: of an effect, of an
//! effect between two runs, and of a level.

use crate::quantity::signed_with_unit;
use crate::table::Comparison;
use model::{Own, Scale};
use results::ResultSet;
use serde::Serialize;

/// Change in the unit of a metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shift {
    /// Centre of the change.
    pub value: f64,
    /// Lower end of the interval; none where there is none to give.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// Smallest change that is of interest.
    pub smallest_effect: f64,
    /// Unit of all of them.
    pub unit: String,
}

impl Shift {
    /// Effect of an arm over its baseline, also of one that is compared by ratios; `smallest` is that of
    /// ratios.
    pub fn of_effect(comparison: &Comparison, smallest: f64) -> Option<Self> {
        let shift = |value, low, high, smallest_effect| Shift {
            value,
            low,
            high,
            smallest_effect,
            unit: comparison.unit.clone(),
        };
        if let Some(found) = &comparison.difference {
            return Some(shift(
                found.value,
                found.low,
                found.high,
                found.smallest_effect,
            ));
        }
        let level = comparison.baseline_median.unwrap_or(0.0).abs();
        let params = stats::Params {
            alpha: 1.0 - comparison.confidence,
            smallest_effect: smallest * level,
            better: comparison.better,
        };
        let blocks = comparison.block_ratios.iter();
        let xs: Vec<f64> = blocks.map(|block| block.arm - block.baseline).collect();
        let found = stats::differences::judge(&xs, &params).difference?;
        let [low, high] = [
            found.interval.map(|interval| interval.low),
            found.interval.map(|interval| interval.high),
        ];
        Some(shift(found.value, low, high, found.smallest))
    }

    /// Change of an effect from one run to another. Its interval holds wherever both of theirs hold.
    pub fn between_runs(then: &Shift, now: &Shift) -> Self {
        let gap = |now: Option<f64>, then: Option<f64>| Some(now? - then?);
        Shift {
            value: now.value - then.value,
            low: gap(now.low, then.high),
            high: gap(now.high, then.low),
            ..then.clone()
        }
    }

    /// Both ends of the interval.
    pub fn interval_bounds(&self) -> Option<(f64, f64)> {
        self.low.zip(self.high)
    }

    /// `+3`, `-200 us`.
    pub fn format_change(&self) -> String {
        signed_with_unit(self.value, &self.unit)
    }

    /// `[-219 us, -181 us]`.
    pub fn format_interval(&self) -> Option<String> {
        let (low, high) = self.interval_bounds()?;
        let [low, high] = [low, high].map(|end| signed_with_unit(end, &self.unit));
        Some(format!("[{low}, {high}]"))
    }

    /// The change with its interval, where there is one.
    pub fn in_words(&self) -> String {
        match self.format_interval() {
            Some(interval) => format!("{} {interval}", self.format_change()),
            None => self.format_change(),
        }
    }
}

/// Scale of the bare figures of a metric: the difference where the experiment says so, and where one of
/// them is 0 or below it.
pub fn choose_scale(own: Option<&Own>, figures: &[Vec<f64>; 2]) -> Scale {
    let is_said = own.is_some_and(|own| own.scale == Scale::Difference);
    match is_said || figures.iter().flatten().any(|value| *value <= 0.0) {
        true => Scale::Difference,
        false => Scale::Ratio,
    }
}

/// Declaration of a metric that the experiment defines.
pub fn find_declaration<'a>(results: &'a ResultSet, metric: &str) -> Option<&'a Own> {
    results::sample::find_declaration(results.trials.iter().map(|stored| &stored.trial), metric)
}
