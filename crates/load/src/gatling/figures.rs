//! Figures from the requests of a run, judged as those of the open-loop generators.

use super::requests::Request;
use super::run::Measured;
use super::{REQUEST_MEAN, rate_of};
use crate::openloop::{Config, Failure, Tally, Times, figures};
use crate::recording::{Window, samples_needed};
use crate::{Job, Parsed};
use model::{Arrivals, Severity, TrialFile, Warning};
use std::collections::BTreeMap;

/// Longest latency that a histogram has a place for.
const LONGEST_NS: u64 = 600_000_000_000;
/// Requests of so many seconds may be under way when the window closes.
const EDGE_SECONDS: f64 = 1.0;
/// Ways to fail that a warning names.
const NAMED: usize = 3;
/// Columns of requests-by-name.csv.
const BY_NAME: [&str; 9] = [
    "request",
    "offered",
    "ok",
    "failed",
    "ok_per_sec",
    "p50_ns",
    "p95_ns",
    "p99_ns",
    "max_ns",
];

/// Figures of the requests that were due in the measured part; `cpus` may be used by the
/// program.
pub fn parsed(
    job: &Job,
    requests: &[Request],
    measured: &Measured,
    cpus: usize,
) -> Result<Parsed, String> {
    let window = window(job, requests)?;
    let config = config(job, cpus);
    let mut tally = Tally::new(job.workload.duration_ns, LONGEST_NS)?;
    tally.open(window);
    tally.cpu_ns = measured.cpu_ns;
    requests
        .iter()
        .for_each(|request| count(&mut tally, request));
    let in_window = || {
        requests
            .iter()
            .filter(|r| window.contains(r.due_us * 1_000))
    };
    let of_generator = in_window().find(|r| r.reason.contains("Too many open files"));
    let mut parsed = figures::parsed(&config, vec![tally], measured.opened)?;
    parsed.metrics.push(mean(in_window()));
    parsed.files.push(TrialFile {
        name: "requests-by-name.csv".to_owned(),
        text: by_name(in_window(), job.workload.duration_ns).map_err(|e| e.to_string())?,
    });
    parsed.warnings.extend(ways_to_fail(in_window()));
    if of_generator.is_some() {
        parsed.void = Some(
            "the generator had too many open files, so its requests failed; raise the limit \
             (ulimit -n)"
                .to_owned(),
        );
    }
    Ok(parsed)
}

/// From the first request that counts, as long as the file says.
fn window(job: &Job, requests: &[Request]) -> Result<Window, String> {
    let due = requests
        .iter()
        .filter(|r| r.is_measured())
        .map(|r| r.due_us);
    let begin_ns = due.min().ok_or("no request of the log is to be measured")? * 1_000;
    Ok(Window {
        begin_ns,
        end_ns: begin_ns + job.workload.duration_ns,
    })
}

/// The program as an open-loop generator. It connects by itself; what its users share is not
/// known here, so a second's requests are taken to be under way at the edge of the window.
fn config(job: &Job, cpus: usize) -> Config {
    let rate = rate_of(job);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of requests under way, which saturates"
    )]
    let connections = (rate * EDGE_SECONDS).ceil() as u32;
    Config {
        address: ([127, 0, 0, 1], 1).into(),
        rate_per_sec: rate,
        search: None,
        arrivals: Arrivals::Constant,
        connections,
        threads: u32::try_from(cpus).unwrap_or(u32::MAX),
        timeout_ns: LONGEST_NS,
        cpus: Vec::new(),
        busy_poll: false,
        warmup_ns: job.workload.warmup_ns,
        duration_ns: job.workload.duration_ns,
        seed: job.seed,
    }
}

fn count(tally: &mut Tally, request: &Request) {
    let times = Times {
        intended_ns: request.due_us * 1_000,
        sent_ns: request.start_us * 1_000,
    };
    tally.sent(times, times.sent_ns.saturating_sub(times.intended_ns));
    let end_ns = request.end_us * 1_000;
    match failure(request) {
        None => tally.answered(times, end_ns, true, None),
        Some(failure) => tally.failed(times, end_ns, failure),
    }
}

fn failure(request: &Request) -> Option<Failure> {
    match (request.ok, request.status) {
        (true, _) => None,
        (false, 0) => Some(Failure::Unanswered),
        (false, 400..) => Some(Failure::Refused),
        (false, _) => Some(Failure::Wrong),
    }
}

/// The mean, which other open loops do not have.
fn mean<'a>(requests: impl Iterator<Item = &'a Request>) -> model::Measurement {
    let latencies: Vec<u64> = requests.map(Request::latency_ns).collect();
    let sum: f64 = latencies.iter().map(|ns| *ns as f64).sum();
    REQUEST_MEAN.measured(sum / latencies.len().max(1) as f64)
}

fn sorted(requests: &[&Request]) -> Vec<u64> {
    let mut latencies: Vec<u64> = requests.iter().map(|r| r.latency_ns()).collect();
    latencies.sort_unstable();
    latencies
}

/// The nearest rank.
fn quantile(sorted: &[u64], permille: u32) -> f64 {
    let rank = (sorted.len() * permille as usize).div_ceil(1_000).max(1);
    sorted.get(rank - 1).map_or(f64::NAN, |ns| *ns as f64)
}

/// A row for each name of a request. Quantiles are of the requests that succeeded, and empty
/// where there are too few of them.
fn by_name<'a>(
    requests: impl Iterator<Item = &'a Request>,
    duration_ns: u64,
) -> Result<String, csv::Error> {
    let mut names: BTreeMap<&str, Vec<&Request>> = BTreeMap::new();
    for request in requests {
        names.entry(&request.name).or_default().push(request);
    }
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record(BY_NAME)?;
    for (name, requests) in names {
        let ok: Vec<&Request> = requests.iter().copied().filter(|r| r.ok).collect();
        let latencies = sorted(&ok);
        let cell = |permille| match latencies.len() as u64 >= samples_needed(permille) {
            true => quantile(&latencies, permille).to_string(),
            false => String::new(),
        };
        let max = latencies.last().map_or_else(String::new, u64::to_string);
        let per_sec = ok.len() as f64 * 1e9 / duration_ns as f64;
        table.write_record([
            name,
            &requests.len().to_string(),
            &ok.len().to_string(),
            &(requests.len() - ok.len()).to_string(),
            &format!("{per_sec:.3}"),
            &cell(500),
            &cell(950),
            &cell(990),
            &max,
        ])?;
    }
    let text = table.into_inner().map_err(|e| e.into_error())?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The failures by request and reason, the most frequent first.
fn ways_to_fail<'a>(requests: impl Iterator<Item = &'a Request>) -> Option<Warning> {
    let mut ways: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for request in requests.filter(|r| !r.ok) {
        *ways.entry((&request.name, &request.reason)).or_default() += 1;
    }
    let mut ways: Vec<_> = ways.into_iter().collect();
    ways.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let named: Vec<String> = ways
        .iter()
        .take(NAMED)
        .map(|((name, reason), _)| format!("{name}: {reason}"))
        .collect();
    (!named.is_empty()).then(|| Warning {
        severity: Severity::Note,
        what: format!("failed most often: {}", named.join("; ")),
        remedy: "see requests-by-name.csv and the logs of the services".to_owned(),
    })
}
