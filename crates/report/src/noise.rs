//! Noise of a comparison: how far its log-ratios vary, which are those of blocks, or of pairs of
//! windows where the arms took turns.

use model::Scale;
use model::turns::Span;
use results::{ResultSet, log_ratios, sample};
use stats::planner::{Confidence, detectable_change, detectable_change_in_turns};
use stats::summary::Moments;

/// Log-ratios of an arm against its baseline in one run.
pub(crate) enum Series {
    /// One of each block.
    Blocks(Vec<f64>),
    /// One of each pair of windows, by process.
    Turns(Vec<Vec<f64>>),
}

impl Series {
    /// The series of a cell, an arm and its baseline, by their indices in the plan of the run.
    pub(crate) fn from_results(
        results: &ResultSet,
        cell: usize,
        metric: &str,
        arm: usize,
        baseline: usize,
    ) -> Series {
        let trials = || results.trials.iter().map(|stored| &stored.trial);
        let processes = results::turns::find_processes(trials(), cell, arm, baseline);
        if processes.is_empty() {
            let ratios = log_ratios(trials(), cell, metric, arm, baseline);
            return Series::Blocks(ratios.iter().map(|ratio| ratio.x).collect());
        }
        // As of blocks, there are none of a metric that is compared by differences.
        let by_ratios = results::turns::choose_scale(&processes, metric) == Scale::Ratio;
        let processes = processes.iter().filter(|_| by_ratios);
        let ratios = processes.map(|p| p.pair_shifts(metric, Span::Whole, Scale::Ratio));
        Series::Turns(ratios.filter(|xs| !xs.is_empty()).collect())
    }

    /// Whether the comparison of a cell, an arm and its baseline is by differences, of which there are no
    /// log-ratios.
    pub(crate) fn is_by_differences(
        results: &ResultSet,
        cell: usize,
        metric: &str,
        arm: usize,
        baseline: usize,
    ) -> bool {
        let trials = || results.trials.iter().map(|stored| &stored.trial);
        let processes = results::turns::find_processes(trials(), cell, arm, baseline);
        let scale = match processes.is_empty() {
            true => {
                let pairs = results::pair_trials(trials(), cell, metric, arm, baseline);
                sample::choose_scale(&pairs, sample::find_declaration(trials(), metric))
            }
            false => results::turns::choose_scale(&processes, metric),
        };
        scale == Scale::Difference
    }

    /// Groups within which the log-ratios vary: all blocks, or the pairs of each process.
    pub(crate) fn ratio_groups(&self) -> &[Vec<f64>] {
        match self {
            Series::Blocks(all) => std::slice::from_ref(all),
            Series::Turns(processes) => processes,
        }
    }

    /// Number of log-ratios.
    pub(crate) fn len(&self) -> usize {
        self.ratio_groups().iter().map(Vec::len).sum()
    }

    /// Sum of the squares around the mean of each group, with its degrees of freedom.
    pub(crate) fn squares_and_freedom(&self) -> (f64, u32) {
        let moments = self
            .ratio_groups()
            .iter()
            .map(|group| Moments::from_values(group));
        moments.fold((0.0, 0), |(squares, freedom), m| {
            (
                squares + m.squared_deviations(),
                freedom + m.count().saturating_sub(1),
            )
        })
    }

    /// Number of blocks, which processes are where arms took turns.
    pub(crate) fn count_blocks(&self) -> u32 {
        let count = match self {
            Series::Blocks(all) => all.len(),
            Series::Turns(processes) => processes.len(),
        };
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Pairs of windows in one process, on average; `None` where arms took no turns.
    pub(crate) fn pairs_of_a_process(&self) -> Option<u32> {
        match self {
            Series::Turns(processes) if !processes.is_empty() => {
                let pairs = u32::try_from(self.len()).unwrap_or(u32::MAX);
                Some((pairs / self.count_blocks()).max(1))
            }
            _ => None,
        }
    }
}

/// The smallest change that so many blocks find, of which each has this many pairs of windows where
/// arms take turns.
pub(crate) fn visible_change(
    sd: f64,
    blocks: u32,
    pairs: Option<u32>,
    planned: Confidence,
) -> Option<f64> {
    match pairs {
        Some(pairs) => detectable_change_in_turns(sd, blocks.saturating_mul(pairs), planned),
        None => detectable_change(sd, blocks, planned),
    }
}

/// True if arms took turns in the run.
pub(crate) fn has_turns(results: &ResultSet) -> bool {
    let mut trials = results.trials.iter();
    trials.any(|stored| stored.trial.result.windows.is_some())
}

/// True if arms took turns in a cell, given by its index.
pub(crate) fn has_turns_in(results: &ResultSet, cell: usize) -> bool {
    let mut trials = results.trials.iter().map(|stored| &stored.trial);
    trials.any(|trial| trial.place.cell == cell && trial.result.windows.is_some())
}
