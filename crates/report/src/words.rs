//! Plain words for verdicts, warnings and states, shared by all renderers.

use crate::fold::{in_ranges, is_alike};
use crate::quantity::{
    describe_difference, describe_differences, describe_strength, format_count, format_e_value,
    format_percent, in_short, with_unit,
};
use crate::render::{arms, conclusion, machines};
use crate::table::across::Sequential;
use crate::table::across::sequential::{Apart, Level, Row};
use crate::table::most_common;
use crate::table::{
    ArmTrials, CellTable, Comparison, Excluded, ExperimentInfo, HoldsFor, NotMeasured, Notice,
    Table, Tally, TrialCounts, Verdict,
};
use model::{Better, Severity};

/// Line about an arm that was compared in no cell.
pub fn tally_line(tally: &Tally) -> String {
    let missing = cells_not_measured(tally);
    format!("{}: compared in no cell{missing}", tally.arm)
}

fn cells_not_measured(tally: &Tally) -> String {
    match tally.cells_not_measured {
        0 => String::new(),
        cells => format!("; {} not measured", format_count(cells, "cell")),
    }
}

/// Result of the A/A arm, in one sentence.
pub fn aa_sentence(tally: &Tally) -> String {
    let Tally { arm, .. } = tally;
    let total = tally.total();
    let missing = cells_not_measured(tally);
    if total == 0 {
        return format!("{arm} is the baseline once more: compared in no cell{missing}.");
    }
    match tally.better + tally.worse {
        0 => format!(
            "{arm} is the baseline once more: rightly, 0 of {total} were called better or \
             worse{missing}."
        ),
        called => format!(
            "{arm} is the baseline once more, yet {called} of {total} were called better or \
             worse: these calls are false, so doubt the others{missing}."
        ),
    }
}

/// In the place of an answer, where no trial counts.
pub fn nothing_measured(table: &Table) -> Option<String> {
    let reasons: Vec<&str> = table.excluded.iter().map(Excluded::first_line).collect();
    let TrialCounts { void, failed, .. } = table.trials;
    let why = most_common(&reasons);
    let of_it = reasons
        .iter()
        .filter(|reason| is_alike(reason, &why))
        .count();
    let share = match of_it < void + failed && of_it > 0 {
        true => format!(" ({of_it} of them)"),
        false => String::new(),
    };
    table.is_empty().then(|| {
        format!(
            "Nothing was measured: {}{share}.",
            all_lost(void, failed, &why)
        )
    })
}

/// Line about a cell in which no arm was measured: `not measured: all 3 trials void: the
/// generator was late`.
pub fn cell_not_measured(cell: &CellTable) -> Option<String> {
    let sum = |of: fn(&NotMeasured) -> usize| cell.not_measured.iter().map(of).sum();
    let reasons = cell.not_measured.iter().map(|n| n.why.as_str());
    let reasons: Vec<&str> = reasons.filter(|why| !why.is_empty()).collect();
    let common = most_common(&reasons);
    let why = match reasons.iter().all(|why| is_alike(why, &common)) {
        true => common,
        false => why_of_each(cell),
    };
    let lost = all_lost(sum(|n| n.void), sum(|n| n.failed), &why);
    cell.is_empty().then(|| format!("not measured: {lost}"))
}

/// The reason of each arm, by its name.
fn why_of_each(cell: &CellTable) -> String {
    let arms = cell.not_measured.iter().filter(|of| !of.why.is_empty());
    let arms: Vec<String> = arms.map(|of| format!("{}: {}", of.arm, of.why)).collect();
    arms.join("; ")
}

/// Line about one arm that was not measured in a cell.
pub fn arm_not_measured(of: &NotMeasured) -> String {
    format!(
        "{} was not measured: {}",
        of.arm,
        all_lost(of.void, of.failed, &of.why)
    )
}

fn all_lost(void: usize, failed: usize, why: &str) -> String {
    let all = match void + failed {
        1 => "the only trial".to_owned(),
        trials => format!("all {trials} trials"),
    };
    match (void, failed) {
        (0, 0) => "no trial was made".to_owned(),
        (_, 0) => format!("{all} void: {why}"),
        (0, _) => format!("{all} failed: {why}"),
        _ => format!("{all} void or failed: {why}"),
    }
}

/// In the place of a comparison.
pub const ONE_ARM: &str = "One arm alone: it is summarised, and compared with nothing.";

