//! Search for what keeps an experiment from running, before it runs.

use crate::RunError;
use crate::connection::{Connection, check_request};
use crate::network;
use crate::trial::{News, TrialEnd, UnderWay};
use doors::started::Agreed;
use machines::{Boot, Target};
use model::{
    Arm, Build, Experiment, Kind, Load, Observe, Place, Problem, Scheduler, Side, TrialSpec,
    Warning, Workload,
};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

/// Findings about a target.
#[derive(Debug, Default)]
pub struct Looked {
    /// Requirements that are not met.
    pub problems: Vec<Problem>,
    /// Warnings that its trials will give.
    pub foreseen: Vec<Warning>,
}

/// Would this experiment run? Everything is looked at, every kernel of it booted, and every
/// scheduler attached once; afterwards all is as before. When interrupted, some problems may
/// not have been found.
pub fn check_experiment(
    experiment: &Experiment,
    target: &mut dyn Target,
    controller: Option<&mut dyn Target>,
    attaches: Option<Agreed>,
    build: &Build,
    interrupted: &AtomicBool,
    on_step: &mut dyn FnMut(&str),
) -> Result<Looked, RunError> {
    let mut found = Looked {
        problems: target.check(experiment),
        foreseen: Vec::new(),
    };
    if !found.problems.is_empty() {
        return Ok(found);
    }
    let mut side = Side::Both;
    if let Some(controller) = controller.filter(|_| has_loads_apart(experiment, target)) {
        side = Side::Target;
        let mut connection = Connection::open(controller, &Boot::default(), build)?;
        let missing = connection.check_experiment(experiment, Side::Controller)?;
        found.problems.extend(missing);
    }
    // A check does not restart a real machine: its arms are looked at with the kernel that runs.
    let boots: BTreeSet<Boot> = match target.abilities().reboots {
        true => BTreeSet::from([Boot::default()]),
        false => experiment.arms.iter().map(needed_boot).collect(),
    };
    for boot in boots {
        on_step(&target.opening_step(&boot));
        let reboots = target.abilities().reboots;
        let ask = |connection: &mut Connection| {
            let experiment = match reboots {
                true => only_arms_of(experiment, &running(experiment, connection)?),
                false => only_arms_of(experiment, &boot),
            };
            let mut seen = connection.find_problems(&experiment, side)?;
            if side == Side::Target {
                seen.problems
                    .extend(network::find_obstacle(&experiment, connection)?);
            }
            Ok((experiment, seen))
        };
        let foreseen = [check_request(&only_arms_of(experiment, &boot), side)];
        let (mut connection, (experiment, seen)) =
            Connection::open_and_ask(target, &boot, build, &foreseen, ask)?;
        found.foreseen.extend(seen.foreseen);
        if !seen.problems.is_empty() {
            found.problems.extend(seen.problems);
            continue;
        }
        for arm in experiment.arms.iter().filter(|_| attaches.is_some()) {
            let Some(scheduler) = &arm.scheduler else {
                continue;
            };
            if interrupted.load(Ordering::Relaxed) {
                return Ok(found);
            }
            on_step(&format!("attaching {}", scheduler.program));
            let attached = attach(&arm.name, scheduler, &mut connection, interrupted)?;
            let is_lost = matches!(attached, Attached::Lost(_));
            found.problems.extend(attached.into_problem());
            // What an agent says later would be taken for the answer about the next arm.
            if is_lost {
                break;
            }
        }
    }
    found.problems.dedup();
    Ok(found)
}

/// The boot of the arms that can be looked at now: those of the kernel that runs, or those of the
/// first arm.
fn running(experiment: &Experiment, connection: &mut Connection) -> Result<Boot, RunError> {
    let release = Some(connection.probe_system(experiment)?.kernel_release);
    let mut arms = experiment.arms.iter();
    let arm = arms.find(|arm| arm.kernel == release);
    let arm = arm.or(experiment.arms.first());
    Ok(arm.map(needed_boot).unwrap_or_default())
}

