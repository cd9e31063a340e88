//! The table of one cell: its metrics, and the comparisons of its arms.

mod notes;

use crate::table::ending::{self, Looks};
use crate::table::levels::{block_point, find_difference, levels_of};
use crate::table::narrowing::find_standings;
use crate::table::not_measured::{are_measured, find_not_measured};
use crate::table::pooled_quantile::{Pooled, pool_quantiles};
use crate::table::summary::{median, summarise_values};
use crate::table::turns;
use crate::table::{CellTable, Comparison, MetricRow, NotMeasured, Verdict};
use judge::{FEWEST_BLOCKS, Judgement, is_aa};
use model::{Better, Cell, DecidedBy, Experiment, Trial, Workload};
use results::sample::{find_declaration, find_unit};
use results::turns::find_processes;
use results::{Overload, Pair, ResultSet, overload, pair_trials};
use stats::summary::mean;
use std::collections::HashSet;

/// Deciding comparisons of one cell between the arms themselves, each pair once: the later arm against
/// the earlier one. Neither the baseline nor its repetition is among them.
pub(crate) fn compare_cell_arms(results: &ResultSet, cell: usize) -> Vec<Comparison> {
    let mut scope = CellScope::new(results, cell, 0.0);
    let heads = scope.metric_heads();
    let experiment = &results.experiment;
    let is_compared = |arm: &usize| *arm != experiment.baseline && !is_aa(experiment, *arm);
    let arms: Vec<usize> = (0..experiment.arms.len()).filter(is_compared).collect();
    let mut found = Vec::new();
    for (at, earlier) in arms.iter().enumerate() {
        scope.baseline = *earlier;
        for head in heads.iter().filter(|head| head.better != Better::Neither) {
            let later = arms.iter().skip(at + 1);
            let compared = later.map(|later| scope.compare(head, *later));
            found.extend(compared.filter(|c| c.deciding && c.blocks > 0));
        }
    }
    found
}

/// Comparisons of one cell, as the table has them but for what other cells say of them.
pub(crate) fn compare_cell(results: &ResultSet, cell: usize) -> Vec<Comparison> {
    CellScope::new(results, cell, 0.0).table().comparisons
}

/// Inputs of the table of one cell.
pub(super) struct CellScope<'a> {
    experiment: &'a Experiment,
    cell: &'a Cell,
    title: String,
    load: String,
    index: usize,
    workload: &'a Workload,
    /// The trials of this cell that are ok.
    trials: Vec<&'a Trial>,
    not_measured: Vec<NotMeasured>,
    pooled: Vec<Pooled>,
    /// Mean time between two trials of the run.
    pause_ns: f64,
    /// Were the trials merged from several runs?
    merged: bool,
    /// Machines that measured at once.
    at_once: usize,
    /// Arm that the others are compared with.
    baseline: usize,
    /// True if it is looked for how the intervals narrowed.
    has_narrowing: bool,
}

/// A metric as the trials of a cell define it.
struct MetricHead<'a> {
    name: &'a str,
    unit: &'a str,
    better: Better,
}

impl MetricHead<'_> {
    fn is_latency(&self) -> bool {
        overload::is_latency(self.unit, self.better)
    }
}

impl<'a> CellScope<'a> {
    pub(super) fn new(results: &'a ResultSet, index: usize, pause_ns: f64) -> Self {
        let cell = &results.plan.cells[index];
        let all = results.trials.iter().map(|stored| &stored.trial);
        CellScope {
            experiment: &results.experiment,
            cell,
            title: results.cell_title(cell),
            load: results.load_in_words(cell),
            index,
            workload: &results.experiment.workloads[cell.workload],
            trials: all.filter(|t| t.place.cell == index && t.is_ok()).collect(),
            not_measured: find_not_measured(results, index),
            pooled: pool_quantiles(results, index),
            pause_ns,
            merged: results.manifest.sources.len() > 1,
            at_once: results.count_at_once(),
            baseline: results.experiment.baseline,
            has_narrowing: false,
        }
    }

    /// The same with how the intervals of its comparisons narrowed. Blocks of merged runs have no order.
    pub(super) fn with_narrowing(self) -> Self {
        CellScope {
            has_narrowing: !self.merged,
            ..self
        }
    }

