//! Sentences on the change over machines, or over runs, of merged results.

use crate::quantity::format_count;
use crate::table::across::ByMachine;
use crate::table::{Comparison, Table};
use crate::words;
use stats::population::FEWEST;

/// Comparisons that are named; more are counted.
const MOST_NAMED: usize = 3;

/// Comparisons by machine, but those of an arm that repeats the baseline, each with that of all blocks.
pub(crate) fn find_compared(table: &Table) -> impl Iterator<Item = (&ByMachine, &Comparison)> {
    table.across.machines.iter().filter_map(|by| {
        let cell = table.cells.iter().find(|cell| cell.name == by.cell)?;
        let mut same = cell.comparisons.iter();
        let same = same.find(|c| c.metric == by.metric && c.arm == by.arm)?;
        (!same.aa).then_some((by, same))
    })
}

/// What is told of other machines, the calls first; with fewer than three, that three are needed. Empty where the
/// results are of one run.
pub fn describe_over(table: &Table) -> Vec<String> {
    let mut all: Vec<(&ByMachine, &Comparison)> = find_compared(table).collect();
    let Some((first, _)) = all.first() else {
        return Vec::new();
    };
    let (level, count) = (first.level.as_str(), first.machines.len());
    if count < FEWEST {
        return vec![format!(
            "Of other {level}s these {} tell nothing: that takes {FEWEST} or more.",
            format_count(count, level)
        )];
    }
    all.sort_by_key(|(_, c)| !c.verdict.is_call());
    let said = all.iter().filter_map(|(by, _)| describe_one(table, by));
    let mut said: Vec<String> = said.collect();
    let more = said.len().saturating_sub(MOST_NAMED);
    said.truncate(MOST_NAMED);
    said.extend((more > 0).then(|| format!("The table of {level}s has {more} more.")));
    said
}

/// `Over machines like these 4: p99 of wakeups under batch 44 % lower (30 to 56 %), on the next one 4.0 % lower to 33 %
/// higher; the machines differ.`
fn describe_one(table: &Table, by: &ByMachine) -> Option<String> {
    let over = by.over_machines.as_ref()?;
    let (change, next) = over.in_words()?;
    let level = by.level.as_str();
    let place = match table.cells.len() {
        1 => String::new(),
        _ => format!(" in {}", by.cell),
    };
    let differ = match over.differ {
        Some(true) => format!("; the {level}s differ"),
        Some(false) => format!("; that the {level}s differ is not shown"),
        None => String::new(),
    };
    Some(format!(
        "Over {level}s like these {}: {} under {}{place} {change}, on the next one {next}{differ}.",
        over.machines,
        words::metric_name(&by.metric),
        by.arm,
    ))
}
