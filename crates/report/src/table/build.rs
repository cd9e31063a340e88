//! From a results directory to the table.

use crate::certificate::Certificate;
use crate::fold::is_alike;
use crate::forecast;
use crate::table::across::{self, Across};
use crate::table::doubt;
use crate::table::evidence;
use crate::table::explanation;
use crate::table::notices;
use crate::table::pooled_quantile::{Pooled, pool_quantiles};
use crate::table::summary::{median, summarise_values};
use crate::table::turns;
use crate::table::{
    ArmInfo, BlockDifference, BlockPoint, CellTable, Comparison, Difference, Excluded,
    ExperimentInfo, MetricRow, NotMeasured, Table, Tally, TrialCounts, Verdict,
};
use crate::words;
use judge::{FEWEST_BLOCKS, Family, Judgement, is_aa};
use model::{Better, Cell, Experiment, StopRule, Trial, TrialState, Workload};
use results::bound::{Bound, find_bound};
use results::sample::{find_declaration, find_unit};
use results::turns::find_processes;
use results::{LEAST_PERCENT, Overload, Pair, ResultSet, overload, pair_trials};
use stats::Test;
use stats::summary::mean;
use std::collections::{BTreeMap, HashSet};

impl Table {
    /// Everything that the directory says, judged.
    pub fn from_results(results: &ResultSet) -> Table {
        let pause_ns = mean(&forecast::measure_pauses(results)).unwrap_or(0.0);
        let mut cells: Vec<CellTable> = (0..results.plan.cells.len())
            .map(|cell| CellScope::new(results, cell, pause_ns).table())
            .collect();
        mark_survivors(&mut cells, &results.experiment.stop);
        let events = across::events::compare_events(results, &cells);
        let machines = across::machines::by_machine(results, &cells);
        across::machines::note_machines(&mut cells, &machines);
        let warnings = notices::collect_notices(results, &cells, &events);
        let between = across::rivals::compare_arms(results);
        let baseline = &results.experiment.arms[results.experiment.baseline].name;
        Table {
            format: results.manifest.format,
            experiment: experiment_info(results),
            arms: arm_infos(results),
            tallies: tallies(&results.experiment, &cells),
            across: Across {
                scans: across::scan::find_scans(results),
                searches: across::search::find_searches(results),
                interference: across::interference::make_matrices(results),
                grids: across::grid::make_grids(&results.experiment.arms, &cells),
                why: explanation::of_calls(results, &cells),
                events,
                worst: across::worst::find_worst(results),
                sets: across::sets::find_sets(results),
                sequential: across::sequential::sequential_table(results),
                machines,
                ranks: across::ranks::rank_arms(baseline, &cells, &between),
                between,
                paid: across::neighbour_cost::antagonist_costs(results),
                certificate: Certificate::from_results(results),
            },
            trials: count_trials(results),
            took_ns: took_ns(results),
            excluded: excluded(results),
            warnings,
            cells,
            system: results.system.clone(),
        }
    }
}

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

fn experiment_info(results: &ResultSet) -> ExperimentInfo {
    let (manifest, experiment) = (&results.manifest, &results.experiment);
    ExperimentInfo {
        name: experiment.name.clone(),
        question: experiment.question.clone(),
        target: experiment.target.kind().to_owned(),
        seed: manifest.seed,
        created: manifest.created.clone(),
        state: manifest.state,
        tool_version: manifest.tool_version.clone(),
        tool_commit: manifest.tool_commit.clone(),
        confidence: experiment.stop.confidence,
        smallest_effect: experiment.stop.smallest_effect,
        in_all_arms: in_all_arms(&experiment.arms),
    }
}

/// Tunables that all arms have alike, as in summaries of arms: `autogroup=off`.
fn in_all_arms(arms: &[model::Arm]) -> Vec<String> {
    let Some((first, others)) = arms.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Vec::new();
    };
    let is_in_all = |(name, value): &(&String, &String)| {
        others
            .iter()
            .all(|arm| arm.tunables.get(*name) == Some(*value))
    };
    let found = first.tunables.iter().filter(is_in_all);
    found
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

