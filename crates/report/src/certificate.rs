//! The noise certificate: what is called where nothing differs, how far the blocks
//! of each cell vary, and so the smallest change that each cell can see.
//!
//! It comes from the arms that repeat the baseline under another name, as
//! `schedlab certify` and `aa = true` have them. All are the same, so each is
//! compared with each, not only with the baseline, and judged after every block:
//! whatever is called better or worse is a false call.

use crate::quantity::percent;
use crate::render::columns::{Align, Columns, wrap};
use model::{Better, format_duration_ns};
use results::{ResultSet, log_ratios};
use serde::{Deserialize, Serialize};
use stats::planner::{Confidence, detectable_change};
use stats::{bounds, summary};

/// The exported copy in a results directory, for programs.
pub const FILE: &str = "certificate.json";

const SECOND_NS: u64 = 1_000_000_000;
/// The times for which the smallest visible change is said.
const TIMES_NS: [u64; 4] = [
    60 * SECOND_NS,
    300 * SECOND_NS,
    1800 * SECOND_NS,
    7200 * SECOND_NS,
];
/// Mailing lists break longer lines.
const WIDTH: usize = 77;
/// Too narrow for all times.
const NARROW: usize = 70;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// Of one comparison, and of the planned detection.
    pub confidence: f64,
    pub power: f64,
    /// Arms that are the same, the baseline included.
    pub arms: usize,
    /// Comparisons of an arm with itself, over all cells and deciding metrics.
    pub comparisons: u32,
    /// Those that were called better or worse.
    pub false_calls: u32,
    pub cells: Vec<CellNoise>,
}

/// One deciding metric of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellNoise {
    pub cell: String,
    pub metric: String,
    pub comparisons: u32,
    pub false_calls: u32,
    /// Most blocks that two arms have in common.
    pub blocks: u32,
    /// Standard deviation of a block's log-ratio; none with fewer than two blocks.
    pub spread: Option<f64>,
    /// Where the true one is, at 90 %, were the blocks normal.
    pub spread_low: Option<f64>,
    pub spread_high: Option<f64>,
    /// Mean time of one trial of the baseline and one of another arm.
    pub block_ns: u64,
    pub sees: Vec<Sight>,
}

/// What can be seen in a time, spent on this cell and one arm alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sight {
    pub time_ns: u64,
    pub blocks: u32,
    /// Smallest gain that is called with the power of the certificate; none where
    /// so few blocks decide nothing.
    pub change: Option<f64>,
}

impl Certificate {
    /// `None` where no arm repeats the baseline, or no two of them were measured.
    pub fn of(results: &ResultSet) -> Option<Certificate> {
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

    /// For terminals and mailing lists: plain ASCII, under 78 columns.
    pub fn text(&self) -> String {
        self.text_within(WIDTH)
    }

    /// The same for a terminal that may be narrower.
    pub fn text_within(&self, width: usize) -> String {
        let width = width.min(WIDTH);
        let mut lines = vec!["Noise certificate".to_owned()];
        lines.extend(wrap(&self.summary(), width, 2, 2));
        lines.push(String::new());
        let columns = self.columns(match width < NARROW {
            true => TIMES_NS.len() / 2,
            false => 0,
        });
        let all: Vec<usize> = (0..columns.count()).collect();
        let widths = columns.widths(2, width, &all);
        lines.push(columns.head(2, &widths));
        lines.extend(columns.rows(2, &widths, |_, text| text));
        lines.push(String::new());
        lines.extend(wrap(&self.explanation(), width, 2, 2));
        lines.join("\n") + "\n"
    }

    /// The share of false calls, in one sentence.
    pub fn summary(&self) -> String {
        let promised = percent(1.0 - self.confidence);
        let share = percent(f64::from(self.false_calls) / f64::from(self.comparisons));
        format!(
            "{} times the same under two names: {} called better or worse ({share} %; promised: \
             at most {promised} % of comparisons).{}",
            self.comparisons,
            match self.false_calls {
                0 => "none was".to_owned(),
                1 => "1 was".to_owned(),
                n => format!("{n} were"),
            },
            self.doubt()
        )
    }

    /// More false calls than chance allows, if they were independent. Pairs of a
    /// cell share arms and blocks, so only every `arms - 1`th counts as a new one.
    fn doubt(&self) -> &'static str {
        let fold = (self.arms as u32 - 1).max(1);
        let (hits, trials) = (self.false_calls / fold, self.comparisons.div_ceil(fold));
        let share = bounds::share(hits, trials, 1.0 - self.confidence);
        match share.is_some_and(|s| s.low > 1.0 - self.confidence) {
            true => " That is more than chance allows: this machine drifts, so doubt its verdicts.",
            false => "",
        }
    }

