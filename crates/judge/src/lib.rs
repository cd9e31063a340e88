//! The judgement of the arms of an experiment by its trials: the same one ends a run and is
//! shown in its report.
//!
//! Comparisons are judged one by one ([`judge_blocks`], [`judge_turns`]), and then together: which calls hold
//! when all are looked at ([`find_survivors`], e-BH). The deciding comparisons are one
//! [`Family`], the further ones another: what is only looked at beside must not make the
//! question itself harder to answer. In neither are comparisons with fewer than
//! two blocks, which have no evidence, and the A/A arm, which is a control and no claim.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod events;

pub use model::Better;
pub use stats::{Judgement, Params, Verdict};

use model::turns::Span;
use model::{Experiment, Own, Plan, Scale, StopRule, Trial, Workload};
use results::turns::Process;
use results::{Overload, Pair};
use stats::randomization::{Prior, fewest_pairs};
use std::borrow::Cow;

/// Blocks below which there is no evidence.
pub const FEWEST_BLOCKS: usize = 2;

/// Comparisons that are looked at together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Comparisons that the experiment names as its question: they end a run.
    Deciding,
    /// Comparisons that are only looked at beside.
    Further,
}

impl Family {
    /// The family of a comparison; none where it belongs to no family.
    pub fn for_comparison(deciding: bool, is_aa: bool, blocks: usize) -> Option<Family> {
        if is_aa || blocks < FEWEST_BLOCKS {
            return None;
        }
        Some(match deciding {
            true => Family::Deciding,
            false => Family::Further,
        })
    }
}

/// The log-ratios `xs` of two cells, of whose order nothing is assumed, held to what the experiment asks.
pub fn judge_ratios(xs: &[f64], better: Better, stop: &StopRule) -> Judgement {
    stats::verdict::judge(xs, &params(better, stop))
}

/// The log-ratios `xs` of an arm and its baseline, whose order in each block a coin drew. Where they
/// need different kernels the coin draws that of the kernels, and arms of one kernel follow each other.
pub fn judge_blocks(xs: &[f64], better: Better, stop: &StopRule) -> Judgement {
    stats::judge(xs, &params(better, stop))
}

/// The blocks of an arm and its baseline on the scale of their metric, of which `own` is what the experiment
/// says.
pub fn judge_pairs(
    pairs: &[Pair],
    own: Option<&Own>,
    better: Better,
    stop: &StopRule,
) -> Judgement {
    if results::sample::choose_scale(pairs, own) == Scale::Ratio {
        let xs: Vec<f64> = pairs.iter().filter_map(Pair::log_ratio).collect();
        return judge_blocks(&xs, better, stop);
    }
    let xs: Vec<f64> = pairs.iter().filter_map(Pair::difference).collect();
    let said = own.and_then(|own| own.smallest_effect);
    let smallest_effect = smallest_difference(said, pairs, stop);
    let params = Params {
        smallest_effect,
        ..params(better, stop)
    };
    stats::differences::judge(&xs, &params)
}

/// Smallest difference that is of interest: what the experiment says, or its share of the level.
fn smallest_difference(said: Option<f64>, pairs: &[Pair], stop: &StopRule) -> f64 {
    said.unwrap_or_else(|| stop.smallest_effect * level(pairs, stop))
}

/// Level of a metric of differences: the median of the larger sizes of the first blocks that can decide, or
/// their mean where most are 0. It does not know which arm has which figure, and no later block moves it.
fn level(pairs: &[Pair], stop: &StopRule) -> f64 {
    let fewest = fewest_pairs(error_rate(stop), Prior::BLOCKS) as usize;
    let counted = pairs.iter().filter(|pair| pair.difference().is_some());
    let sizes = counted.take(fewest);
    let sizes: Vec<f64> = sizes
        .map(|pair| pair.arm.abs().max(pair.baseline.abs()))
        .collect();
    let median = stats::summary::median(&sizes).filter(|median| *median > 0.0);
    median
        .or_else(|| stats::summary::mean(&sizes))
        .unwrap_or(0.0)
}

/// The pairs of windows of each process on the scale of their metric, held to what the experiment asks.
pub fn judge_turns(
    processes: &[Process],
    metric: &str,
    better: Better,
    stop: &StopRule,
) -> Judgement {
    judge_first_turns(processes, metric, better, stop, usize::MAX)
}

