//! The ledger as a list.

use crate::exit::CliError;
use crate::output::{self, Plain, say};
use model::printable::one_line;
use referee::{Answer, Ledger, Question, SessionState};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Prints all sessions, or one of them.
pub fn show(ledger: &Ledger, session: Option<u32>, format: Plain) -> Result<ExitCode, CliError> {
    let books = ledger.read_books()?;
    let wanted = |state: &&SessionState| session.is_none_or(|n| n == state.session.session);
    let sessions: Vec<&SessionState> = books.sessions().iter().filter(wanted).collect();
    if let (Some(number), true) = (session, sessions.is_empty()) {
        return Err(referee::LedgerError::NoSession(number).into());
    }
    match format {
        Plain::Json => {
            let sessions: Vec<Value> = sessions.iter().map(|state| as_json(state)).collect();
            let file = ledger.path().display().to_string();
            output::json(&json!({ "file": file, "sessions": sessions }))?;
        }
        Plain::Text if sessions.is_empty() => {
            say!(
                "nothing was asked yet; the ledger is {}",
                ledger.path().display()
            );
        }
        Plain::Text => sessions.iter().for_each(|state| print_session(state)),
    }
    Ok(ExitCode::SUCCESS)
}

fn print_session(state: &SessionState) {
    let session = &state.session;
    say!(
        "session {} of {} ({}): {}, {} accepted; {:.3} % of {:.0} % left",
        session.session,
        session.at,
        session.asker.name(),
        report::format_count(state.questions.len(), "question"),
        state.count_accepted(),
        100.0 * state.wealth.left(),
        100.0 * session.error
    );
    for (question, answer) in &state.questions {
        print_question(question, answer.as_ref());
    }
}

fn print_question(question: &Question, answer: Option<&Answer>) {
    say!(
        "  {:>3}  {:<12}  {:.3} %  {}",
        question.number,
        answer.map_or("not answered", |answer| answer.outcome.name()),
        100.0 * question.price,
        one_line(&question.words)
    );
    if let Some(results) = answer.and_then(|answer| answer.results.as_ref()) {
        say!("       {}", one_line(results));
    }
}

fn as_json(state: &SessionState) -> Value {
    let questions = state.questions.iter();
    let questions =
        questions.map(|(question, answer)| json!({ "question": question, "answer": answer }));
    json!({
        "session": state.session,
        "left": state.wealth.left(),
        "next_price": state.wealth.next_price(),
        "questions": questions.collect::<Vec<Value>>(),
    })
}
