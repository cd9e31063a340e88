//! The tool that tells what was asked before, from the ledger of this user.

use super::super::Referee;
use super::super::request::Arguments;
use super::results::find_job;
use crate::commands::propose::finding_text;
use model::printable::one_line;
use referee::{Books, Question, SessionState};
use std::fmt::Write;

pub fn history(referee: &Referee, arguments: &Arguments) -> Result<String, String> {
    let word = arguments.get_text("word")?.unwrap_or_default();
    let books = referee.ledger.read_books().map_err(|e| e.to_string())?;
    let subject = match arguments.get_number("job")? {
        None => None,
        Some(number) => Some(find_subject(referee, &books, number)?),
    };
    let is_wanted = |question: &Question| {
        let is_about = subject
            .as_ref()
            .is_none_or(|subject| *subject == question.subject);
        is_about && question.words.contains(&word)
    };
    let mut text = String::new();
    for state in books.sessions().iter().rev() {
        text += &session_text(state, state.session.session == referee.session, &is_wanted);
    }
    match text.is_empty() {
        true => Ok("nothing like that was asked yet".to_owned()),
        false => Ok(text),
    }
}

/// Hash of the work that a job asks about; its question is known by its results.
fn find_subject(referee: &Referee, books: &Books, number: u64) -> Result<String, String> {
    let results = find_job(referee, number)?.results_dir();
    let results = results.display().to_string();
    let state = books.find_session(referee.session);
    let questions = state.into_iter().flat_map(|state| &state.questions);
    let of_job = questions.filter(|(_, answer)| {
        let found = answer.as_ref().and_then(|answer| answer.results.as_ref());
        found == Some(&results)
    });
    let subject = of_job.map(|(question, _)| question.subject.clone()).next();
    subject.ok_or_else(|| format!("job {number} has no question that is answered"))
}

/// The questions of a session that are wanted, newest first; empty where there are none.
fn session_text(
    state: &SessionState,
    is_own: bool,
    is_wanted: &impl Fn(&Question) -> bool,
) -> String {
    let mut lines = String::new();
    for (question, answer) in state.questions.iter().rev() {
        if !is_wanted(question) {
            continue;
        }
        let _ = writeln!(
            lines,
            "  {} {}, {:.3} %: {}",
            question.number,
            answer
                .as_ref()
                .map_or("not answered", |answer| answer.outcome.name()),
            100.0 * question.price,
            one_line(&question.words)
        );
        for finding in answer.iter().flat_map(|answer| &answer.findings) {
            let _ = writeln!(lines, "    {}", finding_text(finding));
        }
    }
    if lines.is_empty() {
        return lines;
    }
    let session = &state.session;
    format!(
        "session {}{} of {} ({}): {:.3} % of {:.0} % left\n{lines}",
        session.session,
        if is_own { " (this one)" } else { "" },
        one_line(&session.at),
        session.asker.name(),
        100.0 * state.wealth.left(),
        100.0 * session.error
    )
}
