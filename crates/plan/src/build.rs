//! From what was written, in a file or on the command line, to a whole experiment.

use crate::arm::{parse_arm_for, usual_role};
use crate::check::check;
use crate::error::PlanError;
use crate::name::check_name;
use crate::stop::{FileStop, stop};
use crate::workload::of_words;
use crate::{target, turns, words};
use model::{Arm, Experiment, TargetSpec, Tracing, Workload};
use serde_json::{Map, Value};

/// Parts of an experiment as they were written; gaps are filled by [`complete`].
pub(crate) struct Draft {
    pub name: String,
    pub question: Option<String>,
    pub seed: Option<u64>,
    pub target: TargetSpec,
    pub arms: Vec<Arm>,
    pub baseline: usize,
    pub workloads: Vec<Workload>,
    pub stop: FileStop,
    pub pause_ns: u64,
    pub collect: Option<Vec<String>>,
    pub perf: Vec<String>,
    pub trace: Option<Tracing>,
    pub aa: bool,
}

/// An experiment without a file: the words of the command line.
#[derive(Debug, Default)]
pub struct CommandLine {
    /// Arms as after `-a`: `NAME:=CHANGES` or `CHANGES`. The first is the baseline.
    pub arms: Vec<String>,
    /// Workloads as after `-w`: a kind, with loads if wanted.
    pub workloads: Vec<String>,
    /// A command after `--`, as one more workload.
    pub command: Vec<String>,
    /// A command that runs before each trial of that one.
    pub prepare: Vec<String>,
    /// Metrics of the command as after `--metric`: `NAME=/REGEX/ higher`.
    pub metrics: Vec<String>,
    /// A server, as after `--server`: a kind, and its arguments if it takes some.
    pub server: Option<String>,
    /// Antagonists as after `--beside`, in the same form.
    pub beside: Vec<String>,
    /// Length of the window of every workload that has one, as after `--duration`.
    pub duration: Option<String>,
    /// Whether arms take turns inside one process, as after `--in-place`.
    pub in_place: Option<String>,
    /// Length of a window of arms that take turns, as after `--turn`.
    pub turn: Option<String>,
    /// Time before each window that does not count, as after `--washout`.
    pub washout: Option<String>,
    /// Events of `perf`, as after `--perf`.
    pub perf: Vec<String>,
    /// Keys of `[target]`; empty: this machine.
    pub target: Map<String, Value>,
    /// Seed of the run; `None` is 1.
    pub seed: Option<u64>,
    /// Adds an arm that repeats the baseline.
    pub aa: bool,
    /// Trace of each trial, as after `--trace`.
    pub trace: Option<Tracing>,
}

/// The experiment that a command line means.
pub fn parse_command_line(line: &CommandLine) -> Result<Experiment, PlanError> {
    let workloads = words::workloads(line)?;
    let workloads: Vec<Workload> = workloads.iter().map(of_words).collect::<Result<_, _>>()?;
    let role = usual_role(&workloads);
    let mut arms: Vec<Arm> = Vec::new();
    for text in &line.arms {
        let mut arm = parse_arm_for(text, &role)?;
        let twin = arms.iter().position(|other| other.name == arm.name);
        if let Some(twin) = twin {
            // The arguments tell two arms of one scheduler apart.
            for (arm, text) in [(&mut arms[twin], &line.arms[twin]), (&mut arm, text)] {
                if !text.contains(":=") {
                    arm.name = arm.summary();
                    check_name(&arm.name)?;
                }
            }
        }
        if arms.iter().any(|other| other.name == arm.name) {
            return Err(PlanError::new(format!("there are two arms `{}`", arm.name))
                .with_help("name one of them: NAME:=CHANGES"));
        }
        arms.push(arm);
    }
    let target = match line.target.is_empty() {
        true => TargetSpec::local(),
        false => words::read(&line.target, target::target)?,
    };
    complete(Draft {
        name: usual_name(&arms, &workloads),
        question: None,
        seed: line.seed,
        target,
        arms,
        baseline: 0,
        workloads,
        stop: FileStop::default(),
        pause_ns: 0,
        collect: None,
        perf: line.perf.clone(),
        trace: line.trace.clone(),
        aa: line.aa,
    })
}

/// Name of an experiment of the command line, `default-or-batch-wakeup`. The directory of its
/// results gets it, so it stays short.
fn usual_name(arms: &[Arm], workloads: &[Workload]) -> String {
    let arms: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
    let workloads: Vec<&str> = workloads.iter().map(|w| w.name.as_str()).collect();
    format!("{}-{}", short(&arms, "-or-"), short(&workloads, "-"))
}

