//! The figures of a certificate, from the trials of arms that are the same.

use super::{CellNoise, Certificate, Sight, TIMES_NS};
use crate::noise::{Series, change_of_shift, has_turns_in, visible_shift};
use model::{Better, Scale};
use results::ResultSet;
use stats::planner::Confidence;
use stats::{bounds, summary};

impl Certificate {
    /// `None` where no arm repeats the baseline, or no two of them were measured.
    pub fn from_results(results: &ResultSet) -> Option<Certificate> {
        let scope = Scope::new(results)?;
        let cells: Vec<CellNoise> = (0..results.plan.cells.len())
            .flat_map(|cell| scope.cell(cell))
            .collect();
        let comparisons = cells.iter().map(|c| c.comparisons).sum();
        (comparisons > 0).then(|| Certificate {
            confidence: results.experiment.stop.confidence,
            power: scope.planned().power,
            arms: scope.arms.len(),
            comparisons,
            false_calls: cells.iter().map(|c| c.false_calls).sum(),
            cells,
        })
    }
}

fn in_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Results of one directory, and their arms that are the same.
struct Scope<'a> {
    results: &'a ResultSet,
    /// Indices of the arms that are the same.
    arms: Vec<usize>,
}

impl<'a> Scope<'a> {
    fn new(results: &'a ResultSet) -> Option<Scope<'a>> {
        let experiment = &results.experiment;
        let same = |arm: &usize| *arm == experiment.baseline || experiment.repeats_baseline(*arm);
        let arms: Vec<usize> = (0..experiment.arms.len()).filter(same).collect();
        (arms.len() > 1).then_some(Scope { results, arms })
    }

    fn planned(&self) -> Confidence {
        Confidence::for_alpha(1.0 - self.results.experiment.stop.confidence)
    }

    fn cell(&self, cell: usize) -> Vec<CellNoise> {
        let workload = self.results.plan.cells[cell].workload;
        let metrics = &self.results.experiment.workloads[workload].metrics;
        metrics.iter().filter_map(|m| self.noise(cell, m)).collect()
    }

    fn noise(&self, cell: usize, metric: &str) -> Option<CellNoise> {
        let series: Vec<Series> = self
            .pairs(cell)
            .into_iter()
            .map(|(a, b)| Series::from_results(self.results, cell, metric, b, a))
            .filter(|series| series.len() > 0)
            .collect();
        let blocks = series.iter().map(Series::count_blocks).max()?;
        let called = series.iter().filter(|xs| self.is_called(xs)).count();
        let spread = pooled_spread(&series);
        let pairs = series.iter().find_map(Series::pairs_of_a_process);
        let freedom = match pairs {
            // Each pair of arms has windows of its own.
            Some(_) => series
                .iter()
                .map(|series| series.squares_and_freedom().1)
                .sum(),
            // Blocks and arms each take one from what can vary.
            None => blocks.saturating_sub(1) * (in_u32(self.arms.len()) - 1),
        };
        let known = spread.and_then(|sd| bounds::standard_deviation(sd, freedom, 0.1));
        let block_ns = self.block_ns(cell);
        let sight = |time_ns: u64| {
            let blocks = u32::try_from(time_ns / block_ns.max(1)).unwrap_or(u32::MAX);
            Sight {
                time_ns,
                blocks,
                change: spread
                    .and_then(|sd| visible_shift(sd, blocks, pairs, self.planned()))
                    .map(|shift| change_of_shift(shift, Scale::Ratio)),
            }
        };
        Some(CellNoise {
            cell: self.results.plan.cells[cell].name.clone(),
            metric: metric.to_owned(),
            comparisons: in_u32(series.len()),
            false_calls: in_u32(called),
            blocks,
            pairs,
            spread,
            spread_low: known.map(|i| i.low),
            spread_high: known.map(|i| i.high),
            block_ns,
            sees: TIMES_NS.map(sight).to_vec(),
        })
    }

    /// Each arm with each later one; the baseline with each, where arms took turns in pairs with it.
    fn pairs(&self, cell: usize) -> Vec<(usize, usize)> {
        let arms = &self.arms;
        if has_turns_in(self.results, cell) {
            let baseline = self.results.experiment.baseline;
            let others = arms.iter().filter(|arm| **arm != baseline);
            return others.map(|arm| (baseline, *arm)).collect();
        }
        let from = |n: usize| arms[n..].iter().map(move |b| (arms[n - 1], *b));
        (1..arms.len()).flat_map(from).collect()
    }

    fn is_called(&self, series: &Series) -> bool {
        let stop = &self.results.experiment.stop;
        let judged = match series {
            Series::Blocks(xs) => judge::judge_blocks(xs, Better::Higher, stop),
            Series::Turns(processes) => {
                judge::judge_ratios_in_turns(processes, Better::Higher, stop)
            }
        };
        let judged = match self.results.manifest.sources.len() > 1 {
            true => judge::at_the_end(judged, Better::Higher, stop),
            false => judged,
        };
        judged.verdict.is_call()
    }

    fn block_ns(&self, cell: usize) -> u64 {
        let trials = self.results.trials.iter().map(|stored| &stored.trial);
        let here = trials.filter(|t| t.place.cell == cell && self.arms.contains(&t.place.arm));
        let times: Vec<f64> = here.map(|t| t.result.elapsed_ns as f64).collect();
        let arms = self.results.experiment.arms.len() as f64;
        let trials = match has_turns_in(self.results, cell) {
            // The process is shared out between all arms, and its pairs between all but one.
            true => arms / (arms - 1.0),
            false => 2.0,
        };
        model::truncate_to_u64(trials * summary::mean(&times).unwrap_or(0.0))
    }
}

/// The mean variance of the pairs: with complete blocks this is twice the residual
/// variance of blocks × arms, so every trial is used.
fn pooled_spread(series: &[Series]) -> Option<f64> {
    let squares = series.iter().map(Series::squares_and_freedom);
    let variances: Vec<f64> = squares
        .filter(|(_, freedom)| *freedom > 0)
        .map(|(squares, freedom)| squares / f64::from(freedom))
        .collect();
    summary::mean(&variances).map(f64::sqrt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_of_pairs_is_twice_the_residual_variance() {
        // numpy 2.4.6: r = t - t.mean(1, keepdims=True) - t.mean(0, keepdims=True) +
        // t.mean(); sqrt(2 * (r**2).sum() / 6).
        let table = [
            [0.10, 0.00, 0.05],
            [0.02, 0.13, 0.04],
            [0.21, 0.08, 0.19],
            [0.00, 0.01, 0.07],
        ];
        let pair = |a: usize, b: usize| {
            table
                .iter()
                .map(|row| row[b] - row[a])
                .collect::<Vec<f64>>()
        };
        let series = [pair(0, 1), pair(0, 2), pair(1, 2)].map(Series::Blocks);
        let spread = pooled_spread(&series).unwrap();
        assert!((spread - 0.08579691784155835).abs() < 1e-12, "{spread}");
    }
}