/// The sentences on top of a report.
pub fn summary_sentences(table: &Table) -> Vec<String> {
    if let Some(nothing) = nothing_measured(table) {
        return vec![nothing];
    }
    if let Some(sequential) = &table.across.sequential {
        return sequential_runs(table, sequential);
    }
    let mut lines: Vec<String> = Vec::new();
    lines.extend(conclusion::arm_sentences(table));
    lines.extend(arms::describe_ranking(table));
    lines.extend(machines::describe_over(table));
    if table.tallies.is_empty() {
        lines.push(ONE_ARM.to_owned());
    }
    lines.extend(error_rate(table));
    lines
}

/// Conclusions that imported runs allow, and those that they do not.
pub fn sequential_runs(table: &Table, sequential: &Sequential) -> Vec<String> {
    let mut said = vec![format!(
        "Imported from {}: the runs of an arm were made together, and not in turns with those of the \
         others. Whatever else changed between them (other work, temperature, memory layout, an \
         update) is mixed with the arm, and no number of runs tells the two apart. So these data \
         describe, and decide nothing: there is no verdict and no error rate.",
        sequential.tool
    )];
    let arms = table.arms.iter().filter(|arm| !arm.baseline);
    said.extend(arms.filter_map(|arm| set_apart(table, sequential, &arm.name)));
    let levels = sequential
        .rows
        .iter()
        .flat_map(|row| row.arms.iter().flatten());
    let levels: Vec<&Level> = levels.collect();
    let trends = levels.iter().filter(|level| level.has_trend()).count();
    if trends > 0 {
        said.push(format!(
            "In {trends} of {} series the runs of one arm rise or fall while they go on \
             (Mann-Kendall, p below 1 %): these are not independent, and their intervals are too \
             narrow.",
            levels.len()
        ));
    }
    if levels.iter().any(|level| level.runs < 2) {
        said.push(
            "Where an arm has one run, its spread is not known and nothing can be said of a change."
                .to_owned(),
        );
    }
    said
}

/// `6.1 beside 6.0: in 3 of 8 figures the interval for independent runs leaves out "no change"; the
/// largest: hackbench process-pipe group-1 hackbench_time 12 % higher (8 to 16 %).`
fn set_apart(table: &Table, sequential: &Sequential, arm: &str) -> Option<String> {
    let of_arm = |row: &'_ Row| row.changes.iter().position(|change| change.arm == arm);
    let rows = sequential.rows.iter();
    let changes: Vec<(&Row, &Apart)> = rows
        .filter_map(|row| Some((row, &row.changes[of_arm(row)?])))
        .collect();
    let with_interval = changes
        .iter()
        .filter(|(_, change)| change.low.is_some())
        .count();
    if with_interval == 0 {
        return None;
    }
    let apart = changes
        .iter()
        .filter(|(_, change)| change.excludes_no_change());
    let apart: Vec<&(&Row, &Apart)> = apart.collect();
    let size = |change: &Apart| change.ratio.map_or(0.0, |ratio| ratio.ln().abs());
    let largest = apart.iter().max_by(|a, b| size(a.1).total_cmp(&size(b.1)));
    let largest = largest.and_then(|(row, change)| {
        let (low, high) = change.low.zip(change.high)?;
        let by = describe_difference(change.ratio?);
        let metric = &row.measured.metric;
        let between = describe_differences(low, high);
        Some(format!(
            "; the largest: {}, {metric} {by} ({between})",
            row.cell
        ))
    });
    Some(format!(
        "{arm} beside {}: in {} of {} the interval for independent runs leaves out \"no change\"{}.",
        table.baseline(),
        apart.len(),
        format_count(with_interval, "figure"),
        largest.unwrap_or_default()
    ))
}

/// None where nothing was compared.
pub fn error_rate(table: &Table) -> Option<String> {
    let experiment = &table.experiment;
    let is_compared = table.tallies.iter().any(|tally| tally.total() > 0);
    is_compared.then(|| format!(
        "Each better or worse has at most a {} % chance to be a false call; same means within {} %.",
        format_percent(1.0 - experiment.confidence),
        format_percent(experiment.smallest_effect)
    ))
}

/// More blocks than anyone will run.
const MANY_BLOCKS: u32 = 1000;

/// The notes to show below each row of a table: notes that neighbours share are below the last
/// of them, with their number.
pub fn row_notes(rows: &[&Comparison]) -> Vec<Vec<String>> {
    let same = rows.chunk_by(|a, b| a.notes == b.notes);
    let below = same.flat_map(|same| {
        let last = same.last().map_or(&[][..], |row| row.notes.as_slice());
        let said = last.iter().map(|note| match same.len() {
            1 => note.clone(),
            rows => format!("these {rows} rows: {note}"),
        });
        let above = vec![Vec::new(); same.len() - 1];
        above.into_iter().chain([said.collect()])
    });
    below.collect()
}

