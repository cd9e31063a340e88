//! From what the threads counted to metrics, histograms and warnings.

use super::config::Config;
use super::kinds::{self, KindTally};
use super::metrics as own;
use super::tally::{Failure, Tally};
use load::figures::{Figures, merge_recorders};
use load::latency as m;
use load::overload::{self, percent};
use load::recording::{Recorder, Recording};
use load::turn_values::InTurns;
use load::{Parsed, stalls, steady};
use model::{Severity, Turns, format_duration_ns};
use std::time::SystemTime;

/// Above this share of failed requests latencies say nothing of a service.
pub const ERRORS_ALLOWED_PERCENT: f64 = 1.0;
/// Lateness of the generator in percent of the request latency, both at their 99th
/// percentile, from which on it is mentioned, and from which on it is the result.
const LATE_PERCENT: f64 = 10.0;
const TOO_LATE_PERCENT: f64 = 50.0;
/// The same of their medians: how late any timer and wake-up is, but of short latencies
/// so much that a ratio of two of them is closer to 1 than that of the servers.
const MEDIAN_LATE_PERCENT: f64 = 25.0;
/// Lateness of less than this is what any timer and wake-up cost: it is never the
/// reason that a trial does not count.
const LATE_IN_EARNEST_NS: u64 = 1_000_000;
/// Remedy where the generator itself was the limit.
pub const OWN_REMEDY: &str = "give the generator more threads, or CPUs (load-cpus) that nothing \
                              else uses; `schedlab doctor` names what does";
/// A generator that used this much of its threads' CPUs could not have sent more.
const SATURATED_PERCENT: f64 = 95.0;

/// The figures of a load whose window opened at `opened`.
pub fn compute_figures(
    config: &Config,
    tallies: Vec<Tally>,
    opened: SystemTime,
) -> Result<Parsed, String> {
    let mut total = Total::from_tallies(tallies);
    check(config, &total)?;
    if let Some(turns) = &config.turns {
        return in_turns(config, turns, total, opened);
    }
    let by_kind = std::mem::take(&mut total.kinds);
    let mut figures = Figures::new(opened);
    let request = figures.latency("request", m::REQUEST, total.request.clone())?;
    figures.latency("service", m::SERVICE, total.service.clone())?;
    // What others sent may not say when it was due.
    let is_timed = merge_recorders(total.lateness.clone())?.count() > 0;
    let lateness = is_timed
        .then(|| figures.latency("generator-lateness", own::LATENESS, total.lateness.clone()))
        .transpose()?;
    if total.connects > 0 {
        figures.latency("connect", own::CONNECT, total.connect.clone())?;
    }
    rates(&mut figures, config, &total);
    if let Some(ns) = request.quantile_ns(750) {
        figures.push(m::REQUEST_P75, ns as f64);
    }
    figures.stalls(&[("request", stalls::REQUEST_STALLS, &request)]);
    // A queue that fills makes latency rise, and is said already.
    if !is_overload(config, &total) {
        let (drift, warning) = steady::judge_latency(&request, &config.constant_ns());
        figures.parsed.metrics.extend(drift);
        figures.parsed.warnings.extend(warning);
    }
    warn_of_failures(&mut figures, &total);
    note_resent(&mut figures, &total);
    if let Some(lateness) = lateness {
        judge_lateness(&mut figures, &request, &lateness);
    }
    kinds::add_figures(&mut figures.parsed, by_kind, config.duration_ns)?;
    Ok(figures.finish())
}

