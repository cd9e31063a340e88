//! Warnings that follow from the order of the trials, or of the requests in them: a difference that
//! changed while it was measured, trials that still warm up, a machine that drifted, a place in the block that matters, blocks that resemble
//! each other, heat and clocks that changed from trial to trial.
//!
//! Only deciding metrics are looked at, and those of the change within a window, each kind of look at a rate of one false
//! warning in a hundred reports, split over the comparisons (Bonferroni).

use crate::quantity::format_change;
use crate::table::{CellTable, Comparison};
use model::{Severity, Trial, Warning};
use results::ResultSet;
use stats::{rank, summary, trend};
use std::collections::{BTreeMap, BTreeSet};

/// Rate of false warnings of one kind in one report.
const FALSE_RATE: f64 = 0.01;
/// Metric of a trial whose rate is given: change of its median latency within the window.
const LATENCY_DRIFT: &str = "latency_drift";
/// Metrics of a trial that tell how much it changed within its window, and the least change of the usual
/// trial that is one: half and twice are equally far.
const WITHIN: [(&str, f64); 2] = [("throughput_drift", 1.1), (LATENCY_DRIFT, 1.25)];
/// A hotter or cooler trial than this is another machine.
const MOST_CELSIUS: f64 = 10.0;
/// The same for the clock.
const MOST_CLOCK: f64 = 0.1;

pub fn drift_warnings(results: &ResultSet, cells: &[CellTable]) -> Vec<Warning> {
    let compared: Vec<(&CellTable, &Comparison)> = cells
        .iter()
        .flat_map(|cell| cell.deciding_comparisons().map(move |c| (cell, c)))
        .filter(|(_, c)| !c.block_ratios.is_empty())
        .collect();
    let series = series(results, cells);
    // From one run to the next the machine changes, and nothing drifts.
    let of_one_run = || {
        [
            changing(&compared),
            dependent(&compared),
            drifting(&series, results.experiment.stop.smallest_effect),
            heat(results),
            clock(results),
        ]
    };
    let is_one = results.manifest.sources.is_empty();
    let of_one_run = is_one.then(of_one_run).into_iter().flatten();
    let within = within(results, cells);
    let of_windows = [true, false].map(|is_warming| changing_within(&within, is_warming));
    std::iter::once(order(&series))
        .chain(of_windows)
        .chain(of_one_run)
        .flatten()
        .collect()
}

fn warning(severity: Severity, what: String, remedy: &str) -> Warning {
    Warning {
        severity,
        what,
        remedy: remedy.to_owned(),
    }
}

fn log_ratios(comparison: &Comparison) -> Vec<f64> {
    let points = comparison.block_ratios.iter();
    points.map(|point| point.ratio.ln()).collect()
}

/// The difference has a trend over the blocks.
fn changing(compared: &[(&CellTable, &Comparison)]) -> Option<Warning> {
    let limit = FALSE_RATE / compared.len().max(1) as f64;
    let found: Vec<String> = compared
        .iter()
        .filter(|(_, c)| trend::mann_kendall(&log_ratios(c)).is_some_and(|t| t.p < limit))
        .map(|(cell, c)| format!("{} of {} in {} ({})", c.metric, c.arm, cell.name, ends(c)))
        .collect();
    (!found.is_empty()).then(|| {
        warning(
            Severity::Caution,
            format!(
                "The difference itself changed while it was measured: {}.",
                found.join("; ")
            ),
            "The change and its interval speak of the mean of this run. Use a longer warmup, or look \
             for what an arm leaves behind (files, caches, a process that ages).",
        )
    })
}

/// `+3.1% at first, -0.4% at last`: means of the outer thirds.
fn ends(comparison: &Comparison) -> String {
    let xs = log_ratios(comparison);
    let third = xs.len().div_ceil(3);
    let mean = |part: &[f64]| format_change(summary::mean(part).unwrap_or(0.0).exp());
    format!(
        "{} at first, {} at last",
        mean(&xs[..third]),
        mean(&xs[xs.len() - third..])
    )
}

