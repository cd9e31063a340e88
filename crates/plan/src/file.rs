//! The experiment file (TOML). Every error has its place in the file.

use crate::arm::{parse_arm_for, read_arms, usual_role};
use crate::build::{complete, with_aa};
use crate::error::PlanError;
use crate::event::FileEvent;
use crate::space::Tuning;
use crate::spread::Spread;
use crate::stop::FileStop;
use crate::table::{Places, Value, items, own_keys, take_key, take_kind};
use crate::target::target;
use crate::workload;
use load::units::Duration;
use model::{Experiment, Load, Observe, StopRule, TargetSpec, Tracing, Workload};
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// An experiment from the text of a file; `file_name` is for errors.
pub fn parse_experiment(file_name: &str, text: &str) -> Result<Experiment, PlanError> {
    parse_with_arms(file_name, text, &[])
}

/// An experiment with these arms in place of its own if there are any, in their short forms; the first
/// is the baseline.
pub fn parse_with_arms(
    file_name: &str,
    text: &str,
    arms: &[String],
) -> Result<Experiment, PlanError> {
    parse(file_name, text, arms).map_err(|e| e.in_file(file_name, text))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct FileExperiment {
    name: Option<String>,
    question: Option<String>,
    seed: Option<u64>,
    #[serde(default)]
    aa: bool,
    #[serde(default)]
    stop: FileStop,
    collect: Option<Vec<String>>,
    perf: Option<Vec<String>>,
    trace: Option<Spanned<String>>,
    event: Option<Vec<FileEvent>>,
    pause: Option<Duration>,
    /// Read by `read_tuning` alone: a run has the arms that it names.
    #[serde(rename = "tune")]
    _tune: Option<Tuning>,
    /// Read as the key of each workload that has none of its own.
    #[serde(rename = "in-place")]
    _in_place: Option<String>,
}

impl FileExperiment {
    /// Puts the keys that are there in place of those of the experiment.
    fn lay_over(self, experiment: &mut Experiment) -> Result<(), PlanError> {
        let events = self.event.map(|events| {
            let read = |event: FileEvent| event.into_event(&experiment.workloads);
            events.into_iter().map(read).collect::<Result<_, _>>()
        });
        let observe = &mut experiment.observe;
        set(&mut observe.events, events.transpose()?);
        set(&mut experiment.name, self.name);
        set(&mut experiment.question, self.question.map(Some));
        set(&mut experiment.seed, self.seed);
        set(&mut experiment.pause_ns, self.pause.map(|pause| pause.0));
        set(&mut observe.collect, self.collect.map(Some));
        set(&mut observe.perf, self.perf);
        set(
            &mut observe.trace,
            self.trace.map(tracing).transpose()?.map(Some),
        );
        self.stop.lay_over(&mut experiment.stop);
        Ok(())
    }
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

/// A key of the experiment and of a workload.
const IN_PLACE: &str = "in-place";

/// Tables that are taken out of the experiment before its own keys are read.
pub(crate) const TAKEN: [&str; 3] = ["target", "arm", "workload"];

/// The experiment of a text, or with these arms in place of its own.
pub(crate) fn parse(
    file_name: &str,
    text: &str,
    short_arms: &[String],
) -> Result<Experiment, PlanError> {
    let mut root = DeTable::parse(text)?;
    let span = root.span();
    let places = Places::of_table(root.get_ref());
    let target = take_key(root.get_mut(), "target").map(target).transpose()?;
    let arms = items(take_key(root.get_mut(), "arm"), "arm")?;
    let mut workloads = items(take_key(root.get_mut(), "workload"), "workload")?;
    give_each(&mut workloads, root.get_ref(), IN_PLACE);
    let rest = Value::new(span.clone(), DeValue::Table(root.into_inner()));
    let file: FileExperiment = own_keys(rest, &TAKEN)?;
    let workloads = read_workloads(workloads)?;
    let target = target.unwrap_or_else(TargetSpec::local);
    let (arms, baseline) = if short_arms.is_empty() {
        read_arms(arms, machines::find_abilities(&target)?, &workloads)?
    } else {
        let role = usual_role(&workloads);
        let arms = short_arms.iter().map(|text| parse_arm_for(text, &role));
        (arms.collect::<Result<_, _>>()?, 0)
    };
    let mut experiment = Experiment {
        name: stem(file_name),
        question: None,
        seed: 1,
        target,
        arms,
        baseline,
        workloads,
        stop: StopRule::default(),
        pause_ns: 0,
        observe: Observe::default(),
        aa_arm: None,
    };
    let aa = file.aa && short_arms.is_empty();
    file.lay_over(&mut experiment)?;
    complete(experiment, aa).map_err(|e| e.with_span(span.start..span.start).at_key(&places))
}

/// An experiment with the keys of this text in place of its own.
pub(crate) fn lay_over(mut experiment: Experiment, text: &str) -> Result<Experiment, PlanError> {
    let root = DeTable::parse(text)?;
    let places = Places::of_table(root.get_ref());
    let keys = Value::new(root.span(), DeValue::Table(root.into_inner()));
    let file: FileExperiment = own_keys(keys, &TAKEN)?;
    let aa = file.aa;
    file.lay_over(&mut experiment)?;
    let rule = experiment.stop.check();
    rule.map_err(|e| PlanError::from(e.in_table("stop")).at_key(&places))?;
    with_aa(experiment, aa)
}

/// The workloads of a text in which there is nothing else.
pub(crate) fn parse_workloads(text: &str) -> Result<Vec<Workload>, PlanError> {
    let mut root = DeTable::parse(text)?;
    read_workloads(items(take_key(root.get_mut(), "workload"), "workload")?)
}

/// Gives a key of the experiment to each workload that has none of this name.
fn give_each<'i>(workloads: &mut [Value<'i>], experiment: &DeTable<'i>, key: &str) {
    let mut keys = experiment.iter();
    let Some((name, value)) = keys.find(|(name, _)| name.get_ref() == key) else {
        return;
    };
    for workload in workloads {
        if let DeValue::Table(table) = workload.get_mut()
            && !table.keys().any(|own| own.get_ref() == key)
        {
            table.insert(name.clone(), value.clone());
        }
    }
}

