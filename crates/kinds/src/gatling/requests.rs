//! The requests of a run, from the log that a simulation wrote.

use super::{simulation_log, text_log};
use rustix::fs::{Mode, OFlags};
use serde::Deserialize;
use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// First line of a log of ours, without its number sign.
const FORMAT: &str = "schedlab requests 1";
/// Phase of the requests that count nowhere.
const WARM_UP: &str = "warm-up";
/// Phase of requests at the beginning of the window, where their rate grows.
pub const RAMP_UP: &str = "ramp-up";
/// Phase of requests at its end, where their rate falls.
pub const RAMP_DOWN: &str = "ramp-down";
/// The log that `demo/` writes, below the folder of a load.
const OURS: &str = "requests.csv";
/// The log that Gatling writes, in a folder of each run.
const GATLINGS: &str = "simulation.log";
/// Largest log that is read. With its requests it takes less than 256 MiB of memory.
const MOST_BYTES: u64 = 80 << 20;
/// The most requests of a log.
const MOST_REQUESTS: usize = 1_000_000;
/// Bytes of the texts of a log that are kept, each once.
const MOST_TEXTS: usize = 16 << 20;
/// Bytes of a text and of its place in the table.
const EACH_TEXT: usize = 64;
/// In the place of messages that nobody would read any more.
const ONE_OF_MANY: &str = "one of too many different messages";
/// Characters of a strange first line that are shown.
const MOST_QUOTED: usize = 80;

/// One request as it went. Times are µs since 1970.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Name, behind those of its groups.
    pub name: Arc<str>,
    /// Part of the run in which it was due, where the log says that.
    pub phase: Option<Arc<str>>,
    /// Intended start, where the log says that.
    pub due_us: Option<u64>,
    /// When its user began.
    pub start_us: u64,
    /// When its answer had been judged.
    pub end_us: u64,
    /// Was the answer the right one?
    pub ok: bool,
    /// HTTP status; 0 without an answer, or where the log does not say it.
    pub status: u16,
    /// Why it was not ok, for people.
    pub reason: Arc<str>,
}

/// A row of a log of ours.
#[derive(Deserialize)]
struct Row<'a> {
    request: &'a str,
    phase: Option<&'a str>,
    due_us: Option<u64>,
    start_us: u64,
    end_us: u64,
    ok: bool,
    status: u16,
    reason: &'a str,
}

/// Requests as a log has them one after the other, within bounds of memory.
#[derive(Default)]
pub(super) struct Collected {
    requests: Vec<Request>,
    texts: HashSet<Arc<str>>,
    bytes: usize,
}

impl Collected {
    pub fn add_request(&mut self, request: Request) -> Result<(), String> {
        if self.requests.len() == MOST_REQUESTS {
            return Err(format!(
                "it has more than {MOST_REQUESTS} requests: a shorter duration, or a lower rate"
            ));
        }
        self.requests.push(request);
        Ok(())
    }

    /// A name, which many requests have.
    pub fn name(&mut self, text: &str) -> Result<Arc<str>, String> {
        let mib = MOST_TEXTS >> 20;
        self.kept(text)
            .ok_or_else(|| format!("its names and messages have more than {mib} MiB"))
    }

    /// The message of a failure, of which a log may have a new one for each request.
    pub fn message(&mut self, text: &str) -> Arc<str> {
        self.kept(text).unwrap_or_else(|| ONE_OF_MANY.into())
    }

    fn kept(&mut self, text: &str) -> Option<Arc<str>> {
        if let Some(known) = self.texts.get(text) {
            return Some(known.clone());
        }
        let bytes = self.bytes.saturating_add(text.len() + EACH_TEXT);
        if bytes > MOST_TEXTS {
            return None;
        }
        self.bytes = bytes;
        let text: Arc<str> = text.into();
        self.texts.insert(text.clone());
        Some(text)
    }

    pub fn into_requests(self) -> Vec<Request> {
        self.requests
    }
}

impl Request {
    /// True unless it was sent to warm the service up.
    pub fn is_measured(&self) -> bool {
        self.phase.as_deref() != Some(WARM_UP)
    }

