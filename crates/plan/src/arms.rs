//! Arms as they are written on the command line: `batch`, `nice=5`,
//! `slice=0.3ms`, `base_slice=1ms`, `deadline:2ms/5ms`, `'scx_rusty --slice-us 5000'`;
//! several changes join with `+`, `NAME:=…` names the arm.

use crate::error::PlanError;
use load::units::{parse_duration, parse_percent};
use model::{Arm, Class, Policy, Scheduler};

/// EEVDF clamps a slice request to this range (kernel/sched/syscalls.c).
pub(crate) const SLICE_NS: std::ops::RangeInclusive<u64> = 100_000..=100_000_000;

/// The forms of an arm, for `schedlab list arms` and for errors.
pub const FORMS: &[(&str, &str)] = &[
    ("default", "nothing changed"),
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
    (
        "weight=N",
        "cgroup weight (cpu.weight) of the server of each workload, 1 to 10000",
    ),
    (
        "TUNABLE=VALUE",
        "a kernel tunable by logical name: base_slice=1ms, migration_cost=0.5ms",
    ),
    (
        "scx_NAME [ARGS]",
        "a sched_ext scheduler: 'scx_rusty --slice-us 5000'; a path works too",
    ),
    (
        "kernel=SOURCE",
        "another kernel, on a vm target: kernel=debian:trixie",
    ),
    (
        "handicap=N%",
        "extra work in each request of `wakeup`: a known effect, to test the judgement",
    ),
    ("A+B", "several changes together: batch+nice=5"),
    (
        "NAME:=ARM",
        "the arm under a name of its own: calm:=batch+nice=5",
    ),
];

/// An arm from its short form.
pub fn parse_arm(text: &str) -> Result<Arm, PlanError> {
    let (name, changes) = match text.split_once(":=") {
        Some((name, changes)) => (name.trim().to_owned(), changes),
        None => (short_name(text), text),
    };
    check_name(&name)?;
    let mut arm = Arm::unchanged(&name);
    for change in changes.split('+') {
        apply(&mut arm, change.trim()).map_err(|e| prefix(text, e))?;
    }
    Ok(arm)
}

fn prefix(text: &str, error: PlanError) -> PlanError {
    let message = format!("arm `{text}`: {error}");
    error.renamed(message)
}

/// The text itself; a scheduler without its path and arguments.
fn short_name(text: &str) -> String {
    let head = text.split([' ', ':']).next().unwrap_or(text);
    if head.starts_with("scx_") || head.contains('/') {
        return head.rsplit('/').next().unwrap_or(head).to_owned();
    }
    text.trim().to_owned()
}

/// Names stand in tables and in names of directories.
pub(crate) fn check_name(name: &str) -> Result<(), PlanError> {
    if name.trim().is_empty() {
        return Err(PlanError::new("an arm needs a name")
            .with_help("write NAME:=CHANGES, or leave out `:=`"));
    }
    if name.len() > 60 {
        return Err(PlanError::new(format!("`{name}` is not a usable name"))
            .with_help("use at most 60 printable characters"));
    }
    check_shows(name)
}

/// A name is what a reader sees of it.
pub(crate) fn check_shows(name: &str) -> Result<(), PlanError> {
    match name.contains(model::printable::is_hidden) {
        false => Ok(()),
        true => Err(PlanError::new(format!(
            "the name `{name}` has a character that does not show"
        ))
        .with_help("use printable characters only")),
    }
}

fn apply(arm: &mut Arm, change: &str) -> Result<(), PlanError> {
    let head = change.split([':', ' ']).next().unwrap_or(change);
    if change == "default" {
        return Ok(());
    }
    if change.starts_with("scx_") || head.contains('/') {
        arm.scheduler = Some(parse_scheduler(change)?);
        return Ok(());
    }
    if let Some(class) = Class::ALL.into_iter().find(|c| c.as_str() == head) {
        return set_class(arm, class, change.split_once(':').map(|(_, rest)| rest));
    }
    match change.split_once('=') {
        Some((key, value)) => set_value(arm, key.trim(), value.trim()),
        None => Err(unknown(change)),
    }
}

fn unknown(change: &str) -> PlanError {
    let known = ["default"].into_iter().chain(Class::ALL.map(Class::as_str));
    let help = match crate::nearest(change, known) {
        Some(near) => format!("did you mean `{near}`? `schedlab list arms` has all forms"),
        None => "`schedlab list arms` has all forms".to_owned(),
    };
    PlanError::new(format!("`{change}` is no policy, tunable or scheduler")).with_help(help)
}

