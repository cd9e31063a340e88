//! The recommendation for a terminal, in plain ASCII: one sentence, a table, a picture, and what it hangs on.

use super::answer::percent_words;
use super::{Advice, ArmStanding, Recommendation, Share, Turn};
use crate::columns::{Align, Columns, clip_text, wrap_text};
use crate::quantity::{format_count, format_percent, format_rough_time};

const INDENT: usize = 2;
/// Narrower than any terminal, and wider than a line that is pleasant to read.
const WIDTHS: std::ops::RangeInclusive<usize> = 60..=120;
/// Columns of the longest bar, and of the name before it.
const BAR: usize = 40;
const NAME: usize = 24;

impl Recommendation {
    /// Recommendation for a terminal of so many columns.
    pub fn to_text(&self, width: usize) -> String {
        let width = width.clamp(*WIDTHS.start(), *WIDTHS.end());
        let mut lines = wrap_text(&self.answer, width, 0, INDENT);
        lines.push(String::new());
        lines.extend(self.table_lines(width));
        lines.extend([
            String::new(),
            "How far behind the best arm (= expected, - range)".to_owned(),
        ]);
        lines.extend(self.picture_lines());
        for (heading, said) in self.sections() {
            lines.extend([String::new(), heading.to_owned()]);
            for sentence in said {
                lines.extend(wrap_text(&sentence, width, INDENT, INDENT + 2));
            }
        }
        lines.join("\n") + "\n"
    }

    fn table_lines(&self, width: usize) -> Vec<String> {
        let share = self.interval_words();
        let baseline = self.baseline().map_or("", |arm| arm.arm.as_str());
        let over = format!("over {baseline}");
        let mut columns = Columns::new(&[
            ("arm", Align::Left),
            ("best", Align::Right),
            ("behind", Align::Right),
            (share.as_str(), Align::Left),
            (over.as_str(), Align::Right),
            (share.as_str(), Align::Left),
        ]);
        for arm in &self.arms {
            columns.push(self.row(arm));
        }
        let widths = columns.fit_widths(INDENT, width, &[0, 4]);
        let needed = INDENT + widths.iter().sum::<usize>() + 2 * (widths.len() - 1);
        if needed > width {
            return columns.stacked_lines(INDENT, width);
        }
        let mut lines = vec![columns.head_line(INDENT, &widths)];
        lines.extend(columns.row_lines(INDENT, &widths, |_, text| text));
        lines
    }

    /// Cells of the row of an arm, for all formats.
    pub(super) fn row(&self, arm: &ArmStanding) -> Vec<String> {
        let gain = match arm.baseline {
            true => ["-".to_owned(), "-".to_owned()],
            false => [signed_percent(arm.gain.expected), range_words(arm.gain)],
        };
        let [over, interval] = gain;
        vec![
            arm.arm.clone(),
            format!("{:.0} %", 100.0 * arm.chance_best),
            percent_words(arm.regret.expected),
            format!(
                "{} to {}",
                percent_words(arm.regret.low),
                percent_words(arm.regret.high)
            ),
            over,
            interval,
        ]
    }

    /// `90 % range`: each end leaves out `1 - confidence`.
    pub(super) fn interval_words(&self) -> String {
        format!("{} % range", format_percent(2.0 * self.confidence - 1.0))
    }

    fn picture_lines(&self) -> Vec<String> {
        let farthest = self.arms.iter().map(|arm| arm.regret.high);
        let farthest = farthest.fold(self.care, f64::max);
        let bar = |arm: &ArmStanding| {
            let name = clip_text(&arm.arm, NAME);
            format!(
                "{:INDENT$}{name:<NAME$} {}",
                "",
                draw_bar(arm.regret, farthest)
            )
        };
        let mut lines: Vec<String> = self.arms.iter().map(bar).collect();
        let care = place_of(self.care, farthest);
        let said = format!("{} % matter", format_percent(self.care));
        lines.push(format!("{:1$}^ {said}", "", INDENT + NAME + 2 + care));
        lines
    }

