//! Both versions of an alarm, measured beside each other: whether what the nights showed is so.

use super::alarms::refuse_ended;
use super::open_store;
use crate::args::ConfirmArgs;
use crate::commands::bisect::MOST_OF_AN_EFFECT;
use crate::commands::snapshot::forget_name;
use crate::exit::{self, CliError};
use crate::measure::{Measured, default_dir, interrupt_flag, measure_anew};
use crate::output::{self, Plain, note, say};
use crate::repeat::agree_to_run;
use crate::request::Wanted;
use crate::sources::{Unbuilt, build_versions, require_installed};
use history::words::{list_differences, shorten_hash};
use history::{Alarm, Contents, End, MachineClass, Outcome, Run, Store, Tracked, Turn};
use jiff::Timestamp;
use model::printable::one_line;
use model::{Arm, DecidedBy, Experiment, StopRule};
use report::{Comparison, Table, Verdict, format_change, format_interval};
use std::collections::BTreeMap;
use std::process::ExitCode;

/// Names of the two arms.
const ARMS: [&str; 2] = ["before", "after"];
/// A change is told from none down to this size.
const LEAST_EFFECT: f64 = 0.001;
/// Chance that versions which do not differ are called to differ, over all measurements of an alarm: one call in two has the
/// direction of the alarm, so that a false alarm is confirmed with at most half of it.
const FALSE_CALLS: f64 = 0.02;
/// Blocks of a measurement that its time ends: more than a night has time for.
const BLOCKS_OF_BUDGET: u32 = 10_000;
/// Seeds are below this, so that they stay readable.
const SEEDS: i128 = 1 << 32;

/// Measures both versions of an alarm, and ends it where the answer is known.
pub fn confirm(args: &ConfirmArgs) -> Result<ExitCode, CliError> {
    let store = open_store(&args.store.place)?;
    let contents = store.read_contents()?;
    let known = contents.find_alarm(&args.alarm)?;
    refuse_ended(known)?;
    match answer_alarm(&store, &contents, known, args)? {
        Answer::Ended(end) => show_end(args, &end),
        Answer::Open { said, place } => leave_open(args, &said, &place),
    }
}

/// Outcome of a confirmation.
pub enum Answer {
    /// The alarm ended, and the history has that.
    Ended(End),
    /// It is not decided: what was measured, and its directory.
    Open { said: String, place: String },
}

/// Measures both versions of an open alarm, and keeps its end where the answer is known.
pub fn answer_alarm(
    store: &Store,
    contents: &Contents,
    known: &Tracked,
    args: &ConfirmArgs,
) -> Result<Answer, CliError> {
    let alarm = &known.alarm;
    let keep = |end: End| -> Result<Answer, CliError> {
        store.end_alarm(end.clone())?;
        Ok(Answer::Ended(end))
    };
    let [before, after] = contents.find_pair(alarm)?;
    let pair = Pair {
        alarm,
        before,
        after,
        attempts: known.attempts,
    };
    let mut experiment = match pair.make_experiment(store, args)? {
        Ok(experiment) => experiment,
        Err(why) => return keep(pair.end(Outcome::CannotBeBuilt, why, None)),
    };
    plan::check(&experiment)?;
    // A signal that comes from here on ends the measurement in order.
    interrupt_flag()?;
    let wanted = |experiment: &Experiment| Wanted {
        experiment: experiment.clone(),
        source: None,
        calibrations: BTreeMap::new(),
    };
    let silent = args.yes && args.quiet;
    let agreed = agree_to_run(store.dir(), &wanted(&experiment), args.yes, silent)?;
    match build_versions(&mut experiment, agreed) {
        Ok(()) => {}
        Err(Unbuilt::Gone(error)) => {
            let why = one_line(&error.to_string()).into_owned();
            return keep(pair.end(Outcome::CannotBeBuilt, why, None));
        }
        Err(Unbuilt::Now(error)) => return Err(error),
    }
    require_installed(&experiment)?;
    let dir = args.output.clone();
    let dir = dir.unwrap_or_else(|| default_dir(&experiment.name));
    let measured = measure_anew(Some(&dir), wanted(&experiment), args.wait, args.quiet)?;
    match conclude(&pair, &measured)? {
        Answer::Ended(end) => keep(end),
        Answer::Open { said, place } => {
            // The next measurement has another share of the false calls.
            store.end_alarm(pair.end(Outcome::Open, said.clone(), Some(place.clone())))?;
            Ok(Answer::Open { said, place })
        }
    }
}

/// False calls that one more measurement of an alarm may have after so many: all of them together have those of an alarm.
fn share_of_attempt(attempts: u32) -> f64 {
    let next = f64::from(attempts) + 1.0;
    FALSE_CALLS / (next * (next + 1.0))
}