/// Time that further blocks of a comparison are likely to take until it is decided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MoreTime {
    pub ns: f64,
    /// It takes longer; nobody will wait for it.
    pub at_least: bool,
}

/// None where the comparison is decided, and where its blocks do not tell.
pub fn more_time(comparison: &Comparison) -> Option<MoreTime> {
    let missing = comparison.blocks_missing()?;
    let share = f64::from(missing.min(MANY_BLOCKS)) / f64::from(missing.max(1));
    Some(MoreTime {
        ns: comparison.more_ns? * share,
        at_least: missing > MANY_BLOCKS,
    })
}

/// `12`, or `5, 4 min more` where more blocks would probably decide.
pub fn blocks_word(comparison: &Comparison) -> String {
    let blocks = comparison.blocks;
    match more_time(comparison) {
        Some(more) if more.at_least => format!("{blocks}, >{} more", in_short(more.ns)),
        Some(more) => format!("{blocks}, {} more", in_short(more.ns)),
        None => blocks.to_string(),
    }
}

/// The verdict, with a star if it does not hold among all the others: `was better` where later
/// blocks took it back.
pub fn marked_verdict(comparison: &Comparison) -> String {
    let verdict = verdict_word(comparison);
    match (comparison.withdrawn, comparison.survives_ebh) {
        (Some(earlier), _) => format!("was {}", earlier.as_str()),
        (None, Some(false)) => format!("{verdict}*"),
        (None, _) => verdict.to_owned(),
    }
}

/// The word of a verdict. What has no block was not compared, which is not the same as
/// unknown.
pub fn verdict_word(comparison: &Comparison) -> &'static str {
    match comparison.blocks {
        0 => "not compared",
        _ => comparison.verdict.as_str(),
    }
}

/// The strength of the evidence against "no difference" in words, with its e-value:
/// `strong (21)`.
pub fn strength_of(comparison: &Comparison) -> String {
    let e_value = comparison.e_value;
    e_value.map_or_else(
        || "-".to_owned(),
        |e_value| {
            format!(
                "{} ({})",
                describe_strength(e_value),
                format_e_value(e_value)
            )
        },
    )
}

/// The meaning of e-values, with the words of [`strength_of`] or without them.
pub fn scale_of_evidence(experiment: &ExperimentInfo, in_words: bool) -> String {
    let decides = deciding_e_value(experiment);
    match in_words {
        true => format!(
            "Evidence goes from none to extreme; its e-value is in brackets, and {decides} decides."
        ),
        false => format!("An e-value of {decides} decides."),
    }
}

/// The e-value at which a comparison is decided.
pub fn deciding_e_value(experiment: &ExperimentInfo) -> String {
    format_e_value((1.0 / (1.0 - experiment.confidence)).round())
}

/// A metric as people say it: `p99 of wakeups`, `median of requests`, `requests per
/// second`, `hackbench time`.
pub fn metric_name(name: &str) -> String {
    if let Some(what) = name.strip_suffix("_per_sec") {
        return format!("{} per second", what.replace('_', " "));
    }
    let plain = || name.replace('_', " ");
    let Some((what, figure)) = name.rsplit_once('_') else {
        return plain();
    };
    let what = match what {
        "request" => "requests".to_owned(),
        "wakeup" => "wakeups".to_owned(),
        other => other.replace('_', " "),
    };
    match (figure, figure.strip_prefix('p')) {
        ("p50", _) => format!("median of {what}"),
        ("max", _) => format!("longest of {what}"),
        (_, Some(digits)) if is_number(digits) => format!("{} of {what}", percentile(digits)),
        _ => plain(),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit())
}

/// `p99` of 99, `p99.9` of 999.
fn percentile(digits: &str) -> String {
    match digits.split_at_checked(2) {
        Some((whole, part)) if !part.is_empty() => format!("p{whole}.{part}"),
        _ => format!("p{digits}"),
    }
}

/// Meaning of the star.
pub fn not_surviving(experiment: &ExperimentInfo) -> String {
    format!(
        "holds by itself, but not when all comparisons are looked at together (e-BH at {} %)",
        format_percent(1.0 - experiment.confidence)
    )
}

/// Words behind a verdict that does not reach beyond some thing: ` in this boot`.
pub fn reach(comparison: &Comparison) -> &'static str {
    match comparison.holds_for {
        Some(HoldsFor::ThisBoot) => " in this boot",
        Some(HoldsFor::ThisStart) => " for this start",
        Some(HoldsFor::TheseMachines) => " on these machines",
        Some(HoldsFor::TheseRuns) => " in these runs",
        None => "",
    }
}

