//! From an alarm to the commit: its two versions are handed to `schedlab bisect`, with the work of the alarm.

use super::confirmation::{draw_seed, find_version, keep_cell, set_budget};
use super::open_store;
use crate::args::{AnswerArgs, BisectArgs, BisectHistoryArgs, Cli, Command, PlaceArgs, WaitArgs};
use crate::commands::bisect::{Work, bisect_from, find_commit};
use crate::exit::CliError;
use crate::output::Plain;
use crate::repeat::agree_to_run;
use crate::request::Wanted;
use clap::Parser;
use history::words::{describe_cause, shorten_hash};
use history::{Alarm, Contents, Store, Turn};
use model::{Experiment, Revision};
use std::collections::BTreeMap;
use std::process::ExitCode;

/// Looks for the commit between the two versions of an alarm.
pub fn bisect_alarm(args: &BisectHistoryArgs) -> Result<ExitCode, CliError> {
    let store = open_store(&args.place)?;
    let contents = store.read_contents()?;
    let alarm = &contents.find_alarm(&args.alarm)?.alarm;
    let (mut experiment, words) = match &args.words[..] {
        [] => {
            let Some((experiment, versions)) = find_versions(&store, &contents, alarm)? else {
                return Err(no_commits(alarm, &contents));
            };
            (experiment, versions.to_words())
        }
        words => {
            let [_, later] = read_both(&store, &contents, alarm)?;
            (keep_arm(later, alarm), words.to_vec())
        }
    };
    let words = bisect_words(args, words);
    make_question(&mut experiment, alarm)?;
    set_budget(&mut experiment, args.budget.as_deref(), args.max_blocks)?;
    let bisect = read_words(words)?;
    check_words(&bisect)?;
    let wanted = Wanted {
        experiment: experiment.clone(),
        source: None,
        calibrations: BTreeMap::new(),
    };
    let silent = args.yes && args.answer.quiet;
    agree_to_run(store.dir(), &wanted, args.yes, silent)?;
    let work = Work {
        experiment: &experiment,
        budget_ns: None,
    };
    bisect_from(&bisect, Some(work))
}

/// The commit that brought what an alarm has told, in words; none where the alarm is not between two commits. It asks nobody,
/// and its trials take so long at most.
pub fn find_cause(
    store: &Store,
    contents: &Contents,
    alarm: &Alarm,
    budget_ns: u64,
    wait: WaitArgs,
) -> Result<Option<String>, CliError> {
    let Some((mut experiment, versions)) = find_versions(store, contents, alarm)? else {
        return Ok(None);
    };
    make_question(&mut experiment, alarm)?;
    let budget = load::units::written_duration(budget_ns);
    set_budget(&mut experiment, Some(&budget), None)?;
    let args = BisectHistoryArgs {
        alarm: alarm.id.clone(),
        budget: None,
        max_blocks: None,
        output: None,
        words: Vec::new(),
        yes: true,
        wait,
        answer: AnswerArgs {
            format: Plain::Text,
            quiet: true,
        },
        place: PlaceArgs { store: None },
    };
    let bisect = read_words(bisect_words(&args, versions.to_words()))?;
    let work = Work {
        experiment: &experiment,
        budget_ns: Some(budget_ns),
    };
    Ok(Some(find_commit(&bisect, Some(work))?.describe()))
}

/// Leaves what the alarm is about.
fn make_question(experiment: &mut Experiment, alarm: &Alarm) -> Result<(), CliError> {
    keep_cell(experiment, &alarm.key.cell, &alarm.key.metric)?;
    experiment.aa_arm = None;
    experiment.baseline = 0;
    experiment.observe.events.clear();
    experiment.seed = draw_seed();
    Ok(())
}

fn read_words(words: Vec<String>) -> Result<BisectArgs, CliError> {
    let cli = Cli::try_parse_from(words).map_err(|error| {
        let said = error.to_string();
        let what = said.lines().next().unwrap_or_default();
        let what = what.strip_prefix("error: ").unwrap_or(what);
        CliError::usage(
            format!("the words after -- are those of schedlab bisect: {what}"),
            "-- bin/NAME --build make --repository REPOSITORY --good REVISION --bad REVISION",
        )
    })?;
    match cli.command {
        Command::Bisect(bisect) => Ok(*bisect),
        _ => Err(CliError::internal("the words are of bisect")),
    }
}

