//! Scheduling policies: the keys of `policy`, the words of the command line, and the rules
//! of sched_setattr(2).

use crate::error::PlanError;
use load::units::{Duration, parse_duration};
use model::{Arm, Class, Policy};
use serde::Deserialize;
use toml::Spanned;

/// EEVDF clamps a slice request to this range (kernel/sched/syscalls.c).
const SLICE_NS: std::ops::RangeInclusive<u64> = 100_000..=100_000_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct FilePolicy {
    class: Option<Class>,
    nice: Option<i32>,
    priority: Option<u32>,
    slice: Option<Duration>,
    runtime: Option<Duration>,
    deadline: Option<Duration>,
    period: Option<Duration>,
}

pub(crate) fn read_policy(file: Spanned<FilePolicy>) -> Result<Policy, PlanError> {
    let span = file.span();
    let file = file.into_inner();
    let class = file.class.unwrap_or(Class::Other);
    let realtime = matches!(class, Class::Fifo | Class::Rr);
    let policy = Policy {
        class,
        nice: file.nice,
        priority: file.priority.or(realtime.then_some(1)),
        slice_ns: file.slice.map(|d| d.0),
        runtime_ns: file.runtime.map(|d| d.0),
        deadline_ns: file.deadline.or(file.period).map(|d| d.0),
        period_ns: file.period.or(file.deadline).map(|d| d.0),
    };
    check_policy(&policy).map_err(|e| e.at(span))?;
    Ok(policy)
}

pub(crate) fn set_class(
    arm: &mut Arm,
    class: Class,
    detail: Option<&str>,
) -> Result<(), PlanError> {
    let mut policy = arm.policy.take().unwrap_or_else(|| Policy::new(class));
    policy.class = class;
    match (class, detail) {
        (Class::Fifo | Class::Rr, Some(priority)) => {
            policy.priority = Some(priority.parse().map_err(|_| {
                PlanError::new(format!("`{priority}` is not a priority"))
                    .with_help("real-time priorities go from 1 to 99")
            })?);
        }
        (Class::Fifo | Class::Rr, None) => policy.priority = Some(1),
        (Class::Deadline, Some(times)) => set_deadline(&mut policy, times)?,
        (Class::Deadline, None) => {
            return Err(PlanError::new("deadline needs its times")
                .with_help("write deadline:RUNTIME/PERIOD, such as deadline:2ms/5ms"));
        }
        (_, Some(detail)) => {
            return Err(PlanError::new(format!(
                "`{}` takes nothing after a colon, but has `{detail}`",
                class.as_str()
            )));
        }
        (_, None) => {}
    }
    arm.policy = Some(policy);
    Ok(())
}

fn set_deadline(policy: &mut Policy, times: &str) -> Result<(), PlanError> {
    let times: Vec<u64> = times
        .split('/')
        .map(|t| parse_duration(t).map_err(PlanError::new))
        .collect::<Result<_, _>>()?;
    let (runtime, deadline, period) = match times[..] {
        [runtime, period] => (runtime, period, period),
        [runtime, deadline, period] => (runtime, deadline, period),
        _ => {
            return Err(PlanError::new(
                "deadline takes RUNTIME/PERIOD or RUNTIME/DEADLINE/PERIOD",
            ));
        }
    };
    policy.runtime_ns = Some(runtime);
    policy.deadline_ns = Some(deadline);
    policy.period_ns = Some(period);
    Ok(())
}

pub(crate) fn policy_of(arm: &mut Arm) -> &mut Policy {
    arm.policy.get_or_insert_with(|| Policy::new(Class::Other))
}

/// What sched_setattr(2) would refuse, refused before anything is started.
pub(crate) fn check_policy(policy: &Policy) -> Result<(), PlanError> {
    let fair = matches!(policy.class, Class::Other | Class::Batch);
    let realtime = matches!(policy.class, Class::Fifo | Class::Rr);
    let class = policy.class.as_str();
    if let Some(nice) = policy.nice {
        if !fair {
            return Err(PlanError::new(format!(
                "`nice` has no meaning for `{class}`"
            )));
        }
        if !(-20..=19).contains(&nice) {
            return Err(
                PlanError::new(format!("nice {nice} is out of range")).with_help("-20 to 19")
            );
        }
    }
    if let Some(slice) = policy.slice_ns {
        if !fair {
            return Err(PlanError::new(format!(
                "`slice` has no meaning for `{class}`"
            )));
        }
        if !SLICE_NS.contains(&slice) {
            return Err(PlanError::new("the slice is out of range")
                .with_help("the kernel takes 100us to 100ms"));
        }
    }
    match policy.priority {
        Some(p) if !realtime => Err(PlanError::new(format!(
            "`priority` {p} has no meaning for `{class}`"
        ))),
        Some(p) if !(1..=99).contains(&p) => {
            Err(PlanError::new(format!("priority {p} is out of range")).with_help("1 to 99"))
        }
        _ if policy.class == Class::Deadline => check_deadline(policy),
        _ if policy.runtime_ns.is_some()
            || policy.deadline_ns.is_some()
            || policy.period_ns.is_some() =>
        {
            Err(PlanError::new(format!(
                "`runtime`, `deadline` and `period` have no meaning for `{class}`"
            ))
            .with_help("they belong to `deadline`; the EEVDF slice is `slice`"))
        }
        _ => Ok(()),
    }
}

/// sched_setattr(2): 1024 ns <= runtime <= deadline <= period < 2^63.
fn check_deadline(policy: &Policy) -> Result<(), PlanError> {
    let runtime = policy.runtime_ns.unwrap_or(0);
    let period = policy.period_ns.or(policy.deadline_ns).unwrap_or(0);
    let deadline = policy.deadline_ns.unwrap_or(period);
    if runtime >= 1024 && runtime <= deadline && deadline <= period {
        return Ok(());
    }
    Err(PlanError::new("the times of `deadline` do not fit")
        .with_help("sched_setattr wants 1024ns <= runtime <= deadline <= period, and a runtime and a period must be given"))
}