/// Blocks resemble the one before.
fn dependent(compared: &[(&CellTable, &Comparison)]) -> Option<Warning> {
    let limit = FALSE_RATE / compared.len().max(1) as f64;
    let is_dependent = |c: &Comparison| {
        let found = trend::autocorrelation(&log_ratios(c));
        found.is_some_and(|a| a.lag1 > 0.0 && a.p < limit)
    };
    let found: Vec<String> = compared
        .iter()
        // A coin draws the order of pairs, and then dependence does no harm.
        .filter(|(_, c)| c.in_turns.is_none() && is_dependent(c))
        .map(|(cell, c)| format!("{} of {} in {}", c.metric, c.arm, cell.name))
        .collect();
    (!found.is_empty()).then(|| {
        warning(
            Severity::Caution,
            format!(
                "Blocks resemble the one before, so they count for less than their number: {}.",
                found.join("; ")
            ),
            "Something lasts longer than a block: let each block have what may vary (a fresh boot: \
             reset = \"block\"), or repeat the run on another day and compare.",
        )
    })
}

/// One deciding metric of one cell, trial by trial.
struct Series<'a> {
    cell: &'a str,
    metric: &'a str,
    /// Logarithms, by block, in the order in which they were measured: arm and value.
    blocks: BTreeMap<u32, Vec<(usize, f64)>>,
    baseline: usize,
}

fn series<'a>(results: &'a ResultSet, cells: &'a [CellTable]) -> Vec<Series<'a>> {
    let of_cell = |(index, cell): (usize, &'a CellTable)| {
        let names: BTreeSet<&str> = cell
            .deciding_comparisons()
            .map(|c| c.metric.as_str())
            .collect();
        let one = move |metric| one_series(results, index, &cell.name, metric);
        names.into_iter().map(one)
    };
    cells.iter().enumerate().flat_map(of_cell).collect()
}

fn one_series<'a>(
    results: &'a ResultSet,
    index: usize,
    cell: &'a str,
    metric: &'a str,
) -> Series<'a> {
    let mut trials: Vec<&Trial> = results.trials.iter().map(|s| &s.trial).collect();
    trials.retain(|t| t.place.cell == index && t.is_ok());
    trials.sort_by_key(|t| t.order_key());
    let mut blocks: BTreeMap<u32, Vec<(usize, f64)>> = BTreeMap::new();
    for trial in trials {
        let value = trial.metric(metric).map(|m| m.value.ln());
        if let Some(value) = value.filter(|v| v.is_finite()) {
            let block = blocks.entry(trial.place.block).or_default();
            block.push((trial.place.arm, value));
        }
    }
    Series {
        cell,
        metric,
        blocks,
        baseline: results.experiment.baseline,
    }
}

impl Series<'_> {
    /// The baseline alone, in order.
    fn baseline(&self) -> Vec<f64> {
        let all = self.blocks.values().flatten();
        let own = all.filter(|(arm, _)| *arm == self.baseline);
        own.map(|(_, value)| *value).collect()
    }

    /// Distance of the first trial of each block from the others of the block, with the
    /// differences between the arms taken out.
    fn first_of_blocks(&self) -> Vec<f64> {
        let complete = self.blocks.values().map(Vec::len).max().unwrap_or(0);
        let blocks = || self.blocks.values().filter(|b| b.len() == complete);
        let mut of_arms: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for block in blocks() {
            for (arm, value) in block {
                of_arms.entry(*arm).or_default().push(value - centre(block));
            }
        }
        let usual = |arm: &usize| summary::mean(&of_arms[arm]).unwrap_or(0.0);
        let firsts = blocks().filter_map(|block| Some((block, block.first()?)));
        firsts
            .map(|(block, (arm, value))| value - centre(block) - usual(arm))
            .collect()
    }
}

fn centre(block: &[(usize, f64)]) -> f64 {
    let values: Vec<f64> = block.iter().map(|(_, value)| *value).collect();
    summary::mean(&values).unwrap_or(0.0)
}

