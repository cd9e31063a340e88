//! The requests of a run, from the log that a simulation wrote.

use serde::Deserialize;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// First line of the log, without its number sign.
const FORMAT: &str = "schedlab requests 1";
/// Phase of the requests that count nowhere.
const WARM_UP: &str = "warm-up";

/// One request as it went. Times are µs since 1970.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Request {
    #[serde(rename = "request")]
    pub name: String,
    /// Part of the run in which it was due.
    pub phase: String,
    pub due_us: u64,
    /// When its user began.
    pub start_us: u64,
    /// When its answer had been judged.
    pub end_us: u64,
    /// Was the answer the right one?
    pub ok: bool,
    /// HTTP status; 0 without an answer.
    pub status: u16,
    /// Why it was not ok, for people.
    pub reason: String,
}

impl Request {
    pub fn is_measured(&self) -> bool {
        self.phase != WARM_UP
    }

    /// From the intended start.
    pub fn latency_ns(&self) -> u64 {
        self.end_us
            .saturating_sub(self.due_us)
            .saturating_mul(1_000)
    }
}

/// Reads the log.
pub fn read(path: &Path) -> Result<Vec<Request>, String> {
    let failed = |why: String| format!("read the log of requests {}: {why}", path.display());
    let file = File::open(path).map_err(|e| failed(e.to_string()))?;
    parse(BufReader::new(file)).map_err(failed)
}

/// The requests of a log; each of its rows is checked, so that half a file is no result.
pub fn parse(mut log: impl Read) -> Result<Vec<Request>, String> {
    let mut text = String::new();
    log.read_to_string(&mut text).map_err(|e| e.to_string())?;
    let head = text.lines().next().unwrap_or_default();
    if head.strip_prefix("# ") != Some(FORMAT) {
        return Err(format!("its first line is not `# {FORMAT}`, but `{head}`"));
    }
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .from_reader(text.as_bytes());
    let rows = reader.deserialize().collect::<Result<Vec<Request>, _>>();
    rows.map_err(|e| e.to_string())
}
