//! Policies as they are written, in a file and on the command line, and the rules of
//! sched_setattr(2) for them.

use crate::arm::ingredient::{Form, twice_error, value_of};
use load::Keys;
use load::units::{parse_duration, written_duration};
use model::{Arm, Class, Invalid, KeyDef, Policy, format_duration_ns};
use serde_json::{Map, Value};

/// EEVDF clamps a slice request to this range (kernel/sched/syscalls.c).
const SLICE_NS: std::ops::RangeInclusive<u64> = 100_000..=100_000_000;

pub const FORMS: &[Form] = &[
    (
        "other, batch, idle",
        "SCHED_OTHER, SCHED_BATCH, SCHED_IDLE for the workload's threads",
    ),
    (
        "fifo[:PRIO], rr[:PRIO]",
        "SCHED_FIFO, SCHED_RR at priority 1 to 99 (default 1)",
    ),
    (
        "deadline:RUNTIME/PERIOD",
        "SCHED_DEADLINE, also RUNTIME/DEADLINE/PERIOD: deadline:2ms/5ms",
    ),
    ("nice=N", "nice value, -20 to 19"),
    (
        "slice=TIME",
        "EEVDF slice request, 100us to 100ms (Linux 6.12)",
    ),
];

/// Keys of the table `policy`.
pub const POLICY_KEYS: &[KeyDef] = &[
    KeyDef::new(
        "class",
        "`other`, `batch`, `idle`, `fifo`, `rr` or `deadline`",
        "`other`",
        "Scheduling class.",
    ),
    KeyDef::new(
        "nice",
        "-20 to 19",
        "",
        "Nice value of `other` and `batch`.",
    ),
    KeyDef::new("priority", "1 to 99", "`1`", "Priority of `fifo` and `rr`."),
    KeyDef::new(
        "slice",
        "100us to 100ms",
        "",
        "EEVDF slice that `other` and `batch` ask for (Linux 6.12).",
    ),
    KeyDef::new(
        "runtime",
        "duration",
        "",
        "CPU time of `deadline` in each period.",
    ),
    KeyDef::new(
        "deadline",
        "duration",
        "the period",
        "Deadline within each period.",
    ),
    KeyDef::new(
        "period",
        "duration",
        "the deadline",
        "Period of `deadline`.",
    ),
];

/// The table `policy` of an arm or of a role.
pub fn read_policy(keys: &mut Keys) -> Option<Policy> {
    keys.table("policy", of_table)
}

fn of_table(keys: &mut Keys) -> Policy {
    let class = keys.get("class").unwrap_or(Class::Other);
    let realtime = matches!(class, Class::Fifo | Class::Rr);
    let (nice, priority) = (keys.get("nice"), keys.get("priority"));
    let (slice_ns, runtime_ns) = (keys.duration("slice"), keys.duration("runtime"));
    let (deadline, period) = (keys.duration("deadline"), keys.duration("period"));
    Policy {
        class,
        nice,
        priority: priority.or(realtime.then_some(1)),
        slice_ns,
        runtime_ns,
        deadline_ns: deadline.or(period),
        period_ns: period.or(deadline),
    }
}

/// The keys of the table `policy` that [`read_policy`] makes this one of.
pub fn write_policy(policy: &Policy) -> Map<String, Value> {
    let mut keys = Map::new();
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            keys.insert(key.to_owned(), value);
        }
    };
    let duration = |ns: Option<u64>| ns.map(|ns| written_duration(ns).into());
    set("class", Some(policy.class.name().into()));
    set("nice", policy.nice.map(Value::from));
    set("priority", policy.priority.map(Value::from));
    set("slice", duration(policy.slice_ns));
    set("runtime", duration(policy.runtime_ns));
    set("deadline", duration(policy.deadline_ns));
    set("period", duration(policy.period_ns));
    keys
}

/// `batch`, `fifo:5`, `nice=5`, `slice=1ms`; `None` for other changes.
pub fn parse(change: &str, arm: &mut Arm) -> Option<Result<(), Invalid>> {
    let (head, detail) = match change.split_once(':') {
        Some((head, detail)) => (head, Some(detail)),
        None => (change, None),
    };
    if let Some(class) = Class::ALL.into_iter().find(|c| c.name() == head) {
        return Some(set_class(arm, class, detail));
    }
    if let Some(text) = value_of(change, "nice") {
        return Some(set_nice(policy_of(arm), text));
    }
    let slice = value_of(change, "slice")?;
    Some(set_slice(policy_of(arm), slice))
}

fn set_nice(policy: &mut Policy, text: &str) -> Result<(), Invalid> {
    let not_one = |_| wrong(format!("`{text}` is not a nice value")).with_remedy("-20 to 19");
    let nice: i32 = text.parse().map_err(not_one)?;
    match policy.nice.replace(nice) {
        Some(first) => Err(twice_error("nice value", first, nice)),
        None => Ok(()),
    }
}

fn set_slice(policy: &mut Policy, text: &str) -> Result<(), Invalid> {
    let slice = parse_duration(text).map_err(wrong)?;
    match policy.slice_ns.replace(slice) {
        Some(first) => Err(twice_error("slice", format_duration_ns(first), text)),
        None => Ok(()),
    }
}