/// Figures of each turn of arms that change places.
fn in_turns(
    config: &Config,
    turns: &Turns,
    total: Total,
    opened: SystemTime,
) -> Result<Parsed, String> {
    let mut warnings = Figures::new(opened);
    warn_of_failures(&mut warnings, &total);
    note_resent(&mut warnings, &total);
    let overload = is_overload(config, &total);
    let (achieved, late) = (total.achieved_percent(), merge_recorders(total.lateness)?);
    let mut figures = InTurns::new(turns, opened);
    let rate = Some(m::REQUESTS_PER_SEC);
    figures.latency("request", m::REQUEST, rate, total.request)?;
    figures.latency("service", m::SERVICE, None, total.service)?;
    if total.connects > 0 {
        figures.latency("connect", own::CONNECT, None, total.connect)?;
    }
    // Short windows have no 99th percentile, and medians then.
    let (def, permille, words) = match figures.median_figure(m::REQUEST_P99.name) > 0.0 {
        true => (m::REQUEST_P99, 990, "one of 100"),
        false => (m::REQUEST_P50, 500, "half of the"),
    };
    let late = late.quantile_ns(permille).unwrap_or(0);
    if overload {
        figures.void(format!(
            "overload: {achieved:.1} % of the offered requests were answered, and the queue of one \
             arm's turn is served in that of another; offer a lower rate"
        ));
    } else if is_too_late(
        late,
        model::truncate_to_u64(figures.median_figure(def.name)),
    ) {
        figures.void(format!(
            "the generator was {} late in {words} requests; {OWN_REMEDY}",
            format_duration_ns(late)
        ));
    }
    let mut parsed = figures.finish();
    parsed.warnings = warnings.finish().warnings;
    Ok(parsed)
}

/// A window without a request has no figures.
pub fn check(config: &Config, total: &Total) -> Result<(), String> {
    if total.offered == 0 {
        return Err(format!(
            "no request was due in the window of {} at {}",
            format_duration_ns(config.duration_ns),
            model::format_rate(config.rate_per_sec)
        ));
    }
    if total.done == 0 {
        let what = match total.answers() {
            0 => "no request was answered",
            _ => "no request got the right answer",
        };
        return Err(format!(
            "{what} in the window of {}: {}",
            format_duration_ns(config.duration_ns),
            total.failures_in_words()
        ));
    }
    Ok(())
}

/// Were more requests offered than the server got through? One that it refused or cut
/// off is an error, but keeps nobody waiting.
pub fn is_overload(config: &Config, total: &Total) -> bool {
    let ended = total.done + total.errors();
    overload::is_overload(total.offered, ended, config.connections)
}

/// Is the generator's lateness the better part of the latency?
pub fn is_too_late(late_ns: u64, request_ns: u64) -> bool {
    percent(late_ns, request_ns) >= TOO_LATE_PERCENT && late_ns >= LATE_IN_EARNEST_NS
}

/// Polling without a pause uses all of a CPU whatever there is to do.
pub fn is_saturated(config: &Config, cpu_percent: f64) -> bool {
    !config.busy_poll && cpu_percent >= SATURATED_PERCENT * f64::from(config.threads)
}

/// All threads together.
#[derive(Debug)]
pub struct Total {
    /// Latencies from the intended start, by thread.
    pub request: Vec<Recorder>,
    service: Vec<Recorder>,
    /// Lateness of the generator, by thread.
    pub lateness: Vec<Recorder>,
    connect: Vec<Recorder>,
    connects: u64,
    offered: u64,
    done: u64,
    failures: [u64; Failure::ALL.len()],
    resent: u64,
    hits: u64,
    misses: u64,
    /// CPU time of all threads.
    pub cpu_ns: u64,
    kinds: Vec<KindTally>,
}

impl Total {
    /// The sum of what the threads counted.
    pub fn from_tallies(tallies: Vec<Tally>) -> Self {
        let mut total = Total {
            request: Vec::new(),
            service: Vec::new(),
            lateness: Vec::new(),
            connect: Vec::new(),
            connects: 0,
            offered: 0,
            done: 0,
            failures: [0; Failure::ALL.len()],
            resent: 0,
            hits: 0,
            misses: 0,
            cpu_ns: 0,
            kinds: Vec::new(),
        };
        for tally in tallies {
            total.offered += tally.offered;
            total.done += tally.done;
            total.resent += tally.resent;
            total.hits += tally.hits;
            total.misses += tally.misses;
            total.cpu_ns += tally.cpu_ns;
            for (sum, count) in total.failures.iter_mut().zip(tally.failures) {
                *sum += count;
            }
            total.request.push(tally.request);
            total.service.push(tally.service);
            total.lateness.push(tally.lateness);
            total.connect.push(tally.connect);
            total.connects += tally.connects;
            total.kinds.extend(tally.kinds);
        }
        total
    }

