//! Rare events of all arms, beside those of the baseline.

use super::{Sheet, SheetCell, SheetRow, plain_cell};
use crate::quantity::{format_e_value, in_short};
use crate::render::events::{describe_rate, describe_ratio, describe_verdict};
use crate::table::across::{EventComparison, EventCount};
use crate::table::{Table, Verdict};

/// One sheet of all events; none where none are counted.
pub fn of_events(table: &Table) -> Option<Sheet> {
    let events = &table.across.events;
    if events.is_empty() {
        return None;
    }
    let several_cells = table.cells.len() > 1;
    let labels = several_cells
        .then_some("")
        .into_iter()
        .chain(["event", "arm"]);
    let columns = ["events", "in", "rate", "times as often", "verdict"];
    Some(Sheet {
        title: format!("Events (against {})", table.baseline()),
        caption: caption(events),
        together: true,
        labels: labels.map(str::to_owned).collect(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows(events, several_cells),
        ..Sheet::default()
    })
}

/// The baseline of each event, and below it the arms.
fn rows(events: &[EventComparison], several_cells: bool) -> Vec<SheetRow> {
    let mut rows = Vec::new();
    let mut last = None;
    for c in events {
        let row = |cell: &str, event: &str, arm: &str, cells| SheetRow {
            labels: several_cells
                .then_some(cell)
                .into_iter()
                .chain([event, arm])
                .map(str::to_owned)
                .collect(),
            cells,
        };
        if last != Some((&c.cell, &c.event)) {
            let [events, time, rate] = counted(&c.baseline_events);
            let none = || plain_cell(String::new(), String::new());
            let cells = vec![events, time, rate, none(), none()];
            rows.push(row(&c.cell, &c.event, &c.baseline, cells));
        }
        last = Some((&c.cell, &c.event));
        let [events, time, rate] = counted(&c.arm_events);
        let ratio = plain_cell(describe_ratio(c), String::new());
        rows.push(row(
            "",
            "",
            &c.arm,
            vec![events, time, rate, ratio, verdict(c)],
        ));
    }
    rows
}

fn counted(side: &EventCount) -> [SheetCell; 3] {
    let texts = [
        side.count.to_string(),
        in_short(side.exposure_ns),
        describe_rate(side),
    ];
    texts.map(|text| plain_cell(text, String::new()))
}

fn verdict(c: &EventComparison) -> SheetCell {
    SheetCell {
        text: describe_verdict(c),
        detail: match c.verdict {
            Verdict::Unknown => String::new(),
            _ => format!("evidence {}", format_e_value(c.e_value)),
        },
        tint: match c.verdict {
            Verdict::Worse => -100,
            Verdict::Better => 100,
            _ => 0,
        },
        sure: true,
    }
}

fn caption(events: &[EventComparison]) -> String {
    let mut parts = vec![
        "Events within the time of a cluster are one, and fewer are better. Judged by the coins that drew \
         the order of the blocks; the time to a decision is for rates that stay as they are."
            .to_owned(),
    ];
    let said = events.iter().filter(|c| !c.messages.is_empty());
    parts.extend(said.map(|c| format!("{}, {}: {}", c.arm, c.event, c.messages.join("; "))));
    parts.join(" ")
}