fn policy_of(arm: &mut Arm) -> &mut Policy {
    arm.policy.get_or_insert_with(|| Policy::new(Class::Other))
}

fn wrong(what: impl Into<String>) -> Invalid {
    Invalid::new("policy", what)
}

fn set_class(arm: &mut Arm, class: Class, detail: Option<&str>) -> Result<(), Invalid> {
    if let Some(first) = arm.policy.as_ref().filter(|policy| names_class(policy)) {
        return Err(twice_error("policy", first.class.name(), class.name()));
    }
    let mut policy = arm.policy.take().unwrap_or_else(|| Policy::new(class));
    policy.class = class;
    match (class, detail) {
        (Class::Fifo | Class::Rr, Some(priority)) => {
            policy.priority = Some(priority.parse().map_err(|_| {
                wrong(format!("`{priority}` is not a priority"))
                    .with_remedy("real-time priorities go from 1 to 99")
            })?);
        }
        (Class::Fifo | Class::Rr, None) => policy.priority = Some(1),
        (Class::Deadline, Some(times)) => set_deadline(&mut policy, times)?,
        (Class::Deadline, None) => {
            return Err(wrong("deadline needs its times")
                .with_remedy("write deadline:RUNTIME/PERIOD, such as deadline:2ms/5ms"));
        }
        (_, Some(detail)) => {
            return Err(wrong(format!(
                "`{}` takes nothing after a colon, but has `{detail}`",
                class.name()
            )));
        }
        (_, None) => {}
    }
    arm.policy = Some(policy);
    Ok(())
}

/// Did a change name the class? A nice value or a slice leaves it at `other`.
fn names_class(policy: &Policy) -> bool {
    policy.class != Class::Other || (policy.nice.is_none() && policy.slice_ns.is_none())
}

fn set_deadline(policy: &mut Policy, times: &str) -> Result<(), Invalid> {
    let times: Vec<u64> = times
        .split('/')
        .map(|t| parse_duration(t).map_err(wrong))
        .collect::<Result<_, _>>()?;
    let (runtime, deadline, period) = match times[..] {
        [runtime, period] => (runtime, period, period),
        [runtime, deadline, period] => (runtime, deadline, period),
        _ => {
            return Err(wrong(
                "deadline takes RUNTIME/PERIOD or RUNTIME/DEADLINE/PERIOD",
            ));
        }
    };
    policy.runtime_ns = Some(runtime);
    policy.deadline_ns = Some(deadline);
    policy.period_ns = Some(period);
    Ok(())
}

/// Settings that sched_setattr(2) would refuse, refused before anything is started.
pub fn check_policy(policy: &Policy) -> Result<(), Invalid> {
    let fair = matches!(policy.class, Class::Other | Class::Batch);
    let realtime = matches!(policy.class, Class::Fifo | Class::Rr);
    let class = policy.class.name();
    if let Some(nice) = policy.nice {
        if !fair {
            return Err(wrong(format!("`nice` has no meaning for `{class}`")));
        }
        if !(-20..=19).contains(&nice) {
            return Err(wrong(format!("nice {nice} is out of range")).with_remedy("-20 to 19"));
        }
    }
    if let Some(slice) = policy.slice_ns {
        if !fair {
            return Err(wrong(format!("`slice` has no meaning for `{class}`")));
        }
        if !SLICE_NS.contains(&slice) {
            return Err(
                wrong("the slice is out of range").with_remedy("the kernel takes 100us to 100ms")
            );
        }
    }
    match policy.priority {
        Some(p) if !realtime => Err(wrong(format!(
            "`priority` {p} has no meaning for `{class}`"
        ))),
        Some(p) if !(1..=99).contains(&p) => {
            Err(wrong(format!("priority {p} is out of range")).with_remedy("1 to 99"))
        }
        _ if policy.class == Class::Deadline => check_deadline(policy),
        _ if policy.runtime_ns.is_some()
            || policy.deadline_ns.is_some()
            || policy.period_ns.is_some() =>
        {
            Err(wrong(format!(
                "`runtime`, `deadline` and `period` have no meaning for `{class}`"
            ))
            .with_remedy("they belong to `deadline`; the EEVDF slice is `slice`"))
        }
        _ => Ok(()),
    }
}

/// sched_setattr(2): 1024 ns <= runtime <= deadline <= period < 2^63.
fn check_deadline(policy: &Policy) -> Result<(), Invalid> {
    let runtime = policy.runtime_ns.unwrap_or(0);
    let period = policy.period_ns.or(policy.deadline_ns).unwrap_or(0);
    let deadline = policy.deadline_ns.unwrap_or(period);
    if runtime >= 1024 && runtime <= deadline && deadline <= period {
        return Ok(());
    }
    Err(wrong("the times of `deadline` do not fit")
        .with_remedy("sched_setattr wants 1024ns <= runtime <= deadline <= period, and a runtime and a period must be given"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_key_of_a_policy_is_described() {
        let mut keys = Keys::new(serde_json::Map::new());
        of_table(&mut keys);
        let described: BTreeSet<&str> = POLICY_KEYS.iter().map(|key| key.name).collect();
        assert_eq!(described, keys.asked_keys().iter().copied().collect());
    }
}