    /// Headings with their sentences, for all formats.
    pub(super) fn sections(&self) -> Vec<(&'static str, Vec<String>)> {
        let left_out = self.left_out.iter();
        let left_out = left_out.map(|out| format!("{}: {}", out.arm, out.why));
        let all = [
            ("What was weighed", self.mix_sentences()),
            ("What would change the answer", self.change_sentences()),
            ("Not looked at", left_out.collect()),
            ("What was not measured", self.lacks.clone()),
            ("What it does not cover", self.not_covered.clone()),
        ];
        let is_said = |(_, said): &(&str, Vec<String>)| !said.is_empty();
        all.into_iter().filter(is_said).collect()
    }

    fn mix_sentences(&self) -> Vec<String> {
        let mix = self.mix.iter();
        let line = mix.map(|weight| {
            let weighs = format!("{:.0} %", 100.0 * weight.weight);
            let blocks = format_count(weight.blocks, "block");
            format!("{} {}: {weighs}, {blocks}", weight.cell, weight.metric)
        });
        line.collect()
    }

    fn change_sentences(&self) -> Vec<String> {
        let mut said: Vec<String> = self.turns.iter().map(turn_sentence).collect();
        if self.turns.is_empty() {
            said.push(match self.mix.len() {
                1 => "One comparison is all that it hangs on.".to_owned(),
                _ => "No weight of a single entry does: between none and four times what it has, the \
                      answer stays."
                    .to_owned(),
            });
        }
        let noisiest = self.mix.iter().max_by(|a, b| a.doubt.total_cmp(&b.doubt));
        let noisiest = noisiest.filter(|weight| weight.doubt > 0.0 && self.mix.len() > 1);
        said.extend(noisiest.map(|weight| {
            format!(
                "Most of the doubt ({:.0} %) is the noise of {} {}: measure that first.",
                100.0 * weight.doubt,
                weight.cell,
                weight.metric
            )
        }));
        if self.advice == Advice::Open {
            said.push(match self.more_ns {
                Some(more) => format!(
                    "About {} more of the same would answer it, if the means stay what they are.",
                    format_rough_time(more)
                ),
                None => {
                    "Sixty times as much of the same would not: the arms are too close to what \
                         you care about. A larger --care answers it."
                        .to_owned()
                }
            });
        }
        said
    }
}

fn turn_sentence(turn: &Turn) -> String {
    let weight = match turn.factor {
        0.0 => "without its weight".to_owned(),
        factor if factor < 1.0 => format!("with 1/{:.0} of its weight", 1.0 / factor),
        factor => format!("with {factor:.0} times its weight"),
    };
    let then = match turn.advice {
        Advice::Open => format!("the answer would be open, and {} would lead", turn.arm),
        Advice::Arm | Advice::Baseline => format!("it would be {}", turn.arm),
    };
    format!("{} {} {weight}: {then}.", turn.cell, turn.metric)
}

/// `--=---` from the lower to the upper end.
fn draw_bar(regret: Share, farthest: f64) -> String {
    let [low, expected, high] =
        [regret.low, regret.expected, regret.high].map(|share| place_of(share, farthest));
    let sign = |column: usize| match column {
        column if column == expected => '=',
        column if (low..=high).contains(&column) => '-',
        _ => ' ',
    };
    let bar: String = (0..=BAR).map(sign).collect();
    format!("|{}", bar.trim_end())
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "between 0 and the width of a bar"
)]
fn place_of(share: f64, farthest: f64) -> usize {
    let part = (share / farthest).clamp(0.0, 1.0);
    (part * BAR as f64).round() as usize
}

fn signed_percent(share: f64) -> String {
    let words = percent_words(share);
    match share > 0.0 && !words.starts_with("0.0") {
        true => format!("+{words}"),
        false => words,
    }
}

fn range_words(share: Share) -> String {
    let [low, high] = [share.low, share.high].map(signed_percent);
    format!("{low} to {high}")
}