    fn failed(&self) -> u64 {
        self.failures.iter().sum()
    }

    /// Failures with an answer.
    fn answers(&self) -> u64 {
        let [refused, wrong] =
            [Failure::Refused, Failure::Wrong].map(|kind| self.failures[kind as usize]);
        refused + wrong
    }

    /// Failed in another way than by taking too long.
    fn errors(&self) -> u64 {
        let [timeouts, unanswered] =
            [Failure::Timeout, Failure::Unanswered].map(|kind| self.failures[kind as usize]);
        self.failed() - timeouts - unanswered
    }

    /// Requests that were done, in percent of those offered.
    pub fn achieved_percent(&self) -> f64 {
        overload::achieved_percent(self.offered, self.done)
    }

    /// Requests that failed, in percent of those offered.
    pub fn error_percent(&self) -> f64 {
        percent(self.failed(), self.offered)
    }

    /// `3 timed out, 1 got garbage`; without failures, what else kept answers away.
    fn failures_in_words(&self) -> String {
        let of_kind = |failure: Failure| {
            let count = self.failures[failure as usize];
            (count > 0).then(|| format!("{count} {}", failure.words()))
        };
        let parts: Vec<String> = Failure::ALL.into_iter().filter_map(of_kind).collect();
        if parts.is_empty() {
            return "the answers came after it".to_owned();
        }
        parts.join(", ")
    }
}

fn rates(figures: &mut Figures, config: &Config, total: &Total) {
    let seconds = config.duration_ns as f64 / 1e9;
    let achieved = total.achieved_percent();
    figures.push(m::REQUESTS_PER_SEC, total.done as f64 / seconds);
    figures.push(m::OFFERED_PER_SEC, total.offered as f64 / seconds);
    figures.push(m::ACHIEVED_PERCENT, achieved);
    figures.push(own::ERROR_PERCENT, total.error_percent());
    let gets = total.hits + total.misses;
    if gets > 0 {
        figures.push(own::HIT_PERCENT, percent(total.hits, gets));
    }
    let cpu = 100.0 * total.cpu_ns as f64 / config.duration_ns as f64;
    figures.push(own::GENERATOR_CPU, cpu);
    let overload = is_overload(config, total);
    let too_many_errors = total.error_percent() > ERRORS_ALLOWED_PERCENT;
    let overloaded = f64::from(u8::from(overload || too_many_errors));
    figures.push(m::OVERLOADED, overloaded);
    if overload && is_saturated(config, cpu) {
        figures.parsed.void = Some(format!(
            "the generator's threads used {cpu:.0} % of a CPU, all that {} of them can, so the \
             rate is theirs; give it more threads and CPUs of its own with load-cpus",
            config.threads
        ));
    }
    if overload {
        let what = format!(
            "overload: {achieved:.1} % of the offered requests were answered, so request latency \
             grows with the length of the window"
        );
        figures.warn(
            Severity::Serious,
            what,
            "offer a lower rate, or judge requests_per_sec",
        );
    }
}

fn warn_of_failures(figures: &mut Figures, total: &Total) {
    if total.failed() == 0 {
        return;
    }
    let errors = total.error_percent();
    let what = format!(
        "{} of {} requests failed ({errors:.2} %) and count with the time that they took: {}",
        total.failed(),
        total.offered,
        total.failures_in_words()
    );
    let severity = match errors > ERRORS_ALLOWED_PERCENT {
        true => Severity::Serious,
        false => Severity::Caution,
    };
    figures.warn(severity, what, "look at the server's log");
}

