//! Machines of merged runs, or runs of one machine: the change on each, and over all like them.

use super::over::Over;
use crate::quantity::{format_change, format_interval};
use crate::shift::Shift;
use crate::table::{CellTable, Comparison, HoldsFor, Verdict, cell};
use results::ResultSet;
use results::merge::Level;
use serde::Serialize;

/// One comparison that decides, by the machines of its blocks, or by their runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ByMachine {
    pub cell: String,
    pub workload: String,
    pub load: String,
    pub metric: String,
    pub arm: String,
    pub baseline: String,
    /// What the blocks are told apart by: runs where they are all of one machine.
    pub level: Level,
    /// The change over machines (or runs) of which these are a sample. None with fewer than two that have one.
    pub over_machines: Option<Over>,
    /// In the order in which they were merged.
    pub machines: Vec<OnMachine>,
}

/// The comparison on one machine alone, or in one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OnMachine {
    pub machine: String,
    pub blocks: usize,
    pub ratio: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Change in the unit of the metric, where a figure of some machine is 0 or below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Shift>,
    pub verdict: Verdict,
    /// True if its interval has no value in common with those of most other machines.
    pub differs: bool,
}

/// Empty where the results are of one run.
pub fn by_machine(results: &ResultSet, cells: &[CellTable]) -> Vec<ByMachine> {
    let alone: Vec<(String, Vec<Vec<Comparison>>)> = results
        .split_by_part()
        .map(|(name, results)| {
            let cells = 0..cells.len();
            let of_cell = |index| cell::compare_cell(&results, index);
            (name, cells.map(of_cell).collect())
        })
        .collect();
    if alone.is_empty() {
        return Vec::new();
    }
    let level = results.find_level();
    let of_cell = |(index, cell): (usize, &CellTable)| {
        let on_each: Vec<(&str, &[Comparison])> = alone
            .iter()
            .map(|(name, cells)| (name.as_str(), cells[index].as_slice()))
            .collect();
        let found = cell
            .deciding_comparisons()
            .map(|all| ByMachine::of(level, cell, all, &on_each));
        found.collect::<Vec<_>>()
    };
    cells.iter().enumerate().flat_map(of_cell).collect()
}

impl ByMachine {
    fn of(
        level: Level,
        cell: &CellTable,
        all: &Comparison,
        on_each: &[(&str, &[Comparison])],
    ) -> Self {
        let same = on_each.iter().filter_map(|(_, on)| same_as(all, on));
        let same: Vec<&Comparison> = same.collect();
        let in_unit = all.difference.is_some() || same.iter().any(|c| c.difference.is_some());
        let machines = on_each.iter().map(|(name, comparisons)| {
            let same = same_as(all, comparisons);
            let difference = same.and_then(|c| Shift::of_effect(c, 0.0));
            OnMachine {
                machine: (*name).to_owned(),
                blocks: same.map_or(0, |c| c.blocks),
                ratio: same.and_then(|c| c.ratio),
                low: same.and_then(|c| c.low),
                high: same.and_then(|c| c.high),
                difference: difference.filter(|_| in_unit),
                verdict: same.map_or(Verdict::Unknown, |c| c.verdict),
                differs: same.is_some_and(|one| differs(name, one, all, on_each)),
            }
        });
        ByMachine {
            cell: cell.name.clone(),
            workload: all.workload.clone(),
            load: all.load.clone(),
            metric: all.metric.clone(),
            arm: all.arm.clone(),
            baseline: all.baseline.clone(),
            level,
            over_machines: Over::from_parts(&same, in_unit.then_some(all.unit.as_str())),
            machines: machines.collect(),
        }
    }

    /// A sentence on each machine that differs.
    fn doubts(&self) -> impl Iterator<Item = String> {
        let differing = self.machines.iter().filter(|found| found.differs);
        differing.filter_map(|found| {
            let change = match &found.difference {
                Some(difference) => difference.in_words(),
                None => {
                    let (low, high) = found.low.zip(found.high)?;
                    let interval = format_interval(low, high);
                    format!("{} {interval}", format_change(found.ratio?))
                }
            };
            Some(format!(
                "the {} {} differs from the others: {change}",
                self.level.as_str(),
                found.machine
            ))
        })
    }

    /// Some machine has a change that the others may hide.
    fn is_mixed(&self) -> bool {
        let mut verdicts = self.machines.iter().map(|found| found.verdict);
        verdicts.any(|verdict| matches!(verdict, Verdict::Better | Verdict::Worse))
    }
}

/// More than half of the other machines have an interval apart from this one.
fn differs(
    name: &str,
    one: &Comparison,
    all: &Comparison,
    on_each: &[(&str, &[Comparison])],
) -> bool {
    let others = on_each.iter().filter(|(other, _)| *other != name);
    let others = others.filter_map(|(_, comparisons)| same_as(all, comparisons));
    let others: Vec<&Comparison> = others.collect();
    let in_unit = others.iter().chain([&one]).any(|c| c.difference.is_some());
    let bounds = |c: &Comparison| match in_unit {
        true => Shift::of_effect(c, 0.0).and_then(|shift| shift.interval_bounds()),
        false => c.low.zip(c.high),
    };
    let others: Vec<(f64, f64)> = others.into_iter().filter_map(bounds).collect();
    let own = bounds(one);
    let is_apart = |other: &&(f64, f64)| own.is_some_and(|own| own.0 > other.1 || other.0 > own.1);
    let apart = others.iter().filter(is_apart);
    2 * apart.count() > others.len()
}

fn same_as<'a>(all: &Comparison, on_machine: &'a [Comparison]) -> Option<&'a Comparison> {
    let mut same = on_machine.iter();
    same.find(|c| c.metric == all.metric && c.arm == all.arm)
}

/// Says of each comparison which machines differ, and whether its verdict is about these alone. All blocks together are
/// not called the same where a machine is better or worse: many blocks of others can hide it.
pub fn note_machines(cells: &mut [CellTable], found: &[ByMachine], smallest: f64) {
    for cell in cells {
        for comparison in &mut cell.comparisons {
            let mut same = found.iter().filter(|by| {
                by.cell == cell.name && by.metric == comparison.metric && by.arm == comparison.arm
            });
            let Some(by) = same.next() else { continue };
            comparison.notes.extend(by.doubts());
            if comparison.verdict == Verdict::Same && by.is_mixed() {
                comparison.verdict = Verdict::Unknown;
                comparison.notes.push(format!(
                    "all blocks together are the same, but not those of each {}",
                    by.level.as_str()
                ));
            }
            let over = by.over_machines.as_ref();
            let is_beyond = over.is_some_and(|over| over.supports(comparison, smallest));
            if comparison.verdict != Verdict::Unknown && !is_beyond {
                comparison.holds_for = Some(match by.level {
                    Level::Machine => HoldsFor::TheseMachines,
                    Level::Run => HoldsFor::TheseRuns,
                });
            }
        }
    }
}
