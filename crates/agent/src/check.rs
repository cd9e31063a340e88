//! What the target lacks for an experiment, found out before the first trial.

use crate::arm::{deadline, policy, scheduler, tunables};
use crate::{collectors, roles};
use load::Job;
use model::{Arm, Class, Experiment, Problem, Role, Workload};
use std::path::Path;

/// Every problem, not only the first. Nothing is changed.
pub fn check(root: &Path, experiment: &Experiment) -> Vec<Problem> {
    let arms = experiment.arms.iter().flat_map(|arm| {
        let mut problems = check_arm(root, arm);
        problems.extend(check_role(arm, &experiment.workloads));
        let workloads = experiment.workloads.iter();
        problems.extend(workloads.filter_map(|w| check_deadline(root, arm, w)));
        problems
    });
    let workloads = experiment.workloads.iter().flat_map(|workload| {
        let mut problems = check_workload(workload);
        problems.extend(roles::check(root, workload));
        problems
    });
    let mut problems: Vec<Problem> = Vec::new();
    for problem in arms.chain(workloads).chain(foreign_scheduler(root)) {
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
    problems
}

fn check_arm(root: &Path, arm: &Arm) -> Vec<Problem> {
    let mut problems = Vec::new();
    problems.extend(arm.policy.as_ref().and_then(|p| check_policy(root, arm, p)));
    for error in tunables::check(root, &arm.tunables) {
        problems.push(problem(arm, error.to_string(), &error.remedy()));
    }
    let cgroup = arm.weight.and_then(|_| roles::cgroup::missing(root));
    problems.extend(cgroup.map(|(what, remedy)| problem(arm, what, &remedy)));
    problems.extend(check_scheduler(root, arm));
    for collector in arm.collect.iter().flatten() {
        if let Some((what, remedy)) =
            collectors::missing(root, *collector, scheduler::directories())
        {
            let what = format!("collect {}: {what}", collector.name());
            problems.push(problem(arm, what, &remedy));
        }
    }
    problems
}

fn problem(arm: &Arm, what: String, remedy: &str) -> Problem {
    Problem {
        object: format!("arm {}", arm.name),
        what,
        remedy: remedy.to_owned(),
    }
}

fn check_policy(root: &Path, arm: &Arm, wanted: &model::Policy) -> Option<Problem> {
    if let Some((what, remedy)) = deadline::fault(root, arm) {
        return Some(problem(arm, format!("policy {wanted}: {what}"), &remedy));
    }
    let error = policy::try_on_this_machine(&deadline::to_try(root, wanted)).err()?;
    Some(problem(arm, error.to_string(), error.remedy()))
}

/// The policy of an arm needs its role in every workload.
fn check_role(arm: &Arm, workloads: &[Workload]) -> Option<Problem> {
    arm.policy.as_ref()?;
    let (role, has): (_, fn(&Workload) -> bool) = match arm.to {
        Role::Load => return None,
        Role::Server => ("server", |w| w.server.is_some()),
        Role::Antagonist => ("antagonist", |w| !w.antagonists.is_empty()),
    };
    let without = workloads.iter().find(|w| !has(w))?;
    Some(problem(
        arm,
        format!(
            "its policy is for the role {role}, which the workload {} does not have",
            without.name
        ),
        "leave out `to`, and the policy goes to the load; or leave out the workload",
    ))
}

/// What of a deadline policy a role of the workload cannot have.
fn check_deadline(root: &Path, arm: &Arm, workload: &Workload) -> Option<Problem> {
    let wanted = arm.policy.as_ref();
    let wanted = wanted.filter(|p| p.class == Class::Deadline)?;
    let object = |what: String| format!("policy {wanted}, workload {}: {what}", workload.name);
    let threads = roles::least_threads(workload, &arm.to);
    if let Some((what, remedy)) = deadline::overflow(root, arm, threads) {
        return Some(problem(arm, object(what), &remedy));
    }
    let tried = deadline::to_try(root, wanted);
    if policy::try_on_this_machine(&tried).is_err() {
        // Told as such.
        return None;
    }
    let kept = roles::kept_to(workload, &arm.to).into_iter();
    let mut refused = kept.filter(|kept| policy::is_refused_on(&tried, &kept.cpus));
    let key = refused.next()?.key;
    Some(problem(
        arm,
        object(format!(
            "the kernel gives a deadline policy only to threads that may run on all CPUs, and \
             {key} keeps them to some"
        )),
        "leave out these CPUs, or take another policy",
    ))
}

fn check_scheduler(root: &Path, arm: &Arm) -> Vec<Problem> {
    let Some(wanted) = &arm.scheduler else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    if !collect::sched_ext::is_supported(root) {
        problems.push(problem(
            arm,
            format!("this kernel has no sched_ext for {}", wanted.program),
            "use a kernel >= 6.12 with CONFIG_SCHED_CLASS_EXT, or a VM: --vm debian:sid",
        ));
    }
    if scheduler::find(&wanted.program).is_none() {
        problems.push(problem(
            arm,
            format!("the scheduler {} was not found", wanted.program),
            "install it, for example with: schedlab scheduler install NAME, or give its path",
        ));
    }
    if !rustix::process::geteuid().is_root() {
        problems.push(problem(
            arm,
            format!("loading {} needs root", wanted.program),
            "run as root, or in a VM: --vm debian:sid",
        ));
    }
    problems
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
    let cpus = collect::system::usable_cpus();
    let require = |load: &model::Load| driver.require(&Job::new(workload, *load, cpus));
    workload.loads.iter().flat_map(require).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::tree;
    use model::{Policy, Scheduler};

    const SYSCTL: &str = "proc/sys/kernel/sched_rr_timeslice_ms";

    fn scheduler() -> Arm {
        Arm {
            scheduler: Some(Scheduler {
                program: "scx_there_is_none".to_owned(),
                args: Vec::new(),
                attach_limit_ns: None,
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
        assert_eq!(check_arm(tree(&[]).path(), &Arm::unchanged("default")), []);
    }

    #[test]
    fn a_weight_needs_a_cgroup_controller() {
        let arm = Arm {
            weight: Some(1000),
            ..Arm::unchanged("heavy")
        };
        let said = remedies(&check_arm(tree(&[]).path(), &arm));
        assert!(said.contains("arm heavy: mount it"), "{said}");
    }

    #[test]
    fn a_scheduler_needs_a_kernel_with_sched_ext_and_a_program() {
        let said = remedies(&check_arm(tree(&[]).path(), &scheduler()));
        assert!(said.contains("arm none: use a kernel >= 6.12"), "{said}");
        assert!(said.contains("arm none: install it"), "{said}");
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
        let problems = check_arm(tree(&[(SYSCTL, "100\n")]).path(), &arm);
        assert_eq!(problems.len(), 2);
        assert!(problems[0].what.contains("nice 40"), "{problems:?}");
        assert!(
            problems[1].what.contains("outside 1 to 10000"),
            "{problems:?}"
        );
    }

    fn workload() -> Workload {
        Workload::new(model::Kind::new("command").with("argv", vec!["true"]))
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
        let said = remedies(&check_arm(root.path(), &arm));
        assert!(said.contains("deadline_period_min_us"), "{said}");
        arm.tunables
            .insert("deadline_period_min_us".to_owned(), "40us".to_owned());
        let said = remedies(&check_arm(root.path(), &arm));
        assert!(!said.contains("deadline_period_min_us"), "{said}");
    }

    #[test]
    fn a_policy_for_a_role_that_is_not_there_is_a_problem() {
        let mut arm = Arm::unchanged("server");
        arm.policy = Some(Policy::new(Class::Batch));
        arm.to = Role::Server;
        let problem = check_role(&arm, &[workload()]).unwrap();
        assert!(problem.what.contains("role server"), "{problem:?}");
        assert!(problem.remedy.contains("leave out `to`"), "{problem:?}");
        arm.to = Role::Load;
        assert_eq!(check_role(&arm, &[workload()]), None);
    }
}
