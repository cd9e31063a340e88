//! The planner: what a time will show, and what time a change will take, told from
//! the noise of a pilot or of earlier results.
//!
//! The noise is the spread of a block's log-ratio, or of its difference where that is the scale of the
//! metric. It is itself only estimated, so
//! beside each answer stands the one for a spread as high as it may well be.

mod lengths;
mod text;

use crate::forecast::lengths::Runs;
use crate::noise::{Compared, Series, change_of_shift, has_turns, shift_of_change, visible_shift};
use model::{Experiment, Scale, StopRule, Trial};
use results::ResultSet;
use serde::Serialize;
use stats::bounds;
use stats::levels::{self, Levels};
use stats::planner::{Confidence, blocks_to_detect, blocks_to_show_same, processes_to_show_same};
use stats::summary;

/// A pause between trials that is longer is not part of measuring: the run was
/// interrupted and resumed.
const LONGEST_PAUSE_NS: u64 = 300_000_000_000;
/// The true spread is above the higher one said in one of 20 pilots.
const SPREAD_ALPHA: f64 = 0.1;

/// Results of an earlier run, or of a pilot.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Results that the noise is taken from.
    pub results: &'a ResultSet,
    /// From the start of the run to its first trial: what one more run costs.
    pub setup_ns: u64,
}

/// Question to the planner: changes that some times show, and the time that a change takes.
#[derive(Debug, Clone)]
pub struct Question {
    /// Times for which the smallest visible change is wanted.
    pub times_ns: Vec<u64>,
    /// Change, as a fraction, for which the blocks that it takes are wanted.
    pub effect: Option<f64>,
}

/// Answers of the planner for one experiment. They serialize to the JSON of `schedlab plan`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Forecast {
    confidence: f64,
    power: f64,
    /// Blocks that the answers come from, at least.
    pilot_blocks: u32,
    runs: usize,
    /// One trial of each arm in each cell.
    block_ns: u64,
    max_blocks: u32,
    times: Vec<Time>,
    effect: Option<f64>,
    rows: Vec<Row>,
    /// Cells and metrics of the experiment that the sources say nothing of.
    unknown: Vec<String>,
    advice: Vec<String>,
    /// Answers of those sources in which each trial was a process of its own, where in others
    /// arms took turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    whole_trials: Option<Box<Forecast>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Time {
    time_ns: u64,
    /// Blocks that the time holds, at most max-blocks.
    blocks: u32,
    capped: bool,
}

/// One deciding metric of one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Row {
    cell: String,
    metric: String,
    /// Pairs of windows of each arm in a block, where arms take turns.
    pairs: Option<u32>,
    /// Unit of spread and changes, where the metric is compared by differences.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
    /// Standard deviation of the log-ratio or the difference of a block, or of a pair of windows, and
    /// as high as it may be.
    spread: f64,
    spread_high: f64,
    /// For each of the times.
    sees: Vec<Answer<f64>>,
    /// Blocks for the effect, where one was asked for. It is a fraction, which no difference is.
    blocks: Option<Answer<u32>>,
    /// Blocks to call equal arms the same.
    blocks_to_same: Option<u32>,
}

/// Mean time of the trials of a cell in all sources, without the pauses between them.
fn mean_trial_ns(sources: &[Source], cell: &str) -> Option<f64> {
    let trials = sources.iter().flat_map(|source| &source.results.trials);
    let here = trials.filter(|stored| stored.trial.cell == cell);
    let times: Vec<f64> = here.map(|t| t.trial.result.elapsed_ns as f64).collect();
    summary::mean(&times)
}

/// For the spread as estimated, and as high as it may be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Answer<T> {
    expected: Option<T>,
    at_worst: Option<T>,
}

impl Forecast {
    /// For `experiment`, from runs that had some of its cells. Where arms took turns in some of
    /// them, the others are answered beside.
    pub fn new(experiment: &Experiment, sources: &[Source], question: &Question) -> Forecast {
        let (turns, whole): (Vec<Source>, Vec<Source>) =
            sources.iter().partition(|source| has_turns(source.results));
        if turns.is_empty() || whole.is_empty() {
            return Forecast::of(experiment, sources, question);
        }
        let beside = Forecast::of(experiment, &whole, question);
        Forecast {
            whole_trials: Some(Box::new(beside)),
            ..Forecast::of(experiment, &turns, question)
        }
    }

    fn of(experiment: &Experiment, sources: &[Source], question: &Question) -> Forecast {
        let scope = Scope::new(experiment, sources);
        let planned = Confidence::for_alpha(1.0 - experiment.stop.confidence);
        let block_ns = scope.block_ns();
        let times = question
            .times_ns
            .iter()
            .map(|time| scope.time(*time, block_ns));
        let mut forecast = Forecast {
            confidence: experiment.stop.confidence,
            power: planned.power,
            pilot_blocks: 0,
            runs: sources.len(),
            block_ns,
            max_blocks: experiment.stop.max_blocks,
            times: times.collect(),
            effect: question.effect,
            rows: Vec::new(),
            unknown: Vec::new(),
            advice: Vec::new(),
            whole_trials: None,
        };
        for (cell, metric) in &scope.wanted {
            match scope.noise(cell, metric) {
                Some(noise) => forecast.add(noise, planned),
                None => forecast.unknown.push(format!("{cell}, {metric}")),
            }
        }
        forecast.advice = lengths::advise_lengths(&scope.runs(), &scope.wanted);
        forecast
    }

