//! Gatling's own `simulation.log`, which every simulation leaves.
//!
//! It is binary since Gatling 3.13, and the same in 3.14 and 3.15: big-endian, records that begin
//! with a byte. 0 is the run, first and once: version and class (strings), begin (i64, ms since
//! 1970), description, names of the scenarios, assertions (both a count, and for each of the latter
//! its length and bytes). 1 is a request: groups (a count, cached strings), name (cached), begin
//! and end (i32, ms after the begin of the run), whether it was ok (u8), message (cached). 2 is a
//! user: scenario, whether it begins (u8), time. 3 is a group: groups, begin, end, time of its
//! requests, ok. 4 is an error: message (cached), time. A string is its length in bytes, the bytes,
//! and unless it is empty a byte that is 0 for Latin-1 and 1 for UTF-16 in the byte order of the
//! machine. A cached string is a number: positive before a new string, which gets it; negative for
//! the string that has it.

use super::requests::{Collected, Request};
use std::collections::HashMap;
use std::sync::Arc;

const RUN: u8 = 0;
const REQUEST: u8 = 1;
const USER: u8 = 2;
const GROUP: u8 = 3;
const ERROR: u8 = 4;

/// First byte of a log.
pub const FIRST: u8 = RUN;

/// Bounds of what a log may make this process hold. Gatling cuts no message, and an answer may be in
/// one.
const MOST_TEXT: usize = 1 << 20;
const MOST_GROUPS: usize = 100;

const USER_BYTES: usize = 4 + 1 + 4;
const GROUP_BYTES: usize = 3 * 4 + 1;

/// All requests of a log, in the order in which they ended. Times are whole milliseconds, and when
/// a request was due is not there.
pub fn parse(bytes: &[u8]) -> Result<Vec<Request>, String> {
    let mut log = Log {
        rest: bytes,
        cache: HashMap::new(),
    };
    if log.byte()? != RUN {
        return Err("its first record is not that of a run".to_owned());
    }
    let run = log.run()?;
    let written = |what: String| format!("{what} (written by Gatling {})", run.version);
    log.requests(run.begin_ms).map_err(written)
}

struct Run {
    version: String,
    begin_ms: i64,
}

struct Log<'a> {
    rest: &'a [u8],
    cache: HashMap<i32, Arc<str>>,
}

impl<'a> Log<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self
            .rest
            .split_at_checked(bytes)
            .ok_or("it ends in the middle of a record")?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| "a short read".to_owned())
    }

    fn byte(&mut self) -> Result<u8, String> {
        self.array().map(|[byte]| byte)
    }

    fn int(&mut self) -> Result<i32, String> {
        self.array().map(i32::from_be_bytes)
    }

    /// A count or a length.
    fn length(&mut self) -> Result<usize, String> {
        let length = self.int()?;
        usize::try_from(length).map_err(|_| format!("a text of {length} bytes"))
    }

    fn string(&mut self) -> Result<String, String> {
        let length = self.length()?;
        if length == 0 {
            return Ok(String::new());
        }
        if length > MOST_TEXT {
            return Err(format!("a text of {length} bytes"));
        }
        let bytes = self.take(length)?;
        match self.byte()? {
            0 => Ok(bytes.iter().copied().map(char::from).collect()),
            _ => {
                let units = bytes.chunks_exact(2);
                let units: Vec<u16> = units
                    .map(|unit| u16::from_ne_bytes([unit[0], unit[1]]))
                    .collect();
                Ok(String::from_utf16_lossy(&units))
            }
        }
    }

    fn cached(&mut self) -> Result<Arc<str>, String> {
        let number = self.int()?;
        if number > 0 {
            let text: Arc<str> = self.string()?.into();
            self.cache.insert(number, text.clone());
            return Ok(text);
        }
        let known = number.checked_neg().and_then(|n| self.cache.get(&n));
        known
            .cloned()
            .ok_or_else(|| format!("text {number} was never written"))
    }

    fn groups(&mut self) -> Result<Vec<Arc<str>>, String> {
        let count = self.length()?;
        if count > MOST_GROUPS {
            return Err(format!("a request in {count} groups"));
        }
        (0..count).map(|_| self.cached()).collect()
    }

    fn run(&mut self) -> Result<Run, String> {
        let version = self.string()?;
        let _class = self.string()?;
        let begin_ms = self.array().map(i64::from_be_bytes)?;
        let _description = self.string()?;
        for _ in 0..self.length()? {
            self.string()?;
        }
        for _ in 0..self.length()? {
            let assertion = self.length()?;
            self.take(assertion)?;
        }
        Ok(Run { version, begin_ms })
    }

    fn requests(&mut self, begin_ms: i64) -> Result<Vec<Request>, String> {
        let mut all = Collected::default();
        while !self.rest.is_empty() {
            match self.byte()? {
                REQUEST => self.request(begin_ms, &mut all)?,
                USER => {
                    self.take(USER_BYTES)?;
                }
                GROUP => {
                    self.groups()?;
                    self.take(GROUP_BYTES)?;
                }
                ERROR => {
                    self.cached()?;
                    self.int()?;
                }
                other => return Err(format!("a record of kind {other}, which is not known")),
            }
        }
        Ok(all.into_requests())
    }

    /// A message that a server sent unasked has no end, and is no request.
    fn request(&mut self, begin_ms: i64, all: &mut Collected) -> Result<(), String> {
        let mut names = self.groups()?;
        names.push(self.cached()?);
        let (start, end) = (self.int()?, self.int()?);
        let ok = self.byte()? != 0;
        let reason = self.cached()?;
        if end == without_end(begin_ms) {
            return Ok(());
        }
        let micros = |offset: i32| {
            let ms = begin_ms.saturating_add(i64::from(offset));
            u64::try_from(ms)
                .map(|ms| ms.saturating_mul(1_000))
                .map_err(|_| format!("a time {ms} ms before 1970"))
        };
        let request = Request {
            name: all.name(&names.join(" / "))?,
            phase: None,
            due_us: None,
            start_us: micros(start)?,
            end_us: micros(end)?,
            ok,
            status: status(&reason),
            reason: all.message(&reason),
        };
        all.add_request(request)
    }
}

/// The end of a message without one: the smallest number, counted from the begin of the run and
/// cut to its lower half.
#[expect(
    clippy::cast_possible_truncation,
    reason = "as Gatling cuts the number off"
)]
fn without_end(begin_ms: i64) -> i32 {
    i64::MIN.wrapping_sub(begin_ms) as i32
}

/// The status of an answer that had another than the right one, from
/// `status.find.is(200), but actually found 500`; 0 where the text has none.
pub(super) fn status(reason: &str) -> u16 {
    let found = reason
        .strip_prefix("status.")
        .and_then(|text| text.rsplit_once("found "));
    found.map_or(0, |(_, status)| status.trim().parse().unwrap_or(0))
}
