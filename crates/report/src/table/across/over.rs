//! The change over machines (or runs) in general, of which those that were measured are a sample.

use crate::quantity::{
    describe_difference, describe_differences, difference_in_unit, format_change, format_interval,
    signed_with_unit,
};
use crate::shift::Shift;
use crate::table::{Comparison, Verdict, log_ratio};
use serde::Serialize;
use stats::Interval;
use stats::population::{Member, are_apart, estimate_population};

/// Mean of the changes, each machine counted once, with what it tells of others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Over {
    /// Geometric mean of ratios, or mean of differences.
    pub value: f64,
    /// Its interval; none with fewer than three machines, or without scatter.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Interval in which the next machine lies.
    pub next_low: Option<f64>,
    pub next_high: Option<f64>,
    /// Standard deviation of what the machines differ beyond the scatter of their blocks: of logarithms of ratios, or in
    /// the unit.
    pub between: Option<f64>,
    /// The intervals of two machines have nothing in common, each at its part of the error; none where that cannot be told.
    pub differ: Option<bool>,
    /// Machines that have a change.
    pub machines: usize,
    /// Unit, where these are differences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

impl Over {
    /// The change over machines on which these were measured, as ratios or in this unit.
    pub(super) fn from_parts(parts: &[&Comparison], unit: Option<&str>) -> Option<Over> {
        let members = parts.iter().filter_map(|part| member(part, unit.is_some()));
        let (members, shifts): (Vec<Member>, Vec<Vec<f64>>) = members.unzip();
        let in_turns = parts.iter().any(|part| part.in_turns.is_some());
        let alpha = 1.0 - parts.first()?.confidence;
        let found = estimate_population(&members, alpha).filter(|_| members.len() > 1)?;
        let scaled = |value: f64| if unit.is_some() { value } else { value.exp() };
        let ends = |of: Option<Interval>| {
            let ends = of.map(|i| (scaled(i.low), scaled(i.high)));
            ends.filter(|(_, high)| high.is_finite()).unzip()
        };
        let ((low, high), (next_low, next_high)) = (ends(found.interval), ends(found.next));
        Some(Over {
            value: scaled(found.mean),
            low,
            high,
            next_low,
            next_high,
            between: found.between,
            // Pairs of one process share its luck.
            differ: are_apart(&shifts, alpha).filter(|_| !in_turns),
            machines: members.len(),
            unit: unit.map(str::to_owned),
        })
    }

    /// The interval over machines says what the verdict says of the blocks.
    pub(super) fn supports(&self, all: &Comparison, smallest: f64) -> bool {
        let Some((low, high)) = self.low.zip(self.high) else {
            return false;
        };
        let (least, none, most) = match self.unit {
            Some(_) => {
                let shift = Shift::of_effect(all, smallest);
                let smallest = shift.map_or(0.0, |shift| shift.smallest_effect);
                (-smallest, 0.0, smallest)
            }
            None => (1.0 / (1.0 + smallest), 1.0, 1.0 + smallest),
        };
        let is_up = match &all.difference {
            Some(found) => found.value > 0.0,
            None => all.ratio.is_some_and(|ratio| ratio > 1.0),
        };
        match all.verdict {
            Verdict::Better | Verdict::Worse if is_up => low > none,
            Verdict::Better | Verdict::Worse => high < none,
            Verdict::Same => low > least && high < most,
            Verdict::Unknown => true,
        }
    }

    /// `-2.9% [-9.7%, +4.4%]`.
    pub(crate) fn format_change(&self) -> String {
        let change = match &self.unit {
            Some(unit) => signed_with_unit(self.value, unit),
            None => format_change(self.value),
        };
        match self.low.zip(self.high) {
            Some(ends) => format!("{change} {}", self.format_ends(ends)),
            None => change,
        }
    }

    /// `[-19.7%, +14.4%]`, of the next machine.
    pub(crate) fn format_next(&self) -> Option<String> {
        let ends = self.next_low.zip(self.next_high)?;
        Some(self.format_ends(ends))
    }

    fn format_ends(&self, (low, high): (f64, f64)) -> String {
        match &self.unit {
            Some(unit) => {
                let [low, high] = [low, high].map(|end| signed_with_unit(end, unit));
                format!("[{low}, {high}]")
            }
            None => format_interval(low, high),
        }
    }

    /// `44 % lower (30 to 56 %)`, and the next machine: `20 to 62 %`. None without an interval.
    pub(crate) fn in_words(&self) -> Option<(String, String)> {
        let (ends, next) = (self.low.zip(self.high)?, self.next_low.zip(self.next_high)?);
        let words = |ends: (f64, f64)| match &self.unit {
            Some(unit) => {
                let [low, high] = [ends.0, ends.1].map(|end| signed_with_unit(end, unit));
                format!("{low} to {high}")
            }
            None => describe_differences(ends.0, ends.1),
        };
        let change = match &self.unit {
            Some(unit) => difference_in_unit(self.value, unit),
            None => describe_difference(self.value),
        };
        Some((format!("{change} ({})", words(ends)), words(next)))
    }
}

/// The change of a part with its blocks, and with its standard error where these are whole trials.
fn member(part: &Comparison, in_unit: bool) -> Option<(Member, Vec<f64>)> {
    let blocks = part.block_ratios.iter();
    let (value, shifts): (f64, Vec<f64>) = match (&part.difference, in_unit) {
        (Some(found), _) => {
            let shifts = found.blocks.iter().map(|block| block.difference);
            (found.value, shifts.collect())
        }
        (None, true) => {
            let shift = Shift::of_effect(part, 0.0)?;
            let shifts = blocks.map(|block| block.arm - block.baseline);
            (shift.value, shifts.collect())
        }
        (None, false) => (
            part.ratio?.ln(),
            blocks.map(|block| block.ratio.ln()).collect(),
        ),
    };
    let error = log_ratio::estimate_error(&shifts).filter(|_| part.in_turns.is_none());
    let member = Member { value, error };
    value.is_finite().then_some((member, shifts))
}