    fn add(&mut self, noise: Noise, planned: Confidence) {
        let few = |blocks: u32| self.pilot_blocks == 0 || blocks < self.pilot_blocks;
        if few(noise.blocks) {
            self.pilot_blocks = noise.blocks;
        }
        let scale = scale_of_unit(noise.unit.as_deref());
        let sees = |time: &Time| {
            let shift = |sd| visible_shift(sd, time.blocks, noise.pairs, planned);
            noise.answer(|sd| Some(change_of_shift(shift(sd)?, scale)))
        };
        let blocks = |effect| {
            let shift = shift_of_change(effect, scale);
            let pairs = noise.pairs.unwrap_or(1);
            noise.answer(|sd| Some(blocks_to_detect(shift, sd, planned)?.div_ceil(pairs)))
        };
        let effect = self.effect.filter(|_| scale == Scale::Ratio);
        self.rows.push(Row {
            sees: self.times.iter().map(sees).collect(),
            blocks: effect.map(blocks),
            blocks_to_same: noise.blocks_to_same(planned),
            pairs: noise.pairs,
            unit: noise.unit,
            spread: noise.spread,
            spread_high: noise.spread_high,
            cell: noise.cell,
            metric: noise.metric,
        });
    }
}

/// Scale of a row: what is compared by differences has a unit.
fn scale_of_unit(unit: Option<&str>) -> Scale {
    match unit {
        Some(_) => Scale::Difference,
        None => Scale::Ratio,
    }
}

struct Noise {
    cell: String,
    metric: String,
    /// Unit of a metric that is compared by differences.
    unit: Option<String>,
    /// Smallest change that is of interest: a fraction, or a difference in the unit.
    smallest_effect: f64,
    spread: f64,
    spread_high: f64,
    blocks: u32,
    /// Pairs of windows of each arm in a block, where arms take turns.
    pairs: Option<u32>,
    /// Variance of what processes differ by, where arms take turns.
    between: f64,
}

impl Noise {
    fn blocks_to_same(&self, planned: Confidence) -> Option<u32> {
        let band = shift_of_change(self.smallest_effect, scale_of_unit(self.unit.as_deref()));
        let Some(pairs) = self.pairs else {
            return blocks_to_show_same(band, self.spread, planned);
        };
        let levels = Levels {
            within: self.spread * self.spread,
            between: self.between,
        };
        processes_to_show_same(band, levels, pairs, planned)
    }

    fn answer<T>(&self, question: impl Fn(f64) -> Option<T>) -> Answer<T> {
        Answer {
            expected: question(self.spread),
            at_worst: question(self.spread_high),
        }
    }
}

/// The experiment that is planned, and where its noise is known from.
struct Scope<'a> {
    experiment: &'a Experiment,
    sources: &'a [Source<'a>],
    /// Cell and deciding metric, by name.
    wanted: Vec<(String, String)>,
}

