//! Arms as they are written on the command line: `batch`, `nice=5`,
//! `slice=0.3ms`, `base_slice=1ms`, `deadline:2ms/5ms`, `'scx_rusty --slice-us 5000'`;
//! several changes join with `+`, `NAME:=…` names the arm.

use crate::condition::Point;
use crate::error::PlanError;
use crate::grid;
use crate::name::check_name;
use crate::placement::check_weight;
use crate::policy::{FilePolicy, check_policy, policy_of, read_policy, set_class};
use crate::table::{Value, own_keys};
use crate::workload::kinds;
use ::target::Can;
use load::units::{Duration, Percent, parse_duration, parse_percent};
use model::{Arm, Class, Role, Scheduler, Workload};
use schedule::check_quota;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

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
    let help = match model::nearest(change, known) {
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

/// Whom the policy of an arm is for unless the arm says: the server, where every
/// workload has one, for its requests are what is judged; otherwise the load.
pub(crate) fn usual_role(workloads: &[Workload]) -> Role {
    match workloads.iter().all(Workload::is_served) && !workloads.is_empty() {
        true => Role::Server,
        false => Role::Load,
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FileArm {
    name: Spanned<String>,
    #[serde(default)]
    baseline: bool,
    policy: Option<Spanned<FilePolicy>>,
    to: Option<Role>,
    weight: Option<Spanned<u32>>,
    #[serde(default)]
    tunables: BTreeMap<String, Tunable>,
    scheduler: Option<String>,
    args: Option<Spanned<Vec<String>>>,
    attach_limit: Option<Duration>,
    kernel: Option<String>,
    handicap: Option<Percent>,
    collect: Option<Vec<String>>,
}

/// A tunable is written as text with its unit, as a bare number, or as a switch.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Tunable {
    Text(String),
    Number(i64),
    Switch(bool),
}

impl Tunable {
    fn into_text(self) -> String {
        match self {
            Tunable::Text(text) => text,
            Tunable::Number(number) => number.to_string(),
            Tunable::Switch(true) => "on".to_owned(),
            Tunable::Switch(false) => "off".to_owned(),
        }
    }
}

/// The arms and the index of the baseline: the first unless one says so.
pub(crate) fn read_arms(
    values: Vec<Value>,
    target: Can,
    workloads: &[Workload],
) -> Result<(Vec<Arm>, usize), PlanError> {
    let usual_role = usual_role(workloads);
    let mut arms: Vec<Arm> = Vec::new();
    let mut baseline = None;
    let mut points: Vec<(Point, Value)> = Vec::new();
    for value in values {
        points.extend(grid::expand(value)?);
    }
    for (point, value) in points {
        let span = value.span();
        let file: FileArm = own_keys(value, &grid::KEYS)?;
        let name_span = file.name.span();
        if arms.iter().any(|a| a.name == *file.name.get_ref()) {
            return Err(
                PlanError::new(format!("there are two arms `{}`", file.name.get_ref()))
                    .with_help("give each arm a name of its own")
                    .at(name_span),
            );
        }
        if file.baseline && baseline.replace(arms.len()).is_some() {
            return Err(PlanError::new("two arms say that they are the baseline").at(name_span));
        }
        let policy = file.policy.as_ref().map(Spanned::span);
        let weight = file.weight.as_ref().map(Spanned::span);
        let place = weight.or(policy).unwrap_or(span.clone());
        let mut arm = read_arm(file, &usual_role).map_err(|e| e.at(span))?;
        check_arm(&arm, target, workloads).map_err(|e| e.at(place))?;
        arm.grid = point;
        arms.push(arm);
    }
    Ok((arms, baseline.unwrap_or(0)))
}

fn read_arm(file: FileArm, usual_role: &Role) -> Result<Arm, PlanError> {
    let name = file.name.into_inner();
    check_name(&name)?;
    let policy = file.policy.map(read_policy).transpose()?;
    let scheduler = match (file.scheduler, file.args) {
        (Some(program), args) => Some(Scheduler {
            program,
            args: args.map(Spanned::into_inner).unwrap_or_default(),
            attach_limit_ns: file.attach_limit.map(|d| d.0),
        }),
        (None, Some(args)) => {
            return Err(PlanError::new("`args` without a `scheduler`").at(args.span()));
        }
        (None, None) => None,
    };
    let tunables = file.tunables.into_iter();
    Ok(Arm {
        name,
        policy,
        to: file.to.unwrap_or_else(|| usual_role.clone()),
        weight: file.weight.map(Spanned::into_inner),
        tunables: tunables.map(|(k, v)| (k, v.into_text())).collect(),
        scheduler,
        kernel: file.kernel,
        handicap_percent: file.handicap.map_or(0.0, |h| h.0),
        grid: Point::new(),
        collect: file.collect,
    })
}

/// What one arm alone does not show.
pub(crate) fn check_arm(arm: &Arm, target: Can, workloads: &[Workload]) -> Result<(), PlanError> {
    let object = |e: PlanError| {
        let message = format!("arm `{}`: {e}", arm.name);
        e.renamed(message)
    };
    if let Some(policy) = &arm.policy {
        check_policy(policy).map_err(object)?;
    }
    if let Some(weight) = arm.weight {
        check_weight(weight)
            .and_then(|()| has_servers(workloads))
            .map_err(object)?;
    }
    for workload in workloads {
        check_quota(arm, workload).map_err(|e| object(e.into()))?;
    }
    if arm.kernel.is_some() && !target.kernels {
        return Err(object(
            PlanError::new("a kernel of its own needs a machine of its own")
                .with_help("use the target `vm`, or compare across reboots with two runs"),
        ));
    }
    if !(0.0..=1000.0).contains(&arm.handicap_percent) {
        return Err(object(PlanError::new("a handicap is 0% to 1000%")));
    }
    if arm.handicap_percent != 0.0 && !workloads.iter().all(carries_handicap) {
        let able = kinds(|def| def.handicap).join("`, `");
        return Err(object(
            PlanError::new(format!("only the `{able}` load can carry a handicap"))
                .with_help("leave the other workloads out of this experiment"),
        ));
    }
    Ok(())
}

fn carries_handicap(workload: &Workload) -> bool {
    load::kind::find(workload.kind.name()).is_some_and(|def| def.handicap)
}

/// The weight of an arm is that of servers.
fn has_servers(workloads: &[Workload]) -> Result<(), PlanError> {
    match workloads.iter().find(|w| w.server.is_none()) {
        None => Ok(()),
        Some(without) => Err(PlanError::new(format!(
            "`weight` is the cgroup weight of the server, and the workload `{}` has no server",
            without.name
        ))
        .with_help("leave out the workload, or use nice = -5 in a policy instead of the weight")),
    }
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
