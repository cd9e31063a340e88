//! The table that kernel developers post, as the scripts of schedtests print it: a row for each
//! case and load, the baseline as 1.00, and the change with the sign that says whether it is
//! good; behind that the interval and the verdict. Then the raw data of one benchmark. The whole mail
//! has the signs of this table.

use crate::columns::{Align, Columns, plain_line, wrap_text};
use crate::quantity::{format_count, signed_with_unit, with_unit};
use crate::table::{BlockPoint, Comparison, Table};
use crate::words;
use model::Better;
use stats::summary::Moments;

const INDENT: usize = 2;
/// Digits of a raw figure, which readers compute with.
const DIGITS: usize = 5;

/// The lines of the tables, one for each arm and deciding metric; none without a comparison.
pub fn table_lines(table: &Table, width: usize) -> Vec<String> {
    let all: Vec<&Comparison> = table.all_comparisons().filter(|c| c.deciding).collect();
    let mut lines = Vec::new();
    let mut done: Vec<(&str, &str)> = Vec::new();
    for first in &all {
        let key = (first.metric.as_str(), first.arm.as_str());
        if !done.contains(&key) {
            done.push(key);
            let same = all
                .iter()
                .filter(|c| (c.metric.as_str(), c.arm.as_str()) == key);
            lines.push(String::new());
            lines.extend(one(&same.copied().collect::<Vec<_>>(), width));
        }
    }
    if let Some(first) = all.first() {
        lines.push(String::new());
        let meaning = "compare%: (1 - c/b) * 100 where lower is better, else (c/b - 1) * 100, so + is \
                       better, here and in all tables; c/b is the geometric mean over the blocks, and the interval is its \
                       own. std%: standard deviation of the trials in percent of their mean, ddof 0.";
        lines.extend(wrap_text(meaning, width, 0, 0));
        lines.push(String::new());
        lines.extend(raw(first, &all, width));
    }
    lines
}

/// The table of one metric under one arm. There is one row at least.
fn one(rows: &[&Comparison], width: usize) -> Vec<String> {
    let mut columns = Columns::new(&[
        ("case", Align::Left),
        ("load", Align::Left),
        ("baseline(std%)", Align::Right),
        ("compare%(std%)", Align::Right),
        ("interval", Align::Left),
        ("verdict", Align::Left),
    ]);
    rows.iter().for_each(|c| columns.push(row(c)));
    let widths = columns.fit_widths(0, width, &[0, 1]);
    let c = rows[0];
    let direction = words::direction_word(c.better);
    let title = format!(
        "{} ({direction}): {} against {}, {}",
        c.metric,
        c.arm,
        c.baseline,
        levels_and_blocks(rows)
    );
    let mut lines = wrap_text(&plain_line(&title), width, 0, INDENT);
    lines.push(columns.head_line(0, &widths));
    lines.extend(columns.row_lines(0, &widths, |_, text| text));
    lines
}

/// `49.6 us to 361 us, 11 blocks`: levels of the baseline, and how many blocks the rows have.
fn levels_and_blocks(rows: &[&Comparison]) -> String {
    let mut levels: Vec<f64> = rows.iter().filter_map(|c| c.baseline_level).collect();
    levels.sort_by(f64::total_cmp);
    let unit = &rows[0].unit;
    let level = match levels.as_slice() {
        [] => "without figures".to_owned(),
        [one] => with_unit(*one, unit),
        [low, .., high] => format!("{} to {}", with_unit(*low, unit), with_unit(*high, unit)),
    };
    let fewest = rows.iter().map(|c| c.blocks).min().unwrap_or(0);
    let most = rows.iter().map(|c| c.blocks).max().unwrap_or(0);
    match fewest == most {
        true => format!("{level}, {}", format_count(most, "block")),
        false => format!("{level}, {fewest} to {most} blocks"),
    }
}

fn row(c: &Comparison) -> Vec<String> {
    let std = |of: fn(&BlockPoint) -> f64| {
        let values: Vec<f64> = c.block_ratios.iter().map(of).collect();
        std_percent(&values).map_or("(-)".to_owned(), |std| format!("({std:.2})"))
    };
    let none = || "-".to_owned();
    if c.difference.is_some() {
        return of_difference(c);
    }
    let change = c.ratio.map(|ratio| gain_percent(c.better, ratio));
    let interval = c.low.zip(c.high).map(|(low, high)| {
        let ends = [low, high].map(|ratio| gain_percent(c.better, ratio));
        format!("{:+.1}..{:+.1}", ends[0].min(ends[1]), ends[0].max(ends[1]))
    });
    vec![
        c.workload.clone(),
        c.load.clone(),
        format!("1.00 {}", std(|point| point.baseline)),
        change.map_or_else(none, |by| format!("{by:+.2} {}", std(|point| point.arm))),
        interval.unwrap_or_else(none),
        words::marked_verdict(c),
    ]
}