    pub(super) fn table(&self) -> CellTable {
        let heads = self.metric_heads();
        CellTable {
            name: self.cell.name.clone(),
            title: self.title.clone(),
            workload: self.workload.name.clone(),
            load: self.load.clone(),
            comparisons: self.timed(self.mended_comparisons(&heads)),
            metrics: heads.iter().map(|head| self.metric_row(head)).collect(),
            pooled: self.pooled.clone(),
            not_measured: self.not_measured.clone(),
            block_ns: self.block_ns(),
        }
    }

    /// Mean time of a block: one trial of each arm, each with the pause after it.
    fn block_ns(&self) -> Option<f64> {
        let elapsed = self.trials.iter().map(|t| t.result.elapsed_ns as f64);
        let trial = mean(&elapsed.collect::<Vec<f64>>())?;
        Some(self.experiment.arms.len() as f64 * (trial + self.pause_ns))
    }

    fn timed(&self, mut comparisons: Vec<Comparison>) -> Vec<Comparison> {
        let at_once = self.at_once as f64;
        let block_ns = self.block_ns().map(|ns| ns / at_once);
        for c in &mut comparisons {
            let missing = c.blocks_missing().map(f64::from);
            c.more_ns = missing.zip(block_ns).map(|(missing, ns)| missing * ns);
        }
        comparisons
    }