    /// The intended start; the actual one where that is not known.
    pub fn counts_from_ns(&self) -> u64 {
        self.due_us.unwrap_or(self.start_us).saturating_mul(1_000)
    }

    /// From there to its answer.
    pub fn latency_ns(&self) -> u64 {
        let end_ns = self.end_us.saturating_mul(1_000);
        end_ns.saturating_sub(self.counts_from_ns())
    }
}

/// Reads the log at a path or, where that is a folder, the one log in it. It was written after the
/// window opened.
pub fn read(path: &Path, opened: SystemTime) -> Result<Vec<Request>, String> {
    let found = find(path)?;
    let failed = |why: String| format!("read the log of requests {}: {why}", found.display());
    let bytes = bytes(&found, opened).map_err(failed)?;
    parse(&bytes).map_err(failed)
}

/// The bytes of a regular file. A pipe, a device or a link that a program left in its place is not
/// followed: this process may be root's.
fn bytes(path: &Path, opened: SystemTime) -> Result<Vec<u8>, String> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags | OFlags::RDONLY, Mode::empty());
    let file = match file {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::LOOP) => return Err("it is a link".to_owned()),
        Err(e) => return Err(std::io::Error::from(e).to_string()),
    };
    let found = file.metadata().map_err(|e| e.to_string())?;
    if !found.is_file() {
        return Err("it is no regular file".to_owned());
    }
    if found.modified().is_ok_and(|written| written < opened) {
        return Err(
            "it is an old one, which the simulation did not write in this trial".to_owned(),
        );
    }
    if found.len() > MOST_BYTES {
        return Err(format!("it is larger than {} MiB", MOST_BYTES >> 20));
    }
    doors::read::stream_bytes(file, MOST_BYTES).map_err(|e| e.to_string())
}

/// The log that is meant by a path.
fn find(path: &Path) -> Result<PathBuf, String> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let ours = path.join(OURS);
    if ours.is_file() {
        return Ok(ours);
    }
    let mut found = Vec::new();
    logs_below(path, &mut found)
        .map_err(|e| format!("look for the log of requests below {}: {e}", path.display()))?;
    match found.as_slice() {
        [log] => Ok(log.clone()),
        [] => Err(format!(
            "neither {OURS} nor a {GATLINGS} is below {}: give Gatling the folder of the load \
             for its results (-rf {{folder}})",
            path.display()
        )),
        more => Err(format!(
            "{} files {GATLINGS} are below {}, of several runs: `log` must name the folder of one",
            more.len(),
            path.display()
        )),
    }
}

fn logs_below(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            logs_below(&entry.path(), found)?;
        } else if kind.is_file() && entry.file_name() == GATLINGS {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// The requests of a log; each of its rows is checked, so that half a file is no result.
pub fn parse(log: &[u8]) -> Result<Vec<Request>, String> {
    if log.first() == Some(&simulation_log::FIRST) {
        return simulation_log::parse(log);
    }
    let text = str::from_utf8(log).map_err(|e| e.to_string())?;
    if text_log::BEGINNINGS
        .iter()
        .any(|begin| text.starts_with(begin))
    {
        return text_log::parse(text);
    }
    let head = text.lines().next().unwrap_or_default();
    if head.strip_prefix("# ") != Some(FORMAT) {
        let head: String = head.chars().take(MOST_QUOTED).collect();
        return Err(format!(
            "it is no {GATLINGS}, and its first line is not `# {FORMAT}`, but `{head}`"
        ));
    }
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .from_reader(text.as_bytes());
    let said = |e: csv::Error| e.to_string();
    let names = reader.headers().map_err(said)?.clone();
    let (mut record, mut all) = (csv::StringRecord::new(), Collected::default());
    while reader.read_record(&mut record).map_err(said)? {
        let row: Row = record.deserialize(Some(&names)).map_err(said)?;
        let request = Request {
            name: all.name(row.request)?,
            phase: row.phase.map(|phase| all.name(phase)).transpose()?,
            due_us: row.due_us,
            start_us: row.start_us,
            end_us: row.end_us,
            ok: row.ok,
            status: row.status,
            reason: all.message(row.reason),
        };
        all.add_request(request)?;
    }
    Ok(all.into_requests())
}
