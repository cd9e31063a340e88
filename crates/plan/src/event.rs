//! Rare events: `[[event]]` of a file, and whether the workloads can count them.

use crate::error::PlanError;
use crate::event_bound::{check_rule, parse_rule};
use ::load::KINDS;
use ::load::KindDef;
use ::load::units::{Duration, parse_duration};
use machines::Can;
use model::{DecidedBy, Experiment, Load, RareEvent, When, Workload};
use serde::Deserialize;
use std::collections::BTreeSet;
use toml::Spanned;

/// Keys of `[[event]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct FileEvent {
    name: Option<String>,
    when: Spanned<String>,
    cluster: Option<Duration>,
    #[serde(default)]
    decides: bool,
    same_within: Option<Spanned<f64>>,
    same_below: Option<Spanned<String>>,
    cool_down: Option<Spanned<Duration>>,
    at_most: Option<Spanned<u32>>,
}

/// Time after an event in which further ones belong to it, where the file says nothing.
const USUAL_CLUSTER_NS: u64 = 1_000_000_000;
/// Rest of the machine after an event that ended its window, and such ends of an arm in a cell that are enough, where
/// the file says nothing.
const USUAL_COOL_DOWN_NS: u64 = 1_000_000_000;
const USUAL_AT_MOST: u32 = 100;
const EJECTED: &str = "ejected";
const ERROR_EXIT: &str = "error_exit";
const GUEST_DEATH: &str = "guest_death";
const FAILED_REQUEST: &str = "failed_request";
const OOM_KILL: &str = "oom_kill";
const KERNEL_LOG: &str = "kernel_log";
const STALL: &str = "stall";
const EXAMPLES: &str = "ejected, error_exit, guest_death, failed_request, oom_kill, 'request > 100ms', 'wakeup > 10ms', \
                        'stall > 100ms', 'kernel_log = blocked for more than'";
/// The share of requests that fail, of the kinds that tell it.
const FAILED: &str = "error_percent";

impl FileEvent {
    /// The event; workloads are asked later what they can count.
    pub fn into_event(self, workloads: &[Workload]) -> Result<RareEvent, PlanError> {
        let text = self.when.get_ref().trim();
        let when = parse_when(text, workloads).map_err(|e| e.with_span(self.when.span()))?;
        let name = self.name.unwrap_or_else(|| text.to_owned());
        crate::name::check_shows(&name).map_err(|e| e.with_span(self.when.span()))?;
        let ends = when.ends_window();
        let cool_down = self.cool_down.map(rest).transpose()?;
        let cool_down = of_an_end(ends, "cool-down", cool_down)?;
        let at_most = of_an_end(ends, "at-most", self.at_most.map(count).transpose()?)?;
        Ok(RareEvent {
            name,
            when,
            cluster_ns: self.cluster.map_or(USUAL_CLUSTER_NS, |cluster| cluster.0),
            decides: self.decides,
            same_within: self.same_within.map(ratio).transpose()?,
            same_below_per_sec: self.same_below.map(rate).transpose()?,
            cool_down_ns: match ends {
                true => cool_down.map_or(USUAL_COOL_DOWN_NS, |cool_down| cool_down.0),
                false => 0,
            },
            at_most: at_most.or(ends.then_some(USUAL_AT_MOST)),
        })
    }
}

/// A key that only events have that end their windows.
fn of_an_end<T>(ends: bool, key: &str, value: Option<Spanned<T>>) -> Result<Option<T>, PlanError> {
    match value {
        Some(value) if !ends => {
            let what = format!("`{key}` is of events that end their windows");
            let error = PlanError::new(what).with_span(value.span());
            Err(error.with_help("leave it out, or count `ejected`, `error_exit` or `guest_death`"))
        }
        value => Ok(value.map(Spanned::into_inner)),
    }
}

/// Longest rest of a machine after such an event.
const LONGEST_REST_NS: u64 = 3_600_000_000_000;