impl<'a> Scope<'a> {
    fn new(experiment: &'a Experiment, sources: &'a [Source<'a>]) -> Scope<'a> {
        let plans = sources.iter().map(|source| &source.results.plan);
        let measured: Vec<&model::Cell> = plans.flat_map(|plan| &plan.cells).collect();
        let mut wanted = Vec::new();
        for workload in &experiment.workloads {
            for load in &workload.loads {
                // A cell is known by its name, as the plan gives it.
                let named = |cell: &&&model::Cell| {
                    cell.load == *load && cell.name.starts_with(&workload.name)
                };
                let known = measured.iter().find(named).map(|cell| cell.name.clone());
                let name = known.unwrap_or_else(|| format!("{} {load}", workload.name));
                let metrics = workload.metrics.iter();
                wanted.extend(metrics.map(|metric| (name.clone(), metric.clone())));
            }
        }
        Scope {
            experiment,
            sources,
            wanted,
        }
    }

    fn noise(&self, cell: &str, metric: &str) -> Option<Noise> {
        let compared = self.comparisons(cell, metric);
        let by_differences = compared
            .iter()
            .any(|one| one.choose_scale() == Scale::Difference);
        let scale = match by_differences {
            true => Scale::Difference,
            false => Scale::Ratio,
        };
        let all: Vec<Series> = compared.iter().map(|one| one.read_series(scale)).collect();
        let (squares, freedom) = all.iter().map(Series::squares_and_freedom).fold(
            (0.0, 0),
            |(squares, freedom), (more_squares, more_freedom)| {
                (squares + more_squares, freedom + more_freedom)
            },
        );
        if freedom == 0 || squares == 0.0 {
            return None;
        }
        // In turns each arm has windows of the baseline of its own.
        let shares = |series: &&Series| {
            matches!(series, Series::Blocks(_)) && series.squares_and_freedom().1 > 0
        };
        let arms = u32::try_from(all.iter().filter(shares).count()).unwrap_or(u32::MAX);
        let blocks = all.iter().map(Series::count_blocks).max()?;
        let spread = (squares / f64::from(freedom)).sqrt();
        let known = bounds::standard_deviation(spread, effective(freedom, arms), SPREAD_ALPHA)?;
        let unit = compared.iter().map(Compared::unit);
        let unit = unit.max_by_key(|unit| unit.len());
        let stop = &self.experiment.stop;
        Some(Noise {
            cell: cell.to_owned(),
            metric: metric.to_owned(),
            unit: unit.filter(|_| by_differences).map(str::to_owned),
            smallest_effect: smallest_effect(&compared, by_differences, stop),
            spread,
            spread_high: known.high,
            blocks,
            pairs: all.iter().find_map(Series::pairs_of_a_process),
            between: between(&all),
        })
    }

    /// The comparisons of a metric, of every arm with its baseline, run by run.
    fn comparisons<'n>(&'n self, cell: &str, metric: &'n str) -> Vec<Compared<'n>> {
        let mut all = Vec::new();
        for source in self.sources {
            let results = source.results;
            let Some(cell) = results.plan.cells.iter().position(|c| c.name == cell) else {
                continue;
            };
            let baseline = results.experiment.baseline;
            for arm in (0..results.experiment.arms.len()).filter(|arm| *arm != baseline) {
                all.push(Compared {
                    results,
                    cell,
                    metric,
                    arm,
                    baseline,
                });
            }
        }
        all
    }

    /// One trial of each arm in every cell that is known.
    fn block_ns(&self) -> u64 {
        let mut cells: Vec<&String> = self.wanted.iter().map(|(cell, _)| cell).collect();
        cells.dedup();
        let pause_ns = self.pause_ns();
        let trial_ns = |cell: &String| {
            Some(model::truncate_to_u64(
                mean_trial_ns(self.sources, cell)? + pause_ns,
            ))
        };
        let trials = cells.into_iter().filter_map(trial_ns);
        let trials = trials.fold(0, u64::saturating_add);
        trials.saturating_mul(self.experiment.arms.len() as u64)
    }

    fn pause_ns(&self) -> f64 {
        let pauses = self
            .sources
            .iter()
            .flat_map(|source| measure_pauses(source.results));
        summary::mean(&pauses.collect::<Vec<f64>>()).unwrap_or(0.0)
    }

    fn time(&self, time_ns: u64, block_ns: u64) -> Time {
        let blocks = u32::try_from(time_ns / block_ns.max(1)).unwrap_or(u32::MAX);
        let most = self.experiment.stop.max_blocks;
        Time {
            time_ns,
            blocks: blocks.min(most),
            capped: blocks > most,
        }
    }

    fn runs(&self) -> Runs<'a> {
        Runs {
            sources: self.sources,
            pause_ns: self.pause_ns(),
        }
    }
}

/// Smallest change that is of interest: a fraction, or the least of the differences that the comparisons
/// have.
fn smallest_effect(compared: &[Compared], by_differences: bool, stop: &StopRule) -> f64 {
    let differences = compared
        .iter()
        .filter_map(|one| one.smallest_difference(stop));
    match by_differences {
        true => differences.reduce(f64::min).unwrap_or(0.0),
        false => stop.smallest_effect,
    }
}

/// Mean variance of what the processes of an arm differ by; 0 of blocks.
fn between(all: &[Series]) -> f64 {
    let of_series = |series: &Series| {
        let Series::Turns(processes) = series else {
            return None;
        };
        let groups: Vec<&[f64]> = processes.iter().map(Vec::as_slice).collect();
        Some(levels::split_variance(&groups)?.between)
    };
    let variances: Vec<f64> = all.iter().filter_map(of_series).collect();
    summary::mean(&variances).unwrap_or(0.0)
}

/// Arms share the trials of the baseline, so their log-ratios correlate by 1/2 and
/// the squares of these by 1/4: so many degrees of freedom are as good as all.
#[expect(
    clippy::cast_possible_truncation,
    reason = "at most `freedom`, which is a u32"
)]
fn effective(freedom: u32, arms: u32) -> u32 {
    let shared = 1.0 + f64::from(arms.saturating_sub(1)) / 4.0;
    ((f64::from(freedom) / shared).round() as u32).max(1)
}

/// Between the end of a trial and the start of the next.
pub(crate) fn measure_pauses(results: &ResultSet) -> Vec<f64> {
    let mut trials: Vec<&Trial> = results.trials.iter().map(|stored| &stored.trial).collect();
    trials.sort_by_key(|trial| trial.order_key());
    let times: Vec<(u64, u64)> = trials
        .iter()
        .map(|trial| &trial.result)
        .map(|r| {
            (
                r.started_unix_ns,
                r.started_unix_ns.saturating_add(r.elapsed_ns),
            )
        })
        .collect();
    let pairs = times.windows(2);
    pairs
        .map(|pair| pair[1].0.saturating_sub(pair[0].1))
        .filter(|pause| *pause < LONGEST_PAUSE_NS)
        .map(|pause| pause as f64)
        .collect()
}

#[cfg(test)]
mod tests;
