//! Figures from the requests of a run, judged as those of the open-loop generators.

use super::rate_of;
use super::requests::{RAMP_DOWN, RAMP_UP, Request};
use super::run::Measured;
use load::recording::Window;
use load::{Job, Parsed};
use model::{Arrivals, Severity, TrialFile, Warning, format_duration_ns};
use services::openloop::metrics::REQUEST_MEAN;
use services::openloop::{Config, Failure, Ramps, Tally, Times, figures};
use services::request_names::{self, Named};
use std::collections::BTreeMap;
use std::time::SystemTime;

/// Longest latency that a histogram has a place for.
const LONGEST_NS: u64 = 600_000_000_000;
/// Requests of so many seconds may be under way when the window closes.
const EDGE_SECONDS: f64 = 1.0;
/// A pause of users who still come is shorter than this.
const SILENT_NS: u64 = 1_000_000_000;
/// So many times the usual pause between two requests is no pause any more.
const SILENT_GAPS: u64 = 10;

/// Reason of a trial that fails by no fault of a service.
const TOO_MANY_FILES: &str = "the generator had too many open files, so its requests failed; \
                              raise the limit (ulimit -n)";
/// Reason of a trial whose generator had used up the ports of its machine.
const NO_FREE_PORT: &str = "the generator had no free port for a connection: keep connections open, \
                            or give them more ports (sysctl net.ipv4.ip_local_port_range)";

/// Figures of the requests that were due in the measured part; `cpus` may be used by the
/// program.
pub fn compute_figures(
    job: &Job,
    requests: &[Request],
    measured: &Measured,
    cpus: usize,
) -> Result<Parsed, String> {
    let window = window(job, requests, measured)?;
    let config = Config {
        ramps: ramps(requests, window),
        ..config(job, cpus)
    };
    let mut tally = Tally::new(job.workload.duration_ns, LONGEST_NS)?;
    tally.open(window);
    tally.cpu_ns = measured.cpu_ns;
    requests
        .iter()
        .for_each(|request| count(&mut tally, request));
    let in_window = || {
        requests
            .iter()
            .filter(|r| window.contains(r.counts_from_ns()))
    };
    let of_generator = in_window().find_map(|r| limit_of_generator(&r.reason));
    let ways = request_names::ways_to_fail(ways_to_fail(in_window()));
    let parsed = figures::compute_figures(&config, vec![tally], measured.opened);
    let mut parsed = match (parsed, of_generator, &ways) {
        (Err(_), Some(limit), _) => return Err(limit.to_owned()),
        (Err(why), None, Some(ways)) => return Err(format!("{why}; {}", ways.what)),
        (parsed, ..) => parsed?,
    };
    parsed.metrics.push(mean(in_window()));
    let table = by_name(in_window(), job.workload.duration_ns)?;
    parsed.files.push(table);
    parsed.warnings.extend(ways);
    let last_ns = in_window().map(Request::counts_from_ns).max();
    let count = in_window().count();
    let unknown = in_window().filter(|r| r.due_us.is_none()).count();
    let note = (unknown > 0).then(|| counted_as_sent(unknown, count));
    parsed.warnings.extend(note);
    parsed.warnings.extend(ended_early(window, count, last_ns));
    parsed
        .warnings
        .extend(measured.assertions_failed.then(assertions_failed));
    if let Some(limit) = of_generator {
        parsed.void = Some(limit.to_owned());
    }
    Ok(parsed)
}

/// From the first request that counts, as long as the file says. A log without phases has one
/// clock with us: there the window is the one that the agent was told.
fn window(job: &Job, requests: &[Request], measured: &Measured) -> Result<Window, String> {
    let has_phases = requests.iter().any(|r| r.phase.is_some());
    let begin_ns = match has_phases {
        true => requests
            .iter()
            .filter(|r| r.is_measured())
            .map(Request::counts_from_ns)
            .min(),
        false => Some(since_1970_ns(measured.opened)),
    };
    let begin_ns = begin_ns
        .filter(|_| !requests.is_empty())
        .ok_or("no request of the log is to be measured")?;
    Ok(Window {
        begin_ns,
        end_ns: begin_ns.saturating_add(job.workload.duration_ns),
    })
}

/// Ramps at the ends of the window, where the log says of its requests that they were due in one.
fn ramps(requests: &[Request], window: Window) -> Ramps {
    let of = |phase: &'static str| {
        let in_phase = move |r: &&Request| r.phase.as_deref() == Some(phase);
        requests
            .iter()
            .filter(in_phase)
            .map(Request::counts_from_ns)
    };
    let up_end = of(RAMP_UP).max().unwrap_or(window.begin_ns);
    let down_begin = of(RAMP_DOWN).min().unwrap_or(window.end_ns);
    Ramps {
        up_ns: up_end.saturating_sub(window.begin_ns),
        down_ns: window.end_ns.saturating_sub(down_begin),
        ..Ramps::default()
    }
}

fn since_1970_ns(at: SystemTime) -> u64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

/// The note of a log that does not say when all or some of its requests were due.
fn counted_as_sent(unknown: usize, count: usize) -> Warning {
    let what = match unknown == count {
        true => {
            "the log does not say when requests were due: latency counts from when they were sent, \
             in whole milliseconds where Gatling wrote it, and how late the generator was is not \
             known"
        }
        false => {
            "the log does not say of all requests when they were due: the latency of the others \
             counts from when they were sent"
        }
    };
    Warning {
        severity: Severity::Note,
        what: what.to_owned(),
        remedy: "let the simulation write requests.csv, as that of demo/ does".to_owned(),
    }
}