/// Warning that the first trial of a block comes out differently.
fn order(all: &[Series]) -> Option<Warning> {
    let limit = FALSE_RATE / all.len().max(1) as f64;
    let found: Vec<String> = all
        .iter()
        .filter_map(|series| {
            let firsts = series.first_of_blocks();
            rank::signed_rank_p(&firsts).filter(|p| *p < limit)?;
            let by = format_change(summary::median(&firsts)?.exp());
            Some(format!("{} in {} ({by})", series.metric, series.cell))
        })
        .collect();
    (!found.is_empty()).then(|| {
        warning(
            Severity::Caution,
            format!(
                "The first trial of a block comes out differently from the later ones: {}.",
                found.join("; ")
            ),
            "A trial leaves something to the next one, or starts cold: use a longer warmup. The order is \
             random, so no arm gains by it, but the noise is larger than need be.",
        )
    })
}

/// A change within the windows of trials that is the same in most of them.
struct Within {
    /// Does it get faster?
    is_warming: bool,
    words: String,
}

/// Changes within windows, which each trial alone could not tell from chance. All arms of a cell are looked
/// at together, and each by itself: one that alone still warms up is behind for that.
fn within(results: &ResultSet, cells: &[CellTable]) -> Vec<Within> {
    let arms = &results.experiment.arms;
    let all_and_each = || std::iter::once(None).chain((0..arms.len()).map(Some));
    let mut looks = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        let there = |metric| !changes(results, index, None, metric).is_empty();
        let of_cell = WITHIN.into_iter().filter(|(metric, _)| there(metric));
        looks.extend(of_cell.map(|(metric, least)| (index, &cell.name, metric, least)));
    }
    let limit = FALSE_RATE / (looks.len().max(1) * all_and_each().count()) as f64;
    let of_look = |(cell, name, metric, least): (usize, &String, &str, f64)| {
        let one = |arm: Option<usize>| {
            let logs = changes(results, cell, arm, metric);
            let usual = summary::median(&logs).filter(|usual| usual.abs() > least.ln())?;
            rank::signed_rank_p(&logs).filter(|p| *p < limit)?;
            let alike = logs.iter().filter(|log| log.signum() == usual.signum());
            let of_arm = arm.map_or(String::new(), |arm| format!(" of {}", arms[arm].name));
            Some(Within {
                is_warming: (usual < 0.0) == (metric == LATENCY_DRIFT),
                words: format!(
                    "{metric}{of_arm} in {name} (median {}, in this direction in {} of {} trials)",
                    format_change(usual.exp()),
                    alike.count(),
                    logs.len()
                ),
            })
        };
        let all = one(None).map(|all| vec![all]);
        all.unwrap_or_else(|| all_and_each().skip(1).filter_map(one).collect())
    };
    looks.into_iter().flat_map(of_look).collect()
}

/// Logarithms of the changes within the windows of a cell's trials, of all arms or of one.
fn changes(results: &ResultSet, cell: usize, arm: Option<usize>, metric: &str) -> Vec<f64> {
    let trials = results.trials.iter().map(|stored| &stored.trial);
    let trials = trials.filter(|trial| trial.place.cell == cell && trial.is_ok());
    let trials = trials.filter(|trial| arm.is_none_or(|arm| trial.place.arm == arm));
    let logs = trials.filter_map(|trial| Some((1.0 + trial.metric(metric)?.value / 100.0).ln()));
    logs.filter(|log| log.is_finite()).collect()
}

/// Warning of changes within windows in one direction.
fn changing_within(found: &[Within], is_warming: bool) -> Option<Warning> {
    let words = found.iter().filter(|one| one.is_warming == is_warming);
    let words: Vec<&str> = words.map(|one| one.words.as_str()).collect();
    let (what, remedy) = match is_warming {
        true => (
            "Trials get faster within their windows, from the first to the last third",
            "Use a longer warmup (and snapshot-warmup, where trials go on from a snapshot), or say that how \
             soon it warms up is part of the answer.",
        ),
        false => (
            "Trials get slower within their windows, from the first to the last third",
            "Look for a queue that fills, heat, or what grows with each request; a lower rate or a longer \
             window shows which.",
        ),
    };
    (!words.is_empty()).then(|| {
        let what = format!("{what}: {}.", words.join("; "));
        warning(Severity::Caution, what, remedy)
    })
}

