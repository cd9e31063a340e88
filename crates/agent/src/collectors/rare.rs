//! Rare events of a trial: late and failed requests, kills for want of memory, lines of the kernel's log.
//! Those that end a trial are its outcome, and counted there.

use collect::kernel_log::{Found, KernelLog};
use load::Parsed;
use load::late::{Bound, LateLog};
use model::event::{MOST_MESSAGES, MOST_MOMENTS};
use model::{Happened, Problem, RareEvent, Severity, Warning, When};
use regex::Regex;
use std::path::Path;

/// Bounds of the latencies that are events, for a load.
pub fn bounds(events: &[RareEvent]) -> Vec<Bound> {
    let latencies = events.iter().filter_map(|event| event.when.latency());
    let bound = |(log, beyond_ns): (&str, u64)| Bound {
        log: log.to_owned(),
        beyond_ns,
    };
    latencies.map(bound).collect()
}

/// Requirements of the events that are not met here.
pub fn require(root: &Path, events: &[RareEvent]) -> Vec<Problem> {
    let lack = |event: &RareEvent| match &event.when {
        When::KernelLog { .. } if KernelLog::from_now(root).is_none() => Some((
            "the kernel's log cannot be read",
            "run as root, or let others read it: sysctl kernel.dmesg_restrict=0",
        )),
        When::OomKill if oom_kills(root).is_none() => Some((
            "this kernel does not count kills for want of memory",
            "leave the event out",
        )),
        _ => None,
    };
    let problem = |event: &RareEvent| {
        let (what, remedy) = lack(event)?;
        Some(Problem {
            object: format!("event {}", event.name),
            what: what.to_owned(),
            remedy: remedy.to_owned(),
        })
    };
    events.iter().filter_map(problem).collect()
}

/// Kills for want of memory since boot.
fn oom_kills(root: &Path) -> Option<u64> {
    let text = collect::read_trimmed(&root.join("proc/vmstat"))?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("oom_kill "))?;
    line.trim().parse().ok()
}

/// The events of a trial whose window is open or has closed.
#[derive(Debug, Default)]
pub struct RareEvents {
    events: Vec<RareEvent>,
    log: Option<KernelLog>,
    found: Found,
    oom_kills: [Option<u64>; 2],
}

impl RareEvents {
    /// For these events.
    pub fn new(events: &[RareEvent]) -> Self {
        RareEvents {
            events: events.to_vec(),
            ..RareEvents::default()
        }
    }

    /// The window opens.
    pub fn begin_window(&mut self, root: &Path) {
        let reads_log = self.patterns().next().is_some();
        self.log = reads_log.then(|| KernelLog::from_now(root)).flatten();
        self.oom_kills[0] = self.counts_kills().then(|| oom_kills(root)).flatten();
    }

    /// The window has closed.
    pub fn end_window(&mut self, root: &Path) {
        self.oom_kills[1] = self.counts_kills().then(|| oom_kills(root)).flatten();
        let patterns: Vec<Regex> = self.patterns().collect();
        let is_wanted = |message: &str| patterns.iter().any(|pattern| pattern.is_match(message));
        if let Some(log) = &mut self.log {
            // A window that was cut short may end twice.
            let found = log.records_that(is_wanted);
            self.found.records.extend(found.records);
            self.found.lost |= found.lost;
        }
    }

    fn counts_kills(&self) -> bool {
        self.events.iter().any(|event| event.when == When::OomKill)
    }

    fn patterns(&self) -> impl Iterator<Item = Regex> {
        let lines = self.events.iter().filter_map(|event| match &event.when {
            When::KernelLog { line } => Some(line),
            _ => None,
        });
        lines.filter_map(|line| Regex::new(line).ok())
    }

    /// Events that happened in a trial. A load that says nothing of the latency of an event leaves the event out.
    pub fn find_happened(&self, parsed: &Parsed, trial: &Times) -> Vec<Happened> {
        let happened = |event: &RareEvent| {
            let happened = self.happened(event, parsed, trial)?;
            let beyond = happened.at_ns.len().saturating_sub(MOST_MOMENTS);
            let at_ns = happened.at_ns.iter().take(MOST_MOMENTS);
            Some(Happened {
                name: event.name.clone(),
                // By the clock of the machine until here.
                at_ns: at_ns.map(|at| at.saturating_sub(trial.began_ns)).collect(),
                without_moment: happened.without_moment + beyond as u64,
                ..happened
            })
        };
        self.events.iter().filter_map(happened).collect()
    }

    /// With moments by CLOCK_MONOTONIC.
    fn happened(&self, event: &RareEvent, parsed: &Parsed, trial: &Times) -> Option<Happened> {
        let in_window = Happened {
            exposure_ns: trial.window_ns[1].saturating_sub(trial.window_ns[0]),
            ..Happened::default()
        };
        match &event.when {
            When::Latency { log, beyond_ns, .. } => {
                let late = parsed.late.iter().find(|late| late.log == *log)?;
                Some(late_requests(late, *beyond_ns))
            }
            When::FailedRequest => failed_requests(
                parsed,
                Happened {
                    exposure_ns: trial.load_ns,
                    ..in_window
                },
            ),
            When::OomKill => {
                let [before, after] = self.oom_kills;
                Some(Happened {
                    without_moment: after?.saturating_sub(before?),
                    ..in_window
                })
            }
            When::KernelLog { line } => self.logged(line, in_window),
            When::Ejected | When::ErrorExit | When::GuestDeath => Some(in_window),
        }
    }