/// The warning of a simulation that says itself that something was not as it should be.
fn assertions_failed() -> Warning {
    Warning {
        severity: Severity::Caution,
        what: "the simulation did not keep its own assertions, and its requests count all the same"
            .to_owned(),
        remedy: "its report and stderr.log of the trial have what it expected".to_owned(),
    }
}

/// The warning of a simulation whose users stopped coming long before the window closed, as one
/// does that was not told how long it lasts.
fn ended_early(window: Window, count: usize, last_ns: Option<u64>) -> Option<Warning> {
    let duration_ns = window.end_ns - window.begin_ns;
    let silent_ns = window.end_ns.saturating_sub(last_ns?);
    let usual_ns = (duration_ns - silent_ns) / count.max(1) as u64;
    let is_early =
        silent_ns > (duration_ns / 4).max(SILENT_NS) && silent_ns > SILENT_GAPS * usual_ns;
    is_early.then(|| Warning {
        severity: Severity::Serious,
        what: format!(
            "the simulation sent nothing in the last {} of the window, so its rates are too low",
            format_duration_ns(silent_ns)
        ),
        remedy:
            "let its users come for as long as warm-up and window last together ({total} in the \
                 command)"
                .to_owned(),
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
        ramps: Ramps::default(),
        seed: job.seed,
        turns: None,
    }
}

fn count(tally: &mut Tally, request: &Request) {
    let times = Times {
        intended_ns: request.counts_from_ns(),
        sent_ns: request.start_us.saturating_mul(1_000),
        kind: 0,
    };
    match request.due_us {
        Some(_) => tally.count_sent(times, times.sent_ns.saturating_sub(times.intended_ns)),
        None => tally.offer(times),
    }
    let end_ns = request.end_us.saturating_mul(1_000);
    match failure(request) {
        None => tally.count_answered(times, end_ns, None),
        Some(failure) => tally.count_failed(times, end_ns, failure),
    }
}

fn failure(request: &Request) -> Option<Failure> {
    match (request.ok, request.status) {
        (true, _) => None,
        (false, 0) => Some(without_status(&request.reason)),
        (false, 400..) => Some(Failure::Refused),
        (false, _) => Some(Failure::Wrong),
    }
}

/// Limit of its own for which the generator could open no connection: in the words of the system, which
/// Gatling's own log repeats, or in those of the simulation of `demo/`.
fn limit_of_generator(reason: &str) -> Option<&'static str> {
    let reason = reason.to_ascii_lowercase();
    let says = |words: &str| reason.contains(words);
    if says("too many open files") {
        Some(TOO_MANY_FILES)
    } else if says("cannot assign requested address") || says("no free port of the load") {
        Some(NO_FREE_PORT)
    } else {
        None
    }
}

/// A failure by Gatling's own words, or those of the simulation of `demo/`. A check says what it
/// found in the answer, so there was one.
fn without_status(reason: &str) -> Failure {
    let says = |words: &str| reason.contains(words);
    if says("Request timeout") || reason == "no answer: timed out" {
        Failure::Timeout
    } else if says("Premature close")
        || says("Connection refused")
        || ["no answer: closed", "no answer: refused"].contains(&reason)
    {
        Failure::HangUp
    } else if says(".find.") || says(", found ") {
        Failure::Wrong
    } else {
        Failure::Unanswered
    }
}

/// The mean, which other open loops do not have.
fn mean<'a>(requests: impl Iterator<Item = &'a Request>) -> model::Measurement {
    let latencies: Vec<u64> = requests.map(Request::latency_ns).collect();
    let sum: f64 = latencies.iter().map(|ns| *ns as f64).sum();
    REQUEST_MEAN.to_measurement(sum / latencies.len().max(1) as f64)
}

fn sorted(requests: &[&Request]) -> Vec<u64> {
    let mut latencies: Vec<u64> = requests.iter().map(|r| r.latency_ns()).collect();
    latencies.sort_unstable();
    latencies
}

/// The nearest rank; 0 of nothing.
fn quantile(sorted: &[u64], permille: u32) -> u64 {
    let rank = (sorted.len() * permille as usize).div_ceil(1_000).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

/// The table of the requests by name.
fn by_name<'a>(
    requests: impl Iterator<Item = &'a Request>,
    duration_ns: u64,
) -> Result<TrialFile, String> {
    let mut names: BTreeMap<&str, Vec<&Request>> = BTreeMap::new();
    for request in requests {
        names.entry(&request.name).or_default().push(request);
    }
    let (mut rows, mut latencies) = (Vec::new(), Vec::new());
    for (name, requests) in names {
        let ok: Vec<&Request> = requests.iter().copied().filter(|r| r.ok).collect();
        let of_ok = sorted(&ok);
        rows.push(Named {
            name,
            offered: requests.len() as u64,
            ok: ok.len() as u64,
            max_ns: of_ok.last().copied(),
        });
        latencies.push(of_ok);
    }
    request_names::file(&rows, duration_ns, |row, permille| {
        quantile(&latencies[row], permille)
    })
}

/// The failures by request and reason, with their numbers.
fn ways_to_fail<'a>(requests: impl Iterator<Item = &'a Request>) -> Vec<(String, u64)> {
    let mut ways: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for request in requests.filter(|r| !r.ok) {
        *ways.entry((&request.name, &request.reason)).or_default() += 1;
    }
    let way = |((name, reason), count)| (format!("{name}: {reason}"), count);
    ways.into_iter().map(way).collect()
}