/// The judgement of the first so many of these pairs, as it was when there were no more.
pub fn judge_first_turns(
    processes: &[Process],
    metric: &str,
    better: Better,
    stop: &StopRule,
    mut pairs: usize,
) -> Judgement {
    let scale = results::turns::choose_scale(processes, metric);
    let shifts = processes.iter();
    let shifts: Vec<Vec<f64>> = shifts
        .map(|process| {
            let mut shifts = process.pair_shifts(metric, Span::Whole, scale);
            shifts.truncate(pairs);
            pairs -= shifts.len();
            shifts
        })
        .collect();
    if scale == Scale::Ratio {
        return judge_ratios_in_turns(&shifts, better, stop);
    }
    let figures = processes
        .iter()
        .map(|p| p.pair_figures(metric, Span::Whole));
    let pairs: Vec<Pair> = figures.flat_map(|figures| figures.into_values()).collect();
    let said = results::turns::smallest_difference(processes, metric);
    let params = Params {
        smallest_effect: smallest_difference(said, &pairs, stop),
        ..params(better, stop)
    };
    stats::turns::judge_differences(&shifts, &params)
}

/// The log-ratios of pairs of windows, by process, held to what the experiment asks.
pub fn judge_ratios_in_turns(processes: &[Vec<f64>], better: Better, stop: &StopRule) -> Judgement {
    stats::turns::judge(processes, &params(better, stop))
}

/// Judgement on all blocks at once, for runs that have ended. Verdicts that each run reached on its
/// own blocks do not count.
pub fn at_the_end(judged: Judgement, better: Better, stop: &StopRule) -> Judgement {
    judged.at_the_end(&params(better, stop))
}

fn params(better: Better, stop: &StopRule) -> Params {
    Params {
        alpha: error_rate(stop),
        smallest_effect: stop.smallest_effect,
        better,
    }
}

/// Chance, at most, that so many more blocks decide an open comparison; 1 where nothing can be told.
pub fn chance_to_decide(judged: &Judgement, stop: &StopRule, more: u32) -> f64 {
    let outlook = judged.outlook.as_ref();
    outlook.map_or(1.0, |outlook| {
        outlook.chance_to_decide(error_rate(stop), more)
    })
}

/// Blocks, or processes in which arms take turns, that further ones like them would have to be in all.
pub fn units_needed(judged: &Judgement, stop: &StopRule) -> Option<u32> {
    judged.outlook.as_ref()?.units_needed(error_rate(stop), 0)
}

/// Error rate of a comparison, and false discovery rate of a family.
pub fn error_rate(stop: &StopRule) -> f64 {
    1.0 - stop.confidence
}

/// For each comparison, given by its family and its e-value: true if it holds together with all
/// others of the family; none for a comparison without a family.
pub fn find_survivors(comparisons: &[(Option<Family>, f64)], stop: &StopRule) -> Vec<Option<bool>> {
    let mut found = vec![None; comparisons.len()];
    for family in [Family::Deciding, Family::Further] {
        let members = comparisons.iter().enumerate();
        let members: Vec<(usize, f64)> = members
            .filter(|(_, (of, _))| *of == Some(family))
            .map(|(index, (_, e_value))| (index, *e_value))
            .collect();
        let e_values: Vec<f64> = members.iter().map(|(_, e_value)| *e_value).collect();
        let survive = stats::ebh::find_survivors(&e_values, error_rate(stop));
        for ((index, _), survives) in members.into_iter().zip(survive) {
            found[index] = Some(survives);
        }
    }
    found
}

/// True if the arm repeats the baseline as a control.
pub fn is_aa(experiment: &Experiment, arm: usize) -> bool {
    experiment.aa_arm.as_deref() == Some(experiment.arms[arm].name.as_str())
}

/// A deciding comparison of an arm with the baseline, in the indices of the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged<'a> {
    /// Index of the cell in the plan.
    pub cell: usize,
    /// Index of the arm in the experiment.
    pub arm: usize,
    /// Name of the metric.
    pub metric: Cow<'a, str>,
    /// Verdict on the arm against the baseline, and the numbers behind it.
    pub judgement: Judgement,
    /// Holds together with all deciding comparisons of the run; none where it is not
    /// one of the family.
    pub survives: Option<bool>,
}

impl Judged<'_> {
    /// More blocks can still change what is known.
    pub fn is_open(&self) -> bool {
        match self.judgement.supported_verdict() {
            Verdict::Unknown => true,
            Verdict::Better | Verdict::Worse => self.survives == Some(false),
            Verdict::Same => false,
        }
    }
}