    /// Without so many of the shortest times.
    fn columns(&self, without: usize) -> Columns {
        let times = TIMES_NS.map(format_duration_ns);
        let times = &times[without..];
        let mut head = vec![
            ("cell", Align::Left),
            ("metric", Align::Left),
            ("false", Align::Right),
            ("spread", Align::Right),
        ];
        head.extend(times.iter().map(|time| (time.as_str(), Align::Right)));
        let mut columns = Columns::new(&head);
        for noise in &self.cells {
            let mut row = vec![
                noise.cell.clone(),
                noise.metric.clone(),
                format!("{}/{}", noise.false_calls, noise.comparisons),
                noise
                    .spread
                    .map_or("-".to_owned(), |s| short_percent(s.exp_m1())),
            ];
            let sees = noise.sees.iter().skip(without);
            row.extend(sees.map(|s| s.change.map_or("-".to_owned(), short_percent)));
            columns.push(row);
        }
        columns
    }

    fn explanation(&self) -> String {
        format!(
            "false: calls between arms that are the same. spread: how far a block's ratio varies \
             (standard deviation). Then the smallest change that is called with {} % chance when \
             that time goes to this cell and one arm against the baseline; -: too few blocks.",
            percent(self.power)
        )
    }
}

/// Two digits, and none that say nothing: `0.52%`, `3.1%`, `27%`, `x2.4`.
pub fn short_percent(change: f64) -> String {
    match change * 100.0 {
        p if p < 0.995 => format!("{p:.2}%"),
        p if p < 9.95 => format!("{p:.1}%"),
        p if p < 99.5 => format!("{p:.0}%"),
        _ if change < 99.0 => format!("x{:.1}", 1.0 + change),
        _ => ">x100".to_owned(),
    }
}

/// What the figures of one directory are made from.
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
        Confidence::at(1.0 - self.results.experiment.stop.confidence)
    }

    fn cell(&self, cell: usize) -> Vec<CellNoise> {
        let workload = self.results.plan.cells[cell].workload;
        let metrics = &self.results.experiment.workloads[workload].metrics;
        metrics.iter().filter_map(|m| self.noise(cell, m)).collect()
    }

    fn noise(&self, cell: usize, metric: &str) -> Option<CellNoise> {
        let series: Vec<Vec<f64>> = self
            .pairs()
            .map(|(a, b)| self.log_ratios(cell, metric, a, b))
            .filter(|xs| !xs.is_empty())
            .collect();
        let blocks = series.iter().map(Vec::len).max()? as u32;
        let called = series.iter().filter(|xs| self.is_called(xs)).count();
        let spread = pooled_spread(&series);
        let known = spread.and_then(|sd| bounds::standard_deviation(sd, self.freedom(blocks), 0.1));
        let block_ns = self.block_ns(cell);
        Some(CellNoise {
            cell: self.results.plan.cells[cell].name.clone(),
            metric: metric.to_owned(),
            comparisons: series.len() as u32,
            false_calls: called as u32,
            blocks,
            spread,
            spread_low: known.map(|i| i.low),
            spread_high: known.map(|i| i.high),
            block_ns,
            sees: TIMES_NS
                .map(|time| self.sight(time, block_ns, spread))
                .to_vec(),
        })
    }

    /// Each arm with each later one.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        let arms = &self.arms;
        (1..arms.len()).flat_map(move |n| arms[n..].iter().map(move |b| (arms[n - 1], *b)))
    }

    fn log_ratios(&self, cell: usize, metric: &str, a: usize, b: usize) -> Vec<f64> {
        let trials = self.results.trials.iter().map(|stored| &stored.trial);
        let ratios = log_ratios(trials, cell, metric, b, a);
        ratios.iter().map(|ratio| ratio.x).collect()
    }

    fn is_called(&self, xs: &[f64]) -> bool {
        let judged = judge::judge(xs, Better::Higher, &self.results.experiment.stop);
        judged.verdict.is_call()
    }

    /// Blocks and arms each take one from what can vary.
    fn freedom(&self, blocks: u32) -> u32 {
        blocks.saturating_sub(1) * (self.arms.len() as u32 - 1)
    }

    fn block_ns(&self, cell: usize) -> u64 {
        let trials = self.results.trials.iter().map(|stored| &stored.trial);
        let here = trials.filter(|t| t.place.cell == cell && self.arms.contains(&t.place.arm));
        let times: Vec<f64> = here.map(|t| t.result.elapsed_ns as f64).collect();
        (2.0 * summary::mean(&times).unwrap_or(0.0)) as u64
    }

    fn sight(&self, time_ns: u64, block_ns: u64, spread: Option<f64>) -> Sight {
        let blocks = (time_ns / block_ns.max(1)).min(u64::from(u32::MAX)) as u32;
        Sight {
            time_ns,
            blocks,
            change: spread.and_then(|sd| detectable_change(sd, blocks, self.planned())),
        }
    }
}

