//! Search for what the target lacks for an experiment, before the first trial.

use crate::arm::{scheduler, table};
use crate::collectors::events;
use crate::collectors::rare;
use crate::collectors::table::{COLLECTORS, find};
use crate::collectors::trace;
use crate::roles;
use load::Job;
use model::{Arm, Experiment, Load, Place, Problem, Side, Workload};
use std::path::Path;

/// Every problem, not only the first. Nothing is changed.
pub fn check(root: &Path, experiment: &Experiment, side: Side) -> Vec<Problem> {
    let is_apart = |workload: &&Workload| workload.load_on == Place::Controller;
    if side == Side::Controller {
        let loads = experiment.workloads.iter().filter(is_apart);
        let events = events::require(root, &experiment.observe.perf).into_iter();
        return loads.flat_map(check_workload).chain(events).collect();
    }
    let arms = experiment.arms.iter();
    let arms = arms.flat_map(|arm| check_arm(root, arm, &experiment.workloads));
    let workloads = experiment.workloads.iter().flat_map(|workload| {
        let mut problems = match side == Side::Target && is_apart(&workload) {
            true => Vec::new(),
            false => check_workload(workload),
        };
        problems.extend(roles::check(root, workload));
        problems
    });
    let collect = experiment.observe.collect.as_deref();
    let mut collectors = check_collectors(root, "experiment", collect);
    collectors.extend(check_trace(root, experiment));
    collectors.extend(rare::require(root, &experiment.observe.events));
    let mut problems: Vec<Problem> = Vec::new();
    for problem in collectors
        .into_iter()
        .chain(arms)
        .chain(events::require(root, &experiment.observe.perf))
        .chain(workloads)
        .chain(foreign_scheduler(root))
    {
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
    problems
}

fn check_arm(root: &Path, arm: &Arm, workloads: &[Workload]) -> Vec<Problem> {
    let mut problems = table::require(root, arm, workloads);
    problems.extend(roles::parts::require(root, arm, workloads));
    let object = format!("arm {}", arm.name);
    problems.extend(check_collectors(root, &object, arm.collect.as_deref()));
    problems
}

fn check_collectors(root: &Path, object: &str, named: Option<&[String]>) -> Vec<Problem> {
    let lacks = |name: &String| match find(name) {
        Some(def) => (def.missing)(root, scheduler::directories()),
        None => {
            let known: Vec<&str> = COLLECTORS.iter().map(|def| def.name).collect();
            let what = "there is no collector of that name".to_owned();
            Some((what, format!("use some of {}", known.join(", "))))
        }
    };
    let problem = |name: &String| {
        let (what, remedy) = lacks(name)?;
        Some(Problem {
            object: object.to_owned(),
            what: format!("collect {name}: {what}"),
            remedy,
        })
    };
    named
        .iter()
        .copied()
        .flatten()
        .filter_map(problem)
        .collect()
}

/// Problems that keep this machine, or a workload, from a trace of its worst latency.
fn check_trace(root: &Path, experiment: &Experiment) -> Vec<Problem> {
    let Some(wanted) = &experiment.observe.trace else {
        return Vec::new();
    };
    let here = (trace::DEF.missing)(root, Vec::new()).map(|(what, remedy)| Problem {
        object: "experiment".to_owned(),
        what: format!("trace {}: {what}", wanted.words()),
        remedy,
    });
    here.into_iter().collect()
}

/// Someone else's scheduler would be in every arm.
fn foreign_scheduler(root: &Path) -> Option<Problem> {
    let state = collect::sched_ext::read(root)?;
    if state.state == "disabled" {
        return None;
    }
    Some(Problem {
        object: "target".to_owned(),
        what: format!("the sched_ext scheduler {} is in force already", state.ops),
        remedy: "stop it first".to_owned(),
    })
}

fn check_workload(workload: &Workload) -> Vec<Problem> {
    let loads = workload.list_loads();
    loads.flat_map(|load| check_load(&load)).collect()
}

fn check_load(workload: &Workload) -> Vec<Problem> {
    let driver = match load::driver(&workload.kind) {
        Ok(driver) => driver,
        Err(what) => {
            return vec![Problem {
                object: format!("workload {}", workload.name),
                what,
                remedy: "use the same schedlab here and where the experiment is from".to_owned(),
            }];
        }
    };
    let cpus = collect::machine::usable_cpus();
    let require = |load| driver.require(&Job::new(workload, load, cpus));
    let mut loads: Vec<Load> = workload.loads.iter().copied().map(known_load).collect();
    loads.dedup();
    loads.into_iter().flat_map(require).collect()
}

/// Load by which a workload can be checked before anything was measured: the rate that a share
/// means is not known, but how it is looked for is.
fn known_load(load: Load) -> Load {
    match load {
        Load::ShareOfMax(share) if share.by_trials => Load::RatePerSec(share.slo.from_per_sec),
        Load::ShareOfMax(share) => Load::MaxRate(share.slo),
        load => load,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::command;
    use ::tests::tree;
    use model::{Class, Policy, Role, Scheduler};

    const SYSCTL: &str = "proc/sys/kernel/sched_rr_timeslice_ms";

    fn scheduler() -> Arm {
        Arm {
            scheduler: Some(Scheduler {
                program: "scx_there_is_none".to_owned(),
                args: Vec::new(),
                attach_limit_ns: None,
                built_from: None,
            }),
            ..Arm::unchanged("none")
        }
    }

    fn remedies(problems: &[Problem]) -> String {
        problems
            .iter()
            .map(|p| format!("{}: {}\n", p.object, p.remedy))
            .collect()
    }

    #[test]
    fn an_arm_that_changes_nothing_has_no_problem() {
        assert_eq!(
            check_arm(tree(&[]).path(), &Arm::unchanged("default"), &[]),
            []
        );
    }

    #[test]
    fn a_weight_needs_a_cgroup_controller() {
        let arm = Arm {
            weight: Some(1000),
            ..Arm::unchanged("heavy")
        };
        let said = remedies(&check_arm(tree(&[]).path(), &arm, &[]));
        assert!(said.contains("arm heavy: mount it"), "{said}");
    }

    #[test]
    fn a_scheduler_needs_a_kernel_with_sched_ext_and_a_program() {
        let said = remedies(&check_arm(tree(&[]).path(), &scheduler(), &[]));
        assert!(said.contains("arm none: use a kernel >= 6.12"), "{said}");
        let install = "arm none: run: `schedlab scheduler install scx_there_is_none`";
        assert!(said.contains(install), "{said}");
    }

    #[test]
    fn a_foreign_scheduler_is_a_problem_of_the_target() {
        let root = tree(&[
            ("sys/kernel/sched_ext/state", "enabled\n"),
            ("sys/kernel/sched_ext/root/ops", "lavd\n"),
        ]);
        let problem = foreign_scheduler(root.path()).unwrap();
        assert!(problem.what.contains("lavd"), "{problem:?}");
        assert_eq!(foreign_scheduler(tree(&[]).path()), None);
    }

    #[test]
    fn tunables_and_policies_are_both_checked() {
        let mut arm = Arm::unchanged("wrong");
        arm.tunables
            .insert("rr_timeslice".to_owned(), "0".to_owned());
        arm.policy = Some(Policy {
            nice: Some(40),
            ..Policy::new(Class::Batch)
        });
        let problems = check_arm(tree(&[(SYSCTL, "100\n")]).path(), &arm, &[]);
        assert_eq!(problems.len(), 2);
        assert!(
            problems[0].what.contains("outside 1ms to 10s"),
            "{problems:?}"
        );
        assert!(problems[1].what.contains("nice 40"), "{problems:?}");
    }

    #[test]
    fn a_kind_that_is_not_known_here_is_a_problem() {
        let unknown = Workload::new(model::Kind::new("of-tomorrow"));
        let problems = check_workload(&unknown);
        assert_eq!(problems[0].what, "there is no workload `of-tomorrow`");
    }

    #[test]
    fn a_period_that_the_arms_own_tunable_admits_is_no_problem() {
        let root = tree(&[("proc/sys/kernel/sched_deadline_period_min_us", "100\n")]);
        let mut arm = Arm::unchanged("micro-quanta");
        arm.policy = Some(Policy {
            runtime_ns: Some(20_000),
            period_ns: Some(40_000),
            ..Policy::new(Class::Deadline)
        });
        let said = remedies(&check_arm(root.path(), &arm, &[]));
        assert!(said.contains("deadline_period_min_us"), "{said}");
        arm.tunables
            .insert("deadline_period_min_us".to_owned(), "40us".to_owned());
        let said = remedies(&check_arm(root.path(), &arm, &[]));
        assert!(!said.contains("deadline_period_min_us"), "{said}");
    }

    #[test]
    fn a_policy_for_a_role_that_is_not_there_is_a_problem() {
        let mut arm = Arm::unchanged("server");
        arm.policy = Some(Policy::new(Class::Batch));
        arm.to = Role::Server;
        let root = tree(&[]);
        let problems = check_arm(root.path(), &arm, &[command()]);
        let [problem] = problems.as_slice() else {
            panic!("{problems:?}");
        };
        assert!(problem.what.contains("role server"), "{problem:?}");
        assert!(problem.remedy.contains("leave out `to`"), "{problem:?}");
        arm.to = Role::Load;
        assert_eq!(check_arm(root.path(), &arm, &[command()]), []);
    }

    #[test]
    fn a_collector_that_nobody_knows_is_a_problem_with_those_that_there_are() {
        let named = ["delays".to_owned(), "delay".to_owned()];
        let problems = check_collectors(tree(&[]).path(), "experiment", Some(&named));
        let [problem] = problems.as_slice() else {
            panic!("{problems:?}");
        };
        assert!(problem.what.starts_with("collect delay: "), "{problem:?}");
        assert!(
            problem.remedy.contains("delays, work, distances"),
            "{problem:?}"
        );
    }
}
