//! The axis of the small interval plots: ratios, 1 in the middle, positions in
//! percent of the width. One axis for a whole report, so that intervals can be
//! compared by eye.
//!
//! The axis is linear in ln(ratio) within about one smallest effect and
//! logarithmic beyond (asinh), so that 2 % and a factor of four can both be seen.

use crate::render::chart::tick_label;
use crate::table::Comparison;

/// Never narrower than this many smallest effects to each side.
const NARROWEST_IN_EFFECTS: f64 = 4.0;
/// Never wider than this factor to each side; what is beyond is cut.
const WIDEST: f64 = 10.0;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// ln of the ratio at the right edge.
    half: f64,
    /// ln of 1 + the smallest effect.
    effect: f64,
}

/// Marks in the plot of one comparison; positions in percent.
#[derive(Debug, Clone, PartialEq)]
pub struct IntervalPlot {
    pub band_left: String,
    pub band_width: String,
    pub ratio: Option<String>,
    pub low: Option<String>,
    pub high: Option<String>,
    pub cut_left: bool,
    pub cut_right: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    pub at: String,
    pub label: String,
}

impl Scale {
    /// Wide enough for all intervals, within reason.
    pub fn fit_to<'a>(comparisons: impl Iterator<Item = &'a Comparison>, effect: f64) -> Self {
        let seen = comparisons.flat_map(|c| [c.low, c.ratio, c.high]).flatten();
        let farthest = seen.map(|ratio| ratio.ln().abs()).fold(0.0, f64::max);
        let effect = effect.ln_1p();
        let narrowest = NARROWEST_IN_EFFECTS * effect;
        Scale {
            half: (1.1 * farthest).clamp(narrowest, WIDEST.ln().max(narrowest)),
            effect,
        }
    }

    fn position(&self, ratio: f64) -> f64 {
        self.position_of_ln(ratio.ln())
    }

    fn position_of_ln(&self, ln: f64) -> f64 {
        let far = |ln: f64| (ln / self.effect).asinh();
        let at = 50.0 + 50.0 * far(ln) / far(self.half);
        at.clamp(0.0, 100.0)
    }

    /// Lower end, centre and upper end of a comparison as logarithms. A difference has the place of the
    /// ratio that is as many smallest effects away from no change.
    fn ends(&self, c: &Comparison) -> [Option<f64>; 3] {
        let Some(found) = &c.difference else {
            return [c.low, c.ratio, c.high].map(|ratio| Some(ratio?.ln()));
        };
        let smallest = found.smallest_effect;
        [found.low, Some(found.value), found.high]
            .map(|value| Some(self.ln_of_difference(value?, smallest)))
    }

    /// Nothing over nothing is no change; anything over nothing is beyond the edge.
    fn ln_of_difference(&self, value: f64, smallest: f64) -> f64 {
        let effects = value / smallest;
        match effects.is_nan() {
            true => 0.0,
            false => effects * self.effect,
        }
    }

    pub fn plot_interval(&self, c: &Comparison) -> IntervalPlot {
        let [low, centre, high] = self.ends(c);
        let (left, right) = (
            self.position_of_ln(-self.effect),
            self.position_of_ln(self.effect),
        );
        let beyond = |side: f64| {
            let mut shown = [low, centre, high].into_iter().flatten();
            shown.any(|ln| ln * side > self.half)
        };
        let at = |ln: Option<f64>| ln.map(|ln| percent(self.position_of_ln(ln)));
        IntervalPlot {
            band_left: percent(left),
            band_width: percent(right - left),
            ratio: at(centre),
            low: at(low),
            high: at(high),
            cut_left: beyond(-1.0),
            cut_right: beyond(1.0),
        }
    }

    /// Round changes, far enough apart for their labels.
    pub fn axis_ticks(&self) -> Vec<Tick> {
        const DOWN: [f64; 8] = [0.1, 0.2, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99];
        const UP: [f64; 8] = [10.0, 5.0, 2.0, 1.2, 1.1, 1.05, 1.02, 1.01];
        let mut ticks = self.spaced(&DOWN);
        ticks.push((50.0, "0".to_owned()));
        ticks.extend(self.spaced(&UP).into_iter().rev());
        ticks
            .into_iter()
            .map(|(at, label)| Tick {
                at: percent(at),
                label,
            })
            .collect()
    }

    /// From the edge towards the middle.
    fn spaced(&self, ratios: &[f64]) -> Vec<(f64, String)> {
        const APART: f64 = 15.0;
        let mut ticks: Vec<(f64, String)> = Vec::new();
        for ratio in ratios {
            let at = self.position(*ratio);
            let from_edge = (at - 50.0).abs() < 46.0;
            let from_middle = (at - 50.0).abs() >= APART;
            let from_last = ticks.last().is_none_or(|last| (last.0 - at).abs() >= APART);
            if from_edge && from_middle && from_last {
                ticks.push((at, tick_label(*ratio)));
            }
        }
        ticks
    }
}

fn percent(value: f64) -> String {
    format!("{value:.2}%")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALE: Scale = Scale {
        half: 1.2,
        effect: 0.02,
    };

    #[test]
    fn no_change_is_in_the_middle_and_equal_factors_are_equally_far() {
        assert_eq!(SCALE.position(1.0), 50.0);
        let (down, up) = (SCALE.position(1.0 / 1.3), SCALE.position(1.3));
        assert!((down + up - 100.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_beyond_the_axis_stays_on_its_edge() {
        assert_eq!(SCALE.position(100.0), 100.0);
    }

    #[test]
    fn a_difference_is_as_far_out_as_it_has_smallest_effects() {
        let at = |value, smallest| SCALE.position_of_ln(SCALE.ln_of_difference(value, smallest));
        assert_eq!(at(0.0, 4.0), 50.0);
        assert!((at(4.0, 4.0) - SCALE.position(0.02_f64.exp())).abs() < 1e-9);
        assert!((at(-8.0, 4.0) + at(8.0, 4.0) - 100.0).abs() < 1e-9);
        // Without a smallest effect there is nothing between no change and the edge.
        assert_eq!(
            [at(0.0, 0.0), at(3.0, 0.0), at(-3.0, 0.0)],
            [50.0, 100.0, 0.0]
        );
    }

    #[test]
    fn ticks_are_round_changes_from_left_to_right() {
        let labels: Vec<String> = SCALE.axis_ticks().into_iter().map(|t| t.label).collect();
        assert_eq!(labels, ["-50%", "-10%", "0", "+10%", "x2"]);
    }
}
