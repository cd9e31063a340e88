//! Tools that name, check and start experiments.

use super::super::Referee;
use super::super::jobs::{Job, Purpose};
use super::super::request::{
    Arguments, bisection_words, experiment_words, race_words, with_options,
};
use doors::read::output_of_work;
use doors::started::own_command;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// Time of a comparison where none is named.
const USUAL: Duration = Duration::from_secs(60);
const USUAL_OF_A_RACE: Duration = Duration::from_secs(300);
/// Comparisons among which the time of a bisection is divided.
const COMPARISONS: u32 = 8;
const LISTS: [&str; 4] = ["arms", "workloads", "metrics", "targets"];
/// Blocks of a pilot.
const PILOT: &str = "--pilot=5";

pub fn list_names(referee: &Referee, arguments: &Arguments) -> Result<String, String> {
    let Some(list) = arguments.get_text("list")? else {
        return Ok(format!(
            "{}\nlists: {}",
            referee.reins.to_text(),
            LISTS.join(", ")
        ));
    };
    if !LISTS.contains(&list.as_str()) {
        return Err(format!("`list` is one of {}", LISTS.join(", ")));
    }
    let mut words = vec!["list".to_owned(), list];
    if let Some(word) = arguments.get_text("word")? {
        // A word that begins with a dash is no option.
        words.extend(["--".to_owned(), word]);
    }
    ask_program(&words)
}

pub fn check(referee: &Referee, arguments: &Arguments) -> Result<String, String> {
    let words = experiment_words(arguments, &referee.reins)?;
    let words = with_options(&words, &["--no-start".to_owned()]);
    ask_program(&[vec!["check".to_owned()], words].concat())
}

pub fn plan(referee: &Referee, arguments: &Arguments) -> Result<String, String> {
    let effect = arguments.take_text("effect")?;
    let wanted = budget_of(arguments)?;
    let words = experiment_words(arguments, &referee.reins)?;
    let all = words.clone();
    let job = referee
        .jobs
        .start_job(Purpose::Plan, words, &referee.dir, wanted, |_, budget| {
            let options = [
                PILOT.to_owned(),
                format!("--effect={effect}"),
                format!("--budget={}s", budget.as_secs()),
            ];
            [vec!["plan".to_owned()], with_options(&all, &options)].concat()
        })?;
    Ok(started(&job))
}

pub fn compare(referee: &Referee, arguments: &Arguments) -> Result<String, String> {
    let wanted = budget_of(arguments)?;
    let words = experiment_words(arguments, &referee.reins)?;
    ask_question(referee, words, wanted)
}

/// The race declares nothing; its confirmation is the question that pays, and it is registered when the
/// race has said which setting is ahead.
pub fn tune(referee: &Referee, arguments: &Arguments) -> Result<String, String> {
    let wanted = budget_or(arguments, USUAL_OF_A_RACE)?;
    let words = race_words(arguments, &referee.reins)?;
    begin_question(referee, Purpose::Tune, words, wanted)
}

pub fn confirm(referee: &Referee, arguments: &Arguments) -> Result<String, String> {
    let number = arguments.take_number("job")?;
    let job = super::results::find_job(referee, number)?;
    let is_accepted = job.find_end().is_some_and(|end| end.code == Some(0));
    if job.purpose != Purpose::Compare || !is_accepted {
        return Err(format!(
            "job {number} was not accepted, so there is nothing to confirm"
        ));
    }
    ask_question(referee, job.words.clone(), budget_of(arguments)?)
}

/// All calls of the bisection are one question.
pub fn bisect(referee: &Referee, arguments: &Arguments) -> Result<String, String> {
    let wanted = budget_or(arguments, USUAL_OF_A_RACE)?;
    let words = bisection_words(arguments, &referee.reins)?;
    begin_question(referee, Purpose::Bisect, words, wanted)
}

fn ask_question(referee: &Referee, words: Vec<String>, wanted: Duration) -> Result<String, String> {
    begin_question(referee, Purpose::Compare, words, wanted)
}

/// A job that asks one question of the ledger.
fn begin_question(
    referee: &Referee,
    purpose: Purpose,
    words: Vec<String>,
    wanted: Duration,
) -> Result<String, String> {
    refuse_without_error(referee)?;
    let session = referee.session;
    let all = words.clone();
    let jobs = &referee.jobs;
    // A bisection has many comparisons, and each has its own time.
    let (command, parts) = match purpose {
        Purpose::Tune => ("tune", 1),
        Purpose::Bisect => ("bisect", COMPARISONS),
        Purpose::Compare | Purpose::Plan => ("propose", 1),
    };
    let job = jobs.start_job(purpose, words, &referee.dir, wanted, |dir, budget| {
        let options = [
            format!("--session={session}"),
            format!("--output={}", dir.display()),
            format!("--budget={}s", (budget / parts).as_secs().max(1)),
            "--quiet".to_owned(),
        ];
        [vec![command.to_owned()], with_options(&all, &options)].concat()
    })?;
    Ok(started(&job))
}

/// The process would refuse it as well, but later.
fn refuse_without_error(referee: &Referee) -> Result<(), String> {
    let books = referee.ledger.read_books().map_err(|e| e.to_string())?;
    let state = books.find_session(referee.session);
    match state.and_then(|state| state.wealth.next_price()) {
        Some(_) => Ok(()),
        None => Err(format!(
            "refused: session {} has spent its error: nothing that was tried is better, as far as it can \
             tell. Stop here, and tell the person who started you",
            referee.session
        )),
    }
}

fn started(job: &Job) -> String {
    format!(
        "job {} began, and takes about {} s at most; ask status with job {0} and wait_s 30",
        job.number,
        job.budget.as_secs()
    )
}

fn budget_of(arguments: &Arguments) -> Result<Duration, String> {
    budget_or(arguments, USUAL)
}

fn budget_or(arguments: &Arguments, usual: Duration) -> Result<Duration, String> {
    let Some(text) = arguments.get_text("budget")? else {
        return Ok(usual);
    };
    let ns = load::units::parse_duration(&text).map_err(|e| format!("`budget`: {e}"))?;
    Ok(Duration::from_nanos(ns))
}

/// Answer of `schedlab WORDS…`, which takes a moment.
fn ask_program(words: &[String]) -> Result<String, String> {
    let mut command = own_command(Path::new("/proc/self/exe"));
    command
        .args(words)
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .stdin(Stdio::null());
    let output = output_of_work(&mut command).map_err(|e| e.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr)),
    }
}
