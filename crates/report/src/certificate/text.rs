//! The certificate as text.

use super::{Certificate, TIMES_NS};
use crate::columns::{Align, Columns, wrap_text};
use crate::quantity::format_percent;
use model::format_duration_ns;
use stats::bounds;

/// Mailing lists break longer lines.
const WIDTH: usize = 77;
/// Too narrow for all times.
const NARROW: usize = 70;

impl Certificate {
    /// For terminals and mailing lists: plain ASCII, under 78 columns.
    pub fn to_text(&self) -> String {
        self.text_within(WIDTH)
    }

    /// The same for a terminal that may be narrower.
    pub(crate) fn text_within(&self, width: usize) -> String {
        let width = width.min(WIDTH);
        let mut lines = vec!["Noise certificate".to_owned()];
        lines.extend(wrap_text(&self.summary(), width, 2, 2));
        lines.push(String::new());
        let columns = self.columns(match width < NARROW {
            true => TIMES_NS.len() / 2,
            false => 0,
        });
        let all: Vec<usize> = (0..columns.count_columns()).collect();
        let widths = columns.fit_widths(2, width, &all);
        lines.push(columns.head_line(2, &widths));
        lines.extend(columns.row_lines(2, &widths, |_, text| text));
        lines.push(String::new());
        lines.extend(wrap_text(&self.explanation(), width, 2, 2));
        lines.join("\n") + "\n"
    }

    /// The share of false calls, in one sentence.
    pub fn summary(&self) -> String {
        let promised = format_percent(1.0 - self.confidence);
        let share = format_percent(f64::from(self.false_calls) / f64::from(self.comparisons));
        format!(
            "{} times the same under two names: {} called better or worse ({share} %; promised: \
             at most {promised} % of comparisons).{}",
            self.comparisons,
            match self.false_calls {
                0 => "none was".to_owned(),
                1 => "1 was".to_owned(),
                n => format!("{n} were"),
            },
            self.doubt()
        )
    }

    /// More false calls than chance allows, if they were independent. Pairs of a
    /// cell share arms and blocks, so only every `arms - 1`th counts as a new one; in turns each has
    /// windows of its own.
    fn doubt(&self) -> &'static str {
        let arms = u32::try_from(self.arms).unwrap_or(u32::MAX);
        let fold = match self.cells.iter().all(|cell| cell.pairs.is_some()) {
            true => 1,
            false => (arms - 1).max(1),
        };
        let (hits, trials) = (self.false_calls / fold, self.comparisons.div_ceil(fold));
        let share = bounds::share_interval(hits, trials, 1.0 - self.confidence);
        match share.is_some_and(|s| s.low > 1.0 - self.confidence) {
            true => " That is more than chance allows: this machine drifts, so doubt its verdicts.",
            false => "",
        }
    }

    /// Without so many of the shortest times.
    fn columns(&self, without: usize) -> Columns {
        let times = TIMES_NS.map(format_duration_ns);
        let times = &times[without..];
        let mut head = vec![
            ("cell", Align::Left),
            ("metric", Align::Left),
            ("false", Align::Right),
            ("spread", Align::Right),
        ];
        head.extend(times.iter().map(|time| (time.as_str(), Align::Right)));
        let mut columns = Columns::new(&head);
        for noise in &self.cells {
            let mut row = vec![
                match noise.pairs {
                    Some(_) => format!("{} (turns)", noise.cell),
                    None => noise.cell.clone(),
                },
                noise.metric.clone(),
                format!("{}/{}", noise.false_calls, noise.comparisons),
                noise
                    .spread
                    .map_or("-".to_owned(), |s| short_percent(s.exp_m1())),
            ];
            let sees = noise.sees.iter().skip(without);
            row.extend(sees.map(|s| s.change.map_or("-".to_owned(), short_percent)));
            columns.push(row);
        }
        columns
    }

    fn explanation(&self) -> String {
        let what = match self.cells.iter().any(|cell| cell.pairs.is_some()) {
            true => "a block, or with turns of a pair of windows,",
            false => "a block",
        };
        format!(
            "false: calls between arms that are the same. spread: how far the ratio of {what} \
             varies (standard deviation). Then the smallest change that is called with {} % chance when \
             that time goes to this cell and one arm against the baseline; -: too few blocks.",
            format_percent(self.power)
        )
    }
}

/// Two digits, and none that say nothing: `0.52%`, `3.1%`, `27%`, `x2.4`.
pub fn short_percent(change: f64) -> String {
    match change * 100.0 {
        p if p < 0.995 => format!("{p:.2}%"),
        p if p < 9.95 => format!("{p:.1}%"),
        p if p < 99.5 => format!("{p:.0}%"),
        _ if change < 99.0 => format!("x{:.1}", 1.0 + change),
        _ => ">x100".to_owned(),
    }
}
