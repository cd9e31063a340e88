//! The sums of the entries of a ledger.

use crate::entry::{Answer, Asker, Entry, Question, Session};
use crate::identity::Identity;
use serde::Serialize;
use stats::wealth::Wealth;
use std::collections::BTreeSet;

/// All sessions of a ledger.
#[derive(Debug, Default)]
pub struct Books {
    sessions: Vec<SessionState>,
}

/// One session with all that was asked in it.
#[derive(Debug, Clone)]
pub struct SessionState {
    /// Entry that began it.
    pub session: Session,
    /// Questions in their order, with their answers.
    pub questions: Vec<(Question, Option<Answer>)>,
    /// Error that is left.
    pub wealth: Wealth,
}

/// The number of times that a question was asked before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Earlier {
    /// Times that the same was asked in this session.
    pub in_this_session: usize,
    /// Other sessions in which the same was asked.
    pub in_other_sessions: usize,
    /// Times that it was accepted, in all sessions.
    pub accepted: usize,
    /// Other sessions about the same target and work, whatever they proposed.
    pub sessions_on_subject: usize,
}

impl Books {
    /// The sums of entries in their order. An entry that belongs to nothing is not counted.
    pub fn add_up(entries: &[Entry]) -> Books {
        let mut books = Books::default();
        for entry in entries {
            books.enter(entry);
        }
        books
    }

    fn enter(&mut self, entry: &Entry) {
        match entry {
            Entry::Session(session) => self.sessions.push(SessionState::begin(session.clone())),
            Entry::Question(question) => {
                if let Some(state) = self.find_mut(question.session) {
                    state.wealth.pay_price(question.price);
                    state.questions.push((question.clone(), None));
                }
            }
            Entry::Answer(answer) => {
                if let Some(state) = self.find_mut(answer.session) {
                    state.enter_answer(answer);
                }
            }
        }
    }

    fn find_mut(&mut self, number: u32) -> Option<&mut SessionState> {
        let mut sessions = self.sessions.iter_mut();
        sessions.find(|state| state.session.session == number)
    }

    /// The session of this number.
    pub fn find_session(&self, number: u32) -> Option<&SessionState> {
        let mut sessions = self.sessions.iter();
        sessions.find(|state| state.session.session == number)
    }

    /// The last session of this sort of asker.
    pub fn newest_session(&self, asker: Asker) -> Option<&SessionState> {
        let mut sessions = self.sessions.iter().rev();
        sessions.find(|state| state.session.asker == asker)
    }

    /// All sessions in their order.
    pub fn sessions(&self) -> &[SessionState] {
        &self.sessions
    }

    /// Number of the session that comes next.
    pub fn next_number(&self) -> u32 {
        let numbers = self.sessions.iter().map(|state| state.session.session);
        numbers.max().unwrap_or(0) + 1
    }

    /// The number of times that this was asked before, as a session sees it.
    pub fn count_earlier(&self, identity: &Identity, session: u32) -> Earlier {
        let mut earlier = Earlier::default();
        let mut asked = BTreeSet::new();
        let mut about = BTreeSet::new();
        for state in &self.sessions {
            let number = state.session.session;
            for (question, answer) in &state.questions {
                if question.subject == identity.subject && number != session {
                    about.insert(number);
                }
                if question.question != identity.question {
                    continue;
                }
                let outcome = answer.as_ref().map(|answer| answer.outcome);
                earlier.accepted += usize::from(outcome == Some(crate::Outcome::Accepted));
                match number == session {
                    true => earlier.in_this_session += 1,
                    false => drop(asked.insert(number)),
                }
            }
        }
        Earlier {
            in_other_sessions: asked.len(),
            sessions_on_subject: about.len(),
            ..earlier
        }
    }
}

impl SessionState {
    /// A session in which nothing was asked yet.
    pub fn begin(session: Session) -> SessionState {
        SessionState {
            wealth: Wealth::new_session(session.error),
            session,
            questions: Vec::new(),
        }
    }

    /// Only the first answer of a question counts.
    fn enter_answer(&mut self, answer: &Answer) {
        let mut questions = self.questions.iter_mut();
        let Some((question, slot)) =
            questions.find(|(question, _)| question.number == answer.number)
        else {
            return;
        };
        if slot.is_none() {
            if answer.outcome.returns_price() {
                self.wealth.return_price(question.price);
            }
            *slot = Some(answer.clone());
        }
    }

    /// Questions that were accepted.
    pub fn count_accepted(&self) -> usize {
        let answers = self.questions.iter().filter_map(|(_, a)| a.as_ref());
        answers
            .filter(|answer| answer.outcome == crate::Outcome::Accepted)
            .count()
    }
}