fn note_resent(figures: &mut Figures, total: &Total) {
    if total.resent == 0 {
        return;
    }
    let what = format!(
        "{} of {} requests met a connection that the server had closed and were sent again; the \
         time that this took counts",
        total.resent, total.offered
    );
    figures.warn(
        Severity::Note,
        what,
        "let the server keep idle connections open for longer",
    );
}

fn judge_lateness(figures: &mut Figures, request: &Recording, lateness: &Recording) {
    let both = |permille| [request, lateness].map(|r| r.quantile_ns(permille));
    let medians = both(500);
    let [Some(request), Some(late)] = both(990) else {
        return;
    };
    let percent = percent(late, request);
    if percent < LATE_PERCENT {
        return judge_median_lateness(figures, medians);
    }
    if is_too_late(late, request) {
        figures.parsed.void = Some(format!(
            "the generator was {} late in one of 100 requests, {percent:.0} % of their latency; \
             {OWN_REMEDY}",
            format_duration_ns(late)
        ));
    }
    let (severity, judgement) = if percent < TOO_LATE_PERCENT {
        (
            Severity::Caution,
            "a part of the request latency is its own",
        )
    } else {
        (
            Severity::Serious,
            "the request latency is more of the generator than of the server",
        )
    };
    let what = format!(
        "the generator was {} late in one of 100 requests, {percent:.0} % of their latency: {judgement}",
        format_duration_ns(late)
    );
    figures.warn(severity, what, OWN_REMEDY);
}

fn judge_median_lateness(figures: &mut Figures, medians: [Option<u64>; 2]) {
    let [Some(request), Some(late)] = medians else {
        return;
    };
    let percent = percent(late, request);
    if percent < MEDIAN_LATE_PERCENT {
        return;
    }
    let what = format!(
        "the generator was {} late in half of the requests, {percent:.0} % of their latency: \
         differences in request_p50 look that much smaller; service_p50 is without it",
        format_duration_ns(late)
    );
    figures.warn(Severity::Note, what, OWN_REMEDY);
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)]
mod tests {
    use super::*;
    use crate::openloop::Ramps;
    use crate::openloop::protocol::Wrong;
    use crate::openloop::tally::Times;
    use load::recording::Window;
    use model::Arrivals;

    const MS: u64 = 1_000_000;
    const SECOND: u64 = 1_000 * MS;
    const WINDOW: Window = Window {
        begin_ns: SECOND,
        end_ns: 3 * SECOND,
    };

    fn config() -> Config {
        Config {
            address: ([127, 0, 0, 1], 1).into(),
            rate_per_sec: 1_000.0,
            search: None,
            arrivals: Arrivals::Constant,
            connections: 8,
            threads: 1,
            cpus: Vec::new(),
            timeout_ns: SECOND,
            busy_poll: false,
            warmup_ns: 0,
            duration_ns: 2 * SECOND,
            ramps: Ramps::default(),
            seed: 1,
            turns: None,
        }
    }

    /// 2000 requests, each sent `late_ns` late and answered after `took_ns`; the
    /// first `failed` of them with a no.
    fn load(late_ns: u64, took_ns: u64, failed: usize) -> Tally {
        let mut tally = Tally::new(2 * SECOND, 10 * SECOND).unwrap();
        tally.open(WINDOW);
        for (index, intended_ns) in (SECOND..3 * SECOND).step_by(MS as usize).enumerate() {
            let times = Times {
                intended_ns,
                sent_ns: intended_ns + late_ns,
                kind: 0,
            };
            tally.count_sent(times, late_ns);
            match index >= failed {
                true => tally.count_answered(times, intended_ns + took_ns, None),
                false => tally.count_wrong(times, intended_ns + took_ns, Wrong::Refused, b""),
            }
        }
        tally
    }

    fn figures_of(tally: Tally) -> Parsed {
        compute_figures(&config(), vec![tally], SystemTime::UNIX_EPOCH).unwrap()
    }

