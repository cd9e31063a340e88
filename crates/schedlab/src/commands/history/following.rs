//! A run that adds itself to a history at its end: the alarms that it raises, and the confirmation of those that are open.

use super::bisection::find_cause;
use super::confirmation::{Answer, answer_alarm};
use super::find_place;
use crate::args::{ConfirmArgs, FollowArgs, PlaceArgs, StoreArgs, WaitArgs};
use crate::exit::CliError;
use crate::output::Plain;
use history::words::{describe_alarm, describe_cause, draw_series, shorten_hash};
use history::{Added, Contents, Outcome, Run, Store, Tracked, Turn};
use jiff::Timestamp;
use report::format_count;
use results::ResultSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Least share of the budget for which an alarm is worth a measurement.
const LEAST_SHARE_NS: u64 = 20_000_000_000;

/// Things that a run does with a history at its end.
#[derive(Debug, Clone)]
pub struct Follow {
    /// Directory of the history; none for the usual one.
    pub store: Option<PathBuf>,
    /// Time for the confirmation of open alarms.
    pub confirm_ns: Option<u64>,
    /// Time for the trials that look for the commit of an alarm that was confirmed.
    pub bisect_ns: Option<u64>,
    /// Meaning of another run on this machine.
    pub wait: WaitArgs,
}

impl Follow {
    /// From what was typed; none where nothing of a history was.
    pub fn from_words(words: &FollowArgs, wait: WaitArgs) -> Result<Option<Follow>, CliError> {
        let Some(store) = &words.history else {
            return Ok(None);
        };
        let read = |text: &Option<String>, form: &str| {
            let text = text.as_deref();
            let parsed = text.map(plan::parse_duration).transpose();
            parsed.map_err(|e| CliError::usage(e, format!("write it as {form}")))
        };
        Ok(Some(Follow {
            store: (!store.is_empty()).then(|| PathBuf::from(store)),
            confirm_ns: read(&words.confirm, "--confirm 30m")?,
            bisect_ns: read(&words.bisect, "--bisect 1h")?,
            wait,
        }))
    }
}

/// Adds a run that this command has measured, and looks for alarms as the last look did. Gives the sentences for who did
/// not watch.
pub fn follow_run(dir: &Path, follow: &Follow) -> Result<Vec<String>, CliError> {
    let results = ResultSet::read(dir)?;
    let now = Timestamp::now();
    let run = match Run::from_results(&results, now) {
        Ok(run) => Run {
            is_own: true,
            ..run
        },
        Err(refusal) => {
            return Ok(vec![format!(
                "The history does not have the run: {refusal}."
            )]);
        }
    };
    let place = PlaceArgs {
        store: follow.store.clone(),
    };
    let store = Store::make(&find_place(&place)?)?;
    let added = store.add_run(&run, &results.experiment)?;
    let look = store.read_contents()?.look;
    let settings = look.map_or_else(Default::default, |look| look.settings);
    let (found, contents) = store.look_for_alarms(settings, now)?;
    let mut told = vec![addition_words(&run, &added, &contents)];
    told.extend(found.alarms.iter().map(|alarm| {
        let sentence = describe_alarm(alarm, &contents);
        let cause = describe_cause(alarm, &contents);
        let id = shorten_hash(&alarm.id);
        let picture = draw_series(alarm, &contents).map_or(String::new(), |p| format!("\n{p}"));
        format!("New alarm {id}: {sentence}; {cause}.{picture}")
    }));
    let Some(budget_ns) = follow.confirm_ns else {
        return Ok(told);
    };
    let (answers, confirmed) = confirm_open(&store, &contents, &run, budget_ns, follow.wait)?;
    told.extend(answers);
    if let Some(budget_ns) = follow.bisect_ns {
        told.extend(find_causes(
            &store,
            &contents,
            &confirmed,
            budget_ns,
            follow.wait,
        ));
    }
    Ok(told)
}

fn addition_words(run: &Run, added: &Added, contents: &Contents) -> String {
    let is_open = |known: &&Tracked| known.outcome == Outcome::Open;
    let open = contents.alarms.iter().filter(is_open).count();
    let what = match added {
        Added::Known => "was there already",
        Added::New { .. } | Added::Longer { .. } => "is added",
    };
    format!(
        "The run {what} to the history as {}, which has {} and {}.",
        shorten_hash(&run.id),
        format_count(contents.runs.len(), "run"),
        format_count(open, "open alarm")
    )
}