fn tracing(text: Spanned<String>) -> Result<Tracing, PlanError> {
    let read = Tracing::parse(text.get_ref());
    read.map_err(|what| PlanError::new(what).with_span(text.span()))
}

fn stem(file_name: &str) -> String {
    let name = file_name.rsplit('/').next().unwrap_or(file_name);
    name.strip_suffix(".toml").unwrap_or(name).to_owned()
}

fn read_workloads(values: Vec<Value>) -> Result<Vec<Workload>, PlanError> {
    let mut workloads: Vec<Workload> = Vec::new();
    for value in values {
        let (span, places) = (value.span(), Places::from_value(&value));
        let read = read_workload(value).map_err(|e| e.with_span(span.clone()).at_key(&places))?;
        for workload in read {
            if workloads.iter().any(|w| w.name == workload.name) {
                return Err(
                    PlanError::new(format!("there are two workloads `{}`", workload.name))
                        .with_help("give one of them another `name`")
                        .with_span(span),
                );
            }
            workloads.push(workload);
        }
    }
    Ok(workloads)
}

/// Workloads of their own in which each part of this one is alone, where it asks for them.
fn baselines(of: &Workload) -> Result<Vec<Workload>, PlanError> {
    let driver = load::driver(&of.kind).map_err(PlanError::new)?;
    let baseline = |(part, kind)| Workload {
        name: format!("{} {part} alone", of.name),
        kind,
        loads: vec![Load::Count(1)],
        antagonists: Vec::new(),
        ..of.clone()
    };
    Ok(driver.baselines().into_iter().map(baseline).collect())
}

/// One table, which may be several workloads.
fn read_workload(mut value: Value) -> Result<Vec<Workload>, PlanError> {
    let kind = take_kind(
        &mut value,
        "workload",
        &workload::kinds(|_| true).join(", "),
    )?;
    let spread = Spread::take_keys(&mut value)?;
    let workload = workload::from_table(&kind, value)?;
    let mut workloads = baselines(&workload)?;
    workloads.extend(spread.expand_workload(workload)?);
    workloads.iter().try_for_each(workload::check_workload)?;
    Ok(workloads)
}
