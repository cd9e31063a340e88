//! Sets of equal workers: what a worker burns and how long it waits.

use super::tally;
use super::{Workers, weight};
use load::Keys;
use load::units::Duration;
use model::Invalid;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Most workers of one set; more threads than this no machine starts in time.
const MOST_WORKERS: u64 = 100_000;
/// Timers of Linux cannot wait for less.
const LEAST_WAIT_NS: u64 = 1_000;
/// The memory that work without `memory` is on.
const LEAST_MEMORY: u64 = 64 << 10;
/// `cpu.weight` of a cgroup that nobody gives one (cgroup-v2.rst), and the most that it can be.
const USUAL_GROUP_WEIGHT: u32 = 100;
const MOST_GROUP_WEIGHT: u32 = 10_000;
/// Different placements of one load: the entitlements look at all that some of them have together.
const MOST_PLACEMENTS: usize = 8;

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

/// Problem of the sets, by the key in the file.
pub fn check(sets: &[Set], workers: Workers) -> Result<(), Invalid> {
    let in_groups = sets.iter().any(Set::asks_for_group);
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
        check_events(index, set)?;
        check_shape(index, sets, workers)?;
        if set
            .count
            .is_some_and(|count| !(1..=MOST_WORKERS).contains(&count))
        {
            let what = format!("`count` is from 1 to {MOST_WORKERS}; left out, it is the load");
            return Err(Invalid::new(format!("set.{index}.count"), what));
        }
        check_weights(index, set, workers, in_groups)?;
        if !weight::NICE.contains(&set.nice) {
            let what = format!("nice {} is not in -20 to 19", set.nice);
            return Err(Invalid::new(format!("set.{index}.nice"), what));
        }
    }
    if !sets.iter().any(Set::is_judged) {
        let what = "all sets are antagonists, so there is nothing to judge";
        return Err(Invalid::new("set", what).with_remedy("leave out the `role` of one of them"));
    }
    let placements: BTreeSet<&String> = sets.iter().filter_map(|set| set.cpus.as_ref()).collect();
    match placements.len() > MOST_PLACEMENTS {
        true => {
            let what = format!("the sets have more than {MOST_PLACEMENTS} different `cpus`");
            Err(Invalid::new("set", what).with_remedy("give some sets the same CPUs"))
        }
        false => Ok(()),
    }
}

/// Ten thousand CPUs, which no machine of today has.
const MOST_QUOTA_PERCENT: f64 = 1e6;
/// Work of one piece that takes a minute, at about a microsecond for a thousand operations.
const MOST_KOPS: u64 = 60_000_000;

fn check_events(index: usize, set: &Set) -> Result<(), Invalid> {
    let wrong = |what: &str, remedy: &str| {
        let invalid = Invalid::new(format!("set.{index}.events"), what);
        Err(match remedy {
            "" => invalid,
            remedy => invalid.with_remedy(remedy),
        })
    };
    for event in &set.events {
        if event.kops == 0 || event.pieces == 0 {
            return wrong("an event without work would be due again and again", "");
        }
        if event.kops > MOST_KOPS {
            let what = format!(
                "an event of {} thousand operations takes more than a minute, in one piece",
                event.kops
            );
            return wrong(
                &what,
                "smaller events, which are due again after a wait of 0s",
            );
        }
        if event.wait_ns == 0 && event.when == When::Every {
            return wrong("an event every 0s would be due again and again", "");
        }
        if (1..LEAST_WAIT_NS).contains(&event.wait_ns) {
            let remedy = "wait 1us or more, or 0s for work without a pause";
            return wrong("a wait below 1us is shorter than timers resolve", remedy);
        }
        match (&set.after, event.when) {
            (None, When::HandedOver) => {
                return wrong(
                    "an event without a wait is due when another set hands over, and this set is \
                     after none",
                    "\"70 200us\", or `after` with the name of a set",
                );
            }
            (Some(front), when) if when != When::HandedOver => {
                let what =
                    format!("its events are due when {front} hands over, so they have no wait");
                return wrong(&what, "\"70\"");
            }
            (_, When::Every) if set.cycle.is_some() => {
                return wrong(
                    "an event at fixed times is due in `off` too",
                    "leave out on and off",
                );
            }
            _ => {}
        }
    }
    check_periods(index, set)
}

/// Refuses events at fixed times that no worker could end in time.
fn check_periods(index: usize, set: &Set) -> Result<(), Invalid> {
    let cpus = periodic_cpus(set);
    if cpus <= 1.0 {
        return Ok(());
    }
    let what = format!(
        "a worker of the set {} would need {cpus:.3} CPUs to end its events before they are due again, \
         and has one",
        set.name
    );
    let remedy = "longer periods, or fewer operations: a thousand take about a microsecond";
    Err(Invalid::new(format!("set.{index}.events"), what).with_remedy(remedy))
}

/// CPUs that the events at fixed times of one worker need.
fn periodic_cpus(set: &Set) -> f64 {
    let events = set.events.iter().filter(|e| e.when == When::Every);
    let need = events.map(|event| {
        let kops = event.kops.saturating_mul(event.pieces);
        kops.saturating_mul(tally::NS_PER_KOP) as f64 / event.wait_ns as f64
    });
    need.sum()
}

