//! Longer trials, more blocks, or more runs? Where the variance is, there repetition
//! pays (Kalibera and Jones, "Rigorous benchmarking in reasonable time", 2013).
//!
//! Within a trial the seconds of its interval logs tell, between trials the blocks,
//! between runs (boots, days) several directories of one experiment.

use super::Source;
use crate::certificate::short_percent;
use crate::hlog;
use hdrhistogram::Histogram;
use model::format_duration_ns;
use results::{ResultSet, StoredTrial, log_ratios};
use stats::levels::{self, Levels};
use stats::summary::{self, Moments};

/// A gain in precision that is worth a sentence.
const WORTH_SAYING: f64 = 0.1;
/// Fewest samples beyond a quantile that make an interval's quantile worth using; the
/// generators have the same rule.
const FEWEST_BEYOND: f64 = 10.0;
/// Fewest trials that a statement about longer trials may rest on.
const FEWEST_TRIALS: usize = 6;

pub struct Runs<'a> {
    pub sources: &'a [Source<'a>],
    pub pause_ns: f64,
}

/// One sentence for each metric of a cell where another layout pays. Turns have none: their windows
/// are as short as a pilot or the user chose them.
pub fn advise_lengths(runs: &Runs, wanted: &[(String, String)]) -> Vec<String> {
    let mut said = Vec::new();
    let turned = |cell: &str| {
        let trials = runs.sources.iter().flat_map(|s| &s.results.trials);
        let mut here = trials.filter(|stored| stored.trial.cell == cell);
        here.any(|stored| stored.trial.result.windows.is_some())
    };
    for (cell, metric) in wanted.iter().filter(|(cell, _)| !turned(cell)) {
        let place = format!("{cell}, {metric}");
        said.extend(
            runs.trial_length(cell, metric)
                .map(|advice| format!("{place}: {advice}")),
        );
        said.extend(
            runs.more_runs(cell, metric)
                .map(|advice| format!("{place}: {advice}")),
        );
    }
    said
}