/// What is measured is the work of the alarm.
fn check_words(bisect: &BisectArgs) -> Result<(), CliError> {
    let given = &bisect.experiment;
    match given.file.is_some()
        || !given.words.workloads.is_empty()
        || !given.words.command.is_empty()
    {
        true => Err(CliError::usage(
            "the work is that of the alarm, and the words after -- name another one",
            "leave the workload out, or bisect by hand with it: schedlab bisect",
        )),
        false => Ok(()),
    }
}

/// The scheduler of an alarm, with its commits before and since.
struct Versions {
    program: String,
    repository: String,
    good: String,
    bad: String,
}

impl Versions {
    /// Words of `schedlab bisect`.
    fn to_words(&self) -> Vec<String> {
        let (repository, good, bad) = (&self.repository, &self.good, &self.bad);
        let ends = ["--repository", repository, "--good", good, "--bad", bad];
        let words = std::iter::once(self.program.as_str()).chain(ends);
        words.map(str::to_owned).collect()
    }
}

/// The experiment of the later run with the arm of the alarm alone, and the two commits; none where the alarm is not
/// between two commits of one repository.
fn find_versions(
    store: &Store,
    contents: &Contents,
    alarm: &Alarm,
) -> Result<Option<(Experiment, Versions)>, CliError> {
    let [earlier, later] = read_both(store, contents, alarm)?;
    let versions = [&earlier, &later].map(|of| find_revision(of, &alarm.key.arm));
    let [Some((_, good)), Some((program, bad))] = versions else {
        return Ok(None);
    };
    if good.repository != bad.repository || good.commit == bad.commit {
        return Ok(None);
    }
    let versions = Versions {
        program,
        repository: bad.repository,
        good: good.commit,
        bad: bad.commit,
    };
    Ok(Some((keep_arm(later, alarm), versions)))
}

/// Leaves the arm of the alarm.
fn keep_arm(mut experiment: Experiment, alarm: &Alarm) -> Experiment {
    let arm = find_version(&experiment, &alarm.key.arm);
    experiment.arms = arm.into_iter().collect();
    experiment
}

/// The experiments of the two runs of an alarm that became worse.
fn read_both(
    store: &Store,
    contents: &Contents,
    alarm: &Alarm,
) -> Result<[Experiment; 2], CliError> {
    let id = shorten_hash(&alarm.id);
    if alarm.turn == Turn::Better {
        return Err(CliError::usage(
            format!(
                "alarm {id} became better, and a bisection looks for what made something worse"
            ),
            "`schedlab history show` names both versions",
        ));
    }
    let pair = contents.find_pair(alarm)?;
    let [earlier, later] = pair.map(|run| store.read_experiment(&run.experiment));
    Ok([earlier?, later?])
}

/// Name of the scheduler of an arm, and the commit that it was built from.
fn find_revision(experiment: &Experiment, arm: &str) -> Option<(String, Revision)> {
    let mut arms = experiment.arms.iter();
    let scheduler = arms.find(|known| known.name == arm)?.scheduler.as_ref()?;
    let revision = scheduler.built_from.clone()?;
    Some((scheduler.name().to_owned(), revision))
}

fn no_commits(alarm: &Alarm, contents: &Contents) -> CliError {
    CliError::usage(
        format!(
            "alarm {} is not between two commits of one repository: {}",
            shorten_hash(&alarm.id),
            describe_cause(alarm, contents)
        ),
        "name an arm by its commit ('next:=scx_NAME@git:REPOSITORY#main'), or say what to bisect: \
         schedlab history bisect HASH -- kernel --repository linux --good REVISION --bad REVISION, \
         or -- bin/NAME --build make --repository …",
    )
}

fn bisect_words(args: &BisectHistoryArgs, subject: Vec<String>) -> Vec<String> {
    let mut words = ["schedlab", "bisect"].map(str::to_owned).to_vec();
    words.extend(subject);
    if let Some(dir) = &args.output {
        words.extend(["--output".to_owned(), dir.display().to_string()]);
    }
    words.push(args.answer.format.option_word().to_owned());
    words.extend(args.answer.quiet.then(|| "--quiet".to_owned()));
    words.extend(args.wait.wait.then(|| "--wait".to_owned()));
    words
}