/// Looks at the blocks that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looks {
    /// One after each block, in their order: the first that decides stays.
    AfterEach,
    /// One at all of them together. Blocks of several machines have no order.
    AtAll,
}

/// Every deciding comparison of the trials so far, with those of the A/A arm.
pub fn judge_deciding<'a>(
    experiment: &'a Experiment,
    plan: &Plan,
    trials: &[Trial],
    looks: Looks,
) -> Vec<Judged<'a>> {
    let cells = plan.cells.iter().enumerate();
    let mut all: Vec<Judged> = cells
        .flat_map(|(cell, planned)| {
            let workload = &experiment.workloads[planned.workload];
            of_cell(experiment, workload, trials, cell, looks)
        })
        .collect();
    let members: Vec<(Option<Family>, f64)> = all
        .iter()
        .map(|judged| {
            let aa = is_aa(experiment, judged.arm);
            let blocks = judged.judgement.blocks as usize;
            (
                Family::for_comparison(true, aa, blocks),
                judged.judgement.e_value,
            )
        })
        .collect();
    let survive = find_survivors(&members, &experiment.stop);
    for (judged, survives) in all.iter_mut().zip(survive) {
        judged.survives = survives;
    }
    all
}

fn of_cell<'a>(
    experiment: &'a Experiment,
    workload: &'a Workload,
    trials: &[Trial],
    cell: usize,
    looks: Looks,
) -> Vec<Judged<'a>> {
    let here: Vec<&Trial> = trials.iter().filter(|t| t.place.cell == cell).collect();
    let baseline = experiment.baseline;
    let mut all = Vec::new();
    for arm in (0..experiment.arms.len()).filter(|arm| *arm != baseline) {
        let overload = Overload::from_trials(here.iter().copied(), cell, arm, baseline);
        let deciding = overload
            .deciding_metrics(&workload.metrics, &here)
            .into_iter();
        // A window may be too short for a quantile, which then cannot decide.
        let has = |metric: &str| here.iter().any(|trial| trial.metric(metric).is_some());
        // A pilot may have chosen whole trials.
        let in_turns = here.iter().any(|trial| trial.result.windows.is_some());
        for metric in deciding.filter(|metric| !in_turns || has(metric)) {
            let better = direction(&here, &metric);
            let here = here.iter().copied();
            let judgement = match in_turns {
                true => {
                    let processes = results::turns::find_processes(here, cell, arm, baseline);
                    judge_turns(&processes, &metric, better, &experiment.stop)
                }
                false => {
                    let own = results::sample::find_declaration(here.clone(), &metric);
                    let pairs = results::pair_trials(here, cell, &metric, arm, baseline);
                    judge_pairs(&pairs, own, better, &experiment.stop)
                }
            };
            let judgement = match looks {
                Looks::AfterEach => judgement,
                Looks::AtAll => at_the_end(judgement, better, &experiment.stop),
            };
            all.push(Judged {
                cell,
                arm,
                metric,
                judgement,
                survives: None,
            });
        }
    }
    all
}

/// Direction of a metric, as the trials say it.
fn direction(trials: &[&Trial], metric: &str) -> Better {
    let measured = trials.iter().find_map(|t| t.metric(metric));
    measured.map_or(Better::Neither, |measured| measured.better)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_has_neither_the_control_nor_what_has_no_evidence() {
        assert_eq!(
            Family::for_comparison(true, false, 2),
            Some(Family::Deciding)
        );
        assert_eq!(
            Family::for_comparison(false, false, 2),
            Some(Family::Further)
        );
        assert_eq!(Family::for_comparison(true, false, 1), None);
        assert_eq!(Family::for_comparison(true, true, 9), None);
    }

    #[test]
    fn what_is_in_no_family_makes_no_call_harder() {
        let stop = StopRule {
            min_blocks: 5,
            ..StopRule::default()
        };
        let (deciding, further) = (Some(Family::Deciding), Some(Family::Further));
        let alone = [(deciding, 25.0), (None, 1.0), (further, 1.0)];
        let found = find_survivors(&alone, &stop);
        assert_eq!(found, [Some(true), None, Some(false)]);
        let two = [(deciding, 25.0), (deciding, 1.0)];
        assert_eq!(find_survivors(&two, &stop), [Some(false), Some(false)]);
    }
}
