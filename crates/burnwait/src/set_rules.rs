//! Rules for sets of workers.

use super::sets::{Memory, Set, When};
use super::{Workers, tally, weight};
use model::Invalid;
use std::collections::BTreeSet;

/// Most workers of one set; more threads than this no machine starts in time.
const MOST_WORKERS: u64 = 100_000;
/// Timers of Linux cannot wait for less.
const LEAST_WAIT_NS: u64 = 1_000;
/// The memory that work without `memory` is on.
const LEAST_MEMORY: u64 = 64 << 10;
/// Most that a `cpu.weight` can be (cgroup-v2.rst).
const MOST_GROUP_WEIGHT: u32 = 10_000;
/// Different placements of one load: the entitlements look at all that some of them have together.
const MOST_PLACEMENTS: usize = 8;

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