fn arm_infos(results: &ResultSet) -> Vec<ArmInfo> {
    let experiment = &results.experiment;
    let infos = experiment.arms.iter().enumerate();
    infos
        .map(|(index, arm)| ArmInfo {
            name: arm.name.clone(),
            summary: match experiment.import_source() {
                Some(_) => arm.name.clone(),
                None => arm.summary(),
            },
            baseline: index == experiment.baseline,
            aa: is_aa(experiment, index),
            programs: evidence::attached_schedulers(results, index),
            evidence: evidence::of_arm(results, index),
        })
        .collect()
}

fn count_trials(results: &ResultSet) -> TrialCounts {
    let mut counts = TrialCounts::default();
    for stored in &results.trials {
        match stored.trial.result.state {
            TrialState::Ok => counts.ok += 1,
            TrialState::Void { .. } => counts.void += 1,
            TrialState::Failed { .. } => counts.failed += 1,
        }
    }
    counts
}

/// A run that was resumed has a span for each of its starts.
fn took_ns(results: &ResultSet) -> u64 {
    let mut spans: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for trial in results.trials.iter().map(|stored| &stored.trial) {
        let began = trial.result.started_unix_ns;
        let end = began.saturating_add(trial.result.elapsed_ns);
        let span = spans.entry(trial.start).or_insert((began, end));
        *span = (span.0.min(began), span.1.max(end));
    }
    let took = spans.values().map(|(began, end)| end - began);
    took.fold(0, u64::saturating_add)
}

fn excluded(results: &ResultSet) -> Vec<Excluded> {
    let trials = results.trials.iter().map(|stored| &stored.trial);
    trials
        .filter_map(|trial| {
            let why = trial.result.state.why()?;
            Some(Excluded {
                cell: trial.cell.clone(),
                arm: trial.arm.clone(),
                block: trial.place.block,
                attempt: trial.attempt,
                state: trial.result.state.name().to_owned(),
                why: why.to_owned(),
            })
        })
        .collect()
}

/// The arms of a cell of which no trial counts.
fn not_measured(results: &ResultSet, cell: usize) -> Vec<NotMeasured> {
    let arms = results.experiment.arms.iter().enumerate();
    let found = arms.filter_map(|(index, arm)| {
        let all = results.trials.iter().map(|stored| &stored.trial);
        let mut states = all
            .filter(|t| t.place.cell == cell && t.place.arm == index)
            .map(|t| &t.result.state);
        let mut found = NotMeasured {
            arm: arm.name.clone(),
            void: 0,
            failed: 0,
            why: String::new(),
        };
        let mut reasons = Vec::new();
        let is_measured = states.any(|state| {
            match state {
                TrialState::Ok => return true,
                TrialState::Void { .. } => found.void += 1,
                TrialState::Failed { .. } => found.failed += 1,
            }
            reasons.extend(state.why().map(model::trial::first_line));
            false
        });
        found.why = most_common(&reasons);
        (!is_measured).then_some(found)
    });
    found.collect()
}

/// The first of the reasons that are most often alike; empty without any.
pub fn most_common(reasons: &[&str]) -> String {
    let often = |reason: &str| reasons.iter().filter(|r| is_alike(r, reason)).count();
    // The last of equal maxima is the first reason.
    let most = reasons.iter().rev().max_by_key(|reason| often(reason));
    most.copied().unwrap_or_default().to_owned()
}