/// The machine became faster or slower over the run.
fn drifting(all: &[Series], smallest_effect: f64) -> Option<Warning> {
    let limit = FALSE_RATE / all.len().max(1) as f64;
    let found: Vec<String> = all
        .iter()
        .filter_map(|series| {
            let values = series.baseline();
            let trend = trend::mann_kendall(&values).filter(|t| t.p < limit)?;
            let whole = trend.slope * (values.len() as f64 - 1.0);
            let large = whole.abs() > (1.0 + smallest_effect).ln();
            large.then(|| {
                format!(
                    "{} in {} ({})",
                    series.metric,
                    series.cell,
                    format_change(whole.exp())
                )
            })
        })
        .collect();
    (!found.is_empty()).then(|| {
        warning(
            Severity::Note,
            format!(
                "The baseline drifted from the first block to the last: {}.",
                found.join("; ")
            ),
            "Blocks take this out of the differences. Absolute figures are those of a machine that \
             changed: heat, a disk that fills, other work.",
        )
    })
}

fn heat(results: &ResultSet) -> Option<Warning> {
    let (least, most) = range(results, "temperature")?;
    (most - least > MOST_CELSIUS).then(|| {
        warning(
            Severity::Note,
            format!("The hottest CPU sensor was between {least:.0} and {most:.0} C from trial to trial."),
            "Let the machine reach its temperature before the run, or turn turbo off: `schedlab doctor --fix`",
        )
    })
}

fn clock(results: &ResultSet) -> Option<Warning> {
    let (least, most) = range(results, "cpu_mhz")?;
    (least > 0.0 && most / least > 1.0 + MOST_CLOCK).then(|| {
        warning(
            Severity::Caution,
            format!("The CPUs ran at {least:.0} to {most:.0} MHz from trial to trial."),
            "Set the governor `performance` and turn turbo off: `schedlab doctor --fix`",
        )
    })
}

