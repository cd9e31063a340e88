//! Entries of the ledger.

use serde::{Deserialize, Serialize};

/// One line of the ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "kebab-case")]
pub enum Entry {
    /// A session began.
    Session(Session),
    /// A question was registered; nothing of it is measured yet.
    Question(Question),
    /// A question was answered.
    Answer(Answer),
}

/// Those who ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Asker {
    /// A person in a shell: `schedlab propose`.
    Shell,
    /// An agent: `schedlab mcp`.
    Agent,
}

impl Asker {
    /// Word for who asks.
    pub fn name(self) -> &'static str {
        match self {
            Asker::Shell => "shell",
            Asker::Agent => "agent",
        }
    }
}

/// Questions that share one error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Number in the ledger, from 1.
    pub session: u32,
    /// Moment at which it began.
    pub at: String,
    /// Who asks in it.
    pub asker: Asker,
    /// Error of all its questions together.
    pub error: f64,
}

/// A question that was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Session that it is of.
    pub session: u32,
    /// Number in its session, from 1.
    pub number: u32,
    /// Moment of registration, before anything of it was measured.
    pub at: String,
    /// Hash of what is asked: the subject, the baseline and the proposal.
    pub question: String,
    /// Hash of what it is about: the target and the work.
    pub subject: String,
    /// The same in words.
    pub words: String,
    /// Error rate that it takes from its session.
    pub price: f64,
    /// Comparisons that share the price.
    pub comparisons: u32,
    /// Seed of its order of trials, drawn when it was registered.
    pub seed: u64,
}

/// The end of a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Session of the question.
    pub session: u32,
    /// Number of the question in its session.
    pub number: u32,
    /// Moment of the answer.
    pub at: String,
    /// Result in one word.
    pub outcome: Outcome,
    /// Comparisons that decide.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Results directory, where something was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<String>,
}

/// Result of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Something is better, and nothing is worse. The price comes back.
    Accepted,
    /// It is worse, the same, or not known. The price is paid.
    NotAccepted,
    /// Measuring ended before the question was answered. The price is paid.
    Interrupted,
    /// Nothing was measured, so nothing was seen. The price comes back.
    Withdrawn,
}

impl Outcome {
    /// Words for it.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Accepted => "accepted",
            Outcome::NotAccepted => "not accepted",
            Outcome::Interrupted => "interrupted",
            Outcome::Withdrawn => "withdrawn",
        }
    }

    /// True if measuring ended before there was an answer.
    pub fn is_cut_short(self) -> bool {
        matches!(self, Outcome::Interrupted | Outcome::Withdrawn)
    }

    /// True if the session has the price of the question again.
    pub fn returns_price(self) -> bool {
        matches!(self, Outcome::Accepted | Outcome::Withdrawn)
    }
}

/// One comparison of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Workload and load of the cell.
    pub cell: String,
    /// Name of the metric.
    pub metric: String,
    /// `better`, `worse`, `same` or `unknown`.
    pub verdict: String,
    /// Change: proposal over baseline, or a difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<f64>,
    /// Lower end of its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Unit, where the change is a difference: proposal minus baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference_unit: Option<String>,
    /// Confidence of verdict and interval.
    pub confidence: f64,
    /// Evidence against "no difference".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub e_value: Option<f64>,
    /// Blocks, or pairs of windows where the arms took turns.
    pub blocks: usize,
}
