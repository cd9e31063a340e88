//! The planner's answers for the terminal: at most 100 columns, plain ASCII.

use super::{Answer, Forecast, Row, Time, scale_of_unit};
use crate::certificate::short_percent;
use crate::columns::{Align, Columns, wrap_text};
use crate::noise::change_of_shift;
use crate::quantity::{format_percent, with_unit};
use model::format_duration_ns;

const WIDTH: usize = 100;
/// The planner looks no further.
const MANY_BLOCKS: u32 = 10_000;
const SECOND_NS: u64 = 1_000_000_000;

impl Forecast {
    /// Answers for the terminal.
    pub fn to_text(&self) -> String {
        let mut lines = Vec::new();
        if let Some(whole) = &self.whole_trials {
            lines.push("With arms that take turns inside one process:".to_owned());
            lines.extend(self.answers());
            lines.push(String::new());
            lines.push("With whole trials, each a process of its own:".to_owned());
            lines.extend(whole.answers());
            lines.push(String::new());
            lines.extend(self.savings(whole));
        } else {
            lines.extend(self.answers());
        }
        lines.push(String::new());
        lines.extend(wrap_text(&self.explanation(), WIDTH, 2, 2));
        for forecast in [Some(self), self.whole_trials.as_deref()]
            .into_iter()
            .flatten()
        {
            lines.extend(forecast.remarks());
        }
        lines.join("\n") + "\n"
    }

    fn answers(&self) -> Vec<String> {
        let mut lines = self.basis();
        lines.push(String::new());
        lines.extend(self.sentences());
        lines.push(String::new());
        lines.extend(self.table());
        lines
    }

    fn remarks(&self) -> Vec<String> {
        let too_few = |unknown| format!("no answer for {unknown}: too few blocks have it");
        let unknown = self.unknown.iter().map(too_few);
        let mut lines: Vec<String> = unknown
            .flat_map(|text| wrap_text(&text, WIDTH, 2, 4))
            .collect();
        for advice in &self.advice {
            lines.extend(wrap_text(advice, WIDTH, 2, 4));
        }
        lines
    }

    /// The time that the same change takes in turns, beside that in whole trials. It goes with the
    /// square of the spread.
    fn savings(&self, whole: &Forecast) -> Vec<String> {
        let for_one = |forecast: &Forecast, row: &Row| {
            let ratios = f64::from(row.pairs.unwrap_or(1));
            row.spread.powi(2) * forecast.block_ns as f64 / ratios
        };
        let said = |row: &Row| {
            let mut others = whole.rows.iter();
            let other =
                others.find(|other| (&other.cell, &other.metric) == (&row.cell, &row.metric));
            let times = for_one(whole, other?) / for_one(self, row);
            (row.pairs.is_some() && times.is_finite()).then(|| {
                let text = format!(
                    "{}, {}: for the same change in these processes, turns take {}.",
                    row.cell,
                    row.metric,
                    share_of(times)
                );
                wrap_text(&text, WIDTH, 0, 2)
            })
        };
        self.rows.iter().filter_map(said).flatten().collect()
    }

    /// Lines on the data that the answers rest on.
    fn basis(&self) -> Vec<String> {
        let runs = match self.runs {
            1 => String::new(),
            n => format!(" in each of {n} runs"),
        };
        let pairs = self.rows.iter().filter_map(|row| row.pairs);
        let pairs = match (pairs.clone().min(), pairs.max()) {
            (Some(least), Some(most)) if least == most => {
                format!(", of which each process has {most} pairs of windows")
            }
            (Some(least), Some(most)) => {
                format!(", of which each process has {least} to {most} pairs of windows")
            }
            _ => String::new(),
        };
        let text = format!(
            "From {} blocks{runs}{pairs}. One block of the whole experiment takes {}.",
            self.pilot_blocks,
            time(self.block_ns)
        );
        let mut lines = wrap_text(&text, WIDTH, 0, 2);
        for capped in self.times.iter().filter(|t| t.capped) {
            let text = format!(
                "{} would hold more than max-blocks = {}, which end after {}; raise it to see more.",
                format_duration_ns(capped.time_ns),
                self.max_blocks,
                time(self.block_ns.saturating_mul(u64::from(self.max_blocks)))
            );
            lines.extend(wrap_text(&text, WIDTH, 0, 2));
        }
        lines
    }

    /// `wakeup 100%: in 30m you will see 2.0% in requests_per_sec and 11% in wakeup_p99.`
    fn sentences(&self) -> Vec<String> {
        let of_cells = self.rows.chunk_by(|one, next| one.cell == next.cell);
        let mut lines = Vec::new();
        for rows in of_cells {
            let in_percent: Vec<&Row> = rows.iter().filter(|row| row.unit.is_none()).collect();
            // One time was asked for; several are told by the table alone.
            if let [asked] = self.times.as_slice() {
                lines.extend(wrap_text(&seen(rows, asked), WIDTH, 0, 2));
            }
            if let Some(effect) = self.effect.filter(|_| !in_percent.is_empty()) {
                lines.extend(wrap_text(&self.taken(&in_percent, effect), WIDTH, 0, 2));
            }
        }
        lines
    }

    fn taken(&self, rows: &[&Row], effect: f64) -> String {
        let of_row = |row: &&Row| {
            let blocks = row.blocks.and_then(|answer| answer.expected);
            match blocks {
                Some(blocks) => format!("{} in {}", self.time_of(blocks), row.metric),
                None => format!("over {MANY_BLOCKS} blocks in {}", row.metric),
            }
        };
        format!(
            "{}: a change of {} takes {}.",
            rows[0].cell,
            short_percent(effect),
            joined(rows.iter().map(of_row).collect())
        )
    }