/// A row in the unit of the metric, which has no percentages.
fn of_difference(c: &Comparison) -> Vec<String> {
    let none = || "-".to_owned();
    let level = |level: Option<f64>| level.map_or_else(none, |level| with_unit(level, &c.unit));
    vec![
        c.workload.clone(),
        c.load.clone(),
        level(c.baseline_level),
        format_gain(c).unwrap_or_else(none),
        gain_interval(c).unwrap_or_else(none),
        words::marked_verdict(c),
    ]
}

/// Figures of the baseline and of the arm, block by block.
fn figures(c: &Comparison) -> Vec<[f64; 2]> {
    let ratios = c
        .block_ratios
        .iter()
        .map(|block| [block.baseline, block.arm]);
    let differences = c.difference.iter().flat_map(|found| &found.blocks);
    let differences = differences.map(|block| [block.baseline, block.arm]);
    ratios.chain(differences).collect()
}

/// Gain of a change: `+25.1%` where the figure is a quarter lower and lower is better, or `-200 us`.
pub fn format_gain(c: &Comparison) -> Option<String> {
    match &c.difference {
        Some(found) => Some(signed_with_unit(sign(c.better) * found.value, &c.unit)),
        None => c
            .ratio
            .map(|ratio| format!("{:+.1}%", gain_percent(c.better, ratio))),
    }
}

/// Its interval: `[-6.2%, +47.2%]`.
pub fn gain_interval(c: &Comparison) -> Option<String> {
    let ends = match &c.difference {
        Some(found) => found.low.zip(found.high),
        None => c.low.zip(c.high),
    }?;
    let of = |end: f64| match c.difference.is_some() {
        true => sign(c.better) * end,
        false => gain_percent(c.better, end),
    };
    let (one, other) = (of(ends.0), of(ends.1));
    let shown = [one.min(other), one.max(other)].map(|end| match c.difference.is_some() {
        true => signed_with_unit(end, &c.unit),
        false => format!("{end:+.1}%"),
    });
    Some(format!("[{}, {}]", shown[0], shown[1]))
}

fn sign(better: Better) -> f64 {
    match better {
        Better::Lower => -1.0,
        Better::Higher | Better::Neither => 1.0,
    }
}

/// The classic formula: what is gained, in percent.
fn gain_percent(better: Better, ratio: f64) -> f64 {
    match better {
        Better::Lower => (1.0 - ratio) * 100.0,
        Better::Higher | Better::Neither => (ratio - 1.0) * 100.0,
    }
}

/// Standard deviation in percent of the mean, of these values alone (ddof 0).
fn std_percent(values: &[f64]) -> Option<f64> {
    let moments = Moments::from_values(values);
    let variance = moments.squared_deviations() / f64::from(moments.count());
    let std = variance.sqrt() / moments.mean() * 100.0;
    std.is_finite().then_some(std)
}

/// Figures that the first comparison is made of, arm by arm, in the order of the blocks.
fn raw(first: &Comparison, all: &[&Comparison], width: usize) -> Vec<String> {
    let head = format!(
        "Raw data of {} in {} {}, {}, block by block (of all: --format csv):",
        first.metric, first.workload, first.load, first.unit
    );
    let mut lines = wrap_text(&plain_line(&head), width, 0, INDENT);
    let mut add = |arm: &str, of: usize, c: &Comparison| {
        let values = figures(c).into_iter().map(|both| figure(both[of]));
        let values = values.collect::<Vec<_>>().join(" ");
        lines.extend(wrap_text(
            &format!("{}: {values}", plain_line(arm)),
            width,
            INDENT,
            2 * INDENT,
        ));
    };
    add(&first.baseline, 0, first);
    let is_same = |c: &&&Comparison| {
        (&c.metric, &c.workload, &c.load) == (&first.metric, &first.workload, &first.load)
    };
    for c in all.iter().filter(is_same) {
        add(&c.arm, 1, c);
    }
    lines
}

/// A number with [`DIGITS`] digits, and no exponent where it has as many before the point.
fn figure(value: f64) -> String {
    let before = value.abs().log10().floor() + 1.0;
    let after = (0..DIGITS)
        .rev()
        .find(|after| before + *after as f64 <= DIGITS as f64);
    format!("{value:.*}", after.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_those_of_the_classic_formula() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} and {b}");
        near(gain_percent(Better::Lower, 1.1), -10.0);
        near(gain_percent(Better::Lower, 0.9), 10.0);
        near(gain_percent(Better::Higher, 1.1), 10.0);
        near(gain_percent(Better::Higher, 0.75), -25.0);
    }

    #[test]
    fn the_standard_deviation_is_that_of_the_values_alone() {
        // Of 2, 4, 4, 4, 5, 5, 7, 9 it is 2, and their mean is 5.
        let std = std_percent(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert!((std - 40.0).abs() < 1e-9, "{std}");
        assert_eq!(std_percent(&[3.0]), Some(0.0));
        assert_eq!(std_percent(&[]), None);
    }

    #[test]
    fn raw_figures_have_five_digits() {
        let shown = [1.234_567, 0.012_345_6, 123_456.7, 12_345.0, 99.5].map(figure);
        assert_eq!(shown, ["1.2346", "0.0123", "123457", "12345", "99.500"]);
    }
}
