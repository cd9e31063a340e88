//! From what was written, in a file or on the command line, to a whole experiment.

use crate::arms::{check_policy, check_weight, parse_arm};
use crate::check::check;
use crate::error::PlanError;
use crate::file::FileStop;
use crate::limits::check_quota;
use crate::workloads::{command_workload, kinds, parse_workload};
use model::{Arm, Experiment, Role, Stop, TargetSpec, Workload};
use target::Can;

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
    pub collect: Option<Vec<String>>,
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
        target: request.target.clone().unwrap_or_else(TargetSpec::local),
        arms,
        baseline: 0,
        workloads,
        stop: FileStop::default(),
        collect: None,
        aa: request.aa,
    })
}

/// Name of the arm that repeats the baseline.
const AA_ARM: &str = "A/A";

/// Whom the policy of an arm is for unless the arm says: the server, where every
/// workload has one, for its requests are what is judged; otherwise the load.
pub(crate) fn usual_role(workloads: &[Workload]) -> Role {
    match workloads.iter().all(Workload::is_served) && !workloads.is_empty() {
        true => Role::Server,
        false => Role::Load,
    }
}

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
        collect: draft.collect,
        aa_arm: None,
    };
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
        check_quota(arm, workload).map_err(object)?;
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

fn stop(file: &FileStop) -> Stop {
    let max_blocks = file.max_blocks.unwrap_or(40);
    Stop {
        budget_ns: file.budget.map(|d| d.0),
        confidence: file.confidence.unwrap_or(0.95),
        smallest_effect: file.smallest_effect.map_or(0.02, |p| p.0 / 100.0),
        min_blocks: file.min_blocks.unwrap_or(3.min(max_blocks)),
        max_blocks,
        max_attempts: file.max_attempts.unwrap_or(3),
    }
}
