//! Imported runs, all of one arm and then all of the next: level and spread of each arm, and how
//! far apart the arms are. No verdict: what changed in the meantime is mixed with the arm, and no
//! number of runs tells the two apart.

use crate::table::across::Measured;
use model::{Better, Trial, imported};
use results::ResultSet;
use serde::Serialize;
use stats::{summary, t_test, trend};

/// A trend within an arm is named below this p-value.
const TREND_P: f64 = 0.01;

/// All imported runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sequential {
    /// Name of the tool that measured them.
    pub tool: String,
    pub rows: Vec<Row>,
}

/// One metric of one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    pub cell: String,
    pub workload: String,
    benchmark: String,
    #[serde(flatten)]
    pub measured: Measured,
    /// In the order of the arms; none where an arm has no such figure.
    pub arms: Vec<Option<Level>>,
    /// One for each arm but the baseline that has the figure, as the baseline has.
    pub changes: Vec<Apart>,
}

/// Level and spread of the runs of one arm.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Level {
    pub runs: usize,
    /// Figures behind them: more than the runs where parts of a run have figures of their own.
    pub figures: usize,
    /// Arithmetic mean of all figures.
    pub mean: f64,
    /// Standard deviation of all figures (ddof = 0) in percent of the mean, which is what
    /// schedtests prints.
    pub std_percent: Option<f64>,
    /// Two-sided p-value of the Mann-Kendall test for a trend over the runs; none with fewer than
    /// three.
    pub trend_p: Option<f64>,
}

/// An arm beside the baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Apart {
    pub arm: String,
    /// Geometric mean of the arm's runs over that of the baseline's; none where a figure is 0.
    pub ratio: Option<f64>,
    /// Welch's interval of the ratio, for runs that are independent of each other; none with
    /// fewer than two runs a side or without spread.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// The change of the arithmetic means in percent as schedtests has it: positive is better.
    pub compare_percent: Option<f64>,
}

impl Row {
    /// Name of the benchmark, with which the names of its cells begin.
    pub fn benchmark_name(&self) -> &str {
        &self.benchmark
    }
}

impl Apart {
    /// The interval does not hold "no change".
    pub fn excludes_no_change(&self) -> bool {
        let ends = self.low.zip(self.high);
        ends.is_some_and(|(low, high)| low > 1.0 || high < 1.0)
    }
}

impl Level {
    /// The runs themselves rise or fall in the order in which they were made.
    pub fn has_trend(&self) -> bool {
        self.trend_p.is_some_and(|p| p < TREND_P)
    }
}

/// None where schedlab measured.
pub fn sequential_table(results: &ResultSet) -> Option<Sequential> {
    let tool = results.experiment.import_source()?.tool;
    let cells = 0..results.plan.cells.len();
    let rows = cells.flat_map(|cell| rows(results, cell));
    Some(Sequential {
        tool,
        rows: rows.collect(),
    })
}

fn rows(results: &ResultSet, cell: usize) -> Vec<Row> {
    let all = results.trials.iter().map(|stored| &stored.trial);
    let trials: Vec<&Trial> = all.filter(|t| t.place.cell == cell && t.is_ok()).collect();
    let mut metrics: Vec<Measured> = Vec::new();
    for m in trials.iter().flat_map(|trial| &trial.result.metrics) {
        let known = metrics.iter().any(|known| known.metric == m.metric);
        if m.better != Better::Neither && !known {
            metrics.push(Measured {
                metric: m.metric.clone(),
                unit: m.unit.clone(),
                better: m.better,
            });
        }
    }
    let row = |measured| row(results, cell, &trials, measured);
    metrics.into_iter().map(row).collect()
}