/// Range of a metric over all trials that count.
fn range(results: &ResultSet, metric: &str) -> Option<(f64, f64)> {
    let trials = results.trials.iter().map(|stored| &stored.trial);
    let values = trials
        .filter(|trial| trial.is_ok())
        .filter_map(|trial| Some(trial.metric(metric)?.value));
    values.fold(None, |range, value| match range {
        None => Some((value, value)),
        Some((least, most)) => Some((f64::min(least, value), f64::max(most, value))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Table;
    use model::Measurement;

    /// The report's warnings of a synthetic run whose trials were changed.
    fn warned(change: impl Fn(&mut Trial)) -> String {
        let dir = tempfile::tempdir().unwrap();
        synthetic::write(dir.path(), &synthetic::quickstart()).unwrap();
        let mut results = ResultSet::read(dir.path()).unwrap();
        results.trials.iter_mut().for_each(|t| change(&mut t.trial));
        let table = Table::from_results(&results);
        let warnings = drift_warnings(&results, &table.cells);
        warnings.iter().map(|w| format!("{}\n", w.what)).collect()
    }

    fn scale(trial: &mut Trial, metric: &str, factor: f64) {
        let found = trial.result.metrics.iter_mut();
        found
            .filter(|m| m.metric == metric)
            .for_each(|m| m.value *= factor);
    }

    #[test]
    fn a_steady_run_has_none_of_these_warnings() {
        assert_eq!(warned(|_| {}), "");
    }

    #[test]
    fn a_difference_that_grows_is_named_with_both_ends() {
        let text = warned(|trial| {
            if trial.arm == "batch" {
                let factor = 1.0 + 0.05 * f64::from(trial.place.block);
                scale(trial, "requests_per_sec", factor);
            }
        });
        assert!(text.contains("changed while it was measured"), "{text}");
        assert!(text.contains("requests_per_sec of batch"), "{text}");
        assert!(text.contains("at first"), "{text}");
    }

    #[test]
    fn trials_that_warm_up_are_told_together() {
        let drift_of = |is_in: fn(&Trial) -> bool, percents: [f64; 4]| {
            warned(|trial| {
                if trial.place.cell > 0 {
                    return;
                }
                let percent = match is_in(trial) {
                    true => percents[trial.place.block as usize % 4],
                    false => 0.0,
                };
                trial.result.metrics.push(Measurement {
                    metric: "latency_drift".to_owned(),
                    unit: "%".to_owned(),
                    better: model::Better::Neither,
                    value: percent,
                    own: None,
                });
            })
        };
        let drift = |percents| drift_of(|_| true, percents);
        let text = drift([-30.0, -45.0, -28.0, 3.0]);
        assert!(text.contains("get faster within their windows"), "{text}");
        assert!(text.contains("latency_drift in"), "{text}");
        assert!(text.contains("median -28"), "{text}");
        let text = drift([60.0, 45.0, 28.0, 50.0]);
        assert!(text.contains("get slower within their windows"), "{text}");
        let text = drift_of(|trial| trial.arm == "batch", [-30.0, -45.0, -28.0, -33.0]);
        assert!(text.contains("latency_drift of batch in"), "{text}");
        assert_eq!(drift([-10.0, -12.0, -9.0, -11.0]), "", "not much");
        assert_eq!(
            drift([-60.0, 120.0, -50.0, 80.0]),
            "",
            "as often up as down"
        );
    }

    #[test]
    fn a_machine_that_slows_down_is_a_drift_and_no_change_of_the_difference() {
        let text = warned(|trial| {
            let factor = 1.0 - 0.04 * f64::from(trial.place.block);
            scale(trial, "requests_per_sec", factor);
        });
        assert!(text.contains("The baseline drifted"), "{text}");
        assert!(!text.contains("changed while"), "{text}");
    }

    #[test]
    fn the_place_in_the_block_is_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        synthetic::write(dir.path(), &synthetic::quickstart()).unwrap();
        let plan = ResultSet::read(dir.path()).unwrap().plan;
        let firsts: BTreeSet<u32> = plan
            .trials
            .chunk_by(|a, b| (a.block, a.cell) == (b.block, b.cell))
            .map(|block| block[0].index)
            .collect();
        let text = warned(|trial| {
            if firsts.contains(&trial.place.index) {
                scale(trial, "requests_per_sec", 0.5);
            }
        });
        assert!(text.contains("The first trial of a block"), "{text}");
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_change_the_order() {
        let text = warned(|trial| {
            // Each trial has an earlier time of day than the one before it.
            let later = u64::from(trial.place.index) * 1_000_000_000;
            trial.result.started_unix_ns = 1_795_288_566_000_000_000 - later;
            let is_first = trial.place.index % 4 == 0;
            scale(trial, "requests_per_sec", if is_first { 0.5 } else { 1.0 });
        });
        let (_, said) = text.split_once("The first trial of a block").unwrap();
        assert!(said.contains("(-"), "it was slower: {said}");
    }

    #[test]
    fn heat_and_clock_are_compared_from_trial_to_trial() {
        let text = warned(|trial| {
            let late = f64::from(trial.place.block);
            for (metric, value) in [
                ("temperature", 50.0 + 2.0 * late),
                ("cpu_mhz", 2000.0 + 50.0 * late),
            ] {
                trial.result.metrics.push(Measurement {
                    metric: metric.to_owned(),
                    unit: String::new(),
                    better: model::Better::Neither,
                    value,
                    own: None,
                });
            }
        });
        assert!(text.contains("hottest CPU sensor"), "{text}");
        assert!(text.contains("MHz from trial to trial"), "{text}");
    }
}