fn parse_scheduler(text: &str) -> Result<Scheduler, PlanError> {
    let words = shlex::split(text)
        .ok_or_else(|| PlanError::new(format!("`{text}` has an open quotation mark")))?;
    let mut words = words.into_iter();
    let program = words
        .next()
        .ok_or_else(|| PlanError::new("the scheduler has no program"))?;
    Ok(Scheduler {
        program,
        args: words.collect(),
        attach_limit_ns: None,
    })
}

fn set_class(arm: &mut Arm, class: Class, detail: Option<&str>) -> Result<(), PlanError> {
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

fn set_value(arm: &mut Arm, key: &str, value: &str) -> Result<(), PlanError> {
    match key {
        "nice" => {
            let nice = value.parse().map_err(|_| {
                PlanError::new(format!("`{value}` is not a nice value")).with_help("-20 to 19")
            })?;
            policy_of(arm).nice = Some(nice);
        }
        "slice" => {
            policy_of(arm).slice_ns = Some(parse_duration(value).map_err(PlanError::new)?);
        }
        "weight" => {
            let weight = value.parse().map_err(|_| {
                PlanError::new(format!("`{value}` is not a weight")).with_help("1 to 10000")
            })?;
            arm.weight = Some(weight);
        }
        "kernel" => arm.kernel = Some(value.to_owned()),
        "handicap" => {
            arm.handicap_percent = parse_percent(value).map_err(PlanError::new)?;
        }
        _ if key.is_empty() || value.is_empty() => return Err(unknown(&format!("{key}={value}"))),
        _ => {
            arm.tunables.insert(key.to_owned(), value.to_owned());
        }
    }
    Ok(())
}

fn policy_of(arm: &mut Arm) -> &mut Policy {
    arm.policy.get_or_insert_with(|| Policy::new(Class::Other))
}

/// What `cpu.weight` of a cgroup takes.
pub(crate) fn check_weight(weight: u32) -> Result<(), PlanError> {
    if (1..=10_000).contains(&weight) {
        return Ok(());
    }
    Err(PlanError::new("a weight is 1 to 10000").with_help("weight = 100 is usual"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unnamed_arm_is_called_what_it_is() {
        assert_eq!(
            parse_arm("batch").map(|a| a.name).ok(),
            Some("batch".into())
        );
        let arm = parse_arm("scx_rusty --slice-us 5000").expect("parses");
        assert_eq!(arm.name, "scx_rusty");
        let scheduler = arm.scheduler.expect("has one");
        assert_eq!(scheduler.args, ["--slice-us", "5000"]);
    }

    #[test]
    fn several_changes_join_with_plus_and_may_have_a_name() {
        let arm = parse_arm("calm:=batch+nice=5+base_slice=1ms").expect("parses");
        assert_eq!(arm.name, "calm");
        let policy = arm.policy.expect("has one");
        assert_eq!((policy.class, policy.nice), (Class::Batch, Some(5)));
        assert_eq!(arm.tunables["base_slice"], "1ms");
    }

    #[test]
    fn deadline_takes_runtime_and_period() {
        let policy = parse_arm("deadline:2ms/5ms")
            .expect("parses")
            .policy
            .expect("has one");
        assert_eq!(policy.runtime_ns, Some(2_000_000));
        assert_eq!(policy.deadline_ns, Some(5_000_000));
        assert_eq!(policy.period_ns, Some(5_000_000));
        assert!(check_policy(&policy).is_ok());
    }

    #[test]
    fn a_weight_joins_with_other_changes() {
        let arm = parse_arm("weight=1000+nice=-5").expect("parses");
        assert_eq!(arm.weight, Some(1000));
        assert_eq!(arm.policy.and_then(|p| p.nice), Some(-5));
        assert!(parse_arm("weight=heavy").is_err());
    }

    #[test]
    fn a_misspelt_policy_is_answered_with_the_nearest() {
        let error = parse_arm("bathc").expect_err("is wrong");
        let help = miette::Diagnostic::help(&error)
            .expect("has help")
            .to_string();
        assert!(help.contains("`batch`"), "{help}");
    }

    #[test]
    fn what_the_kernel_would_refuse_is_refused_here() {
        for wrong in [
            "nice=20",
            "fifo:0",
            "rr:100",
            "slice=1us",
            "idle+nice=3",
            "deadline:5ms/2ms",
        ] {
            let arm = parse_arm(wrong).expect("parses");
            let policy = arm.policy.expect("has one");
            assert!(check_policy(&policy).is_err(), "{wrong}");
        }
    }
}