fn rest(cool_down: Spanned<Duration>) -> Result<Spanned<Duration>, PlanError> {
    match cool_down.get_ref().0 <= LONGEST_REST_NS {
        true => Ok(cool_down),
        false => Err(PlanError::new("a cool-down is at most an hour")
            .with_help("cool-down = \"5s\"")
            .with_span(cool_down.span())),
    }
}

/// A number of ends, at least one.
fn count(number: Spanned<u32>) -> Result<Spanned<u32>, PlanError> {
    match *number.get_ref() {
        0 => Err(PlanError::new("at-most = 0 measures nothing")
            .with_help("at-most = 100")
            .with_span(number.span())),
        _ => Ok(number),
    }
}

/// A ratio of rates above 1.
fn ratio(within: Spanned<f64>) -> Result<f64, PlanError> {
    let is_ratio = |ratio: f64| ratio > 1.0 && ratio.is_finite();
    match is_ratio(*within.get_ref()) {
        true => Ok(within.into_inner()),
        false => Err(PlanError::new(format!(
            "same-within = {} is no ratio above 1",
            within.get_ref()
        ))
        .with_help("1.5 says that arms with up to one and a half times the events are the same")
        .with_span(within.span())),
    }
}

/// Events per second of `0.1/min`, `2/h` or `0.01/s`.
fn rate(text: Spanned<String>) -> Result<f64, PlanError> {
    let units = [("/min", 60.0), ("/h", 3600.0), ("/s", 1.0)];
    let read = units.iter().find_map(|(unit, seconds)| {
        let number = text.get_ref().trim().strip_suffix(unit)?.trim();
        let number: f64 = number.parse().ok()?;
        (number.is_finite() && number > 0.0).then_some(number / seconds)
    });
    read.ok_or_else(|| {
        PlanError::new(format!("`{}` is no rate of events", text.get_ref()))
            .with_help("write a number above 0 with its unit: \"0.1/min\", \"2/h\", \"0.01/s\"")
            .with_span(text.span())
    })
}

/// Logs of latencies whose moments some kind of workload tells.
fn latencies() -> BTreeSet<&'static str> {
    KINDS.iter().flat_map(|def| def.watched).copied().collect()
}

fn parse_when(text: &str, workloads: &[Workload]) -> Result<When, PlanError> {
    if let Some((head, line)) = text.split_once('=')
        && head.trim().replace('-', "_") == KERNEL_LOG
    {
        return kernel_log(line.trim());
    }
    let (head, bound) = match text.split_once('>') {
        Some((head, bound)) => (head.trim(), Some(bound.trim())),
        None => (text, None),
    };
    let word = head.replace('-', "_");
    let plain = match word.as_str() {
        EJECTED => When::Ejected,
        ERROR_EXIT => When::ErrorExit,
        GUEST_DEATH => When::GuestDeath,
        FAILED_REQUEST => When::FailedRequest,
        OOM_KILL => When::OomKill,
        KERNEL_LOG => {
            return Err(PlanError::new(format!("`{text}` has no text to look for"))
                .with_help("write: kernel_log = blocked for more than"));
        }
        _ => return latency(head, bound, workloads),
    };
    match bound {
        None => Ok(plain),
        Some(_) => {
            Err(PlanError::new(format!("`{head}` takes no bound"))
                .with_help(format!("write: {word}")))
        }
    }
}

fn kernel_log(line: &str) -> Result<When, PlanError> {
    let line = line.trim_matches(['"', '\'']);
    if line.is_empty() {
        let error = PlanError::new("every line of the kernel's log matches an empty text");
        return Err(error.with_help("write: kernel_log = blocked for more than"));
    }
    match regex::Regex::new(line) {
        Ok(_) => Ok(When::KernelLog {
            line: line.to_owned(),
        }),
        Err(error) => {
            let what = error.to_string();
            let last = what.lines().last().unwrap_or_default().to_owned();
            Err(
                PlanError::new(format!("`{line}` is no regular expression: {last}")).with_help(
                    "put a backslash before signs that are meant as they stand: \\[ \\( \\*",
                ),
            )
        }
    }
}