/// Cycle, pipeline, placement and memory of a set.
fn check_shape(index: usize, sets: &[Set], workers: Workers) -> Result<(), Invalid> {
    let set = &sets[index];
    let wrong = |key: &str, what: String, remedy: &str| {
        Err(Invalid::new(format!("set.{index}.{key}"), what).with_remedy(remedy))
    };
    if set
        .cycle
        .is_some_and(|c| c.on_ns < LEAST_WAIT_NS || c.off_ns < LEAST_WAIT_NS)
    {
        return wrong(
            "on",
            "`on` and `off` are 1us or longer".to_owned(),
            "on = \"50ms\"",
        );
    }
    if let Some(after) = &set.after {
        let front = sets[..index].iter().find(|set| set.name == *after);
        let Some(front) = front else {
            let what = format!("no set before this one is named `{after}`");
            return wrong("after", what, "name a set that is written above it");
        };
        if front.count != set.count {
            let what =
                format!("it has another number of workers than {after}, which hand over to them");
            return wrong("count", what, "give both the same `count`, or none");
        }
        if set.cycle.is_some() {
            let what = format!("its events are due when {after} hands over");
            return wrong("on", what, "leave out on and off");
        }
    }
    if let Some(Memory { bytes, percent }) = set.memory {
        if bytes < LEAST_MEMORY {
            let what = "less than 64 KiB of memory are in the caches anyway".to_owned();
            return wrong("memory", what, "memory = \"16MiB\"");
        }
        if !(1..=100).contains(&percent) {
            let what = "a part of the work is 1 to 100 percent".to_owned();
            return wrong("memory-percent", what, "memory-percent = 30");
        }
    }
    let of_threads = [
        ("after", set.after.is_some()),
        ("cpus", set.cpus.is_some()),
        ("memory", set.memory.is_some()),
    ];
    // Those that hand over to each other share memory.
    let (are, of_threads) = match workers {
        Workers::Threads => return Ok(()),
        Workers::Processes => ("processes", &of_threads[..1]),
        Workers::Guests => ("guests", &of_threads[..]),
    };
    match of_threads.iter().find(|(_, is_there)| *is_there) {
        Some((key, _)) => {
            let what = format!("workers that are {are} have no `{key}`");
            wrong(key, what, "leave it out, or use workers = \"threads\"")
        }
        None => Ok(()),
    }
}

fn is_no_list(cpus: &str) -> bool {
    model::parse_cpu_list(cpus).is_err()
}

/// Weights and limits that workers of this form have.
fn check_weights(
    index: usize,
    set: &Set,
    workers: Workers,
    in_groups: bool,
) -> Result<(), Invalid> {
    let wrong = |key: &str, what: &str, remedy: &str| {
        Err(Invalid::new(format!("set.{index}.{key}"), what).with_remedy(remedy))
    };
    if workers == Workers::Processes && set.nice != 0 && in_groups {
        let what = "nice counts within a cgroup only, and the workers of a set are equals";
        return wrong("nice", what, "leave it out, and give the sets a `weight`");
    }
    let has = [
        (
            "weight",
            set.weight.is_some(),
            &[Workers::Processes, Workers::Guests][..],
        ),
        ("quota", set.quota_percent.is_some(), &[Workers::Processes]),
        ("cap", set.cap.is_some(), &[Workers::Guests]),
        ("soft-cpus", set.soft_cpus.is_some(), &[Workers::Guests]),
        // A guest's worker is alone in its kernel, where nice does nothing.
        (
            "nice",
            set.nice != 0,
            &[Workers::Threads, Workers::Processes],
        ),
    ];
    let strange = has
        .iter()
        .find(|(_, is_there, of)| *is_there && !of.contains(&workers));
    if let Some((key, _, of)) = strange {
        let words: Vec<String> = of.iter().map(|of| format!("`{}`", of.name())).collect();
        let what = format!("`{key}` is for workers that are {}", words.join(" or "));
        let own = match (*key, workers) {
            ("nice", Workers::Guests) => "give the set a `weight`",
            ("weight", Workers::Threads) => "give the set a `nice` value",
            ("soft-cpus", _) => "give the set `cpus`",
            _ => "leave it out",
        };
        let remedy = format!("{own}, or use workers = \"{}\"", of[0].name());
        return wrong(key, &what, &remedy);
    }
    check_ranges(index, set, workers)
}

/// Values of those that it has.
fn check_ranges(index: usize, set: &Set, workers: Workers) -> Result<(), Invalid> {
    let wrong = |key: &str, what: &str, remedy: &str| {
        Err(Invalid::new(format!("set.{index}.{key}"), what).with_remedy(remedy))
    };
    match workers {
        Workers::Processes
            if set
                .weight
                .is_some_and(|w| !(1..=MOST_GROUP_WEIGHT).contains(&w)) =>
        {
            wrong(
                "weight",
                "the weight of a cgroup is 1 to 10000",
                "weight = 100 is the usual one",
            )
        }
        // xen/include/public/domctl.h
        Workers::Guests if set.weight.is_some_and(|w| !xen::WEIGHTS.contains(&w)) => wrong(
            "weight",
            "a weight is 1 to 65535",
            "weight = 256 is the usual one",
        ),
        Workers::Guests if set.cap.is_some_and(|cap| cap > 100) => wrong(
            "cap",
            "a guest of one CPU has at most 100 % of one",
            "cap = 50",
        ),
        Workers::Guests if set.soft_cpus.as_deref().is_some_and(is_no_list) => wrong(
            "soft-cpus",
            "it is not a list of CPUs of the Xen host",
            "soft-cpus = \"2-3\"",
        ),
        _ => Ok(()),
    }
}