    fn mark(parsed: &Parsed) -> f64 {
        let name = m::OVERLOADED.name;
        let found = parsed.metrics.iter().find(|m| m.metric == name);
        found.unwrap().value
    }

    #[test]
    fn a_load_that_was_answered_in_time_is_not_overloaded() {
        let parsed = figures_of(load(0, MS, 0));
        assert_eq!((mark(&parsed), parsed.void), (0.0, None));
    }

    #[test]
    fn more_than_one_error_in_a_hundred_is_an_overload() {
        assert_eq!(mark(&figures_of(load(0, MS, 10))), 0.0);
        assert_eq!(mark(&figures_of(load(0, MS, 21))), 1.0);
    }

    #[test]
    fn a_window_without_a_right_answer_has_no_figures_and_says_whether_there_was_any() {
        let error =
            |tally| compute_figures(&config(), vec![tally], SystemTime::UNIX_EPOCH).unwrap_err();
        let refused = error(load(0, MS, 2_000));
        assert_eq!(
            refused,
            "no request got the right answer in the window of 2s: 2000 got an error from the server"
        );
        let late = error(load(0, 3 * SECOND, 0));
        assert!(late.starts_with("no request was answered in"), "{late}");
    }

    #[test]
    fn errors_are_no_overload_in_words() {
        let said = |parsed: &Parsed| parsed.warnings.iter().any(|w| w.what.contains("overload"));
        let errors = figures_of(load(0, MS, 100));
        assert!(!said(&errors), "{:?}", errors.warnings);
        assert_eq!(errors.warnings[0].severity, Severity::Serious);
        assert!(said(&figures_of(load(0, 100 * MS, 0))));
    }

    #[test]
    fn answers_after_the_window_are_an_overload() {
        assert_eq!(mark(&figures_of(load(0, 100 * MS, 0))), 1.0);
        // Fewer than one for each connection: the edge of the window.
        assert_eq!(mark(&figures_of(load(0, 7 * MS, 0))), 0.0);
    }

    #[test]
    fn a_trial_whose_latency_is_the_generators_own_is_void() {
        let parsed = figures_of(load(4 * MS, 5 * MS, 0));
        assert!(parsed.void.is_some_and(|why| why.contains("load-cpus")));
        assert_eq!(figures_of(load(MS, 5 * MS, 0)).void, None);
        assert_eq!(figures_of(load(MS / 2, MS / 2 + 1, 0)).void, None);
    }

    #[test]
    fn lateness_in_half_of_the_requests_is_a_note() {
        let notes = |late_us: u64| {
            let mut tally = Tally::new(2 * SECOND, 10 * SECOND).unwrap();
            tally.open(WINDOW);
            for (index, intended_ns) in (SECOND..3 * SECOND).step_by(MS as usize).enumerate() {
                // One of fifty takes so long that p99 is not the generator's.
                let took_ns = if index % 50 == 0 { 10 * MS } else { MS / 5 };
                let late_ns = late_us * 1_000;
                let sent_ns = intended_ns + late_ns;
                let times = Times {
                    intended_ns,
                    sent_ns,
                    kind: 0,
                };
                tally.count_sent(times, late_ns);
                tally.count_answered(times, sent_ns + took_ns, None);
            }
            let parsed = figures_of(tally);
            let mut notes = parsed.warnings.into_iter();
            notes.any(|w| w.severity == Severity::Note && w.what.contains("in half"))
        };
        assert!(notes(100));
        assert!(!notes(20));
    }

    #[test]
    fn a_generator_that_had_all_of_its_cpu_and_fell_behind_voids_the_trial() {
        let mut tally = load(0, 100 * MS, 0);
        tally.cpu_ns = 2 * SECOND;
        let void = figures_of(tally).void;
        assert!(void.is_some_and(|why| why.contains("more threads")));
        let mut in_time = load(0, MS, 0);
        in_time.cpu_ns = 2 * SECOND;
        assert_eq!(figures_of(in_time).void, None);
    }
}
