//! The table that is posted to mailing lists: levels with their spread, and changes.

use super::{Sheet, SheetCell, SheetRow, plain_cell};
use crate::quantity::{format_change, format_interval, format_percent, with_unit};
use crate::table::across::Sequential;
use crate::table::across::sequential::{Level, Row};
use crate::table::{ArmInfo, Table};

/// A sheet for each arm beside the baseline and each metric of a benchmark; one for the baseline
/// where it is alone.
pub fn of_sequential(table: &Table, sequential: &Sequential) -> Vec<Sheet> {
    let is_other = |index: &usize| !table.arms[*index].baseline;
    let mut arms: Vec<usize> = (0..table.arms.len()).filter(is_other).collect();
    if arms.is_empty() {
        arms = vec![0];
    }
    let mut groups: Vec<(String, Vec<&Row>)> = Vec::new();
    for row in &sequential.rows {
        let title = format!("{} {}", row.benchmark_name(), row.measured.metric);
        match groups.iter_mut().find(|(known, _)| *known == title) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((title, vec![row])),
        }
    }
    let sheets = groups.iter().flat_map(|(title, rows)| {
        let arms = arms.iter();
        arms.map(move |arm| beside_baseline(table, title, rows, *arm))
    });
    let mut sheets: Vec<Sheet> = sheets.collect();
    if let Some(last) = sheets.last_mut() {
        last.caption = "Mean, standard deviation in percent of it, and runs of each arm; the ratio of \
                        the geometric means, and Welch's interval of it, which holds only if all runs \
                        are independent and nothing but the arm changed between them."
            .to_owned();
    }
    sheets
}

fn beside_baseline(table: &Table, title: &str, rows: &[&Row], arm: usize) -> Sheet {
    let is_baseline = |arm: &ArmInfo| arm.baseline;
    let baseline = table.arms.iter().position(is_baseline).unwrap_or(0);
    let name = &table.arms[arm].name;
    let alone = arm == baseline;
    let rows = rows.iter().map(|row| {
        let of = |arm: usize| level(row.arms.get(arm).copied().flatten(), &row.measured.unit);
        let mut cells = vec![of(baseline)];
        if !alone {
            cells.push(of(arm));
            cells.extend(apart(row, name));
        }
        let cell = row
            .cell
            .strip_prefix(row.benchmark_name())
            .unwrap_or(&row.cell)
            .trim_matches([',', ' ']);
        let cell = if cell.is_empty() { &row.cell } else { cell };
        SheetRow {
            labels: vec![cell.to_owned()],
            cells,
        }
    });
    let mut columns = vec![table.arms[baseline].name.clone()];
    if !alone {
        let interval = format!(
            "{} % if independent",
            format_percent(table.experiment.confidence)
        );
        columns.extend([name.clone(), "change".to_owned(), interval]);
    }
    Sheet {
        title: match alone {
            true => format!("{title}: {name}"),
            false => format!("{title}: {name} beside {}", columns[0]),
        },
        columns,
        labels: vec!["cell".to_owned()],
        rows: rows.collect(),
        ..Sheet::default()
    }
}

/// `12.3 s +-2.1% (10)`.
fn level(level: Option<Level>, unit: &str) -> SheetCell {
    let Some(level) = level else {
        return SheetCell::missing_value();
    };
    let mean = with_unit(level.mean, unit);
    let text = match level.std_percent.filter(|_| level.figures > 1) {
        Some(std) => format!("{mean} +-{std:.2}% ({})", level.runs),
        None => format!("{mean} ({})", level.runs),
    };
    plain_cell(text, String::new())
}

fn apart(row: &Row, arm: &str) -> [SheetCell; 2] {
    let Some(found) = row.changes.iter().find(|change| change.arm == arm) else {
        return [SheetCell::missing_value(), SheetCell::missing_value()];
    };
    let ends = found.low.zip(found.high);
    let ends = ends.map_or_else(|| "-".to_owned(), |(low, high)| format_interval(low, high));
    let by = found.ratio.map_or_else(|| "-".to_owned(), format_change);
    [
        plain_cell(by, String::new()),
        plain_cell(ends, String::new()),
    ]
}