    /// Every metric of the cell once: the deciding ones first, in the order of the
    /// experiment, then in the order in which the trials give them.
    fn metric_heads(&self) -> Vec<MetricHead<'a>> {
        let mut seen = HashSet::new();
        let measured = self.trials.iter().flat_map(|t| &t.result.metrics);
        let mut heads: Vec<MetricHead> = measured
            .filter(|m| seen.insert(m.metric.as_str()))
            .map(|m| MetricHead {
                name: &m.metric,
                unit: find_unit(self.trials.iter().copied(), &m.metric).unwrap_or(&m.unit),
                better: m.better,
            })
            .collect();
        heads.sort_by_key(|head| self.deciding_position(head.name));
        heads
    }

    fn deciding_position(&self, metric: &str) -> usize {
        let named = &self.workload.metrics;
        let position = named.iter().position(|name| name == metric);
        position.unwrap_or(named.len())
    }

    /// An experiment that names no metric lets all of them decide.
    fn is_deciding(&self, head: &MetricHead, overload: &Overload) -> bool {
        let named = &self.workload.metrics;
        match named.is_empty() {
            true => !(overload.forbids_latency(head.name) && head.is_latency()),
            false => overload
                .deciding_metrics(named, &self.trials)
                .iter()
                .any(|name| name == head.name),
        }
    }

    /// The comparisons, whose sizes no stopping flatters. Blocks of merged runs have no order, and events ask for
    /// no size of a metric.
    fn mended_comparisons(&self, heads: &[MetricHead]) -> Vec<Comparison> {
        let mut found = self.comparisons(heads);
        let stop = &self.experiment.stop;
        if !self.merged && stop.decided_by == DecidedBy::Metrics {
            ending::mend_sizes(&mut found, stop);
        }
        found
    }

    /// None of imported runs: those of two arms are in no block together.
    fn comparisons(&self, heads: &[MetricHead]) -> Vec<Comparison> {
        if self.experiment.import_source().is_some() {
            return Vec::new();
        }
        let judged = heads.iter().filter(|head| head.better != Better::Neither);
        judged
            .flat_map(|head| self.compared_arms().map(move |arm| self.compare(head, arm)))
            .collect()
    }

    fn compared_arms(&self) -> impl Iterator<Item = usize> {
        let baseline = self.baseline;
        (0..self.experiment.arms.len()).filter(move |arm| *arm != baseline)
    }

    fn compare(&self, head: &MetricHead, arm: usize) -> Comparison {
        let by_blocks = self.by_blocks(head, arm);
        let in_turns = self.trials.iter().any(|t| t.result.windows.is_some());
        if !in_turns || !self.are_measured(arm) {
            return by_blocks;
        }
        let baseline = self.baseline;
        let processes = find_processes(self.trials.iter().copied(), self.index, arm, baseline);
        let stop = &self.experiment.stop;
        let compared = turns::by_pairs(by_blocks, &processes, stop, self.merged);
        match self.has_narrowing && compared.deciding {
            true => turns::with_narrowing(compared, &processes, stop),
            false => compared,
        }
    }

    fn judge(&self, pairs: &[Pair], head: &MetricHead) -> Judgement {
        let (stop, better) = (&self.experiment.stop, head.better);
        let own = find_declaration(self.trials.iter().copied(), head.name);
        let judged = judge::judge_pairs(pairs, own, better, stop);
        match self.merged {
            true => judge::at_the_end(judged, better, stop),
            false => judged,
        }
    }

    fn by_blocks(&self, head: &MetricHead, arm: usize) -> Comparison {
        let experiment = self.experiment;
        let baseline = self.baseline;
        let trials = self.trials.iter().copied();
        let overload = Overload::from_trials(trials.clone(), self.index, arm, baseline);
        let mut pairs = pair_trials(trials, self.index, head.name, arm, baseline);
        if head.is_latency() && overload.forbids_latency(head.name) {
            pairs.clear();
        }
        let judged = self.judge(&pairs, head);
        let difference = find_difference(&judged, &pairs);
        let (blocks, by_difference) = (judged.blocks as usize, difference.is_some());
        let (baseline_level, arm_level) = levels_of(&pairs, &judged, by_difference);
        let deciding = self.is_deciding(head, &overload);
        let narrowing = match deciding && self.has_narrowing {
            true => find_standings(pairs.len(), by_difference, |count| {
                self.judge(&pairs[..count], head)
            }),
            false => Vec::new(),
        };
        Comparison {
            workload: self.workload.name.clone(),
            load: self.load.clone(),
            metric: head.name.to_owned(),
            unit: head.unit.to_owned(),
            better: head.better,
            baseline: experiment.arms[baseline].name.clone(),
            arm: experiment.arms[arm].name.clone(),
            deciding,
            aa: is_aa(experiment, arm),
            ratio: judged.known_ratio(),
            low: judged.lower_end(),
            high: judged.upper_end(),
            confidence: experiment.stop.confidence,
            e_value: (blocks >= FEWEST_BLOCKS).then_some(judged.e_value),
            blocks,
            in_turns: None,
            verdict: self.verdict(&judged, arm),
            withdrawn: judged.withdrawn_verdict(),
            // Each of merged runs has its own.
            holds_for: (experiment.find_once(self.workload, arm))
                .filter(|_| !self.merged)
                .map(Into::into),
            test: judged.test,
            blocks_needed: judged.blocks_needed,
            more_ns: None,
            baseline_level,
            arm_level,
            baseline_median: median(pairs.iter().map(|pair| pair.baseline)),
            arm_median: median(pairs.iter().map(|pair| pair.arm)),
            survives_ebh: None,
            notes: self.notes(head, arm, &overload, &pairs, &judged),
            narrowing,
            block_ratios: match by_difference {
                true => Vec::new(),
                false => pairs.iter().filter_map(block_point).collect(),
            },
            looks: Looks::new((1..=blocks).map(|block| vec![block]).collect(), &judged),
            centre: None,
            difference,
        }
    }

    /// Equal figures say nothing of an arm that does not reach the work.
    fn verdict(&self, judged: &Judgement, arm: usize) -> Verdict {
        match judged.supported_verdict() {
            Verdict::Same if self.is_work_elsewhere(arm) => Verdict::Unknown,
            verdict => verdict,
        }
    }

    fn is_work_elsewhere(&self, arm: usize) -> bool {
        let compared = [arm, self.baseline];
        let trials = self.trials.iter().copied();
        let trials = trials.filter(|t| compared.contains(&t.place.arm));
        results::remote_work::is_most_work_elsewhere(trials)
    }

    /// The arm and its baseline.
    fn are_measured(&self, arm: usize) -> bool {
        are_measured(self.experiment, [arm, self.baseline], &self.not_measured)
    }

    fn metric_row(&self, head: &MetricHead) -> MetricRow {
        let arms = 0..self.experiment.arms.len();
        MetricRow {
            metric: head.name.to_owned(),
            unit: head.unit.to_owned(),
            better: head.better,
            arms: arms
                .map(|arm| summarise_values(self.values(head.name, arm)))
                .collect(),
        }
    }

    fn values(&self, metric: &str, arm: usize) -> impl Iterator<Item = f64> {
        let of_arm = self.trials.iter().filter(move |t| t.place.arm == arm);
        of_arm.filter_map(move |t| t.metric(metric).map(|m| m.value))
    }
}