fn row(results: &ResultSet, cell: usize, trials: &[&Trial], measured: Measured) -> Row {
    let experiment = &results.experiment;
    let cell = &results.plan.cells[cell];
    let arms = 0..experiment.arms.len();
    let runs: Vec<Vec<Figure>> = arms.map(|arm| of_arm(trials, arm, &measured)).collect();
    let levels: Vec<Option<Level>> = runs.iter().map(|runs| level(runs)).collect();
    let baseline = experiment.baseline;
    let changes = experiment
        .arms
        .iter()
        .enumerate()
        .filter_map(|(arm, named)| {
            let pair = (levels[baseline]?, levels[arm]?);
            let alpha = 1.0 - experiment.stop.confidence;
            (arm != baseline).then(|| Apart {
                arm: named.name.clone(),
                compare_percent: compare_percent(pair.0.mean, pair.1.mean, measured.better),
                ..apart(&runs[baseline], &runs[arm], alpha)
            })
        });
    let workload = &experiment.workloads[cell.workload];
    let benchmark = workload.kind.params().get("benchmark");
    let benchmark = benchmark.and_then(|name| name.as_str()).unwrap_or_default();
    Row {
        changes: changes.collect(),
        cell: cell.name.clone(),
        workload: workload.name.clone(),
        benchmark: benchmark.to_owned(),
        arms: levels,
        measured,
    }
}

/// The figure of a run, and how many it is the mean of.
#[derive(Debug, Clone, Copy)]
struct Figure {
    value: f64,
    parts: f64,
    parts_sd: f64,
}

fn of_arm(trials: &[&Trial], arm: usize, measured: &Measured) -> Vec<Figure> {
    let name = &measured.metric;
    let (parts, parts_sd) = (imported::parts_metric(name), imported::parts_sd(name));
    let figure = |trial: &&Trial| {
        let get = |name: &str| trial.metric(name).map(|m| m.value);
        Some(Figure {
            value: get(name)?,
            parts: get(&parts).unwrap_or(1.0).max(1.0),
            parts_sd: get(&parts_sd).unwrap_or(0.0),
        })
    };
    let of_arm = trials.iter().filter(|trial| trial.place.arm == arm);
    of_arm.filter_map(figure).collect()
}

fn level(runs: &[Figure]) -> Option<Level> {
    if runs.is_empty() {
        return None;
    }
    let figures: f64 = runs.iter().map(|run| run.parts).sum();
    let mean = runs.iter().map(|run| run.parts * run.value).sum::<f64>() / figures;
    // The variance within the runs and that of their means make that of all figures.
    let squares = runs.iter().map(|run| {
        let within = run.parts_sd.powi(2);
        run.parts * (within + (run.value - mean).powi(2))
    });
    let sd = (squares.sum::<f64>() / figures).sqrt();
    let values: Vec<f64> = runs.iter().map(|run| run.value).collect();
    let std_percent = 100.0 * sd / mean;
    Some(Level {
        runs: runs.len(),
        figures: usize::try_from(model::truncate_to_u64(figures)).unwrap_or(usize::MAX),
        mean,
        std_percent: std_percent.is_finite().then_some(std_percent),
        trend_p: trend::mann_kendall(&values).map(|trend| trend.p),
    })
}

fn apart(baseline: &[Figure], arm: &[Figure], alpha: f64) -> Apart {
    let logs = |runs: &[Figure]| -> Option<Vec<f64>> {
        let log = |run: &Figure| (run.value > 0.0).then(|| run.value.ln());
        runs.iter().map(log).collect()
    };
    let known = logs(arm).zip(logs(baseline));
    let means = known.as_ref().and_then(|(arm, baseline)| {
        let difference = summary::mean(arm)? - summary::mean(baseline)?;
        Some(difference.exp()).filter(|ratio| ratio.is_finite())
    });
    let test = known.and_then(|(arm, baseline)| t_test::welch_test(&arm, &baseline, alpha));
    let end = |end: f64| Some(end.exp()).filter(|end| end.is_finite());
    Apart {
        arm: String::new(),
        ratio: means,
        low: test.and_then(|test| end(test.interval.low)),
        high: test.and_then(|test| end(test.interval.high)),
        compare_percent: None,
    }
}

/// `(1 − c/b)·100` where lower is better, else `(c/b − 1)·100`.
fn compare_percent(baseline: f64, arm: f64, better: Better) -> Option<f64> {
    let change = arm / baseline;
    let percent = match better {
        Better::Lower => 100.0 * (1.0 - change),
        _ => 100.0 * (change - 1.0),
    };
    percent.is_finite().then_some(percent)
}
