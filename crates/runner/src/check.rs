//! Search for what keeps an experiment from running, before it runs.

use crate::RunError;
use crate::connection::Connection;
use crate::run::{boot, has_loads_apart};
use crate::trial::{TrialEnd, UnderWay};
use model::{
    Arm, Build, Calibration, Experiment, Kind, Load, Part, Problem, Side, TrialSpec, Workload,
};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use target::{Boot, Target};

/// Would this experiment run? Everything is looked at, every kernel of it booted, and every
/// scheduler attached once; afterwards all is as before. `None` when interrupted.
pub fn check(
    experiment: &Experiment,
    target: &mut dyn Target,
    controller: Option<&mut dyn Target>,
    build: &Build,
    interrupted: &AtomicBool,
    on_step: &mut dyn FnMut(&str),
) -> Result<Option<Vec<Problem>>, RunError> {
    let mut problems = target.check(experiment);
    if !problems.is_empty() {
        return Ok(Some(problems));
    }
    let mut side = Side::Both;
    if let Some(controller) = controller.filter(|_| has_loads_apart(experiment, target)) {
        side = Side::Target;
        let mut connection = Connection::open(controller, &Boot::default(), build)?;
        problems.extend(connection.check(experiment, Side::Controller)?);
    }
    let boots: BTreeSet<Boot> = experiment.arms.iter().map(boot).collect();
    for boot in boots {
        on_step(&target.opening(&boot));
        let mut connection = Connection::open(target, &boot, build)?;
        let experiment = only_arms_of(experiment, &boot);
        let missing = connection.check(&experiment, side)?;
        let fits = missing.is_empty();
        problems.extend(missing);
        for arm in experiment.arms.iter().filter(|_| fits) {
            match attach(arm, &mut connection, interrupted, on_step)? {
                Some(problem) => problems.extend(problem),
                None => return Ok(None),
            }
        }
    }
    problems.dedup();
    Ok(Some(problems))
}

/// The experiment with the arms that this boot is for.
pub(crate) fn only_arms_of(experiment: &Experiment, wanted: &Boot) -> Experiment {
    let arms = experiment.arms.iter().filter(|a| boot(a) == *wanted);
    Experiment {
        arms: arms.cloned().collect(),
        baseline: 0,
        ..experiment.clone()
    }
}

/// Puts the scheduler of an arm in force for a command that does nothing, and takes it back:
/// only then is it known whether this kernel loads it and whether it takes its arguments.
/// `None` when interrupted, otherwise the problem if there is one.
fn attach(
    arm: &Arm,
    connection: &mut Connection,
    interrupted: &AtomicBool,
    on_step: &mut dyn FnMut(&str),
) -> Result<Option<Option<Problem>>, RunError> {
    let Some(scheduler) = &arm.scheduler else {
        return Ok(Some(None));
    };
    let spec = TrialSpec {
        label: format!("check {}", arm.name),
        arm: Arm {
            scheduler: Some(scheduler.clone()),
            ..Arm::unchanged(&arm.name)
        },
        workload: Workload::new(Kind::new("command").with("argv", vec!["true"])),
        load: Load::One,
        calibration: Calibration::default(),
        part: Part::Whole,
        seed: 0,
        collect: Some(Vec::new()),
    };
    on_step(&format!("attaching {}", scheduler.program));
    let mut quiet = |_: &str| {};
    let mut trial = UnderWay::new(interrupted, &mut quiet);
    let ended = trial.whole(connection, spec);
    let why = match trial.end(ended)? {
        TrialEnd::Interrupted => return Ok(None),
        TrialEnd::Result { result, .. } => result.state.why().map(str::to_owned),
        TrialEnd::Lost { why, .. } => Some(why),
    };
    let program = &scheduler.program;
    Ok(Some(why.map(|what| Problem {
        object: format!("arm {}", arm.name),
        what,
        remedy: format!("correct its arguments (`{program} --help`), or use another version of it"),
    })))
}