/// Inputs of the table of one cell.
struct CellScope<'a> {
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
    /// Arm that the others are compared with.
    baseline: usize,
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
    fn new(results: &'a ResultSet, index: usize, pause_ns: f64) -> Self {
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
            not_measured: not_measured(results, index),
            pooled: pool_quantiles(results, index),
            pause_ns,
            merged: results.manifest.sources.len() > 1,
            baseline: results.experiment.baseline,
        }
    }

    fn table(&self) -> CellTable {
        let heads = self.metric_heads();
        CellTable {
            name: self.cell.name.clone(),
            title: self.title.clone(),
            workload: self.workload.name.clone(),
            load: self.load.clone(),
            comparisons: self.timed(self.comparisons(&heads)),
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
        let block_ns = self.block_ns();
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
            true => !(overload.forbids_latency() && head.is_latency()),
            false => overload
                .deciding_metrics(named, &self.trials)
                .contains(&head.name),
        }
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
        turns::by_pairs(by_blocks, &processes, &self.experiment.stop, self.merged)
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
        if head.is_latency() && overload.forbids_latency() {
            pairs.clear();
        }
        let judged = self.judge(&pairs, head);
        let difference = find_difference(&judged, &pairs);
        let (blocks, by_difference) = (judged.blocks as usize, difference.is_some());
        let (baseline_level, arm_level) = levels_of(&pairs, &judged, by_difference);
        Comparison {
            workload: self.workload.name.clone(),
            load: self.load.clone(),
            metric: head.name.to_owned(),
            unit: head.unit.to_owned(),
            better: head.better,
            baseline: experiment.arms[baseline].name.clone(),
            arm: experiment.arms[arm].name.clone(),
            deciding: self.is_deciding(head, &overload),
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
            test: judged.test,
            blocks_needed: judged.blocks_needed,
            more_ns: None,
            baseline_level,
            arm_level,
            baseline_median: median(pairs.iter().map(|pair| pair.baseline)),
            arm_median: median(pairs.iter().map(|pair| pair.arm)),
            survives_ebh: None,
            notes: self.notes(head, arm, &overload, &pairs, &judged),
            block_ratios: match by_difference {
                true => Vec::new(),
                false => pairs.iter().filter_map(block_point).collect(),
            },
            difference,
        }
    }

    fn notes(
        &self,
        head: &MetricHead,
        arm: usize,
        overload: &Overload,
        pairs: &[Pair],
        judged: &Judgement,
    ) -> Vec<String> {
        let by_difference = judged.difference.is_some();
        let note = match note_overload(head, overload) {
            Some(note) if pairs.is_empty() => return vec![note],
            _ if !self.are_measured(arm) => return self.notes_not_measured(arm),
            note => note,
        };
        let notes = [
            note,
            self.note_elsewhere(arm),
            self.note_bounds(head.name, self.baseline),
            self.note_bounds(head.name, arm),
            self.note_missing(head, arm, pairs.len(), overload),
            note_unusable(pairs, by_difference),
            note_from_nothing(pairs),
            doubt::by_coins(judged),
            doubt::doubt_note(judged),
        ];
        notes.into_iter().flatten().collect()
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

    fn note_elsewhere(&self, arm: usize) -> Option<String> {
        self.is_work_elsewhere(arm).then(|| {
            "others did most of the work of the command, so equal figures do not show that the arms \
             are equal"
                .to_owned()
        })
    }

    /// A note on the trials of an arm whose figure is only a bound.
    fn note_bounds(&self, metric: &str, arm: usize) -> Option<String> {
        let of_arm = self.trials.iter().filter(|t| t.place.arm == arm);
        let bounds: Vec<Option<Bound>> = of_arm.map(|trial| find_bound(trial, metric)).collect();
        let (all, name) = (bounds.len(), &self.experiment.arms[arm].name);
        let count = |kind| bounds.iter().filter(|bound| **bound == Some(kind)).count();
        let words = [(Bound::Lower, "lower"), (Bound::Higher, "higher")]
            .into_iter()
            .filter(|(kind, _)| count(*kind) > 0)
            .map(|(kind, word)| {
                let number = count(kind);
                format!("in {number} of {all} trials {name} is {word} than its figure")
            });
        let words: Vec<String> = words.collect();
        (!words.is_empty()).then(|| format!("{}, a bound", words.join(" and ")))
    }

    /// The arm and its baseline.
    fn are_measured(&self, arm: usize) -> bool {
        are_measured(self.experiment, [arm, self.baseline], &self.not_measured)
    }

    fn notes_not_measured(&self, arm: usize) -> Vec<String> {
        of_both(self.experiment, [arm, self.baseline], &self.not_measured)
            .map(words::arm_not_measured)
            .collect()
    }

    /// A note on the blocks in which both arms ran, but not both have the figure.
    fn note_missing(
        &self,
        head: &MetricHead,
        arm: usize,
        found: usize,
        overload: &Overload,
    ) -> Option<String> {
        let blocks = |arm| -> HashSet<u32> {
            let of_arm = self.trials.iter().filter(|t| t.place.arm == arm);
            of_arm.map(|t| t.place.block).collect()
        };
        let baseline = blocks(self.baseline);
        let left_out = match head.is_latency() {
            true => overload.blocks.len(),
            false => 0,
        };
        let both = blocks(arm).intersection(&baseline).count() - left_out;
        (found > 0 && found < both)
            .then(|| format!("only {found} of {both} blocks have this figure of both arms"))
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

/// Geometric mean over the blocks that have a ratio, so that the levels of two arms
/// differ by the ratio of their comparison.
fn level(pairs: &[Pair], of: impl Fn([f64; 2]) -> f64) -> Option<f64> {
    let with_ratio = pairs.iter().filter(|pair| pair.log_ratio().is_some());
    let logarithms: Vec<f64> = with_ratio
        .map(|pair| of(pair.ratio_values()).ln())
        .collect();
    mean(&logarithms).map(f64::exp)
}

fn mean_of(pairs: &[Pair], of: impl Fn(&Pair) -> f64) -> Option<f64> {
    let with_difference = pairs.iter().filter(|pair| pair.difference().is_some());
    mean(&with_difference.map(of).collect::<Vec<_>>())
}

/// The levels of the baseline and of the arm, as the scale of the change has them: what the change
/// says of them is true of these figures.
pub(super) fn levels_of(
    pairs: &[Pair],
    judged: &Judgement,
    by_difference: bool,
) -> (Option<f64>, Option<f64>) {
    if by_difference {
        let of = |of: fn(&Pair) -> f64| mean_of(pairs, of);
        return (of(|pair| pair.baseline), of(|pair| pair.arm));
    }
    let baseline = level(pairs, |[baseline, _]| baseline);
    let arm = match judged.test {
        Test::SafeT => level(pairs, |[_, arm]| arm),
        Test::Coins => baseline
            .zip(judged.known_ratio())
            .map(|(level, ratio)| level * ratio),
    };
    (baseline, arm)
}

/// The change in the unit of the metric, where that is the scale.
pub(super) fn find_difference(judged: &Judgement, pairs: &[Pair]) -> Option<Difference> {
    let found = judged.difference?;
    let block = |pair: &Pair| {
        Some(BlockDifference {
            block: pair.block,
            difference: pair.difference()?,
            baseline: pair.baseline,
            arm: pair.arm,
        })
    };
    Some(Difference {
        value: found.value,
        low: found.interval.map(|interval| interval.low),
        high: found.interval.map(|interval| interval.high),
        smallest_effect: found.smallest,
        blocks: pairs.iter().filter_map(block).collect(),
    })
}

pub(super) fn block_point(pair: &Pair) -> Option<BlockPoint> {
    Some(BlockPoint {
        block: pair.block,
        ratio: pair.log_ratio()?.exp(),
        baseline: pair.baseline,
        arm: pair.arm,
    })
}

/// A note on latencies that are those of a queue.
fn note_overload(head: &MetricHead, overload: &Overload) -> Option<String> {
    let (blocks, of) = (overload.blocks.len(), overload.of);
    if !head.is_latency() || blocks == 0 {
        return None;
    }
    Some(match overload.forbids_latency() {
        true => format!(
            "overloaded in {blocks} of {of} blocks: latency is that of a queue and not compared; \
             {} decides",
            overload::GOODPUT
        ),
        false => format!("{blocks} of {of} blocks are left out: a trial was overloaded"),
    })
}

/// A note on the blocks that have no change.
fn note_unusable(pairs: &[Pair], by_difference: bool) -> Option<String> {
    let is_usable = |pair: &Pair| match by_difference {
        true => pair.difference().is_some(),
        false => pair.log_ratio().is_some(),
    };
    let without: Vec<String> = pairs
        .iter()
        .filter(|pair| !is_usable(pair))
        .map(|pair| pair.block.to_string())
        .collect();
    match without.as_slice() {
        [] => None,
        [one] => Some(format!("block {one} is left out: a value is not a number")),
        many => Some(format!(
            "{} blocks are left out ({}): a value is not a number",
            many.len(),
            many.join(", ")
        )),
    }
}

/// A note on ratios of which one side is too small a percentage to be told from 0.
fn note_from_nothing(pairs: &[Pair]) -> Option<String> {
    let raised = pairs.iter().filter(|pair| pair.is_from_nothing()).count();
    let all = pairs.len();
    (raised > 0).then(|| {
        format!(
            "in {raised} of {all} blocks one arm has less than {LEAST_PERCENT} %, which counts as \
             {LEAST_PERCENT} %: the ratio says no more than that it is far from the other"
        )
    })
}

fn tallies(experiment: &Experiment, cells: &[CellTable]) -> Vec<Tally> {
    if experiment.import_source().is_some() {
        return Vec::new();
    }
    let compared = experiment.arms.iter().enumerate();
    compared
        .filter(|(index, _)| *index != experiment.baseline)
        .map(|(index, _)| tally(experiment, index, cells))
        .collect()
}

/// Entries of an arm and of its baseline.
fn of_both<'a>(
    experiment: &'a Experiment,
    both: [usize; 2],
    not_measured: &'a [NotMeasured],
) -> impl Iterator<Item = &'a NotMeasured> {
    let names = both.map(|index| &experiment.arms[index].name);
    not_measured.iter().filter(move |n| names.contains(&&n.arm))
}

