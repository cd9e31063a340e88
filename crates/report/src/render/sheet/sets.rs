//! The classic table: throughput and CPU use of each set of workers.

use super::{Sheet, SheetRow, plain_cell};
use crate::quantity::format_thousands;
use crate::table::Table;
use crate::table::across::SetsOfCell;
use crate::table::across::sets::{Classic, SetOfArm};

const COLUMNS: [&str; 7] = [
    "total",
    "average",
    "deviation",
    "most",
    "least",
    "window most",
    "window least",
];

/// Two sheets for each cell that has sets of workers. They are long, so short reports go without.
pub fn of_sets(table: &Table) -> Vec<Sheet> {
    let mut sheets: Vec<Sheet> = table.across.sets.iter().flat_map(of_cell).collect();
    if let Some(last) = sheets.last_mut() {
        last.caption = "Total, average of the workers and deviation among them are means over the \
                        trials; most and least are of any worker, and of any interval of one, in any \
                        trial. 0 is a worker that got nothing."
            .to_owned();
    }
    sheets
}

fn of_cell(of: &SetsOfCell) -> [Sheet; 2] {
    [
        sheet(of, "1000 operations/s", |set| set.throughput),
        sheet(of, "CPU use, in CPUs", |set| set.cpu_use),
    ]
}

fn sheet(of: &SetsOfCell, what: &str, classic: fn(&SetOfArm) -> Classic) -> Sheet {
    let row = |set: &SetOfArm| {
        let of = classic(set);
        let values = [
            of.total,
            of.average,
            of.deviation,
            of.most,
            of.least,
            of.window_most,
            of.window_least,
        ];
        let cells = values.map(|value| plain_cell(format_thousands(value), String::new()));
        SheetRow {
            labels: vec![format!("{} x {}", set.workers, set.set), set.arm.clone()],
            cells: cells.into(),
        }
    };
    // Arms stand below each other at each set.
    let mut rows: Vec<&SetOfArm> = of.rows.iter().collect();
    let first = |set: &SetOfArm| of.rows.iter().position(|other| other.set == set.set);
    rows.sort_by_key(|set| first(set));
    Sheet {
        title: format!("{}: sets, {what}", of.cell),
        together: true,
        labels: vec!["set".to_owned(), "arm".to_owned()],
        columns: COLUMNS.map(str::to_owned).into(),
        rows: rows.into_iter().map(row).collect(),
        ..Sheet::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arms_stand_below_each_other_at_each_set() {
        let set = |arm: &str, set: &str, least| {
            let all = Classic {
                total: 1500.0,
                average: 750.0,
                deviation: 0.25,
                most: 751.0,
                least: 749.0,
                window_most: 800.0,
                window_least: least,
            };
            SetOfArm {
                arm: arm.to_owned(),
                set: set.to_owned(),
                workers: 2,
                trials: 5,
                throughput: all,
                cpu_use: all,
            }
        };
        let rows = [("a", "A"), ("a", "B"), ("b", "A"), ("b", "B")];
        let [sheet, _] = of_cell(&SetsOfCell {
            cell: "A-B 2".to_owned(),
            rows: rows.map(|(arm, name)| set(arm, name, 0.0)).into(),
        });
        let labels: Vec<String> = sheet.rows.iter().map(|row| row.labels.join(" ")).collect();
        assert_eq!(labels, ["2 x A a", "2 x A b", "2 x B a", "2 x B b"]);
        let texts: Vec<&str> = sheet.rows[0]
            .cells
            .iter()
            .map(|c| c.text.as_str())
            .collect();
        assert_eq!(texts[0], "1.50k");
        assert_eq!(texts[6], "0");
    }
}