    fn logged(&self, line: &str, in_window: Happened) -> Option<Happened> {
        let pattern = Regex::new(line).ok()?;
        self.log.as_ref()?;
        let records = self.found.records.iter();
        let records: Vec<_> = records.filter(|r| pattern.is_match(&r.message)).collect();
        let said = records.iter().take(MOST_MESSAGES);
        Some(Happened {
            at_ns: records.iter().map(|record| record.at_us * 1_000).collect(),
            messages: said.map(|record| record.message.clone()).collect(),
            ..in_window
        })
    }

    /// The warning that lines were lost before they were read.
    pub fn warning(&self) -> Option<Warning> {
        self.found.lost.then(|| Warning {
            severity: Severity::Caution,
            what: "the kernel's log was full, and lines of it were lost before they were read: events may \
                   be missing"
                .to_owned(),
            remedy: "boot with a larger log: log_buf_len=16M".to_owned(),
        })
    }
}

/// Times of a trial.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// Start of the trial, CLOCK_MONOTONIC.
    pub began_ns: u64,
    /// Both ends of its window, from its start.
    pub window_ns: [u64; 2],
    /// Length of the window of a load that is told it.
    pub load_ns: u64,
}

fn late_requests(late: &LateLog, beyond_ns: u64) -> Happened {
    let beyond = late.moments.iter().filter(|(_, took)| *took > beyond_ns);
    Happened {
        // The load knows its window better than the agent, which is told of it.
        exposure_ns: late.window_ns,
        requests: Some(late.of),
        at_ns: beyond.map(|(at, _)| late.window_begin_ns + at).collect(),
        without_moment: late.further,
        ..Happened::default()
    }
}

/// Requests that failed, by the share of them and the rate of those that were offered.
fn failed_requests(parsed: &Parsed, in_window: Happened) -> Option<Happened> {
    let measured = |name: &str| parsed.metrics.iter().find(|m| m.metric == name);
    let value = |name: &str| measured(name).map(|m| m.value);
    let offered = value("offered_per_sec")? * in_window.exposure_ns as f64 / 1e9;
    let failed = value("error_percent")? / 100.0 * offered;
    Some(Happened {
        requests: Some(model::truncate_to_u64(offered.round())),
        without_moment: model::truncate_to_u64(failed.round()),
        ..in_window
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tests::tree;

    fn event(name: &str, when: When) -> RareEvent {
        RareEvent::new(name, when)
    }

    const TIMES: Times = Times {
        began_ns: 1_000,
        window_ns: [100, 300],
        load_ns: 190,
    };

    fn late(beyond_ns: u64) -> When {
        When::Latency {
            log: "request".to_owned(),
            beyond_ns,
            of_baseline: None,
        }
    }

    #[test]
    fn each_bound_of_a_log_counts_its_own() {
        let events = [event("late", late(10)), event("later", late(50))];
        let parsed = Parsed {
            late: vec![LateLog {
                log: "request".to_owned(),
                of: 1_000,
                window_begin_ns: 1_100,
                window_ns: 190,
                moments: vec![(5, 11), (7, 99)],
                further: 0,
            }],
            ..Parsed::default()
        };
        let found = RareEvents::new(&events).find_happened(&parsed, &TIMES);
        assert_eq!(found[0].at_ns, [105, 107]);
        assert_eq!(found[1].at_ns, [107]);
        assert_eq!(
            (found[1].exposure_ns, found[1].requests),
            (190, Some(1_000))
        );
        assert_eq!(bounds(&events).len(), 2);
    }

    #[test]
    fn a_latency_that_the_load_does_not_tell_is_not_counted_as_none() {
        let counting = RareEvents::new(&[event("late", late(10))]);
        assert!(
            counting
                .find_happened(&Parsed::default(), &TIMES)
                .is_empty()
        );
    }

    #[test]
    fn kills_within_the_window_are_counted() {
        let before = tree(&[("proc/vmstat", "pgfault 7\noom_kill 3\n")]);
        let after = tree(&[("proc/vmstat", "pgfault 9\noom_kill 5\n")]);
        let mut counting = RareEvents::new(&[event("oom", When::OomKill)]);
        counting.begin_window(before.path());
        counting.end_window(after.path());
        let found = counting.find_happened(&Parsed::default(), &TIMES);
        assert_eq!(found[0].count(), 2);
        let none = tree(&[("proc/vmstat", "pgfault 9\n")]);
        assert_eq!(
            require(none.path(), &[event("oom", When::OomKill)]).len(),
            1
        );
        assert!(require(after.path(), &[event("oom", When::OomKill)]).is_empty());
    }
}