/// Looks for the commits of alarms that became worse, the newest first, as long as there is time.
fn find_causes(
    store: &Store,
    contents: &Contents,
    confirmed: &[&Tracked],
    budget_ns: u64,
    wait: WaitArgs,
) -> Vec<String> {
    let worse = confirmed
        .iter()
        .filter(|known| known.alarm.turn == Turn::Worse);
    let mut told = Vec::new();
    let until = Instant::now() + Duration::from_nanos(budget_ns);
    for known in worse {
        let id = shorten_hash(&known.alarm.id);
        let left_ns = model::whole_nanos(until.saturating_duration_since(Instant::now()));
        if left_ns < LEAST_SHARE_NS {
            told.push(format!(
                "There was no time for the commit of alarm {id}: schedlab history bisect {id}."
            ));
            continue;
        }
        match find_cause(store, contents, &known.alarm, left_ns, wait) {
            Ok(Some(cause)) => told.push(format!("Alarm {id}: {cause}.")),
            Ok(None) => told.push(format!(
                "Alarm {id} is not between two commits of one scheduler, so no commit is looked for; for a program or a \
                 kernel: schedlab bisect."
            )),
            // The alarm is confirmed, and no later night looks at it again.
            Err(error) => {
                told.push(format!(
                    "The commit of alarm {id} was not found ({error}): schedlab history bisect {id}."
                ));
                if matches!(error, CliError::Interrupted) {
                    break;
                }
            }
        }
    }
    told
}

/// Measures the open alarms of this machine, the newest first, each for an equal share of the time. Gives the answers in
/// words, and the alarms that are confirmed.
fn confirm_open<'a>(
    store: &Store,
    contents: &'a Contents,
    run: &Run,
    budget_ns: u64,
    wait: WaitArgs,
) -> Result<(Vec<String>, Vec<&'a Tracked>), CliError> {
    let open = contents
        .alarms
        .iter()
        .filter(|known| known.outcome == Outcome::Open);
    let (own, others): (Vec<&Tracked>, Vec<&Tracked>) =
        open.rev().partition(|known| is_own(known, contents, run));
    let (mut told, mut confirmed) = (Vec::new(), Vec::new());
    if !others.is_empty() {
        told.push(format!(
            "{} of another machine, or of runs that were added by hand, which nobody has agreed to measure again: \
             schedlab history confirm.",
            count_open(others.len())
        ));
    }
    let most = usize::try_from(budget_ns / LEAST_SHARE_NS)
        .unwrap_or(usize::MAX)
        .max(1);
    let measured = &own[..own.len().min(most)];
    if measured.len() < own.len() {
        told.push(format!(
            "{} must wait for the next time.",
            count_open(own.len() - measured.len())
        ));
    }
    for known in measured {
        let args = ConfirmArgs {
            alarm: known.alarm.id.clone(),
            budget: Some(load::units::written_duration(
                budget_ns / measured.len() as u64,
            )),
            max_blocks: None,
            output: None,
            yes: true,
            wait,
            quiet: true,
            store: StoreArgs {
                place: PlaceArgs {
                    store: Some(store.dir().to_owned()),
                },
                format: Plain::Text,
            },
        };
        told.push(match answer_alarm(store, contents, known, &args) {
            Ok(answer) => {
                if matches!(&answer, Answer::Ended(end) if end.outcome == Outcome::Confirmed) {
                    confirmed.push(*known);
                }
                answer_words(known, &answer, contents)
            }
            Err(CliError::Interrupted) => return Err(CliError::Interrupted),
            Err(error) => format!(
                "Alarm {} could not be measured: {error}",
                shorten_hash(&known.alarm.id)
            ),
        });
    }
    Ok((told, confirmed))
}

fn count_open(count: usize) -> String {
    match count {
        1 => "1 open alarm is".to_owned(),
        count => format!("{count} open alarms are"),
    }
}

/// Was it measured by runs that this machine has added by itself?
fn is_own(known: &Tracked, contents: &Contents, run: &Run) -> bool {
    let alarm = &known.alarm;
    let pair = contents.find_pair(alarm);
    alarm.key.class == run.class && pair.is_ok_and(|pair| pair.iter().all(|run| run.is_own))
}

fn answer_words(known: &Tracked, answer: &Answer, contents: &Contents) -> String {
    let id = shorten_hash(&known.alarm.id);
    let sentence = describe_alarm(&known.alarm, contents);
    match answer {
        Answer::Ended(end) => {
            let how = end.outcome.as_str();
            format!("Alarm {id} is {how} ({sentence}): {}.", end.why)
        }
        Answer::Open { said, place } => {
            format!("Alarm {id} stays open ({sentence}): {said}; see {place}.")
        }
    }
}
