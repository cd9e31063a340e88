//! `schedlab propose`: one question to the referee. It is registered and pays before it is measured.

mod ledger_list;
mod ruling;

use crate::args::{ExperimentArgs, ProposeArgs, WaitArgs};
use crate::exit::{self, CliError};
use crate::measure::{Measured, default_dir, interrupt_flag, measure_anew};
use crate::output::{self, Plain, note};
use crate::request::{Wanted, read_measurable, read_wanted};
use model::Experiment;
use referee::{
    Answer, Asked, Asker, Ledger, LedgerError, Outcome, Registered, WhichSession, identify_question,
};
use report::Table;
pub use ruling::{Ruling, finding_text, findings_text, list_findings};
use std::path::Path;
use std::process::ExitCode;

/// File of the answer in the results directory.
const RULING_FILE: &str = "report/referee.json";

pub fn propose(args: &ProposeArgs) -> Result<ExitCode, CliError> {
    let ledger = open_ledger()?;
    if args.ledger {
        return ledger_list::show(&ledger, args.session, args.answer.format);
    }
    refuse_what_the_ledger_sets(&args.experiment)?;
    let given = with_baseline(&args.experiment);
    let experiment = read_wanted(&given)?.experiment;
    asked_of(&experiment)?;
    if let Some(output) = &args.output {
        results::write::check_place(output)?;
    }
    let which = match (args.session, args.new_session) {
        (Some(number), _) => WhichSession::Number(number),
        (None, true) => WhichSession::New(Asker::Shell),
        (None, false) => WhichSession::Newest(Asker::Shell),
    };
    let dir = args.output.clone();
    let dir = dir.unwrap_or_else(|| default_dir(&experiment.name));
    let place = Place {
        dir: &dir,
        wait: args.wait,
        is_quiet: args.answer.quiet,
    };
    let (ruling, table) = ask_referee(&ledger, which, given, &place)?;
    match args.answer.format {
        Plain::Json => output::json(&ruling)?,
        Plain::Text => output::print_text(ruling.to_text())?,
    }
    Ok(ruling_code(&ruling, &table))
}

/// Place and way in which the answer to a question is measured.
pub struct Place<'a> {
    /// Results directory.
    pub dir: &'a Path,
    pub wait: WaitArgs,
    pub is_quiet: bool,
}

/// One question from its registration to its answer in the ledger. `given` has two arms.
pub fn ask_referee(
    ledger: &Ledger,
    which: WhichSession,
    mut given: ExperimentArgs,
    place: &Place,
) -> Result<(Ruling, Table), CliError> {
    let asked = asked_of(&read_wanted(&given)?.experiment)?;
    // A signal that comes from here on is answered in the ledger.
    interrupt_flag()?;
    let registered = ledger.register_question(which, &asked)?;
    if !place.is_quiet {
        note!("{}", ruling::registered_text(&registered));
    }
    given.confidence = Some(registered.confidence());
    given.seed = Some(registered.question.seed);
    let measured = read_measurable(&given).and_then(|wanted| {
        let wanted = with_question(wanted, &registered);
        measure_anew(Some(place.dir), wanted, place.wait, place.is_quiet)
    });
    match measured {
        Ok(measured) => judge_answer(ledger, &registered, &measured),
        Err(error) => {
            close_unanswered(ledger, &registered, place.dir)?;
            Err(error)
        }
    }
}

/// The ledger of this user.
pub fn open_ledger() -> Result<Ledger, CliError> {
    Ok(Ledger::open(&agent::state_dir()?.join("referee"))?)
}

fn judge_answer(
    ledger: &Ledger,
    registered: &Registered,
    measured: &Measured,
) -> Result<(Ruling, Table), CliError> {
    let Measured { results, outcome } = measured;
    let table = Table::from_results(results);
    super::report::write_report_files(&table, results)?;
    let is_whole = *outcome == runner::Outcome::Done;
    let mut ruling = Ruling::judge(registered, results, &table, is_whole);
    ledger.record_answer(ruling.answer.clone())?;
    ruling.enter_session(&ledger.read_books()?);
    let json = output::json_text(&ruling)?;
    results::write::write_derived(&results.dir, RULING_FILE, json.as_bytes())?;
    Ok((ruling, table))
}

