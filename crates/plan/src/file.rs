//! The experiment file (TOML). Every error has its place in the file.

use crate::arms::check_name;
use crate::build::{Draft, check_arm, complete, usual_role};
use crate::error::PlanError;
use crate::grid::{self, Point};
use crate::spread::Spread;
use crate::table::{Places, Value, items, take};
use crate::workloads;
use load::units::{Duration, Percent};
use model::{Arm, Class, Experiment, Policy, Role, Scheduler, TargetSpec, Workload};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use std::collections::BTreeMap;
use target::Can;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// An experiment from the text of a file; `file_name` is for errors.
pub fn parse_experiment(file_name: &str, text: &str) -> Result<Experiment, PlanError> {
    parse(file_name, text).map_err(|e| e.in_file(file_name, text))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FileExperiment {
    name: Option<String>,
    question: Option<String>,
    seed: Option<u64>,
    #[serde(default)]
    aa: bool,
    #[serde(default)]
    stop: FileStop,
    collect: Option<Vec<String>>,
    // Taken out before; named here so that the nearest key can be one of them.
    #[serde(default, rename = "target")]
    _target: Option<()>,
    #[serde(default, rename = "arm")]
    _arm: Option<()>,
    #[serde(default, rename = "workload")]
    _workload: Option<()>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct FileStop {
    pub budget: Option<Duration>,
    pub confidence: Option<f64>,
    pub smallest_effect: Option<Percent>,
    pub min_blocks: Option<u32>,
    pub max_blocks: Option<u32>,
    pub max_attempts: Option<u32>,
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
    // Taken out before (crate::grid); here for the nearest key.
    #[serde(rename = "for-each")]
    _for_each: Option<()>,
    #[serde(rename = "where")]
    _where: Option<()>,
    collect: Option<Vec<String>>,
}

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

fn parse(file_name: &str, text: &str) -> Result<Experiment, PlanError> {
    let mut root = DeTable::parse(text)?;
    let span = root.span();
    let places = Places::of_table(root.get_ref());
    let target = take(root.get_mut(), "target").map(target).transpose()?;
    let arms = items(take(root.get_mut(), "arm"), "arm")?;
    let workloads = items(take(root.get_mut(), "workload"), "workload")?;
    let file = FileExperiment::deserialize(root.into_deserializer())?;
    let workloads = read_workloads(workloads)?;
    let target = target.unwrap_or_else(TargetSpec::local);
    let (arms, baseline) = read_arms(arms, target::can(&target)?, &workloads)?;
    let draft = Draft {
        name: file.name.unwrap_or_else(|| stem(file_name)),
        question: file.question,
        seed: file.seed,
        target,
        arms,
        baseline,
        workloads,
        stop: file.stop,
        collect: file.collect,
        aa: file.aa,
    };
    complete(draft).map_err(|e| e.at(span.start..span.start).at_key(&places))
}

fn stem(file_name: &str) -> String {
    let name = file_name.rsplit('/').next().unwrap_or(file_name);
    name.strip_suffix(".toml").unwrap_or(name).to_owned()
}

/// The text of `kind`, taken out of a table.
fn take_kind(value: &mut Value, what: &str, known: &str) -> Result<String, PlanError> {
    let span = value.span();
    let missing = || {
        PlanError::new(format!("this {what} has no kind"))
            .with_help(format!("kind = one of {known}"))
            .at(span.clone())
    };
    let DeValue::Table(table) = value.get_mut() else {
        return Err(missing());
    };
    let kind = take(table, "kind").ok_or_else(missing)?;
    match kind.get_ref() {
        DeValue::String(kind) => Ok(kind.to_string()),
        _ => Err(missing()),
    }
}

fn target(mut value: Value) -> Result<TargetSpec, PlanError> {
    let (span, places) = (value.span(), Places::of(&value));
    let known: Vec<String> = target::TARGETS
        .iter()
        .map(|t| format!("{:?}", t.name))
        .collect();
    let kind = take_kind(&mut value, "target", &known.join(", "))?;
    let def = target::find(&kind).ok_or_else(|| {
        PlanError::new(format!("there is no target `{kind}`"))
            .with_help("`schedlab list targets` has all")
            .at(span.clone())
    })?;
    let read = (def.read)(value.into_deserializer());
    read.map_err(|e| PlanError::from(e).at(span).at_key(&places))
}

/// The arms and the index of the baseline: the first unless one says so.
fn read_arms(
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
        let file = FileArm::deserialize(value.into_deserializer())?;
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
    crate::arms::check_policy(&policy).map_err(|e| e.at(span))?;
    Ok(policy)
}

fn read_workloads(values: Vec<Value>) -> Result<Vec<Workload>, PlanError> {
    let mut workloads: Vec<Workload> = Vec::new();
    for value in values {
        let (span, places) = (value.span(), Places::of(&value));
        let read = read_workload(value).map_err(|e| e.at(span.clone()).at_key(&places))?;
        for workload in read {
            if workloads.iter().any(|w| w.name == workload.name) {
                return Err(
                    PlanError::new(format!("there are two workloads `{}`", workload.name))
                        .with_help("give one of them another `name`")
                        .at(span),
                );
            }
            workloads.push(workload);
        }
    }
    Ok(workloads)
}

/// One table, which may be several workloads.
fn read_workload(mut value: Value) -> Result<Vec<Workload>, PlanError> {
    let kind = take_kind(
        &mut value,
        "workload",
        &workloads::kinds(|_| true).join(", "),
    )?;
    let spread = Spread::take(&mut value)?;
    let workload = workloads::from_table(&kind, value)?;
    let workloads = spread.over(workload)?;
    workloads.iter().try_for_each(workloads::check_workload)?;
    Ok(workloads)
}