/// The mean variance of the pairs: with complete blocks this is twice the residual
/// variance of blocks × arms, so every trial is used.
fn pooled_spread(series: &[Vec<f64>]) -> Option<f64> {
    let variances: Vec<f64> = series
        .iter()
        .filter_map(|xs| summary::sd(xs))
        .map(|sd| sd * sd)
        .collect();
    summary::mean(&variances).map(f64::sqrt)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(scenario: &synthetic::Scenario) -> Option<Certificate> {
        let dir = tempfile::tempdir().unwrap();
        synthetic::write(dir.path(), scenario).unwrap();
        Certificate::of(&ResultSet::read(dir.path()).unwrap())
    }

    #[test]
    fn an_experiment_with_an_aa_arm_has_one_row_for_each_deciding_metric() {
        let scenario = synthetic::quickstart();
        let certificate = of(&scenario).unwrap();
        let workloads = &scenario.experiment.workloads;
        let rows: usize = workloads
            .iter()
            .map(|w| w.loads.len() * w.metrics.len())
            .sum();
        assert_eq!(certificate.cells.len(), rows);
        assert_eq!(certificate.comparisons as usize, rows);
        assert_eq!(certificate.arms, 2);
    }

    #[test]
    fn a_run_without_a_repeated_baseline_has_none() {
        assert_eq!(of(&synthetic::one_arm()), None);
    }

    #[test]
    fn more_time_sees_smaller_changes() {
        let certificate = of(&synthetic::quickstart()).unwrap();
        for noise in &certificate.cells {
            let seen: Vec<f64> = noise.sees.iter().filter_map(|s| s.change).collect();
            assert!(seen.len() > 1, "{noise:?}");
            assert!(seen.windows(2).all(|w| w[0] > w[1]), "{noise:?}");
        }
    }

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
        let pair = |a: usize, b: usize| table.iter().map(|row| row[b] - row[a]).collect();
        let series: Vec<Vec<f64>> = vec![pair(0, 1), pair(0, 2), pair(1, 2)];
        let spread = pooled_spread(&series).unwrap();
        assert!((spread - 0.08579691784155835).abs() < 1e-12, "{spread}");
    }

    #[test]
    fn no_line_is_wider_than_a_mailing_list_takes() {
        let text = of(&synthetic::quickstart()).unwrap().text();
        assert!(text.lines().all(|line| line.chars().count() < 78), "{text}");
        assert!(text.is_ascii());
    }

    #[test]
    fn changes_have_two_digits() {
        assert_eq!(short_percent(0.0052), "0.52%");
        assert_eq!(short_percent(0.031), "3.1%");
        assert_eq!(short_percent(0.274), "27%");
        assert_eq!(short_percent(1.4), "x2.4");
    }
}