/// Exit code of an answer.
fn ruling_code(ruling: &Ruling, table: &Table) -> ExitCode {
    ExitCode::from(match ruling.answer.outcome {
        Outcome::Accepted => exit::DONE,
        Outcome::NotAccepted if table.trials_that_count() == 0 => exit::TRIALS_LOST,
        Outcome::NotAccepted => exit::REGRESSION,
        Outcome::Interrupted | Outcome::Withdrawn => exit::INTERRUPTED,
    })
}

/// Records that there is no answer. The price comes back only where not one trial was measured.
fn close_unanswered(
    ledger: &Ledger,
    registered: &Registered,
    dir: &Path,
) -> Result<(), LedgerError> {
    let nothing = results::read::read_trials(dir).map_or(!dir.exists(), |all| all.is_empty());
    let outcome = match nothing {
        true => Outcome::Withdrawn,
        false => Outcome::Interrupted,
    };
    ledger.record_answer(Answer {
        session: registered.question.session,
        number: registered.question.number,
        at: String::new(),
        outcome,
        findings: Vec::new(),
        results: (!nothing).then(|| dir.display().to_string()),
    })
}

/// Who sets these could make a comparison easier than the ledger allows.
pub fn refuse_what_the_ledger_sets(given: &ExperimentArgs) -> Result<(), CliError> {
    let set = [
        ("--confidence", given.confidence.is_some()),
        ("--seed", given.seed.is_some()),
        ("--aa", given.aa),
    ];
    match set.into_iter().find(|(_, is_set)| *is_set) {
        Some((option, _)) => Err(CliError::usage(
            format!("`{option}` is not for a proposal: the ledger says how sure it must be"),
            "leave it out, or measure without the ledger: schedlab run",
        )),
        None => Ok(()),
    }
}

/// One arm alone is proposed against the machine as it is.
fn with_baseline(given: &ExperimentArgs) -> ExperimentArgs {
    let mut given = given.clone();
    if given.words.arms.len() == 1 {
        given.words.arms.insert(0, "default".to_owned());
    }
    given
}

/// The question of an experiment with two arms.
fn asked_of(experiment: &Experiment) -> Result<Asked, CliError> {
    let arms = &experiment.arms;
    let [_, _] = arms.as_slice() else {
        return Err(CliError::usage(
            format!(
                "a proposal is one arm against its baseline, and there are {}",
                report::format_count(arms.len(), "arm")
            ),
            "propose one change at a time: -a default -a slice=0.3ms",
        ));
    };
    let proposal = 1 - experiment.baseline;
    let baseline = &arms[experiment.baseline];
    let cells: Vec<String> = schedule::list_cells(experiment)
        .into_iter()
        .map(|cell| cell.name)
        .collect();
    let calls = experiment.workloads.iter().map(super::bisect::count_calls);
    Ok(Asked {
        identity: identify_question(experiment, proposal),
        words: format!(
            "{} against {}, {} on {}",
            arms[proposal].summary(),
            baseline.summary(),
            cells.join(" and "),
            experiment.target.kind()
        ),
        comparisons: u32::try_from(calls.sum::<usize>().max(1)).unwrap_or(u32::MAX),
    })
}

/// The results carry the question with its place in the ledger.
fn with_question(mut wanted: Wanted, registered: &Registered) -> Wanted {
    wanted.experiment.question = Some(ruling::registered_text(registered));
    wanted
}

impl From<LedgerError> for CliError {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Io { .. } | LedgerError::Changed { .. } => CliError::internal(error),
            LedgerError::NoSession(_) => CliError::usage(
                error.to_string(),
                "`schedlab propose --ledger` lists the sessions",
            ),
            LedgerError::Spent { .. } => CliError::usage(
                error.to_string(),
                "begin one: schedlab propose --new-session",
            ),
        }
    }
}