    /// `7m 27s (40 blocks)`.
    fn time_of(&self, blocks: u32) -> String {
        let ns = self.block_ns.saturating_mul(u64::from(blocks));
        format!("{} ({blocks} blocks)", time(ns))
    }

    fn table(&self) -> Vec<String> {
        let times = self.times.iter().map(|t| format_duration_ns(t.time_ns));
        let times: Vec<String> = times.map(|time| format!("in {time}")).collect();
        let takes = self
            .effect
            .map(|effect| format!("for {}", short_percent(effect)));
        let mut head = vec![
            ("cell", Align::Left),
            ("metric", Align::Left),
            ("spread", Align::Left),
        ];
        head.extend(times.iter().map(|time| (time.as_str(), Align::Left)));
        head.extend(takes.iter().map(|takes| (takes.as_str(), Align::Left)));
        head.push(("same", Align::Right));
        let mut columns = Columns::new(&head);
        for row in &self.rows {
            columns.push(cells(row, self.times.len() == 1, self.effect.is_some()));
        }
        let widths = columns.fit_widths(2, WIDTH, &[0, 1]);
        let mut lines = vec![columns.head_line(2, &widths)];
        lines.extend(columns.row_lines(2, &widths, |_, text| text));
        lines
    }

    fn explanation(&self) -> String {
        let scales = self.rows.iter().map(|row| row.unit.is_some());
        let (differences, ratios): (Vec<bool>, Vec<bool>) =
            scales.partition(|is_difference| *is_difference);
        format!(
            "spread: how far the {} of {} varies (standard deviation). in a time: the change that \
             is called with {} % chance, at {} % false calls. for a change, same: the blocks that \
             it takes to call it, or to call equal arms the same. The second number of a pair: if \
             the spread is as high as it may be, told from so few blocks.",
            match (ratios.is_empty(), differences.is_empty()) {
                (_, true) => "ratio",
                (true, false) => "difference",
                (false, false) => "ratio, or the difference in its unit,",
            },
            match self.rows.iter().any(|row| row.pairs.is_some()) {
                true => "a block, or of a pair of windows,",
                false => "a block",
            },
            format_percent(self.power),
            format_percent(1.0 - self.confidence)
        )
    }
}

fn seen(rows: &[Row], asked: &Time) -> String {
    let of_row = |row: &Row| match row.sees.first().and_then(|answer| answer.expected) {
        Some(change) => format!("{} in {}", row.format_change(change), row.metric),
        None => format!("nothing in {}", row.metric),
    };
    format!(
        "{}: in {} ({} blocks) you will see {}.",
        rows[0].cell,
        format_duration_ns(asked.time_ns),
        asked.blocks,
        joined(rows.iter().map(of_row).collect())
    )
}

/// `7.1% of the time`, where the other takes so many times as long.
fn share_of(times: f64) -> String {
    match times {
        times if (0.95..1.05).contains(&times) => "as long".to_owned(),
        times if times > 1.0 => format!("{} of the time", short_percent(1.0 / times)),
        times => format!("{:.1} times as long", 1.0 / times),
    }
}

/// `a, b and c`.
fn joined(mut parts: Vec<String>) -> String {
    match parts.pop() {
        None => String::new(),
        Some(last) if parts.is_empty() => last,
        Some(last) => format!("{} and {last}", parts.join(", ")),
    }
}

impl Row {
    /// A change in percent, or in the unit of a metric that is compared by differences.
    fn format_change(&self, change: f64) -> String {
        match &self.unit {
            Some(unit) => with_unit(change, unit),
            None => short_percent(change),
        }
    }
}

/// `pairs`: there is room for the worst case too. `takes`: the blocks for a change were asked for.
fn cells(row: &Row, pairs: bool, takes: bool) -> Vec<String> {
    let change = |spread: f64| {
        row.format_change(change_of_shift(spread, scale_of_unit(row.unit.as_deref())))
    };
    let mut cells = vec![
        row.cell.clone(),
        row.metric.clone(),
        format!("{} to {}", change(row.spread), change(row.spread_high)),
    ];
    let change = |change: &f64| row.format_change(*change);
    cells.extend(row.sees.iter().map(|answer| match pairs {
        true => pair(answer, change, "-"),
        false => one(&answer.expected, change, "-"),
    }));
    let many = format!(">{MANY_BLOCKS}");
    let blocks = row.blocks.as_ref();
    let blocks = blocks.map(|answer| pair(answer, u32::to_string, &many));
    cells.extend(takes.then(|| blocks.unwrap_or("-".to_owned())));
    cells.push(row.blocks_to_same.map_or("-".to_owned(), |n| n.to_string()));
    cells
}

fn pair<T>(answer: &Answer<T>, write: impl Fn(&T) -> String, none: &str) -> String {
    let expected = one(&answer.expected, &write, none);
    match one(&answer.at_worst, &write, none) {
        at_worst if at_worst == expected => expected,
        at_worst => format!("{expected} to {at_worst}"),
    }
}

fn one<T>(value: &Option<T>, write: impl Fn(&T) -> String, none: &str) -> String {
    value.as_ref().map_or(none.to_owned(), write)
}

/// `11.2s`, `7m 27s`, `26h 13m`.
fn time(ns: u64) -> String {
    let seconds = ns.div_ceil(SECOND_NS);
    match (seconds / 3600, seconds / 60) {
        (0, 0) => format!("{:.1}s", ns as f64 / SECOND_NS as f64),
        (0, minutes) => format!("{minutes}m {:02}s", seconds % 60),
        (hours, minutes) => format!("{hours}h {:02}m", minutes % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_people_say_them() {
        assert_eq!(time(11_160_000_000), "11.2s");
        assert_eq!(time(447_000_000_000), "7m 27s");
        assert_eq!(time(94_380_000_000_000), "26h 13m");
    }
}