/// An alarm with the two runs whose versions it is about.
struct Pair<'a> {
    alarm: &'a Alarm,
    before: &'a Run,
    after: &'a Run,
    /// Measurements before, which did not decide.
    attempts: u32,
}

impl Pair<'_> {
    /// The experiment of the later run with the arm of both as its arms, and its cell alone. A reason where the earlier
    /// version is nowhere named.
    fn make_experiment(
        &self,
        store: &Store,
        args: &ConfirmArgs,
    ) -> Result<Result<Experiment, String>, CliError> {
        let key = &self.alarm.key;
        let [earlier, later] =
            [self.before, self.after].map(|run| store.read_experiment(&run.experiment));
        let (earlier, mut experiment) = (earlier?, later?);
        let arms = [&earlier, &experiment].map(|of| find_version(of, &key.arm));
        let [Some(before), Some(after)] = arms else {
            return Err(CliError::internal(
                "the experiments of the history do not have the arm",
            ));
        };
        let mut arms = [before, after];
        if arms[0] == arms[1] {
            return self.explain_lost_version().map(Err);
        }
        for (arm, name) in arms.iter_mut().zip(ARMS) {
            arm.name = name.to_owned();
        }
        keep_cell(&mut experiment, &key.cell, &key.metric)?;
        experiment.arms = arms.into();
        experiment.baseline = 0;
        experiment.aa_arm = None;
        experiment.observe.events.clear();
        experiment.question = Some(format!(
            "Alarm {} of the history: {}",
            shorten_hash(&self.alarm.id),
            self.alarm.title
        ));
        experiment.name = format!("{}-confirm", experiment.name);
        // Nobody knew it when the alarm was told, so the order of the blocks cannot be chosen.
        experiment.seed = draw_seed();
        self.set_stop(&mut experiment, args)?;
        Ok(Ok(experiment))
    }

    /// Half of the change tells one that is there from none.
    fn set_stop(&self, experiment: &mut Experiment, args: &ConfirmArgs) -> Result<(), CliError> {
        let stop = &mut experiment.stop;
        stop.decided_by = DecidedBy::Metrics;
        stop.confidence = stop.confidence.max(1.0 - share_of_attempt(self.attempts));
        let half = (self.alarm.change.ln().abs() / 2.0).exp_m1();
        stop.smallest_effect = half.clamp(LEAST_EFFECT, MOST_OF_AN_EFFECT);
        set_budget(experiment, args.budget.as_deref(), args.max_blocks)
    }

    /// Both runs name the arm alike: what changed is beside it, and the earlier one cannot be made again.
    fn explain_lost_version(&self) -> Result<String, CliError> {
        let figures = self.after.figures.iter();
        let mut anchors = figures.map(|figure| figure.anchor.as_str());
        let arms = [
            self.alarm.key.arm.as_str(),
            anchors.next().unwrap_or_default(),
        ];
        let differences = list_differences(self.before, self.after, arms);
        if differences.is_empty() {
            return Err(CliError::usage(
                format!(
                    "nothing that is recorded changed between the two runs of alarm {}, so there are no two versions \
                     to measure",
                    shorten_hash(&self.alarm.id)
                ),
                "look at what is not recorded (firmware, cooling, neighbours), then: schedlab history close",
            ));
        }
        Ok(format!(
            "both experiments name the arm alike, so the earlier version cannot be made again; what changed: {}",
            differences.join("; ")
        ))
    }

    fn end(&self, outcome: Outcome, why: String, results: Option<String>) -> End {
        End {
            alarm: self.alarm.id.clone(),
            outcome,
            at: Timestamp::now(),
            why,
            results,
        }
    }
}

/// A seed that nobody knew before.
pub fn draw_seed() -> u64 {
    let drawn = Timestamp::now().as_nanosecond().rem_euclid(SEEDS);
    u64::try_from(drawn).unwrap_or(1)
}

/// The time and the blocks that were typed, in place of those of the experiment: a night that ends after three blocks says
/// nothing on how many an answer takes.
pub fn set_budget(
    experiment: &mut Experiment,
    budget: Option<&str>,
    max_blocks: Option<u32>,
) -> Result<(), CliError> {
    let stop = &mut experiment.stop;
    let usual = StopRule::default().max_blocks;
    stop.max_blocks = max_blocks.unwrap_or(stop.max_blocks.max(usual));
    stop.min_blocks = stop.min_blocks.min(stop.max_blocks);
    if let Some(text) = budget {
        let budget = plan::parse_duration(text);
        let budget = budget.map_err(|e| CliError::usage(e, "write it as --budget 5m"))?;
        stop.budget_ns = Some(budget);
        stop.max_blocks = max_blocks.unwrap_or(BLOCKS_OF_BUDGET);
    }
    Ok(())
}