impl Runs<'_> {
    fn trial_length(&self, cell: &str, metric: &str) -> Option<String> {
        let trials = self.trials_with_intervals(cell, metric);
        if trials.len() < FEWEST_TRIALS {
            return None;
        }
        let seconds: Vec<&[f64]> = trials.iter().map(|t| t.values.as_slice()).collect();
        let within = pooled_variance(&seconds)?;
        let count = summary::mean(
            &trials
                .iter()
                .map(|t| t.values.len() as f64)
                .collect::<Vec<_>>(),
        )?;
        // Of one trial; a block's log-ratio has that of two.
        let trial = self.block_variance(cell, metric)? / 2.0;
        let levels = Levels {
            within,
            between: (trial - within / count).max(0.0),
        };
        let length_ns = trials[0].interval_ns;
        let elapsed = summary::mean(&trials.iter().map(|t| t.elapsed_ns).collect::<Vec<_>>())?;
        let around_ns = (elapsed + self.pause_ns - count * length_ns).max(0.0);
        length_advice(levels, count, length_ns, around_ns)
    }

    /// Trials with at least two whole intervals, with the metric of each.
    fn trials_with_intervals(&self, cell: &str, metric: &str) -> Vec<Intervals> {
        let trials = self
            .sources
            .iter()
            .flat_map(|source| &source.results.trials);
        let here = trials.filter(|stored| stored.trial.cell == cell && stored.trial.is_ok());
        here.filter_map(|stored| intervals(stored, metric))
            .collect()
    }

    fn block_variance(&self, cell: &str, metric: &str) -> Option<f64> {
        let runs = self.sources.iter().map(|source| source.results);
        let series: Vec<Vec<f64>> = runs.flat_map(|r| series_of_run(r, cell, metric)).collect();
        pooled_variance(&series.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    /// Advice on more runs: do the means of several runs differ more than their blocks explain?
    fn more_runs(&self, cell: &str, metric: &str) -> Option<String> {
        let runs: Vec<Vec<f64>> = self
            .sources
            .iter()
            .filter_map(|source| {
                series_of_run(source.results, cell, metric)
                    .into_iter()
                    .next()
            })
            .collect();
        let groups: Vec<&[f64]> = runs.iter().map(Vec::as_slice).collect();
        let levels = levels::split_variance(&groups)?;
        let blocks = runs.iter().map(Vec::len).max()? as f64;
        let setup = summary::mean(
            &self
                .sources
                .iter()
                .map(|s| s.setup_ns as f64)
                .collect::<Vec<_>>(),
        )?;
        let block_ns = self.block_of_two(cell)?;
        run_advice(levels, blocks, setup, block_ns)
    }

    /// A trial of one arm and one of the baseline.
    fn block_of_two(&self, cell: &str) -> Option<f64> {
        Some(2.0 * (super::mean_trial_ns(self.sources, cell)? + self.pause_ns))
    }
}

fn length_advice(levels: Levels, count: f64, length_ns: f64, around_ns: f64) -> Option<String> {
    let best = match levels.optimum_repetitions(around_ns, length_ns) {
        Some(best) => f64::from(best),
        // Trials do not differ beyond what their seconds do: cost alone decides, and
        // ten times the time around a trial leaves next to nothing to gain.
        None => (10.0 * around_ns / length_ns).ceil().max(count),
    };
    let cost = |n: f64| (levels.between + levels.within / n) * (around_ns + n * length_ns);
    let gain = 1.0 - (cost(best) / cost(count)).sqrt();
    let (now, then) = (written(count * length_ns), written(best * length_ns));
    let pays = match best > count {
        true => "longer trials pay",
        false => "shorter trials and more blocks pay",
    };
    (gain > WORTH_SAYING && now != then).then(|| {
        format!(
            "{pays}: {then} instead of {now} make the interval about {} narrower in the same time",
            short_percent(gain)
        )
    })
}

fn run_advice(levels: Levels, blocks: f64, setup_ns: f64, block_ns: f64) -> Option<String> {
    let best = f64::from(levels.optimum_repetitions(setup_ns, block_ns)?);
    let share = levels.between / (levels.between + levels.within / blocks);
    if share < WORTH_SAYING {
        return None;
    }
    let what = format!(
        "runs differ by {} (standard deviation) beyond what their blocks explain",
        short_percent(levels.between.sqrt().exp_m1())
    );
    Some(match best < blocks {
        true => format!(
            "{what}: more runs (boots, days) of about {best} blocks pay, longer ones do not"
        ),
        false => format!("{what}: more blocks in each run pay still, about {best}"),
    })
}

fn written(ns: f64) -> String {
    format_duration_ns(model::truncate_to_u64((ns / 1e8).round()).saturating_mul(100_000_000))
}

fn pooled_variance(groups: &[&[f64]]) -> Option<f64> {
    let moments = groups.iter().map(|group| Moments::from_values(group));
    let (squares, freedom) = moments.fold((0.0, 0), |(squares, freedom), m| {
        (
            squares + m.squared_deviations(),
            freedom + m.count().saturating_sub(1),
        )
    });
    (freedom > 0).then(|| squares / f64::from(freedom))
}

/// The log-ratios of every arm against the baseline.
fn series_of_run(results: &ResultSet, cell: &str, metric: &str) -> Vec<Vec<f64>> {
    let Some(index) = results.plan.cells.iter().position(|c| c.name == cell) else {
        return Vec::new();
    };
    let baseline = results.experiment.baseline;
    let arms = (0..results.experiment.arms.len()).filter(|arm| *arm != baseline);
    arms.map(|arm| {
        let trials = results.trials.iter().map(|stored| &stored.trial);
        let ratios = log_ratios(trials, index, metric, arm, baseline);
        ratios.iter().map(|ratio| ratio.x).collect()
    })
    .collect()
}

/// A metric in each whole interval of one trial.
struct Intervals {
    /// Logarithms.
    values: Vec<f64>,
    interval_ns: f64,
    elapsed_ns: f64,
}

fn intervals(stored: &StoredTrial, metric: &str) -> Option<Intervals> {
    let (log, quantile) = match metric {
        "requests_per_sec" => ("request", None),
        metric => {
            let (log, name) = metric.rsplit_once("_p")?;
            (log, Some(format!("0.{name}").parse::<f64>().ok()?))
        }
    };
    let text = results::files::read(&stored.dir.join(format!("{log}.hlog"))).ok()?;
    let value = |histogram: &Histogram<u64>| match quantile {
        None => Some(histogram.len() as f64),
        Some(q) if histogram.len() as f64 * (1.0 - q) < FEWEST_BEYOND => None,
        Some(q) => Some(histogram.value_at_quantile(q) as f64),
    };
    let (interval_ns, values) = of_whole_intervals(&text, value)?;
    let values = values.into_iter().map(|v| v.filter(|v| *v > 0.0));
    Some(Intervals {
        values: values
            .map(|value| value.map(f64::ln))
            .collect::<Option<Vec<f64>>>()
            .filter(|v| v.len() > 1)?,
        interval_ns,
        elapsed_ns: stored.trial.result.elapsed_ns as f64,
    })
}

/// The length of the first interval of a log, and the value of each that is as long.
fn of_whole_intervals<T>(
    text: &[u8],
    value: impl Fn(&Histogram<u64>) -> T,
) -> Option<(f64, Vec<T>)> {
    let mut histogram = Histogram::new(3).ok()?;
    histogram.auto(true);
    let mut buffer = Vec::new();
    let mut first_ns = None;
    let mut values = Vec::new();
    for interval in hlog::read_intervals(text) {
        let interval = interval.ok()?;
        let length_ns = interval.length.as_nanos() as f64;
        let first_ns = *first_ns.get_or_insert(length_ns);
        if (length_ns - first_ns).abs() < 0.01 * first_ns {
            histogram.reset();
            interval.add_to(&mut histogram, &mut buffer).ok()?;
            values.push(value(&histogram));
        }
    }
    Some((first_ns?, values))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: f64 = 1e9;

    #[test]
    fn trials_that_vary_within_should_be_longer() {
        let levels = Levels {
            within: 9.0,
            between: 0.1,
        };
        let said = length_advice(levels, 2.0, SECOND, 2.0 * SECOND).unwrap();
        // sqrt(2 · 90) = 13.4.
        assert!(
            said.contains("longer trials pay: 14s instead of 2s"),
            "{said}"
        );
    }

    #[test]
    fn trials_that_differ_from_each_other_should_be_shorter() {
        let levels = Levels {
            within: 0.1,
            between: 9.0,
        };
        let said = length_advice(levels, 10.0, SECOND, 0.5 * SECOND).unwrap();
        assert!(
            said.contains("shorter trials and more blocks pay: 1s"),
            "{said}"
        );
    }

    #[test]
    fn a_length_that_fits_needs_no_advice() {
        let levels = Levels {
            within: 1.0,
            between: 1.0,
        };
        assert_eq!(length_advice(levels, 2.0, SECOND, 4.0 * SECOND), None);
    }

    #[test]
    fn runs_that_differ_ask_for_more_runs() {
        let levels = Levels {
            within: 0.01,
            between: 0.04,
        };
        let said = run_advice(levels, 20.0, 30.0 * SECOND, 10.0 * SECOND).unwrap();
        assert!(
            said.contains("more runs (boots, days) of about 1 blocks pay"),
            "{said}"
        );
    }

    #[test]
    fn runs_that_agree_need_no_advice() {
        let levels = Levels {
            within: 1.0,
            between: 0.0,
        };
        assert_eq!(run_advice(levels, 20.0, SECOND, SECOND), None);
    }
}
