//! From a results directory to the table.

use crate::certificate::Certificate;
use crate::forecast;
use crate::render::Format;
use crate::table::across::{self, Across};
use crate::table::cell::CellScope;
use crate::table::evidence;
use crate::table::explanation;
use crate::table::not_measured::are_measured;
use crate::table::notices;
use crate::table::{
    ArmInfo, CellTable, Comparison, Excluded, ExperimentInfo, Table, Tally, TrialCounts, Verdict,
};
use judge::{Family, is_aa};
use model::{Experiment, StopRule, TrialState};
use rayon::prelude::*;
use results::ResultSet;
use stats::summary::mean;
use std::collections::BTreeMap;

/// What a table is made with.
#[derive(Debug, Clone, Copy)]
pub(in crate::table) struct Effort {
    /// True if it is looked for how the intervals narrowed.
    has_narrowing: bool,
    /// True if all CPUs may make it: nothing is measured meanwhile.
    has_all_cpus: bool,
}

impl Effort {
    /// Something of each cell, in their order.
    pub(in crate::table) fn map_cells<T: Send>(
        self,
        results: &ResultSet,
        make: impl Fn(usize) -> T + Sync,
    ) -> Vec<T> {
        let cells = 0..results.plan.cells.len();
        match self.has_all_cpus {
            true => cells.into_par_iter().map(&make).collect(),
            false => cells.map(&make).collect(),
        }
    }
}

impl Table {
    /// Everything that the directory says, judged. It takes one CPU, since a trial may run beside it.
    pub fn from_results(results: &ResultSet) -> Table {
        let effort = Effort {
            has_narrowing: true,
            has_all_cpus: false,
        };
        Table::build(results, effort)
    }

    /// The same with what this format shows of it, on all CPUs.
    pub fn for_format(results: &ResultSet, format: &Format) -> Table {
        let effort = Effort {
            has_narrowing: format.has_narrowing,
            has_all_cpus: true,
        };
        Table::build(results, effort)
    }

    /// The same for who needs the verdicts alone: how the intervals narrowed is not looked for.
    pub fn verdicts_only(results: &ResultSet) -> Table {
        let effort = Effort {
            has_narrowing: false,
            has_all_cpus: false,
        };
        Table::build(results, effort)
    }

    fn build(results: &ResultSet, effort: Effort) -> Table {
        let pause_ns = mean(&forecast::measure_pauses(results)).unwrap_or(0.0);
        let mut cells = effort.map_cells(results, |cell| {
            let scope = CellScope::new(results, cell, pause_ns);
            match effort.has_narrowing {
                true => scope.with_narrowing().table(),
                false => scope.table(),
            }
        });
        mark_survivors(&mut cells, &results.experiment.stop);
        let events = across::events::compare_events(results, &cells);
        let machines = across::machines::by_machine(results, &cells);
        let smallest = results.experiment.stop.smallest_effect;
        across::machines::note_machines(&mut cells, &machines, smallest);
        let warnings = notices::collect_notices(results, &cells, &events);
        let between = across::rivals::compare_arms(results, effort);
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