/// The names; where they are long, the first of them and how many there are beside it.
fn short(names: &[&str], joint: &str) -> String {
    const LONGEST: usize = 40;
    let all = names.join(joint);
    match names {
        [first, _, ..] if all.len() > LONGEST => format!("{first}-and-{}-more", names.len() - 1),
        _ => all,
    }
}

/// Name of the arm that repeats the baseline.
const AA_ARM: &str = "A/A";

/// Fill the gaps, and refuse what cannot be one experiment.
pub(crate) fn complete(draft: Draft) -> Result<Experiment, PlanError> {
    let mut experiment = Experiment {
        name: draft.name,
        question: draft.question,
        seed: draft.seed.unwrap_or(1),
        target: draft.target,
        arms: draft.arms,
        baseline: draft.baseline,
        workloads: draft.workloads,
        stop: stop(&draft.stop),
        pause_ns: draft.pause_ns,
        collect: draft.collect,
        perf: draft.perf,
        trace: draft.trace,
        aa_arm: None,
    };
    turns::choose(&mut experiment)?;
    check(&experiment)?;
    for workload in &mut experiment.workloads {
        if workload.metrics.is_empty() {
            workload.metrics = load::deciding(workload);
        }
    }
    match draft.aa {
        true => with_aa(experiment),
        false => Ok(experiment),
    }
}

/// The experiment with other arms in their short forms, the first of which is the baseline.
pub fn with_arms(experiment: Experiment, arms: &[String]) -> Result<Experiment, PlanError> {
    let role = usual_role(&experiment.workloads);
    let arms = arms.iter().map(|text| parse_arm_for(text, &role));
    Ok(Experiment {
        arms: arms.collect::<Result<_, _>>()?,
        baseline: 0,
        aa_arm: None,
        ..experiment
    })
}

/// The baseline once more under another name, unless it is there already.
pub fn with_aa(mut experiment: Experiment) -> Result<Experiment, PlanError> {
    if experiment.aa_arm.is_some() {
        return Ok(experiment);
    }
    if experiment.arms.iter().any(|arm| arm.name == AA_ARM) {
        return Err(PlanError::new(format!(
            "an arm is called `{AA_ARM}`, and so is the one that repeats the baseline"
        ))
        .with_help("give your arm another name, or leave out `aa`"));
    }
    experiment.arms.push(Arm {
        name: AA_ARM.to_owned(),
        ..experiment.arms[experiment.baseline].clone()
    });
    experiment.aa_arm = Some(AA_ARM.to_owned());
    check(&experiment)?;
    Ok(experiment)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(arms: &[&str]) -> Result<Vec<String>, PlanError> {
        let line = CommandLine {
            arms: arms.iter().map(|arm| (*arm).to_owned()).collect(),
            workloads: vec!["wakeup".to_owned()],
            ..CommandLine::default()
        };
        let experiment = parse_command_line(&line)?;
        Ok(experiment.arms.into_iter().map(|arm| arm.name).collect())
    }

    #[test]
    fn the_name_says_what_is_compared_by_which_work_and_stays_short() {
        let name = |arms: &[&str], workloads: &[&str]| {
            let words = |all: &[&str]| all.iter().map(|word| (*word).to_owned()).collect();
            let line = CommandLine {
                arms: words(arms),
                workloads: words(workloads),
                command: words(&["/usr/bin/make", "-j4"]),
                ..CommandLine::default()
            };
            parse_command_line(&line).unwrap().name
        };
        let two = name(&["default", "batch"], &["wakeup:50%"]);
        assert_eq!(two, "default-or-batch-wakeup-make");
        let arms: Vec<String> = (1..=9)
            .map(|n| format!("arm number {n}:=nice={n}"))
            .collect();
        let arms: Vec<&str> = arms.iter().map(String::as_str).collect();
        let many = name(&arms, &["wakeup", "hackbench"]);
        assert_eq!(many, "arm number 1-and-8-more-wakeup-hackbench-make");
    }

    #[test]
    fn arms_of_one_scheduler_are_told_apart_by_their_arguments() {
        let five = "scx_rusty --greedy-threshold 5";
        let expected = [five, "scx_rusty"];
        assert_eq!(names(&[five, "scx_rusty"]).unwrap(), expected);
        assert_eq!(names(&["scx_rusty", five]).unwrap(), ["scx_rusty", five]);
        let six = "scx_rusty --greedy-threshold 6";
        let all = names(&["default", five, six]).unwrap();
        assert_eq!(all, ["default", five, six]);
        assert!(names(&["x:=batch", "x:=idle"]).is_err());
        assert!(names(&["batch", "batch"]).is_err());
    }
}
