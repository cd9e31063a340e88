//! A bisection as one question of the ledger: it is registered before anything is measured, and all its calls
//! hold together at its price.

use super::{BisectArgs, State, directory};
use crate::commands::propose;
use crate::exit::CliError;
use crate::measure::interrupt_flag;
use git::Next;
use referee::{Answer, Asked, Finding, Ledger, Outcome, Registered, WhichSession, identify_text};
use report::Table;
use results::ResultSet;
use std::fmt::Write;
use std::path::Path;

/// Its place in the ledger.
pub(super) struct Question {
    ledger: Ledger,
    registered: Registered,
}

impl Question {
    /// Registers it, and gives the bisection its confidence.
    pub(super) fn register(
        args: &BisectArgs,
        session: u32,
        state: &mut State,
    ) -> Result<Question, CliError> {
        propose::refuse_what_the_ledger_sets(&args.experiment)?;
        let ledger = propose::open_ledger()?;
        let words = &args.experiment.words;
        let subject = format!(
            "bisect {} of {}: {:?} {:?}",
            args.program, args.repository, words.workloads, words.command
        );
        let question = format!("{subject} from {} to {}", state.good, state.bad);
        let asked = Asked {
            identity: identify_text(&subject, &question),
            words: format!(
                "which of {} made {} worse, from {} to {}",
                report::format_count(state.commits as usize, "commit"),
                args.program,
                args.good,
                args.bad
            ),
            comparisons: 1,
        };
        // A signal that comes from here on is answered in the ledger.
        interrupt_flag()?;
        let registered = ledger.register_question(WhichSession::Number(session), &asked)?;
        state.confidence = registered.confidence();
        Ok(Question { ledger, registered })
    }

    pub(super) fn seed(&self) -> u64 {
        self.registered.question.seed
    }

    /// Records what the whole path came to. It is accepted where a commit was found and is worse than its
    /// parent, too.
    pub(super) fn record_end(
        &self,
        dir: &Path,
        state: &State,
        next: Result<&Next, &CliError>,
    ) -> Result<Outcome, CliError> {
        let is_found = matches!(next, Ok(Next::First(_)))
            && state
                .again
                .as_ref()
                .is_some_and(|step| step.verdict == "bad");
        let outcome = match next {
            Ok(_) if is_found => Outcome::Accepted,
            _ if has_no_trial(dir) => Outcome::Withdrawn,
            Err(CliError::Interrupted) => Outcome::Interrupted,
            _ => Outcome::NotAccepted,
        };
        self.ledger.record_answer(Answer {
            session: self.registered.question.session,
            number: self.registered.question.number,
            at: String::new(),
            outcome,
            findings: find_findings(dir),
            results: Some(results_dir(dir).display().to_string()),
        })?;
        Ok(outcome)
    }

    /// The end in the words of the referee.
    pub(super) fn to_text(&self, outcome: Outcome) -> String {
        let question = &self.registered.question;
        let mut text = String::new();
        let found = match outcome {
            Outcome::Accepted => "FOUND: the commit is worse than its parent",
            _ => "NOT FOUND: no commit is known to be the one",
        };
        let _ = writeln!(
            text,
            "\n{found}. Question {} of session {}, registered before it was measured at {:.3} %",
            question.number,
            question.session,
            100.0 * question.price
        );
        text
    }
}

/// Results of the comparison that a whole bisection ends with.
pub fn results_dir(dir: &Path) -> std::path::PathBuf {
    dir.join(directory::RESULTS).join("again")
}

/// State of the bisection in a directory, in some lines.
pub fn progress_text(dir: &Path) -> String {
    let Ok(Some(state)) = directory::read_state(dir) else {
        return "both ends are built and compared\n".to_owned();
    };
    let mut text = format!(
        "{} of {} judged\n",
        state.steps.len(),
        report::format_count(state.commits as usize, "commit")
    );
    for step in state.steps.iter().rev().take(5) {
        let short = step.commit.get(..git::SHORT).unwrap_or(&step.commit);
        let _ = writeln!(text, "  {short} {}: {}", step.verdict, step.why);
    }
    text
}

/// Both ends are compared first.
fn has_no_trial(dir: &Path) -> bool {
    let ends = dir.join(directory::RESULTS).join("ends");
    results::read::read_trials(&ends).map_or(true, |trials| trials.is_empty())
}

fn find_findings(dir: &Path) -> Vec<Finding> {
    let Ok(results) = ResultSet::read(&results_dir(dir)) else {
        return Vec::new();
    };
    propose::list_findings(&Table::from_results(&results))
}
