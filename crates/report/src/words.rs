//! Plain words for verdicts, warnings and states, shared by all renderers.

use crate::build::most_common;
use crate::quantity::{count, percent};
use crate::table::{
    CellTable, Comparison, Excluded, ExperimentInfo, NotMeasured, Notice, Table, Tally,
    TrialCounts, Verdict,
};
use model::{Better, Severity};

/// `batch: better on 1 of 4, worse on 0, same on 1, unknown on 2`.
pub fn tally(tally: &Tally) -> String {
    if tally.total() == 0 {
        return format!(
            "{}: compared in no cell{}",
            tally.arm,
            cells_not_measured(tally)
        );
    }
    format!(
        "{}: better on {} of {}, worse on {}, same on {}, unknown on {}{}",
        tally.arm,
        tally.better,
        tally.total(),
        tally.worse,
        tally.same,
        tally.unknown,
        cells_not_measured(tally)
    )
}

fn cells_not_measured(tally: &Tally) -> String {
    match tally.cells_not_measured {
        0 => String::new(),
        cells => format!("; {} not measured", count(cells, "cell")),
    }
}

/// What the A/A arm proves, in one sentence.
pub fn aa(tally: &Tally) -> String {
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
    let reasons: Vec<&str> = table.excluded.iter().map(Excluded::headline).collect();
    let TrialCounts { void, failed, .. } = table.trials;
    table.is_empty().then(|| {
        format!(
            "Nothing was measured: {}.",
            all_lost(void, failed, &most_common(&reasons))
        )
    })
}

/// Of a cell in which no arm was measured: `not measured: all 3 trials void: the
/// generator was late`.
pub fn cell_not_measured(cell: &CellTable) -> Option<String> {
    let sum = |of: fn(&NotMeasured) -> usize| cell.not_measured.iter().map(of).sum();
    let reasons = cell.not_measured.iter().map(|n| n.why.as_str());
    let reasons: Vec<&str> = reasons.filter(|why| !why.is_empty()).collect();
    let lost = all_lost(sum(|n| n.void), sum(|n| n.failed), &most_common(&reasons));
    cell.is_empty().then(|| format!("not measured: {lost}"))
}

/// Of one arm of a cell.
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

/// The sentences on top of a report.
pub fn summary(table: &Table) -> Vec<String> {
    if let Some(nothing) = nothing_measured(table) {
        return vec![nothing];
    }
    let mut lines: Vec<String> = Vec::new();
    for entry in &table.tallies {
        lines.push(if entry.aa { aa(entry) } else { tally(entry) });
    }
    if table.tallies.is_empty() {
        lines.push("One arm alone: it is summarised, and compared with nothing.".to_owned());
    }
    lines.extend(error_rate(table));
    lines
}

/// None where nothing was compared.
pub fn error_rate(table: &Table) -> Option<String> {
    let experiment = &table.experiment;
    let is_compared = table.tallies.iter().any(|tally| tally.total() > 0);
    is_compared.then(|| format!(
        "Each better or worse has at most a {} % chance to be a false call; same means within {} %.",
        percent(1.0 - experiment.confidence),
        percent(experiment.smallest_effect)
    ))
}

/// More blocks than anyone will run.
const MANY_BLOCKS: u32 = 1000;

/// `12`, or `5 of ~14` where more blocks would decide.
pub fn blocks(comparison: &Comparison) -> String {
    match comparison.blocks_needed {
        Some(needed) if needed > MANY_BLOCKS => {
            format!("{} of >{MANY_BLOCKS}", comparison.blocks)
        }
        Some(needed) => format!("{} of ~{needed}", comparison.blocks),
        None => comparison.blocks.to_string(),
    }
}

/// The verdict, with a star if it does not hold among all the others.
pub fn marked_verdict(comparison: &Comparison) -> String {
    match comparison.survives_ebh {
        Some(false) => format!("{}*", comparison.verdict.as_str()),
        _ => comparison.verdict.as_str().to_owned(),
    }
}

/// What the star means.
pub fn not_surviving(experiment: &ExperimentInfo) -> String {
    format!(
        "holds by itself, but not when all comparisons are looked at together (e-BH at {} %)",
        percent(1.0 - experiment.confidence)
    )
}

/// One sentence that says what a verdict means here.
pub fn meaning(comparison: &Comparison, smallest_effect: f64) -> String {
    let c = comparison;
    let (arm, baseline, metric) = (&c.arm, &c.baseline, &c.metric);
    let chance = percent(1.0 - c.confidence);
    let effect = percent(smallest_effect);
    match c.verdict {
        Verdict::Better | Verdict::Worse => format!(
            "{arm} is {} than {baseline} in {metric} ({}). The chance that blocks like these \
             ever call a difference where there is none is at most {chance} %.",
            c.verdict.as_str(),
            direction(c.better),
        ),
        Verdict::Same => format!(
            "Whatever the difference between {arm} and {baseline} in {metric} is, it is smaller \
             than the {effect} % that the experiment cares about."
        ),
        Verdict::Unknown => format!(
            "{} not tell {arm} from {baseline} in {metric}. {}",
            match c.blocks {
                1 => "1 block does".to_owned(),
                blocks => format!("{blocks} blocks do"),
            },
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

pub fn direction(better: Better) -> &'static str {
    match better {
        Better::Higher => "higher is better",
        Better::Lower => "lower is better",
        Better::Neither => "explains, is not judged",
    }
}

pub fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Serious => "serious",
        Severity::Caution => "caution",
        Severity::Note => "note",
    }
}

/// `96 trials: 94 ok, 1 void, 1 failed`.
pub fn trials(counts: &TrialCounts) -> String {
    format!(
        "{}: {} ok, {} void, {} failed",
        count(counts.total(), "trial"),
        counts.ok,
        counts.void,
        counts.failed
    )
}

/// When the run began, to the second: `2026-11-21T19:16:06Z`.
pub fn created(experiment: &ExperimentInfo) -> String {
    match experiment.created.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => experiment.created.clone(),
    }
}

/// Kernel, CPUs and target in one line.
pub fn machine(table: &Table) -> String {
    let system = &table.system;
    let virtualized = match system.hypervisor.as_str() {
        "" | "none" => String::new(),
        hypervisor => format!(" under {hypervisor}"),
    };
    format!(
        "Linux {}, {} CPUs ({}){virtualized}, target {}",
        system.kernel_release, system.cpus, system.cpu_model, table.experiment.target
    )
}
