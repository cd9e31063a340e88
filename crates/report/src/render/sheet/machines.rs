//! Comparisons on each machine of merged runs.

use super::{Sheet, SheetCell, SheetRow, detail, plain_cell, tint};
use crate::quantity::format_change;
use crate::render::machines::find_compared;
use crate::shift::Shift;
use crate::table::across::ByMachine;
use crate::table::across::machines::OnMachine;
use crate::table::{CellTable, Comparison, Table, Verdict};
use model::Better;
use results::merge::Level;
use stats::population::FEWEST;

/// Machines that have a column of their own.
const MOST_COLUMNS: usize = 5;
/// Ratio of the fullest tint.
const FULL: f64 = 2.0;

/// A sheet for each cell, with a row for each comparison that decides, but those of an arm that
/// repeats the baseline; none where the results are of one run.
pub fn of_machines(table: &Table) -> Vec<Sheet> {
    let cells = table.cells.iter();
    let mut sheets: Vec<Sheet> = cells.filter_map(|cell| of_cell(table, cell)).collect();
    let Some((by, last)) = table.across.machines.first().zip(sheets.last_mut()) else {
        return sheets;
    };
    let level = by.level.as_str();
    let each = match by.machines.len() <= MOST_COLUMNS {
        true => format!(
            "Each {level} by its own blocks, its verdict beside the change; with ! where its interval \
             has no value in common with those of most others."
        ),
        false => format!(
            "Verdicts of each {level}'s own blocks, counted, and the changes at the ends; JSON has all of \
             them."
        ),
    };
    let over = match by.machines.len() < FEWEST {
        true => format!("An interval over {level}s takes {FEWEST} of them."),
        false => format!(
            "Over {level}s: each of them counts once, and the interval is for {level}s of which these are \
             a sample; the next one lies in the last column."
        ),
    };
    last.caption = format!("{each} {over}");
    sheets
}

fn of_cell(table: &Table, cell: &CellTable) -> Option<Sheet> {
    let of_cell = find_compared(table).filter(|(by, _)| by.cell == cell.name);
    let compared: Vec<(&ByMachine, &Comparison)> = of_cell.collect();
    let (first, _) = compared.first()?;
    let is_few = first.machines.len() <= MOST_COLUMNS;
    let mut columns: Vec<String> = match is_few {
        true => first.machines.iter().map(|on| on.machine.clone()).collect(),
        false => ["better", "worse", "same", "unknown", "least", "most"]
            .map(str::to_owned)
            .to_vec(),
    };
    let level = first.level.as_str();
    columns.extend([format!("over {level}s"), format!("next {level}")]);
    let row = |(by, comparison): &(&ByMachine, &Comparison)| {
        let machines = by.machines.iter();
        let mut cells: Vec<SheetCell> = match is_few {
            true => machines.map(|on| of_one(on, comparison.better)).collect(),
            false => of_many(&by.machines).to_vec(),
        };
        cells.extend(over(by));
        SheetRow {
            labels: vec![by.metric.clone(), by.arm.clone()],
            cells,
        }
    };
    let place = match first.level {
        Level::Machine => "on",
        Level::Run => "in",
    };
    Some(Sheet {
        title: format!(
            "{} {place} each of {} {level}s",
            cell.title,
            first.machines.len()
        ),
        labels: ["metric", "arm"].map(str::to_owned).to_vec(),
        columns,
        rows: compared.iter().map(row).collect(),
        together: !is_few,
        ..Sheet::default()
    })
}

/// `+44.6% worse!`.
fn of_one(on: &OnMachine, better: Better) -> SheetCell {
    let differs = if on.differs { "!" } else { "" };
    if let Some(difference) = &on.difference {
        let said = format!(
            "{} {}{differs}",
            difference.format_change(),
            on.verdict.as_str()
        );
        return plain_cell(said, difference.format_interval().unwrap_or_default());
    }
    let Some(ratio) = on.ratio else {
        return SheetCell::missing_value();
    };
    SheetCell {
        text: format!("{} {}{differs}", format_change(ratio), on.verdict.as_str()),
        detail: detail(on.low.zip(on.high), on.blocks),
        tint: match on.verdict {
            Verdict::Better | Verdict::Worse => tint(ratio, better, FULL),
            Verdict::Same | Verdict::Unknown => 0,
        },
        sure: true,
    }
}

/// Verdicts, counted, and the changes at the ends.
fn of_many(machines: &[OnMachine]) -> [SheetCell; 6] {
    let count = |verdict: Verdict| {
        let same = machines.iter().filter(|on| on.verdict == verdict);
        plain_cell(same.count().to_string(), String::new())
    };
    let value = |on: &OnMachine| match &on.difference {
        Some(difference) => Some(difference.value),
        None => on.ratio,
    };
    let measured = || machines.iter().filter_map(|on| Some((value(on)?, on)));
    let end = |found: Option<(f64, &OnMachine)>| match found {
        Some((value, on)) => {
            let difference = on.difference.as_ref().map(Shift::format_change);
            let said = difference.unwrap_or_else(|| format_change(value));
            plain_cell(said, on.machine.clone())
        }
        None => SheetCell::missing_value(),
    };
    [
        count(Verdict::Better),
        count(Verdict::Worse),
        count(Verdict::Same),
        count(Verdict::Unknown),
        end(measured().min_by(|a, b| a.0.total_cmp(&b.0))),
        end(measured().max_by(|a, b| a.0.total_cmp(&b.0))),
    ]
}

/// `-2.9% [-9.7%, +4.4%]`, and `[-19.7%, +14.4%]`.
fn over(by: &ByMachine) -> [SheetCell; 2] {
    let over = by.over_machines.as_ref();
    let cell = |text: Option<String>| match text {
        Some(text) => plain_cell(text, String::new()),
        None => SheetCell::missing_value(),
    };
    [
        cell(over.map(|over| over.format_change())),
        cell(over.and_then(|over| over.format_next())),
    ]
}
