//! The file of the ledger: locked, only added to, and whole after any end of a writer.

use crate::books::{Books, Earlier, SessionState};
use crate::entry::{Answer, Asker, Entry, Question, Session};
use crate::identity::{Identity, hash_text};
use doors::read;
use doors::written::{self, LockedLines};
use serde::{Deserialize, Serialize};
use stats::wealth::OF_SESSION;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Name of the file in its directory.
const FILE: &str = "ledger.jsonl";
/// Only its user may read or write it.
const RIGHTS: u32 = 0o600;
/// The most that is read of a ledger.
const MOST_BYTES: u64 = 64 << 20;
/// Values of one line at most.
const MOST_VALUES: usize = 100_000;
/// Seeds are below this, so that they stay readable.
const SEEDS: u64 = 1 << 32;

/// Failure of the ledger.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The file could not be read or written.
    #[error("{what} the ledger {path}: {error}")]
    Io {
        /// Step that failed.
        what: &'static str,
        /// The file.
        path: String,
        /// Reason.
        error: io::Error,
    },
    /// A line is not what was written there.
    #[error(
        "line {line} of the ledger {path} is not what was written there: {why}; move the file away to \
         begin a new one, which knows nothing of the sessions so far"
    )]
    Changed {
        /// The file.
        path: String,
        /// Number of the line, from 1.
        line: usize,
        /// The fault.
        why: String,
    },
    /// There is no such session.
    #[error("the ledger has no session {0} of this sort")]
    NoSession(u32),
    /// The session has nothing left.
    #[error(
        "session {session} has spent its error: {asked} questions were asked, and {left:.3} % is left of \
         {whole:.0} %. What it tried is not better as far as it can tell; a new session begins with its \
         whole error, and its answers say which session on this question it is"
    )]
    Spent {
        /// Number of the session.
        session: u32,
        /// Questions that were asked in it.
        asked: usize,
        /// Error that is left, in percent.
        left: f64,
        /// Error that it began with, in percent.
        whole: f64,
    },
}

/// One line: an entry, bound to the line before it.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    /// Hash of the line before; empty in the first one.
    after: String,
    is: Entry,
}

/// Session that a question is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhichSession {
    /// The newest one of this asker, which is begun where there is none.
    Newest(Asker),
    /// A new one.
    New(Asker),
    /// The one of this number.
    Number(u32),
}

/// A question that is to be registered.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// Identity of the question.
    pub identity: Identity,
    /// The same in words.
    pub words: String,
    /// Comparisons that share its price.
    pub comparisons: u32,
}

/// A question that was registered, and may be measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Registered {
    /// Entry of the ledger.
    pub question: Question,
    /// Times that it was asked before.
    pub earlier: Earlier,
}

impl Registered {
    /// Confidence of each of its comparisons.
    pub fn confidence(&self) -> f64 {
        1.0 - self.question.price / f64::from(self.question.comparisons.max(1))
    }
}

/// The ledger of a user.
#[derive(Debug, Clone)]
pub struct Ledger {
    path: PathBuf,
}

impl Ledger {
    /// The ledger of a directory, which is made where it is missing.
    pub fn open(dir: &Path) -> Result<Ledger, LedgerError> {
        let path = dir.join(FILE);
        let ledger = Ledger { path };
        let made = written::make_private_directory(dir);
        made.map_err(|e| ledger.failed("make the directory of", e))?;
        Ok(ledger)
    }

    /// Path of its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The sums of all that is in it.
    pub fn read_books(&self) -> Result<Books, LedgerError> {
        let lines = self.open_lines()?;
        Ok(Books::add_up(&self.read_entries(lines.text())?.entries))
    }

    /// Begins a session.
    pub fn begin_session(&self, asker: Asker) -> Result<u32, LedgerError> {
        self.add(|books| {
            let session = new_session(books, asker);
            let number = session.session;
            Ok((vec![Entry::Session(session)], number))
        })
    }