/// An arm of an experiment without its name, with its scheduler as it can be built again.
pub fn find_version(experiment: &Experiment, name: &str) -> Option<Arm> {
    let mut arms = experiment.arms.iter();
    let mut arm = arms.find(|arm| arm.name == name)?.clone();
    arm.name = String::new();
    if let Some(scheduler) = &mut arm.scheduler {
        scheduler.program = scheduler.pinned_name();
        scheduler.built_from = None;
    }
    Some(arm)
}

/// Leaves the workload and the load of one cell, decided by one metric. A snapshot with a name is of the whole workload.
pub fn keep_cell(experiment: &mut Experiment, name: &str, metric: &str) -> Result<(), CliError> {
    let cells = schedule::list_cells(experiment);
    let Some(cell) = cells.iter().find(|cell| cell.name == name) else {
        return Err(CliError::internal(
            "the experiment of the history does not have the cell",
        ));
    };
    let mut workload = experiment.workloads.swap_remove(cell.workload);
    workload.loads = vec![cell.load];
    workload.metrics = vec![metric.to_owned()];
    experiment.workloads = vec![workload];
    forget_name(experiment);
    Ok(())
}

/// The end of the alarm by what was measured, unless that is not decided.
fn conclude(pair: &Pair, measured: &Measured) -> Result<Answer, CliError> {
    let results = &measured.results;
    let table = Table::from_results(results);
    crate::commands::report::write_report_files(&table, results)?;
    let place = results.dir.display().to_string();
    let class = MachineClass::from_results(results);
    if class != pair.alarm.key.class {
        let was = pair.alarm.key.class.in_words();
        return Err(CliError::usage(
            format!(
                "this machine, {}, is not of the class of the alarm, {was}",
                class.in_words()
            ),
            format!("the alarm stays open; the measurement is in {place}"),
        ));
    }
    let mut comparisons = table.all_comparisons().filter(|c| c.deciding);
    let Some(comparison) = comparisons.next() else {
        return Err(CliError::internal(format!(
            "nothing was compared; see {place}"
        )));
    };
    let said = comparison_words(comparison);
    Ok(match judge(comparison.verdict, pair.alarm.turn) {
        Some(outcome) => Answer::Ended(pair.end(outcome, said, Some(place))),
        None => Answer::Open { said, place },
    })
}

/// The end of an alarm by a verdict on the later version; none where that is not decided.
fn judge(verdict: Verdict, turn: Turn) -> Option<Outcome> {
    match (verdict, turn) {
        (Verdict::Unknown, _) => None,
        (Verdict::Worse, Turn::Worse) | (Verdict::Better, Turn::Better) => Some(Outcome::Confirmed),
        _ => Some(Outcome::NotConfirmed),
    }
}

fn comparison_words(comparison: &Comparison) -> String {
    let bounds = comparison.low.zip(comparison.high);
    let interval = bounds.map(|(low, high)| format!(" {}", format_interval(low, high)));
    let change = comparison.ratio.map(format_change);
    let is_called = matches!(comparison.verdict, Verdict::Better | Verdict::Worse);
    let has_none = bounds.is_some_and(|(low, high)| (low..=high).contains(&1.0));
    let doubt = match is_called && has_none {
        true => " of these processes, which differ, so that further ones may show no change",
        false => "",
    };
    format!(
        "measured beside each other, {} of the later version is {}{}{} in {} blocks{doubt}",
        comparison.metric,
        comparison.verdict.as_str(),
        change.map_or(String::new(), |change| format!(", {change}")),
        interval.unwrap_or_default(),
        comparison.blocks
    )
}

fn leave_open(args: &ConfirmArgs, said: &str, place: &str) -> Result<ExitCode, CliError> {
    match args.store.format {
        Plain::Json => output::json(&serde_json::json!({
            "outcome": Outcome::Open, "why": said, "results": place,
        }))?,
        Plain::Text => {
            say!("not decided, so the alarm stays open: {said}");
            say!("  a longer --budget decides, or: schedlab run --resume {place}");
        }
    }
    Ok(ExitCode::from(exit::TRIALS_LOST))
}

fn show_end(args: &ConfirmArgs, end: &End) -> Result<ExitCode, CliError> {
    match args.store.format {
        Plain::Json => output::json(end)?,
        Plain::Text => {
            say!(
                "{} is {}: {}",
                shorten_hash(&end.alarm),
                end.outcome.as_str(),
                end.why
            );
            if let Some(results) = end.results.as_ref().filter(|_| !args.quiet) {
                note!("\nResults  {results}");
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_measurements_of_an_alarm_share_its_false_calls() {
        let spent: f64 = (0..1000).map(share_of_attempt).sum();
        assert!((0.99..1.0).contains(&(spent / FALSE_CALLS)), "{spent}");
    }
}
