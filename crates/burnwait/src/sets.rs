//! Sets of equal workers: what a worker burns and how long it waits.

use load::Keys;
use load::units::Duration;
use model::Invalid;
use serde::{Deserialize, Serialize};

/// Ten thousand CPUs, which no machine of today has.
const MOST_QUOTA_PERCENT: f64 = 1e6;
/// `cpu.weight` of a cgroup that nobody gives one (cgroup-v2.rst).
const USUAL_GROUP_WEIGHT: u32 = 100;

/// Workers that all have these events. A trial has as many of each set as its load says, unless
/// the set says how many.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Set {
    /// Name of the set in the tables.
    pub name: String,
    /// Events of one worker, all of which are due at the start.
    pub events: Vec<Event>,
    /// Part that the workers have in the trial.
    #[serde(default, skip_serializing_if = "Part::is_load")]
    pub role: Part,
    /// Number of workers; `None`: the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Nice value of the workers.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub nice: i32,
    /// Weight of each worker's guest, where they are guests; of the cgroup of the set, where they are
    /// processes. `None`: the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// CPU time that all workers of the set together may use, where they are processes, in percent of
    /// one CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_percent: Option<u32>,
    /// Most that a worker's guest gets of one CPU, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<u32>,
    /// CPUs of the Xen host that a worker's guest prefers, as a list; `None`: it prefers none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soft_cpus: Option<String>,
    /// Times in which its events are due; `None`: always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycle: Option<Cycle>,
    /// Set whose workers hand over to those of this one, the first to the first; it is one of
    /// those before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// CPUs of the workers, as a list or a part; `None`: those of the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
    /// Work on memory beyond the caches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
}

/// Part of a set in a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Its workers are judged.
    #[default]
    Load,
    /// They are in the way of the others, take part in what everybody is entitled to, and are not
    /// judged.
    Antagonist,
}

impl Part {
    fn is_load(&self) -> bool {
        *self == Part::Load
    }
}

/// A worker's part of work that waits for memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Size of the memory of each worker.
    pub bytes: u64,
    /// Part of its work, in percent.
    pub percent: u64,
}

/// Times in which a worker's events are due and others in which they are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cycle {
    /// Length of the time in which they are due, which comes first.
    pub on_ns: u64,
    /// Length of the time in which they are not.
    pub off_ns: u64,
}

impl Cycle {
    /// Length of the whole.
    pub fn ns(self) -> u64 {
        self.on_ns.saturating_add(self.off_ns)
    }

    /// First time from `at_ns` on at which an event may be due, in cycles that begin at `first_ns`.
    pub fn next_due_ns(self, first_ns: u64, at_ns: u64) -> u64 {
        let place_ns = at_ns.saturating_sub(first_ns) % self.ns();
        match place_ns < self.on_ns {
            true => at_ns,
            false => at_ns.saturating_add(self.ns() - place_ns),
        }
    }
}

fn is_usual(nice: &i32) -> bool {
    *nice == 0
}

impl Set {
    /// Most that a worker gets of one CPU, whatever it wants.
    pub fn cpu_limit(&self) -> f64 {
        match self.cap {
            None | Some(0) => 1.0,
            Some(cap) => f64::from(cap) / 100.0,
        }
    }

    /// True if figures of its workers count in the metrics.
    pub fn is_judged(&self) -> bool {
        self.role.is_load()
    }

    /// True if its workers have to be in a cgroup of their own.
    pub fn asks_for_group(&self) -> bool {
        self.weight.is_some() || self.quota_percent.is_some()
    }

    /// Weight of its cgroup.
    pub fn group_weight(&self) -> u32 {
        self.weight.unwrap_or(USUAL_GROUP_WEIGHT)
    }

    /// Longest time from the start of the load until the first event of a worker is due: one wait,
    /// or one cycle.
    pub fn apart_ns(&self) -> u64 {
        let wait_ns = self.events.first().map_or(0, |event| event.wait_ns);
        self.cycle.map_or(wait_ns, |cycle| cycle.ns())
    }

    /// A set with nothing else asked for.
    pub fn new(name: impl Into<String>, events: Vec<Event>) -> Self {
        Set {
            name: name.into(),
            events,
            role: Part::Load,
            count: None,
            nice: 0,
            weight: None,
            quota_percent: None,
            cap: None,
            soft_cpus: None,
            cycle: None,
            after: None,
            cpus: None,
            memory: None,
        }
    }

    /// Place of the set that hands over to this one.
    pub fn front_set(&self, sets: &[Set]) -> Option<usize> {
        let after = self.after.as_ref()?;
        sets.iter().position(|set| set.name == *after)
    }
}

/// Work that is due again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Work of one piece in thousands of operations.
    pub kops: u64,
    /// Pieces that are due at the same time.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub pieces: u64,
    /// Time until it is due again, which `when` gives its meaning.
    pub wait_ns: u64,
    /// Rule by which it is due again.
    #[serde(default)]
    pub when: When,
}

/// Rules by which an event is due again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// Its wait after its work has ended.
    #[default]
    Waited,
    /// A time after its work has ended that is drawn evenly from 0 to twice its wait.
    Random,
    /// At fixed times; it is to end before the next of them.
    Every,
    /// When the worker of the set before hands over.
    HandedOver,
}

fn one() -> u64 {
    1
}

