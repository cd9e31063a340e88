//! From what a file says to a whole experiment.

use crate::check::check;
use crate::error::PlanError;
use crate::turns;
use model::{Arm, Experiment};

/// Name of the arm that repeats the baseline.
const AA_ARM: &str = "A/A";

/// Decides what was left open, and refuses what cannot be one experiment.
pub(crate) fn complete(mut experiment: Experiment, aa: bool) -> Result<Experiment, PlanError> {
    turns::choose(&mut experiment)?;
    check(&experiment)?;
    for workload in &mut experiment.workloads {
        if workload.metrics.is_empty() {
            workload.metrics = load::deciding_metrics(workload);
        }
    }
    with_aa(experiment, aa)
}

/// The baseline once more under another name, where that is asked for and it is not there already.
pub(crate) fn with_aa(mut experiment: Experiment, aa: bool) -> Result<Experiment, PlanError> {
    if !aa || experiment.aa_arm.is_some() {
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