/// Does a load of the experiment run on another machine than its services?
pub(crate) fn has_loads_apart(experiment: &Experiment, target: &dyn Target) -> bool {
    let mut workloads = experiment.workloads.iter();
    target.abilities().apart && workloads.any(|workload| workload.load_on == Place::Controller)
}

/// The boot that an arm needs.
pub(crate) fn needed_boot(arm: &Arm) -> Boot {
    Boot {
        kernel: arm.kernel.clone(),
    }
}

/// The experiment with the arms that this boot is for.
pub(crate) fn only_arms_of(experiment: &Experiment, wanted: &Boot) -> Experiment {
    let arms = experiment.arms.iter().filter(|a| needed_boot(a) == *wanted);
    Experiment {
        arms: arms.cloned().collect(),
        baseline: 0,
        ..experiment.clone()
    }
}

/// A trial that puts a scheduler in force for a command that does nothing, and takes it back:
/// only then is it known whether this kernel loads it and whether it takes its arguments.
fn attaching(arm: &str, scheduler: &Scheduler) -> TrialSpec {
    let attached = Arm {
        scheduler: Some(scheduler.clone()),
        ..Arm::unchanged(arm)
    };
    let workload = Workload::new(Kind::new("command").with_param("argv", vec!["true"]));
    TrialSpec {
        label: format!("check {arm}"),
        observe: Observe::nothing(),
        ..TrialSpec::new(attached, workload, Load::One)
    }
}

/// End of the attempt to attach a scheduler.
enum Attached {
    /// It was in force, or the check was interrupted.
    Good,
    /// It could not be put in force.
    Refused(Problem),
    /// Nothing is known of it: the agent is gone or silent.
    Lost(Problem),
}

impl Attached {
    fn into_problem(self) -> Option<Problem> {
        match self {
            Attached::Good => None,
            Attached::Refused(problem) | Attached::Lost(problem) => Some(problem),
        }
    }
}

fn attach(
    arm: &str,
    scheduler: &Scheduler,
    connection: &mut Connection,
    interrupted: &AtomicBool,
) -> Result<Attached, RunError> {
    let mut quiet = |_: News| false;
    let mut trial = UnderWay::new(interrupted, &mut quiet);
    let ended = trial.run_whole(connection, attaching(arm, scheduler));
    let problem = |what: String, remedy: String| Problem {
        object: format!("arm {arm}"),
        what,
        remedy,
    };
    Ok(match trial.finish_trial(ended)? {
        TrialEnd::Interrupted => Attached::Good,
        TrialEnd::Result { result, .. } => match result.state.why() {
            None => Attached::Good,
            Some(why) => Attached::Refused(problem(why.to_owned(), remedy(scheduler, why))),
        },
        TrialEnd::Lost { why, .. } => {
            let remedy = "check again; if it stays so, the scheduler makes its machine hang";
            Attached::Lost(problem(why, remedy.to_owned()))
        }
    })
}

/// What to do about a scheduler that does not attach. Arguments do not help where the kernel does not
/// load its program.
fn remedy(scheduler: &Scheduler, why: &str) -> String {
    if why.contains(Scheduler::DOES_NOT_LOAD) {
        return "use another version of it, or another kernel; `schedlab scheduler list` has the \
                versions that are installed, and the newest that was tried"
            .to_owned();
    }
    let program = &scheduler.program;
    format!("correct its arguments (`{program} --help`), or use another version of it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_no_remedy_where_the_kernel_does_not_load_a_scheduler() {
        let scheduler = Scheduler {
            program: "scx_some".to_owned(),
            args: Vec::new(),
            attach_limit_ns: None,
            built_from: None,
        };
        let refused =
            "scx_some 1.0.19 does not load on Linux 7.2.13: the verifier of the kernel refuses";
        let said = remedy(&scheduler, refused);
        assert!(said.starts_with("use another version"), "{said}");
        assert!(!said.contains("arguments"), "{said}");
        let usage =
            "attach scx_some: it ended with exit status: 2 before it was attached: error: x";
        assert!(remedy(&scheduler, usage).contains("scx_some --help"));
    }
}
