//! Pictures of arms that took turns inside processes.

use super::charts::Figure;
use super::view::color_of;
use crate::render::chart::{self, BlockDots};
use crate::table::{CellTable, Comparison, Table};
use model::turns::Span;
use model::{Scale, Trial, Windows};
use results::ResultSet;
use results::turns::{Process, choose_scale, find_processes};
use stats::randomization::{self, Prior};
use stats::safe_test::saturating_exp;

/// Turns in the picture of a process: more cannot be told apart.
const MOST_TURNS: u32 = 80;
const NS_PER_SEC: f64 = 1e9;

/// The pictures of one cell; none where each trial was a process of its own.
pub fn of_cell(table: &Table, results: &ResultSet, cell: usize) -> Vec<Figure> {
    let Some(of_cell) = table.cells.get(cell) else {
        return Vec::new();
    };
    let deciding: Vec<&Comparison> = of_cell.deciding_comparisons().collect();
    let by_metric = deciding.chunk_by(|a, b| a.metric == b.metric);
    by_metric
        .filter(|of_metric| of_metric.iter().any(|c| c.in_turns.is_some()))
        .flat_map(|of_metric| of_metric_figures(table, of_cell, results, cell, of_metric))
        .collect()
}

fn of_metric_figures(
    table: &Table,
    of_cell: &CellTable,
    results: &ResultSet,
    cell: usize,
    comparisons: &[&Comparison],
) -> Vec<Figure> {
    let metric = comparisons[0].metric.as_str();
    let trials: Vec<&Trial> = results.trials.iter().map(|stored| &stored.trial).collect();
    let baseline = results.experiment.baseline;
    let mut lines = Vec::new();
    let mut halves = Vec::new();
    for comparison in comparisons {
        let mut arms = results.experiment.arms.iter();
        let Some(arm) = arms.position(|arm| arm.name == comparison.arm) else {
            continue;
        };
        let measured = find_processes(trials.iter().copied(), cell, arm, baseline);
        let dots = |points| BlockDots {
            color: color_of(table, &comparison.arm),
            name: comparison.arm.clone(),
            points,
        };
        lines.push(dots(e_values(&measured, metric)));
        halves.push(dots(both_halves(&measured, metric)));
    }
    let mut rows = of_cell.metrics.iter();
    let unit = rows
        .find(|row| row.metric == metric)
        .map_or("", |row| row.unit.as_str());
    [
        process_figure(table, &trials, cell, metric, unit),
        evidence_figure(metric, &lines, 1.0 / (1.0 - table.experiment.confidence)),
        halves_figure(metric, &halves),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The e-value after each pair, numbered from 1.
fn e_values(processes: &[Process], metric: &str) -> Vec<(f64, f64)> {
    let scale = choose_scale(processes, metric);
    let shifts = processes
        .iter()
        .flat_map(|p| p.pair_shifts(metric, Span::Whole, scale));
    let mut process = randomization::Process::new(Prior::PAIRS);
    let mut pairs = 0.0;
    shifts
        .map(|x| {
            process.push(x);
            pairs += 1.0;
            (pairs, saturating_exp(process.ln_e()))
        })
        .collect()
}

/// Ratios of each pair in the first and in the second half of its windows; none of a metric that is
/// compared by differences.
fn both_halves(processes: &[Process], metric: &str) -> Vec<(f64, f64)> {
    if choose_scale(processes, metric) == Scale::Difference {
        return Vec::new();
    }
    let of_process = |process: &Process| {
        let first = process.shifts_by_pair(metric, Span::FirstHalf, Scale::Ratio);
        let second = process.shifts_by_pair(metric, Span::SecondHalf, Scale::Ratio);
        let both = first
            .into_iter()
            .filter_map(|(pair, x)| Some((x.exp(), second.get(&pair)?.exp())));
        both.collect::<Vec<_>>()
    };
    processes.iter().flat_map(of_process).collect()
}

/// The first turns of the first process in which arms took turns.
fn process_figure(
    table: &Table,
    trials: &[&Trial],
    cell: usize,
    metric: &str,
    unit: &str,
) -> Option<Figure> {
    let here = |trial: &&&Trial| trial.place.cell == cell && trial.is_ok();
    let first = trials
        .iter()
        .filter(here)
        .find_map(|t| t.result.windows.as_ref())?;
    let turn_s = (first.window_ns + first.washout_ns) as f64 / NS_PER_SEC;
    let in_it = trials.iter().filter(here).filter_map(|trial| {
        let windows = trial.result.windows.as_ref()?;
        let is_first = windows.process_unix_ns == first.process_unix_ns;
        is_first.then(|| BlockDots {
            color: color_of(table, &trial.arm),
            name: trial.arm.clone(),
            points: points(windows, metric, turn_s),
        })
    });
    let arms: Vec<BlockDots> = in_it.collect();
    Some(Figure {
        title: format!("{metric} in turns, the first process"),
        svg: chart::draw_turns(&arms, turn_s, metric, unit)?,
        caption: format!(
            "One point a window, on the colour of the arm whose turn it was; at most the first \
             {MOST_TURNS} turns."
        ),
    })
}

/// Figures of the windows that count, with the starts of their turns in seconds.
fn points(windows: &Windows, metric: &str, turn_s: f64) -> Vec<(f64, f64)> {
    let by_pair = windows.by_pair(metric, Span::Whole);
    let turns = windows.turns.iter().zip(&windows.pairs);
    let counted = turns.filter(|(turn, _)| **turn < MOST_TURNS);
    counted
        .filter_map(|(turn, pair)| Some((f64::from(*turn) * turn_s, *by_pair.get(pair)?)))
        .collect()
}

fn evidence_figure(metric: &str, lines: &[BlockDots], bar: f64) -> Option<Figure> {
    Some(Figure {
        title: format!("{metric}: evidence after each pair"),
        svg: chart::draw_evidence(lines, bar)?,
        caption: format!(
            "The e-value against \u{201c}the label makes no difference\u{201d}, over all processes in \
             their order. The line is at {bar:.0}, which decides at the end of a process."
        ),
    })
}

fn halves_figure(metric: &str, halves: &[BlockDots]) -> Option<Figure> {
    Some(Figure {
        title: format!("{metric}: first half against second half"),
        svg: chart::draw_halves(halves)?,
        caption: "One point a pair of windows. Where a change has no after-effect, points scatter \
                  about the line; all above or below it, something outlives the change."
            .to_owned(),
    })
}