fn latency(head: &str, bound: Option<&str>, workloads: &[Workload]) -> Result<When, PlanError> {
    let known = latencies();
    if head != STALL && !known.contains(head) {
        let plain = [
            EJECTED,
            ERROR_EXIT,
            GUEST_DEATH,
            FAILED_REQUEST,
            OOM_KILL,
            KERNEL_LOG,
            STALL,
        ];
        let help = match model::find_nearest(head, known.iter().copied().chain(plain)) {
            Some(near) => format!("did you mean `{near}`? There are {EXAMPLES}"),
            None => format!("there are {EXAMPLES}"),
        };
        return Err(PlanError::new(format!("there is no event `{head}`")).with_help(help));
    }
    let bound = bound.filter(|bound| !bound.is_empty()).ok_or_else(|| {
        PlanError::new(format!("the event `{head}` has no bound"))
            .with_help(format!("write: {head} > 100ms"))
    })?;
    let of_baseline = parse_rule(bound).transpose()?;
    let beyond_ns = match of_baseline {
        Some(_) => 0,
        None => parse_duration(bound).map_err(PlanError::new)?,
    };
    if beyond_ns == 0 && of_baseline.is_none() {
        return Err(PlanError::new("every latency is above 0")
            .with_help(format!("write a bound that few reach: {head} > 100ms")));
    }
    let log = match head {
        STALL => stalled_log(workloads).unwrap_or("wakeup"),
        log => log,
    };
    Ok(When::Latency {
        log: log.to_owned(),
        beyond_ns,
        of_baseline,
    })
}

/// The latency of a task that was runnable and did not run.
fn stalled_log(workloads: &[Workload]) -> Option<&'static str> {
    let logs = ["wakeup", "lateness"];
    let tells = |log: &str| {
        let mut kinds = workloads
            .iter()
            .filter_map(|w| ::load::kind::find(w.kind.name()));
        kinds.all(|def| def.watched.contains(&log))
    };
    logs.into_iter().find(|log| tells(log))
}

/// Checks that the events differ in their names, and that each workload can count them.
pub(crate) fn check_events(experiment: &Experiment, target: Can) -> Result<(), PlanError> {
    let events = &experiment.observe.events;
    if experiment.stop.decided_by == DecidedBy::Events {
        check_decided(experiment).map_err(|e| e.about_key("stop.decided-by"))?;
    }
    let mut names = BTreeSet::new();
    for (at, event) in events.iter().enumerate() {
        let key = format!("event.{at}");
        if !names.insert(&event.name) {
            let error = PlanError::new(format!("there are two events `{}`", event.name));
            let error = error.with_help("give one of them another `name`, or leave it out");
            return Err(error.about_key(&key));
        }
        check_machine(event, target).map_err(|e| e.about_key(&key))?;
        check_event(experiment, event).map_err(|e| e.about_key(&key))?;
    }
    Ok(())
}

/// Checks that there is something that events can decide.
fn check_decided(experiment: &Experiment) -> Result<(), PlanError> {
    if experiment.observe.events.is_empty() {
        let error = PlanError::new("the run is decided by events, and it counts none");
        return Err(error.with_help("add one: [[event]] with when = \"ejected\""));
    }
    match experiment.arms.len() {
        0 | 1 => Err(PlanError::new(
            "the run is decided by the events of two arms, and it has one arm",
        )
        .with_help("add a second arm; the same under another name shows what chance does")),
        _ => Ok(()),
    }
}

/// Checks that what is counted of a machine is told by the one that the trials run in.
fn check_machine(event: &RareEvent, target: Can) -> Result<(), PlanError> {
    if event.when != When::GuestDeath || target.sees_deaths() {
        return Ok(());
    }
    let what = format!(
        "the event `{}` is of guests that schedlab starts in real time, and this experiment has none",
        event.name
    );
    Err(PlanError::new(what).with_help(
        "leave it out, or run it in a guest: --vm debian:sid, or kind = \"vm\" in [target]",
    ))
}

