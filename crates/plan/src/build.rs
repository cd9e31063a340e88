//! From what a file says to a whole experiment.

use crate::check::check;
use crate::error::PlanError;
use crate::turns;
use model::{Arm, Experiment, Role};

/// Name of the arm that repeats the baseline.
const AA_ARM: &str = "A/A";

/// Decides what was left open, and refuses what cannot be one experiment.
pub(crate) fn complete(mut experiment: Experiment, aa: bool) -> Result<Experiment, PlanError> {
    address_arms(&mut experiment);
    turns::choose(&mut experiment)?;
    check(&experiment)?;
    for workload in &mut experiment.workloads {
        if workload.metrics.is_empty() {
            workload.metrics = load::deciding_metrics(workload);
            for co_runner in &mut workload.co_runners {
                co_runner.metrics = load::deciding_metrics(co_runner);
            }
        }
    }
    with_aa(experiment, aa)
}

/// Arms that are for the load, and so for nobody where the load only looks at a service that runs already,
/// are for that service.
fn address_arms(experiment: &mut Experiment) {
    let services = experiment.workloads.iter().map(|workload| {
        let driver = load::driver(&workload.kind).ok()?;
        driver.measured_daemon().cloned()
    });
    let services: Option<Vec<_>> = services.collect();
    let Some((first, others)) = services.as_deref().and_then(|all| all.split_first()) else {
        return;
    };
    if others.iter().any(|other| other != first) {
        return;
    }
    for arm in &mut experiment.arms {
        if arm.to == Role::Load && turns::changes_a_role(arm) {
            arm.to = Role::Daemon;
            arm.daemon = Some(first.clone());
        }
    }
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
