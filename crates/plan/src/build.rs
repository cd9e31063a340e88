//! From what was written, in a file or on the command line, to a whole experiment.

use crate::arms::{check_policy, check_weight, parse_arm};
use crate::error::PlanError;
use crate::file::FileStop;
use crate::limits::check_quota;
use crate::workloads::{check_workload, command_workload, parse_workload};
use model::{Arm, Experiment, Kind, Role, Stop, TargetSpec, Workload};

/// What was written; gaps are filled by [`complete`].
pub(crate) struct Draft {
    pub name: String,
    pub question: Option<String>,
    pub seed: Option<u64>,
    pub target: TargetSpec,
    pub arms: Vec<Arm>,
    pub baseline: usize,
    pub workloads: Vec<Workload>,
    pub stop: FileStop,
    pub aa: bool,
}

/// An experiment without a file: the words of the command line.
#[derive(Debug, Default)]
pub struct Request {
    pub arms: Vec<String>,
    pub workloads: Vec<String>,
    /// A command after `--`, as one more workload.
    pub command: Vec<String>,
    /// `None`: this machine.
    pub target: Option<TargetSpec>,
    pub seed: Option<u64>,
    pub aa: bool,
}

/// The experiment that a command line means.
pub fn experiment_from_request(request: &Request) -> Result<Experiment, PlanError> {
    let mut arms: Vec<Arm> = Vec::new();
    for text in &request.arms {
        let arm = parse_arm(text)?;
        if arms.iter().any(|a| a.name == arm.name) {
            return Err(PlanError::new(format!("there are two arms `{}`", arm.name))
                .with_help("name one of them: NAME:=CHANGES"));
        }
        arms.push(arm);
    }
    let mut workloads = Vec::new();
    for text in &request.workloads {
        workloads.push(parse_workload(text)?);
    }
    if !request.command.is_empty() {
        workloads.push(command_workload(&request.command)?);
    }
    for arm in &mut arms {
        arm.to = usual_role(&workloads);
    }
    complete(Draft {
        name: arms
            .iter()
            .map(|a| a.name.as_str())
            .collect::<Vec<_>>()
            .join("-or-"),
        question: None,
        seed: request.seed,
        target: request.target.clone().unwrap_or(TargetSpec::Local),
        arms,
        baseline: 0,
        workloads,
        stop: FileStop::default(),
        aa: request.aa,
    })
}

/// Name of the arm that repeats the baseline.
const AA_ARM: &str = "A/A";

/// Whom the policy of an arm is for unless the arm says: the server, where every
/// workload has one, for its requests are what is judged; otherwise the load.
pub(crate) fn usual_role(workloads: &[Workload]) -> Role {
    match workloads.iter().all(|w| w.server.is_some()) && !workloads.is_empty() {
        true => Role::Server,
        false => Role::Load,
    }
}

/// Fill the gaps, and refuse what cannot be one experiment.
pub(crate) fn complete(draft: Draft) -> Result<Experiment, PlanError> {
    let mut arms = draft.arms;
    if arms.is_empty() {
        return Err(
            PlanError::new("there is no arm, so there is nothing to compare")
                .with_help("add [[arm]] with a name, or -a default -a batch"),
        );
    }
    if draft.workloads.is_empty() {
        return Err(
            PlanError::new("there is no workload, so there is nothing to measure")
                .with_help("add [[workload]] with a kind, or -w wakeup, or a command after --"),
        );
    }
    for arm in &arms {
        check_arm(arm, &draft.target, &draft.workloads)?;
    }
    draft.workloads.iter().try_for_each(check_workload)?;
    let aa_arm = draft.aa.then(|| AA_ARM.to_owned());
    if let Some(name) = &aa_arm {
        arms.push(Arm {
            name: name.clone(),
            ..arms[draft.baseline].clone()
        });
    }
    Ok(Experiment {
        name: draft.name,
        question: draft.question,
        seed: draft.seed.unwrap_or(1),
        target: draft.target,
        arms,
        baseline: draft.baseline,
        workloads: draft.workloads,
        stop: stop(&draft.stop)?,
        aa_arm,
    })
}

/// What one arm alone does not show.
pub(crate) fn check_arm(
    arm: &Arm,
    target: &TargetSpec,
    workloads: &[Workload],
) -> Result<(), PlanError> {
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
        check_quota(arm, workload).map_err(object)?;
    }
    if arm.kernel.is_some() && *target == TargetSpec::Local {
        return Err(object(
            PlanError::new("a kernel of its own needs a machine of its own")
                .with_help("use the target `vm`, or compare across reboots with two runs"),
        ));
    }
    if !(0.0..=1000.0).contains(&arm.handicap_percent) {
        return Err(object(PlanError::new("a handicap is 0% to 1000%")));
    }
    let wakeup_only = workloads.iter().all(|w| matches!(w.kind, Kind::Wakeup(_)));
    if arm.handicap_percent != 0.0 && !wakeup_only {
        return Err(object(
            PlanError::new("only the `wakeup` load can carry a handicap")
                .with_help("leave the other workloads out of this experiment"),
        ));
    }
    Ok(())
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

fn stop(file: &FileStop) -> Result<Stop, PlanError> {
    let stop = Stop {
        budget_ns: file.budget.map(|d| d.0),
        confidence: file.confidence.unwrap_or(0.95),
        smallest_effect: file.smallest_effect.map_or(0.02, |p| p.0 / 100.0),
        min_blocks: file.min_blocks.unwrap_or(3),
        max_blocks: file.max_blocks.unwrap_or(40),
        max_attempts: file.max_attempts.unwrap_or(3),
    };
    check_stop(&stop)?;
    Ok(stop)
}

/// What the rule of stopping needs; also for a stop changed on the command line.
pub fn check_stop(stop: &Stop) -> Result<(), PlanError> {
    if !(0.5..1.0).contains(&stop.confidence) {
        return Err(PlanError::new(format!(
            "a confidence of {} is out of range",
            stop.confidence
        ))
        .with_help("a fraction from 0.5 up to, but not including, 1: confidence = 0.95")
        .about("stop.confidence"));
    }
    if !(stop.smallest_effect > 0.0 && stop.smallest_effect < 1.0) {
        return Err(PlanError::new("the smallest effect is out of range")
            .with_help("above 0% and under 100%: smallest-effect = \"2%\"")
            .about("stop.smallest-effect"));
    }
    if stop.max_blocks == 0 || stop.min_blocks > stop.max_blocks || stop.max_blocks > 10_000 {
        return Err(PlanError::new(format!(
            "min-blocks = {} and max-blocks = {} do not fit",
            stop.min_blocks, stop.max_blocks
        ))
        .with_help("1 <= min-blocks <= max-blocks <= 10000")
        .about("stop.max-blocks"));
    }
    if stop.max_attempts == 0 {
        return Err(PlanError::new("max-attempts must be at least 1").about("stop.max-attempts"));
    }
    if stop.budget_ns == Some(0) {
        return Err(PlanError::new("a budget of 0 measures nothing")
            .with_help("budget = \"5m\"")
            .about("stop.budget"));
    }
    Ok(())
}