fn check_event(experiment: &Experiment, event: &RareEvent) -> Result<(), PlanError> {
    let has_scheduler = experiment.arms.iter().any(|arm| arm.scheduler.is_some());
    for workload in &experiment.workloads {
        match &event.when {
            When::Ejected | When::ErrorExit if !has_scheduler => {
                let what = format!(
                    "the event `{}` is of a sched_ext scheduler, and no arm has one",
                    event.name
                );
                return Err(
                    PlanError::new(what).with_help("leave it out, or add an arm: -a scx_lavd")
                );
            }
            When::Latency { log, .. } => {
                check_latency(workload, event, log)?;
                check_rule(workload, event)?;
            }
            When::FailedRequest => check_failures(workload, event)?,
            _ => {}
        }
    }
    Ok(())
}

fn check_latency(workload: &Workload, event: &RareEvent, log: &str) -> Result<(), PlanError> {
    let driver = ::load::driver(&workload.kind);
    let tells = driver.map_or(true, |driver| driver.tells_worst())
        && ::load::kind::find(workload.kind.name()).is_some_and(|def| def.watched.contains(&log));
    let searches = workload.loads.iter().any(|l| matches!(l, Load::MaxRate(_)));
    if tells && !searches {
        return Ok(());
    }
    let kinds = KINDS.iter().filter(|def| def.watched.contains(&log));
    let kinds: Vec<&str> = kinds.map(|def| def.name).collect();
    let what = format!(
        "event `{}`: the workload `{}` does not say when a latency `{log}` was too long",
        event.name, workload.name
    );
    Err(PlanError::new(what).with_help(format!(
        "leave it out, or use a fixed load of one of {}",
        kinds.join(", ")
    )))
}

fn check_failures(workload: &Workload, event: &RareEvent) -> Result<(), PlanError> {
    let counts = |def: &KindDef| def.metrics.iter().any(|metric| metric.name == FAILED);
    if ::load::kind::find(workload.kind.name()).is_some_and(counts) {
        return Ok(());
    }
    let kinds: Vec<&str> = KINDS
        .iter()
        .filter(|def| counts(def))
        .map(|def| def.name)
        .collect();
    let what = format!(
        "event `{}`: the workload `{}` does not count requests that fail",
        event.name, workload.name
    );
    Err(PlanError::new(what).with_help(format!(
        "leave it out, or use a load of one of {}",
        kinds.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn when(text: &str) -> Result<When, String> {
        catalogue::install();
        parse_when(text, &[]).map_err(|e| e.to_string())
    }

    #[test]
    fn events_are_words_latencies_with_bounds_and_lines() {
        assert_eq!(when("ejected"), Ok(When::Ejected));
        assert_eq!(when("error-exit"), Ok(When::ErrorExit));
        assert_eq!(when("guest_death"), Ok(When::GuestDeath));
        let late = When::Latency {
            log: "request".to_owned(),
            beyond_ns: 100_000_000,
            of_baseline: None,
        };
        assert_eq!(when("request > 100ms"), Ok(late.clone()));
        assert_eq!(when("request>100ms"), Ok(late));
        let line = When::KernelLog {
            line: "hung [a-z]+".to_owned(),
        };
        assert_eq!(when("kernel_log = \"hung [a-z]+\""), Ok(line));
    }

    #[test]
    fn what_is_no_event_is_refused_with_what_is_wrong() {
        for (text, why) in [
            ("reqest > 5ms", "there is no event `reqest`"),
            ("request", "has no bound"),
            ("request > ", "has no bound"),
            ("request > 5", "has no unit"),
            ("request > 0ms", "every latency is above 0"),
            ("ejected > 5ms", "takes no bound"),
            ("kernel_log", "has no text"),
            ("kernel_log = ", "every line"),
            ("kernel_log = a(b", "no regular expression"),
        ] {
            let error = when(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