    /// Registers a question, which pays for itself. Nothing of it may be measured before.
    pub fn register_question(
        &self,
        which: WhichSession,
        asked: &Asked,
    ) -> Result<Registered, LedgerError> {
        let seed = self.draw_seed()?;
        self.add(|books| {
            let (begun, state) = choose_session(books, which)?;
            let session = state.session.session;
            let price = state.wealth.next_price().ok_or(LedgerError::Spent {
                session,
                asked: state.questions.len(),
                left: 100.0 * state.wealth.left(),
                whole: 100.0 * state.session.error,
            })?;
            let question = Question {
                session,
                number: u32::try_from(state.questions.len()).unwrap_or(u32::MAX - 1) + 1,
                at: now(),
                question: asked.identity.question.clone(),
                subject: asked.identity.subject.clone(),
                words: asked.words.clone(),
                price,
                comparisons: asked.comparisons,
                seed,
            };
            let begun = begun.map(Entry::Session).into_iter();
            let entries = begun.chain([Entry::Question(question.clone())]).collect();
            let earlier = books.count_earlier(&asked.identity, session);
            Ok((entries, Registered { question, earlier }))
        })
    }

    /// Records the end of a question; the moment is that of now.
    pub fn record_answer(&self, answer: Answer) -> Result<(), LedgerError> {
        self.add(|_| {
            let answer = Answer {
                at: now(),
                ..answer
            };
            Ok((vec![Entry::Answer(answer)], ()))
        })
    }

    /// Adds what `make` makes of all that is there, with nobody else between the two.
    fn add<T>(
        &self,
        make: impl FnOnce(&Books) -> Result<(Vec<Entry>, T), LedgerError>,
    ) -> Result<T, LedgerError> {
        let mut lines = self.open_lines()?;
        let read = self.read_entries(lines.text())?;
        let (entries, made) = make(&Books::add_up(&read.entries))?;
        let mut text = String::new();
        let mut after = read.last;
        for is in entries {
            let line = serde_json::to_string(&Line { after, is })
                .map_err(|e| self.failed("write", e.into()))?;
            after = hash_text(&line);
            text.push_str(&line);
            text.push('\n');
        }
        lines
            .add_lines(text.as_bytes())
            .map_err(|e| self.failed("write", e))?;
        Ok(made)
    }

    fn read_entries(&self, bytes: &[u8]) -> Result<Read, LedgerError> {
        let mut found = Read::default();
        let lines = bytes.split_inclusive(|b| *b == b'\n');
        for (index, text) in lines.enumerate() {
            let text = &text[..text.len() - 1];
            let changed = |why: String| LedgerError::Changed {
                path: self.path.display().to_string(),
                line: index + 1,
                why,
            };
            let line: Line =
                read::parse_json(text, MOST_VALUES).map_err(|e| changed(e.to_string()))?;
            if line.after != found.last {
                return Err(changed("it does not follow the line before it".to_owned()));
            }
            found.last = hash_text(&String::from_utf8_lossy(text));
            found.entries.push(line.is);
        }
        Ok(found)
    }

    fn open_lines(&self) -> Result<LockedLines, LedgerError> {
        LockedLines::open(&self.path, RIGHTS, MOST_BYTES).map_err(|e| self.failed("open", e))
    }

    /// A seed that nobody knew when the question was asked: the order of its blocks cannot be chosen.
    fn draw_seed(&self) -> Result<u64, LedgerError> {
        let source = File::open("/dev/urandom").map_err(|e| self.failed("draw a seed for", e))?;
        let bytes = read::start_of(source, 8);
        let seed = bytes
            .iter()
            .fold(0u64, |seed, b| (seed << 8) | u64::from(*b));
        Ok(seed % SEEDS)
    }

    fn failed(&self, what: &'static str, error: io::Error) -> LedgerError {
        LedgerError::Io {
            what,
            path: self.path.display().to_string(),
            error,
        }
    }
}

/// Entries of a file.
#[derive(Debug, Default)]
struct Read {
    entries: Vec<Entry>,
    /// Hash of the last line.
    last: String,
}

/// The session of a question, and its entry where it begins with this question.
fn choose_session(
    books: &Books,
    which: WhichSession,
) -> Result<(Option<Session>, SessionState), LedgerError> {
    let (found, asker) = match which {
        WhichSession::Newest(asker) => (books.newest_session(asker), asker),
        WhichSession::New(asker) => (None, asker),
        WhichSession::Number(number) => {
            let found = books.find_session(number);
            let found = found.ok_or(LedgerError::NoSession(number))?;
            (Some(found), found.session.asker)
        }
    };
    Ok(match found {
        Some(state) => (None, state.clone()),
        None => {
            let session = new_session(books, asker);
            (Some(session.clone()), SessionState::begin(session))
        }
    })
}

fn new_session(books: &Books, asker: Asker) -> Session {
    Session {
        session: books.next_number(),
        at: now(),
        asker,
        error: OF_SESSION,
    }
}

fn now() -> String {
    jiff::Timestamp::now().to_string()
}

#[cfg(test)]
mod tests;