fn are_measured(experiment: &Experiment, both: [usize; 2], not_measured: &[NotMeasured]) -> bool {
    of_both(experiment, both, not_measured).next().is_none()
}

fn tally(experiment: &Experiment, index: usize, cells: &[CellTable]) -> Tally {
    let arm = &experiment.arms[index].name;
    let is_measured = |cell: &&CellTable| {
        let both = [index, experiment.baseline];
        are_measured(experiment, both, &cell.not_measured)
    };
    let measured: Vec<&CellTable> = cells.iter().filter(is_measured).collect();
    let mut tally = Tally {
        arm: arm.clone(),
        aa: is_aa(experiment, index),
        better: 0,
        worse: 0,
        same: 0,
        unknown: 0,
        cells_not_measured: cells.len() - measured.len(),
    };
    let deciding = measured
        .into_iter()
        .flat_map(CellTable::deciding_comparisons);
    for comparison in deciding.filter(|c| c.arm == *arm) {
        *match comparison.verdict {
            Verdict::Better => &mut tally.better,
            Verdict::Worse => &mut tally.worse,
            Verdict::Same => &mut tally.same,
            Verdict::Unknown => &mut tally.unknown,
        } += 1;
    }
    tally
}

/// Which calls hold when all of their family are looked at together.
fn mark_survivors(cells: &mut [CellTable], stop: &StopRule) {
    let all = cells.iter_mut().flat_map(|cell| &mut cell.comparisons);
    let mut all: Vec<&mut Comparison> = all.collect();
    let members: Vec<(Option<Family>, f64)> = all
        .iter()
        .map(|c| {
            (
                Family::for_comparison(c.deciding, c.aa, c.blocks),
                c.e_value.unwrap_or(1.0),
            )
        })
        .collect();
    let survive = judge::find_survivors(&members, stop);
    for (comparison, survives) in all.iter_mut().zip(survive) {
        comparison.survives_ebh = survives.filter(|_| comparison.verdict.is_call());
    }
}
