//! Traces: which moment a trial keeps one of, and what a trace shows.

use serde::{Deserialize, Serialize};

/// The wish for a trace in each trial: scheduling events around the worst latency.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tracing {
    /// Kind of latency as a log or a metric names it, `request` or `request_p99`; `None`: the
    /// first that decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_of: Option<String>,
}

/// Word of the only moment that there is.
const WORST: &str = "worst";

impl Tracing {
    /// Reads `worst` or `worst:KIND`; the error says what is expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (word, of) = match text.split_once(':') {
            Some((word, of)) => (word, Some(of)),
            None => (text, None),
        };
        if word != WORST || of.is_some_and(str::is_empty) {
            return Err(format!(
                "`{text}` is no trace; use `worst`, or `worst:` with a kind of latency as in \
                 `worst:request`"
            ));
        }
        Ok(Tracing {
            worst_of: of.map(str::to_owned),
        })
    }

    /// The words that [`Tracing::parse`] reads.
    pub fn words(&self) -> String {
        match &self.worst_of {
            Some(of) => format!("{WORST}:{of}"),
            None => WORST.to_owned(),
        }
    }
}

/// Name of the file of a trace, in the folder `kept` of its trial.
pub const WORST_FILE: &str = "worst.pftrace";

/// A trace that a trial kept, and what it shows of the worst latency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorstTrace {
    /// Log of the latency: `wakeup`, `request`.
    pub of: String,
    /// Length of the latency, as the load measured it.
    pub took_ns: u64,
    /// Its end, from the opening of the window.
    pub end_ns: u64,
    /// ID of the thread that recorded it.
    pub thread: i32,
    /// Name of that thread; empty where the trace has no event of it.
    pub thread_name: String,
    /// CPU on which the thread then ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// Time from when the thread was to be woken, within that latency, until it had a CPU, as the
    /// kernel's events say; `None` where they do not show both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_ns: Option<u64>,
    /// Threads that ran on that CPU within the latency, the longest first; it may be among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ran: Vec<Ran>,
    /// Number of scheduling events in the trace.
    pub events: u64,
    /// Events that the kernel could not store.
    #[serde(default)]
    pub lost: u64,
}

/// Time on a CPU of the threads of one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ran {
    /// Name of the threads.
    pub name: String,
    /// Their time in all.
    pub time_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_read_from_the_words_that_it_is_written_in() {
        for text in ["worst", "worst:request"] {
            assert_eq!(Tracing::parse(text).unwrap().words(), text);
        }
        for wrong in ["best", "worst:", "", "request"] {
            let error = Tracing::parse(wrong).unwrap_err();
            assert!(error.contains("`worst:request`"), "{error}");
        }
    }
}
