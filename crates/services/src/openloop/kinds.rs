//! Counts of each kind of request, for loads that send several.

use super::metrics as own;
use super::protocol::Wrong;
use super::tally::Failure;
use crate::request_names::{self, Named};
use hdrhistogram::Histogram;
use load::Parsed;
use model::{Severity, Warning};
use std::collections::BTreeMap;
use std::fmt;

/// Different ways in which the requests of one kind failed that are told apart.
const MOST_WAYS: usize = 16;
/// Bytes of a wrong answer that are shown.
const SHOWN_BYTES: usize = 200;

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// No whole answer.
    No(Failure),
    /// A whole answer, which is wrong.
    Wrong(Wrong),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::No(failure) => f.write_str(failure.words()),
            Why::Wrong(Wrong::Refused) => f.write_str(Failure::Refused.words()),
            Why::Wrong(Wrong::Status(status)) => write!(f, "status {status}"),
            Why::Wrong(Wrong::Content) => f.write_str("wrong answer"),
        }
    }
}

/// Requests of one kind that were intended inside the window, as one thread counts them.
#[derive(Debug)]
pub struct KindTally {
    name: String,
    offered: u64,
    ok: u64,
    /// Latencies of all of them, for the mean.
    sum_ns: u128,
    /// Latencies of those that succeeded.
    latency: Histogram<u32>,
    ways: Vec<(Why, u64)>,
    /// Beginning of the first wrong answer.
    example: Option<String>,
}

impl KindTally {
    /// Everything is allocated here, before the load begins.
    pub fn new(name: String, longest_ns: u64) -> Result<Self, String> {
        let mut latency = Histogram::new_with_bounds(1, longest_ns.max(2), 3)
            .map_err(|e| format!("make a histogram up to {longest_ns} ns: {e}"))?;
        // Writes every count, so that no page is first touched inside the window.
        latency.reset();
        Ok(KindTally {
            name,
            offered: 0,
            ok: 0,
            sum_ns: 0,
            latency,
            ways: Vec::with_capacity(MOST_WAYS),
            example: None,
        })
    }

    pub fn offer(&mut self) {
        self.offered += 1;
    }

    pub fn succeed(&mut self, latency_ns: u64) {
        self.ok += 1;
        self.sum_ns += u128::from(latency_ns);
        self.latency.saturating_record(latency_ns);
    }

    pub fn fail(&mut self, latency_ns: u64, why: Why, text: &[u8]) {
        self.sum_ns += u128::from(latency_ns);
        if self.example.is_none() && matches!(why, Why::Wrong(_)) && !text.is_empty() {
            let shown = &text[..text.len().min(SHOWN_BYTES)];
            let shown = String::from_utf8_lossy(shown).into_owned();
            self.example = Some(format!("{}, {why}: {shown}", self.name));
        }
        let known = self.ways.iter_mut().find(|(way, _)| *way == why);
        if let Some((_, count)) = known {
            *count += 1;
        } else if self.ways.len() < MOST_WAYS {
            self.ways.push((why, 1));
        }
    }

    fn add(&mut self, other: &KindTally) {
        self.offered += other.offered;
        self.ok += other.ok;
        self.sum_ns += other.sum_ns;
        self.latency += &other.latency;
        for (why, count) in &other.ways {
            match self.ways.iter_mut().find(|(way, _)| way == why) {
                Some((_, sum)) => *sum += count,
                None => self.ways.push((*why, *count)),
            }
        }
        self.example = self.example.take().or_else(|| other.example.clone());
    }
}

/// Adds the figures of the kinds: the mean over all, the table by name, the ways to fail, and
/// the beginning of a wrong answer.
pub fn add_figures(
    parsed: &mut Parsed,
    tallies: Vec<KindTally>,
    duration_ns: u64,
) -> Result<(), String> {
    let mut kinds: BTreeMap<String, KindTally> = BTreeMap::new();
    for tally in tallies {
        match kinds.get_mut(&tally.name) {
            Some(kind) => kind.add(&tally),
            None => drop(kinds.insert(tally.name.clone(), tally)),
        }
    }
    if kinds.is_empty() {
        return Ok(());
    }
    let kinds: Vec<KindTally> = kinds.into_values().collect();
    let offered: u64 = kinds.iter().map(|kind| kind.offered).sum();
    let sum_ns: u128 = kinds.iter().map(|kind| kind.sum_ns).sum();
    let mean = sum_ns as f64 / offered.max(1) as f64;
    parsed.metrics.push(own::REQUEST_MEAN.to_measurement(mean));
    let rows: Vec<Named> = kinds
        .iter()
        .map(|kind| Named {
            name: &kind.name,
            offered: kind.offered,
            ok: kind.ok,
            max_ns: (kind.ok > 0).then(|| kind.latency.max()),
        })
        .collect();
    let quantile = |row: usize, permille: u32| {
        let latency = &kinds[row].latency;
        latency.value_at_quantile(f64::from(permille) / 1000.0)
    };
    parsed
        .files
        .push(request_names::file(&rows, duration_ns, quantile)?);
    let way =
        |kind: &KindTally, (why, count): &(Why, u64)| (format!("{}: {why}", kind.name), *count);
    let ways = kinds
        .iter()
        .flat_map(|kind| kind.ways.iter().map(|w| way(kind, w)));
    parsed
        .warnings
        .extend(request_names::ways_to_fail(ways.collect()));
    let example = kinds.iter().find_map(|kind| kind.example.as_ref());
    parsed.warnings.extend(example.map(|example| Warning {
        severity: Severity::Note,
        what: format!("a wrong answer: {example}"),
        remedy: "compare it with what the request expects".to_owned(),
    }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(name: &str) -> KindTally {
        KindTally::new(name.to_owned(), 1_000_000_000).unwrap()
    }

    #[test]
    fn kinds_of_one_name_and_of_all_threads_are_counted_together() {
        let (mut one, mut other, mut third) = (kind("pay"), kind("pay"), kind("ask"));
        for tally in [&mut one, &mut other] {
            for _ in 0..20 {
                tally.offer();
                tally.succeed(1_000);
            }
        }
        for status in [500, 500, 404] {
            third.offer();
            third.fail(2_000, Why::Wrong(Wrong::Status(status)), b"<no>");
        }
        let mut parsed = Parsed::default();
        add_figures(&mut parsed, vec![one, other, third], 10_000_000_000).unwrap();
        let table = &parsed.files[0].text;
        let rows: Vec<&str> = table.lines().skip(1).collect();
        assert_eq!(rows[0], "ask,3,0,3,0.000,,,,", "{table}");
        assert!(rows[1].starts_with("pay,40,40,0,4.000,1000,,,1"), "{table}");
        let mean = (40.0 * 1_000.0 + 3.0 * 2_000.0) / 43.0;
        assert_eq!(parsed.metrics[0].value, mean);
        let said: Vec<&str> = parsed.warnings.iter().map(|w| w.what.as_str()).collect();
        assert_eq!(
            said[0],
            "failed most often: ask: status 500; ask: status 404"
        );
        assert_eq!(said[1], "a wrong answer: ask, status 500: <no>");
    }
}
