//! Sets of equal workers: what a worker burns and how long it waits.

use super::{Workers, weight};
use crate::Keys;
use crate::units::Duration;
use model::Invalid;
use serde::{Deserialize, Serialize};

/// Most workers of one set; more threads than this no machine starts in time.
const MOST_WORKERS: u64 = 100_000;
/// Timers of Linux cannot wait for less.
const LEAST_WAIT_NS: u64 = 1_000;

/// Workers that all have these events. A trial has as many of each set as its load says, unless
/// the set says how many.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Set {
    /// Name of the set in the tables.
    pub name: String,
    /// Events of one worker, all of which are due at the start.
    pub events: Vec<Event>,
    /// Number of workers; `None`: the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Nice value of the workers.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub nice: i32,
    /// Weight of the workers' guests, where they are guests; `None`: the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// Most that a worker's guest gets of one CPU, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<u32>,
}

fn is_usual(nice: &i32) -> bool {
    *nice == 0
}

impl Set {
    /// Most that a worker gets of one CPU, whatever it wants.
    pub fn most(&self) -> f64 {
        match self.cap {
            None | Some(0) => 1.0,
            Some(cap) => f64::from(cap) / 100.0,
        }
    }

    fn new(name: impl Into<String>, events: Vec<Event>) -> Self {
        Set {
            name: name.into(),
            events,
            count: None,
            nice: 0,
            weight: None,
            cap: None,
        }
    }
}

/// Work that is due again some time after it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Work in thousands of operations, in one piece.
    pub kops: u64,
    /// Time from the end of the work until it is due again; of a periodic event from one due time to
    /// the next.
    pub wait_ns: u64,
    /// Is it due at fixed times, and is to end before the next of them?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub periodic: bool,
}

/// The two sets of the published experiments.
pub fn published() -> Vec<Set> {
    let event = |kops, wait_ns| Event {
        kops,
        wait_ns,
        periodic: false,
    };
    let seven = [10, 20, 10, 10, 10, 10, 30];
    vec![
        Set::new("A", vec![event(70, 200_000)]),
        Set::new("B", seven.map(|kops| event(kops, 300_000)).to_vec()),
    ]
}

/// `[[workload.set]]`.
pub fn read(keys: &mut Keys) -> Set {
    let name: Option<String> = keys.get("name");
    if name.is_none() {
        let missing = Invalid::new("", "a set needs its `name`");
        keys.refuse(missing.with_remedy("name = \"A\""));
    }
    let words = keys.words("events").unwrap_or_default();
    if words.is_empty() {
        let missing = Invalid::new("", "a set needs its `events`");
        keys.refuse(missing.with_remedy("events = [\"70 200us\"]"));
    }
    let mut events = Vec::new();
    for (index, word) in words.iter().enumerate() {
        match event(word) {
            Ok(event) => events.push(event),
            Err(what) => {
                keys.refuse(Invalid::new(format!("events.{index}"), what).with_remedy(
                    "an event is its thousands of operations and its wait, \"70 200us\", or its period, \
                     \"70 every 10ms\"",
                ))
            }
        }
    }
    Set {
        count: keys.get("count"),
        nice: keys.get("nice").unwrap_or_default(),
        weight: keys.get("weight"),
        cap: keys.get("cap"),
        ..Set::new(name.unwrap_or_default(), events)
    }
}

/// `70 200us`, `70 every 10ms`.
fn event(text: &str) -> Result<Event, String> {
    let Some((kops, wait)) = text.trim().split_once(char::is_whitespace) else {
        return Err(format!("`{text}` is no event"));
    };
    let (wait, periodic) = match wait.trim().strip_prefix("every ") {
        Some(period) => (period, true),
        None => (wait, false),
    };
    let kops: u64 = kops
        .parse()
        .map_err(|_| format!("`{kops}` is no number of operations"))?;
    let wait: Duration = serde_json::from_value(wait.trim().into()).map_err(|e| e.to_string())?;
    Ok(Event {
        kops,
        wait_ns: wait.0,
        periodic,
    })
}

/// Problem of the sets, by the key in the file.
pub fn check(sets: &[Set], workers: Workers) -> Result<(), Invalid> {
    for (index, set) in sets.iter().enumerate() {
        let is_good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if set.name.is_empty() || !set.name.chars().all(is_good) {
            let what = format!(
                "`{}` is no name of a set: letters, digits, - and _",
                set.name
            );
            return Err(Invalid::new(format!("set.{index}.name"), what));
        }
        if sets[..index].iter().any(|other| other.name == set.name) {
            let what = format!("two sets are named `{}`", set.name);
            return Err(Invalid::new(format!("set.{index}.name"), what));
        }
        if set.events.iter().any(|event| event.kops == 0) {
            let what = "an event without work would be due again and again";
            return Err(Invalid::new(format!("set.{index}.events"), what));
        }
        if set.events.iter().any(|e| e.periodic && e.wait_ns == 0) {
            let what = "an event every 0s would be due again and again";
            return Err(Invalid::new(format!("set.{index}.events"), what));
        }
        if set
            .events
            .iter()
            .any(|event| (1..LEAST_WAIT_NS).contains(&event.wait_ns))
        {
            let what = "a wait below 1us is shorter than timers resolve";
            let invalid = Invalid::new(format!("set.{index}.events"), what);
            return Err(invalid.with_remedy("wait 1us or more, or 0s for work without a pause"));
        }
        if set
            .count
            .is_some_and(|count| !(1..=MOST_WORKERS).contains(&count))
        {
            let what = format!("`count` is from 1 to {MOST_WORKERS}; left out, it is the load");
            return Err(Invalid::new(format!("set.{index}.count"), what));
        }
        check_weights(index, set, workers)?;
        if !weight::NICE.contains(&set.nice) {
            let what = format!("nice {} is not in -20 to 19", set.nice);
            return Err(Invalid::new(format!("set.{index}.nice"), what));
        }
    }
    Ok(())
}

/// A weight of the kernel's scheduler is a nice value; guests have those of the hypervisor's.
fn check_weights(index: usize, set: &Set, workers: Workers) -> Result<(), Invalid> {
    let wrong = |key: &str, what: &str, remedy: &str| {
        Err(Invalid::new(format!("set.{index}.{key}"), what).with_remedy(remedy))
    };
    match workers {
        Workers::Threads if set.weight.is_some() || set.cap.is_some() => {
            let key = if set.weight.is_some() {
                "weight"
            } else {
                "cap"
            };
            let what = "workers that are threads have no weight or cap of a hypervisor";
            wrong(key, what, "workers = \"guests\", or a `nice` value")
        }
        Workers::Guests if set.nice != 0 => {
            let what =
                "workers that are guests are alone in their kernels, where nice does nothing";
            wrong("nice", what, "give the set a `weight`")
        }
        // xen/include/public/domctl.h
        Workers::Guests if set.weight.is_some_and(|w| !(1..=65_535).contains(&w)) => wrong(
            "weight",
            "a weight is 1 to 65535",
            "weight = 256 is the usual one",
        ),
        Workers::Guests if set.cap.is_some_and(|cap| cap > 100) => wrong(
            "cap",
            "a guest of one CPU has at most 100 % of one",
            "cap = 50",
        ),
        _ => Ok(()),
    }
}
