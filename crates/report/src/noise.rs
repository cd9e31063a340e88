//! Noise of a comparison: how far its shifts vary, which are log-ratios, or differences where that is the
//! scale of the metric; of blocks, or of pairs of windows where the arms took turns.

use model::turns::Span;
use model::{Better, Own, Scale, StopRule, Trial};
use results::ResultSet;
use results::sample::{self, Pair};
use results::turns::Process;
use stats::planner::{Confidence, detectable_shift};
use stats::summary::Moments;

/// Shifts of an arm against its baseline in one run.
pub(crate) enum Series {
    /// One of each block.
    Blocks(Vec<f64>),
    /// One of each pair of windows, by process.
    Turns(Vec<Vec<f64>>),
}

impl Series {
    /// Log-ratios of a cell, an arm and its baseline, by their indices in the plan of the run; none of a
    /// metric that is compared by differences.
    pub(crate) fn from_results(
        results: &ResultSet,
        cell: usize,
        metric: &str,
        arm: usize,
        baseline: usize,
    ) -> Series {
        let compared = Compared {
            results,
            cell,
            metric,
            arm,
            baseline,
        };
        match compared.choose_scale() {
            Scale::Ratio => compared.read_series(Scale::Ratio),
            Scale::Difference => Series::Blocks(Vec::new()),
        }
    }

    /// Groups within which the shifts vary: all blocks, or the pairs of each process.
    pub(crate) fn shift_groups(&self) -> &[Vec<f64>] {
        match self {
            Series::Blocks(all) => std::slice::from_ref(all),
            Series::Turns(processes) => processes,
        }
    }

    /// Number of shifts.
    pub(crate) fn len(&self) -> usize {
        self.shift_groups().iter().map(Vec::len).sum()
    }

    /// Sum of the squares around the mean of each group, with its degrees of freedom.
    pub(crate) fn squares_and_freedom(&self) -> (f64, u32) {
        let moments = self
            .shift_groups()
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

/// A metric of an arm and its baseline in a cell of a run, by their indices in its plan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compared<'a> {
    pub(crate) results: &'a ResultSet,
    pub(crate) cell: usize,
    pub(crate) metric: &'a str,
    pub(crate) arm: usize,
    pub(crate) baseline: usize,
}

impl<'a> Compared<'a> {
    fn trials(&self) -> impl Iterator<Item = &'a Trial> + Clone + use<'a> {
        self.results.trials.iter().map(|stored| &stored.trial)
    }

    /// Windows of the processes in which both took turns; none where a trial has one arm.
    fn processes(&self) -> Vec<Process<'a>> {
        results::turns::find_processes(self.trials(), self.cell, self.arm, self.baseline)
    }

    fn pairs(&self) -> Vec<Pair> {
        let Compared { cell, metric, .. } = *self;
        results::pair_trials(self.trials(), cell, metric, self.arm, self.baseline)
    }

    fn declaration(&self) -> Option<&'a Own> {
        sample::find_declaration(self.trials(), self.metric)
    }

    /// Scale on which the figures are compared.
    pub(crate) fn choose_scale(&self) -> Scale {
        match self.processes().as_slice() {
            [] => sample::choose_scale(&self.pairs(), self.declaration()),
            processes => results::turns::choose_scale(processes, self.metric),
        }
    }

    /// The shifts on this scale.
    pub(crate) fn read_series(&self, scale: Scale) -> Series {
        let processes = self.processes();
        if processes.is_empty() {
            let pairs = self.pairs();
            return Series::Blocks(pairs.iter().filter_map(|pair| pair.shift(scale)).collect());
        }
        let shifts = processes.iter();
        let shifts = shifts.map(|p| p.pair_shifts(self.metric, Span::Whole, scale));
        Series::Turns(shifts.filter(|xs| !xs.is_empty()).collect())
    }

    /// Smallest difference that is of interest, in the unit of the metric, where that is its scale.
    pub(crate) fn smallest_difference(&self, stop: &StopRule) -> Option<f64> {
        // Which of both directions is better does not matter to it.
        let better = Better::Lower;
        let judged = match self.processes().as_slice() {
            [] => judge::judge_pairs(&self.pairs(), self.declaration(), better, stop),
            processes => judge::judge_turns(processes, self.metric, better, stop),
        };
        Some(judged.difference?.smallest)
    }

    /// Unit of the metric.
    pub(crate) fn unit(&self) -> &'a str {
        let cell = self.cell;
        let trials = self.trials().filter(move |trial| trial.place.cell == cell);
        sample::find_unit(trials, self.metric).unwrap_or_default()
    }
}

/// The shift that a change is: a change of a ratio is a fraction.
pub(crate) fn shift_of_change(change: f64, scale: Scale) -> f64 {
    match scale {
        Scale::Ratio => change.ln_1p(),
        Scale::Difference => change,
    }
}

/// The change that a shift is: of a ratio a fraction.
pub(crate) fn change_of_shift(shift: f64, scale: Scale) -> f64 {
    match scale {
        Scale::Ratio => shift.exp_m1(),
        Scale::Difference => shift,
    }
}

/// The smallest shift that so many blocks find, of which each has this many pairs of windows where
/// arms take turns.
pub(crate) fn visible_shift(
    sd: f64,
    blocks: u32,
    pairs: Option<u32>,
    planned: Confidence,
) -> Option<f64> {
    detectable_shift(sd, blocks.saturating_mul(pairs.unwrap_or(1)), planned)
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