/// One sentence that says what a verdict means here.
pub fn verdict_meaning(comparison: &Comparison, smallest_effect: f64) -> String {
    let c = comparison;
    let (arm, baseline, metric) = (&c.arm, &c.baseline, &c.metric);
    let chance = format_percent(1.0 - c.confidence);
    let effect = c.smallest_effect(smallest_effect);
    match c.verdict {
        Verdict::Better | Verdict::Worse => format!(
            "{arm} is {} than {baseline} in {metric} ({}){}. The chance that blocks like these \
             ever call a difference where there is none is at most {chance} %.",
            c.verdict.as_str(),
            direction_word(c.better),
            reach(c),
        ),
        Verdict::Same => format!(
            "Whatever the difference between {arm} and {baseline} in {metric} is{}, it is smaller \
             than the {effect} that the experiment cares about.",
            reach(c)
        ),
        Verdict::Unknown if c.blocks == 0 => {
            format!("{arm} was not compared with {baseline} in {metric}.")
        }
        Verdict::Unknown => format!(
            "{} not tell {arm} from {baseline} in {metric}{}. {}",
            match c.blocks {
                1 => "1 block does".to_owned(),
                blocks => format!("{blocks} blocks do"),
            },
            c.withdrawn.map_or_else(String::new, |was| format!(
                "; earlier ones said {}",
                was.as_str()
            )),
            remedy(c)
        ),
    }
}

fn remedy(comparison: &Comparison) -> String {
    match comparison.blocks_needed {
        Some(needed) if needed > MANY_BLOCKS => format!(
            "It would take more than {MANY_BLOCKS}: the difference is small or the noise large."
        ),
        Some(needed) => {
            format!("If the coming blocks are like these, about {needed} in all will decide it.")
        }
        None => "How many it would take cannot be told from these.".to_owned(),
    }
}

/// Which trials gave a warning: `7 trials: batch in wakeup 200%`; empty if it was
/// the run as a whole.
pub fn notice_trials(notice: &Notice) -> String {
    const MOST_PLACES: usize = 3;
    let count = match notice.trials {
        0 => return String::new(),
        1 => "1 trial".to_owned(),
        n => format!("{n} trials"),
    };
    let named = notice.places.iter().take(MOST_PLACES);
    let mut named: Vec<&str> = named.map(String::as_str).collect();
    if notice.places.len() > MOST_PLACES {
        named.push("others");
    }
    format!("{count}: {}", named.join(", "))
}

/// A warning with its trials: `20 x: the generator was late by 5 to 647 ms (fifo 9,
/// weight-1000 6)`.
pub fn notice_line(notice: &Notice) -> String {
    match notice.trials {
        0 => notice.what.clone(),
        trials => format!("{trials} x: {} ({})", notice.what, by_arm(&notice.arms)),
    }
}

/// Trials that do not count, those of a kind in one line: `20 x void: the generator was late by
/// 5 to 647 ms (fifo 9, weight-1000 6)`.
pub fn excluded_by_kind(excluded: &[Excluded]) -> Vec<String> {
    let mut groups: Vec<Vec<&Excluded>> = Vec::new();
    for trial in excluded {
        let same = |group: &&mut Vec<&Excluded>| {
            group[0].state == trial.state && is_alike(group[0].first_line(), trial.first_line())
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(trial),
            None => groups.push(vec![trial]),
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    groups.iter().map(|group| of_a_kind(group)).collect()
}

fn of_a_kind(trials: &[&Excluded]) -> String {
    let reasons: Vec<&str> = trials.iter().map(|trial| trial.first_line()).collect();
    let mut arms = Vec::new();
    for trial in trials {
        ArmTrials::add_trial(&mut arms, &trial.arm);
    }
    let state = trials.first().map_or("", |trial| &trial.state);
    let (number, why) = (trials.len(), in_ranges(&reasons));
    format!("{number} x {state}: {why} ({})", by_arm(&arms))
}

/// `fifo 9, weight-1000 6`, of many arms those with the most.
pub fn by_arm(arms: &[ArmTrials]) -> String {
    const MOST_ARMS: usize = 4;
    if let [alone] = arms {
        return alone.arm.clone();
    }
    let named = arms.iter().take(MOST_ARMS);
    let mut named: Vec<String> = named.map(|a| format!("{} {}", a.arm, a.trials)).collect();
    named.extend((arms.len() > MOST_ARMS).then(|| "...".to_owned()));
    named.join(", ")
}

pub fn direction_word(better: Better) -> &'static str {
    match better {
        Better::Higher => "higher is better",
        Better::Lower => "lower is better",
        Better::Neither => "explains, is not judged",
    }
}

pub fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Serious => "serious",
        Severity::Caution => "caution",
        Severity::Note => "note",
    }
}