fn is_one(count: &u64) -> bool {
    *count == 1
}

impl Event {
    /// One piece of work, due again a wait after its end.
    pub fn with_wait(kops: u64, wait_ns: u64) -> Self {
        Event {
            kops,
            pieces: 1,
            wait_ns,
            when: When::Waited,
        }
    }
}

/// The two sets of the published experiments.
pub fn published_sets() -> Vec<Set> {
    let seven = [10, 20, 10, 10, 10, 10, 30].map(|kops| Event::with_wait(kops, 300_000));
    vec![
        Set::new("A", vec![Event::with_wait(70, 200_000)]),
        Set::new("B", seven.to_vec()),
    ]
}

/// `[[workload.set]]`.
pub fn read(keys: &mut Keys) -> Set {
    let name: Option<String> = keys.get("name");
    if name.is_none() {
        let missing = Invalid::new("", "a set needs its `name`");
        keys.refuse(missing.with_remedy("name = \"A\""));
    }
    let events = read_events(keys).unwrap_or_default();
    if events.is_empty() {
        let missing = Invalid::new("", "a set needs its `events`");
        keys.refuse(missing.with_remedy("events = [\"70 200us\"]"));
    }
    Set {
        role: keys.get("role").unwrap_or_default(),
        count: keys.get("count"),
        nice: keys.get("nice").unwrap_or_default(),
        weight: keys.get("weight"),
        quota_percent: quota(keys),
        cap: keys.get("cap"),
        soft_cpus: keys.get("soft-cpus"),
        cycle: cycle(keys),
        after: keys.get("after"),
        cpus: keys.get("cpus"),
        memory: memory(keys),
        ..Set::new(name.unwrap_or_default(), events)
    }
}

/// `events = ["70 200us"]`; `None` where the key is not there.
pub fn read_events(keys: &mut Keys) -> Option<Vec<Event>> {
    let words = keys.words("events")?;
    let mut events = Vec::new();
    for (index, word) in words.iter().enumerate() {
        match event(word) {
            Ok(event) => events.push(event),
            Err(what) => {
                keys.refuse(Invalid::new(format!("events.{index}"), what).with_remedy(
                    "an event is its thousands of operations and its wait, \"70 200us\", \
                     \"8x10 random 5ms\", or its period, \"70 every 10ms\"; alone, \"70\", in a set \
                     with `after`",
                ))
            }
        }
    }
    Some(events)
}

/// `quota = "50%"`, in whole percent.
fn quota(keys: &mut Keys) -> Option<u32> {
    let percent = keys.percent("quota")?;
    if percent.fract() != 0.0 || !(1.0..=MOST_QUOTA_PERCENT).contains(&percent) {
        let what =
            format!("a quota is 1 to {MOST_QUOTA_PERCENT} percent of one CPU, a whole number");
        let wrong = Invalid::new("quota", what);
        keys.refuse(wrong.with_remedy("quota = \"50%\""));
        return None;
    }
    u32::try_from(model::truncate_to_u64(percent)).ok()
}

/// `on = "50ms"` with `off = "150ms"`.
fn cycle(keys: &mut Keys) -> Option<Cycle> {
    match (keys.duration("on"), keys.duration("off")) {
        (Some(on_ns), Some(off_ns)) => Some(Cycle { on_ns, off_ns }),
        (None, None) => None,
        _ => {
            let alone = Invalid::new("on", "`on` and `off` belong together");
            keys.refuse(alone.with_remedy("on = \"50ms\" and off = \"150ms\""));
            None
        }
    }
}

/// `memory = "16MiB"` with `memory-percent = 30`.
fn memory(keys: &mut Keys) -> Option<Memory> {
    match (keys.size("memory"), keys.get("memory-percent")) {
        (Some(bytes), percent) => Some(Memory {
            bytes,
            percent: percent.unwrap_or(100),
        }),
        (None, None) => None,
        (None, Some(_)) => {
            let what = "`memory-percent` is a part of the work on `memory`";
            keys.refuse(Invalid::new("memory-percent", what).with_remedy("memory = \"16MiB\""));
            None
        }
    }
}

/// `70 200us`, `70 every 10ms`, `8x10 random 5ms`, `70`.
fn event(text: &str) -> Result<Event, String> {
    let (work, again) = match text.trim().split_once(char::is_whitespace) {
        None => (text.trim(), None),
        Some((work, again)) => (work, Some(again.trim())),
    };
    let number = |digits: &str| {
        let number: Result<u64, _> = digits.parse();
        number.map_err(|_| format!("`{digits}` is no number of operations"))
    };
    let (pieces, kops) = match work.split_once('x') {
        None => (1, number(work)?),
        Some((pieces, kops)) => (number(pieces)?, number(kops)?),
    };
    let (when, wait) = match again.map(|again| again.split_once(char::is_whitespace)) {
        None => (When::HandedOver, None),
        Some(Some(("every", period))) => (When::Every, Some(period)),
        Some(Some(("random", mean))) => (When::Random, Some(mean)),
        Some(_) => (When::Waited, again),
    };
    let wait = wait.map(|wait| serde_json::from_value::<Duration>(wait.trim().into()));
    let wait = wait.transpose().map_err(|e| e.to_string())?;
    Ok(Event {
        kops,
        pieces,
        wait_ns: wait.map_or(0, |wait| wait.0),
        when,
    })
}