/// `96 trials: 94 ok, 1 void, 1 failed`; `24 trials, all ok`.
pub fn count_trials(counts: &TrialCounts) -> String {
    let all = format_count(counts.total(), "trial");
    if counts.ok == counts.total() {
        return format!("{all}, all ok");
    }
    let lost = [(counts.void, "void"), (counts.failed, "failed")];
    let lost = lost.iter().filter(|(number, _)| *number > 0);
    let lost: String = lost
        .map(|(number, state)| format!(", {number} {state}"))
        .collect();
    format!("{all}: {} ok{lost}", counts.ok)
}

/// The trials, and the time that the run took: `24 trials, all ok, in 3m10s`.
pub fn trials_and_time(table: &Table) -> String {
    let trials = count_trials(&table.trials);
    match table.took_ns {
        0 => trials,
        ns => format!(
            "{trials}, in {}",
            model::format_duration_ns(whole_seconds(ns))
        ),
    }
}

/// Up to the next second from a second on, and to the next millisecond below it: nobody plans with
/// the fractions.
fn whole_seconds(ns: u64) -> u64 {
    const SECOND: u64 = 1_000_000_000;
    const MILLISECOND: u64 = 1_000_000;
    let step = match ns {
        0..MILLISECOND => 1,
        MILLISECOND..SECOND => MILLISECOND,
        SECOND.. => SECOND,
    };
    ns.div_ceil(step) * step
}

/// When the run began, to the second: `2026-11-21T19:16:06Z`.
pub fn created_time(experiment: &ExperimentInfo) -> String {
    match experiment.created.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => experiment.created.clone(),
    }
}

/// Kernel, CPUs and target in one line.
pub fn machine_line(table: &Table) -> String {
    let system = &table.system;
    if let Some(sequential) = &table.across.sequential {
        let known = [&system.cpu_model, &system.kernel_release];
        let known: Vec<&str> = known.into_iter().map(String::as_str).collect();
        let known: Vec<&str> = known.into_iter().filter(|fact| !fact.is_empty()).collect();
        return match known.is_empty() {
            true => format!("the machine was not recorded by {}", sequential.tool),
            false => format!("{}, as {} recorded", known.join(", "), sequential.tool),
        };
    }
    let virtualized = match system.hypervisor.as_str() {
        "" | "none" => String::new(),
        hypervisor => format!(" under {hypervisor}"),
    };
    format!(
        "Linux {}, {} CPUs ({}){virtualized}, target {}{}",
        system.kernel_release,
        system.cpus,
        system.cpu_model,
        table.experiment.target,
        way_of_load(table)
    )
}

/// The way of loads on the controller to the target, with its length where it was measured.
fn way_of_load(table: &Table) -> String {
    let Some(way) = table.system.facts.get("load.way") else {
        return String::new();
    };
    let rows = table.cells.iter().flat_map(|cell| &cell.metrics);
    let mut measured = rows.filter(|row| row.metric == "network_round_trip");
    let round_trip = measured.find_map(|row| {
        let summary = row.arms.iter().flatten().next()?;
        Some(format!(
            " (round trip {})",
            with_unit(summary.median, &row.unit)
        ))
    });
    let round_trip = round_trip.unwrap_or_default();
    format!("; load on the controller, {way}{round_trip}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_named_as_people_say_them() {
        assert_eq!(metric_name("wakeup_p99"), "p99 of wakeups");
        assert_eq!(metric_name("request_p50"), "median of requests");
        assert_eq!(metric_name("request_p999"), "p99.9 of requests");
        assert_eq!(metric_name("wakeup_max"), "longest of wakeups");
        assert_eq!(metric_name("requests_per_sec"), "requests per second");
        assert_eq!(metric_name("hackbench_time"), "hackbench time");
        assert_eq!(metric_name("wall_time"), "wall time");
        assert_eq!(metric_name("goodput"), "goodput");
    }

    #[test]
    fn only_trials_that_there_are_are_counted() {
        let counts = |ok, void, failed| count_trials(&TrialCounts { ok, void, failed });
        assert_eq!(counts(24, 0, 0), "24 trials, all ok");
        assert_eq!(counts(1, 0, 0), "1 trial, all ok");
        assert_eq!(counts(4, 1, 0), "5 trials: 4 ok, 1 void");
        assert_eq!(counts(0, 1, 2), "3 trials: 0 ok, 1 void, 2 failed");
    }
}
