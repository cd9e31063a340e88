//! Arms that change the scheduling policy of threads. The policy is given to the threads
//! of its role as they are started ([`threads`]); there is nothing to undo, since they end
//! with the trial.

mod deadline;
mod keys;
mod realtime;
mod threads;

pub use keys::{POLICY_KEYS, check_policy, read_policy};
pub use threads::*;

use super::ingredient::{Around, At, Change, Form, Ingredient, problem, without_role};
use super::requirement::Asked;
use crate::roles;
use collect::tasks::Pid;
use load::Keys;
use model::{
    Arm, Class, Experiment, Fact, Invalid, KeyDef, Policy, Problem, Role, Severity, Warning,
    Workload, readings,
};
use serde_json::{Map, Value};
use std::path::Path;

pub struct ThreadPolicy;

impl Ingredient for ThreadPolicy {
    fn name(&self) -> &'static str {
        "policy"
    }

    fn keys(&self) -> &'static [KeyDef] {
        const {
            &[KeyDef::new(
                "policy",
                "table `policy`",
                "",
                "Scheduling policy of the threads of one role.",
            )]
        }
    }

    fn read(&self, keys: &mut Keys, arm: &mut Arm) {
        arm.policy = read_policy(keys);
    }

    fn write(&self, arm: &Arm, keys: &mut Map<String, Value>) {
        if let Some(policy) = &arm.policy {
            keys.insert("policy".to_owned(), keys::write_policy(policy).into());
        }
    }

    fn forms(&self) -> &'static [Form] {
        keys::FORMS
    }

    fn parse(&self, change: &str, arm: &mut Arm) -> Option<Result<(), Invalid>> {
        keys::parse(change, arm)
    }

    fn roles(&self) -> &'static [Role] {
        &Role::WITH_DAEMON
    }

    fn in_place(&self, _: &Arm) -> bool {
        true
    }

    /// The policy that threads start with is one to go back to.
    fn name_in_all(&self, arms: &mut [Arm], _: &Workload) {
        if arms.iter().all(|arm| arm.policy.is_none()) {
            return;
        }
        for arm in arms {
            let policy = arm.policy.get_or_insert_with(|| Policy::new(Class::Other));
            if matches!(policy.class, Class::Other | Class::Batch | Class::Ext) {
                policy.nice = policy.nice.or(Some(0));
            }
        }
    }

    fn check(&self, arm: &Arm, _: &Around) -> Result<(), Invalid> {
        arm.policy.as_ref().map_or(Ok(()), check_policy)
    }

    fn require(&self, root: &Path, arm: &Arm, workloads: &[Workload]) -> Vec<Problem> {
        let Some(wanted) = &arm.policy else {
            return Vec::new();
        };
        let mut problems: Vec<Problem> = try_policy(root, arm, wanted).into_iter().collect();
        problems.extend(without_role(arm, "policy", workloads));
        let deadlines = workloads.iter();
        problems.extend(deadlines.filter_map(|w| check_deadline(root, arm, wanted, w)));
        problems
    }

    fn asked_facts(&self, arm: &Arm) -> Vec<Asked> {
        let parts = arm
            .policy
            .iter()
            .flat_map(|p| with_defaults(p).named_values());
        parts
            .map(|(what, value)| Asked::of_role(&arm.to, what, value))
            .collect()
    }

    fn make_change<'a>(&self, arm: &'a Arm, _: &'a Workload) -> Option<Box<dyn Change + 'a>> {
        Some(Box::new(OfThreads { arm }))
    }
}

struct OfThreads<'a> {
    arm: &'a Arm,
}

impl OfThreads<'_> {
    /// The policy of a role, where the arm has one for it.
    fn of_role(&self, role: &Role) -> Option<&Policy> {
        self.arm.policy.as_ref().filter(|_| self.arm.to == *role)
    }
}

fn with_remedy(error: PolicyError) -> String {
    format!("{error}; {}", error.remedy())
}

impl Change for OfThreads<'_> {
    /// Other roles start as they are and get ready under their own policy.
    fn before_exec(&self, _: &Path, role: &Role, pid: Pid) -> Result<(), String> {
        match self.of_role(role).filter(|_| *role == Role::Load) {
            Some(policy) => apply_before_exec(pid, policy).map_err(with_remedy),
            None => Ok(()),
        }
    }

    fn equip_threads(&self, root: &Path, role: &Role, leader: Pid) -> Result<(), String> {
        let policy = self.of_role(role);
        let given = policy.map_or(Ok(0), |policy| apply_to_tree(root, leader, policy));
        given.map(drop).map_err(with_remedy)
    }

    /// A thread with a deadline may not start others that have it, too.
    fn must_follow_threads(&self, role: &Role) -> bool {
        let policy = self.of_role(role);
        policy.is_some_and(|policy| policy.class == Class::Deadline)
    }

    fn is_realtime(&self, role: &Role) -> bool {
        let policy = self.of_role(role);
        policy.is_some_and(|policy| matches!(policy.class, Class::Fifo | Class::Rr))
    }

    fn facts(&self, at: &At) -> Vec<Fact> {
        readings::policy_facts(at.policies)
    }

    fn warnings(&self, root: &Path) -> Vec<Warning> {
        grouped_by_session(root, self.arm).into_iter().collect()
    }
}

/// Warning that a nice value counts only inside a session while autogroup is on: the workload is a session of
/// its own (sched(7), "The autogroup feature").
fn grouped_by_session(root: &Path, arm: &Arm) -> Option<Warning> {
    let path = root.join("proc/sys/kernel/sched_autogroup_enabled");
    let is_on = collect::read_number::<u32>(&path) == Some(1);
    let nice = arm.policy.as_ref()?.nice?;
    (is_on && nice != 0).then(|| Warning {
        severity: Severity::Caution,
        what: format!(
            "{}: the kernel groups tasks by session (kernel.sched_autogroup_enabled = 1), so the nice value of \
             the workload does not count against other sessions",
            arm.name
        ),
        remedy: "add the tunable autogroup = \"off\" to every arm".to_owned(),
    })
}

/// Warnings that trials on this machine will give, as far as they are known before the first one.
pub fn foreseen_warnings(root: &Path, experiment: &Experiment) -> Vec<Warning> {
    let arms = experiment.arms.iter();
    let as_it_is = arms.filter(|arm| !arm.tunables.contains_key("autogroup"));
    as_it_is
        .filter_map(|arm| grouped_by_session(root, arm))
        .collect()
}

fn try_policy(root: &Path, arm: &Arm, wanted: &Policy) -> Option<Problem> {
    let fault = deadline::fault(root, arm).or_else(|| realtime::fault(root, arm, wanted));
    if let Some((what, remedy)) = fault {
        return Some(problem(arm, format!("policy {wanted}: {what}"), &remedy));
    }
    let error = try_on_this_machine(&deadline::to_try(root, wanted)).err()?;
    Some(problem(arm, error.to_string(), error.remedy()))
}

/// The part of a deadline policy that a role of the workload cannot have.
fn check_deadline(root: &Path, arm: &Arm, wanted: &Policy, workload: &Workload) -> Option<Problem> {
    if wanted.class != Class::Deadline {
        return None;
    }
    let object = |what: String| format!("policy {wanted}, workload {}: {what}", workload.name);
    let threads = roles::least_threads(workload, &arm.to);
    if let Some((what, remedy)) = deadline::overflow(root, arm, threads) {
        return Some(problem(arm, object(what), &remedy));
    }
    let tried = deadline::to_try(root, wanted);
    if try_on_this_machine(&tried).is_err() {
        // `try_policy` says so.
        return None;
    }
    let kept = roles::kept_to(workload, &arm.to).into_iter();
    let mut refused = kept.filter(|kept| is_refused_on(&tried, &kept.cpus));
    let key = refused.next()?.key;
    let what = format!(
        "the kernel gives a deadline policy only to threads that may run on all CPUs, and \
         {key} keeps them to some"
    );
    let remedy = "leave out these CPUs, or take another policy";
    Some(problem(arm, object(what), remedy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tests::tree;
    use model::{Observe, StopRule, TargetSpec};

    fn experiment(arms: Vec<Arm>) -> Experiment {
        Experiment {
            name: "x".to_owned(),
            question: None,
            seed: 1,
            target: TargetSpec::local(),
            arms,
            baseline: 0,
            workloads: vec![crate::fixture::command()],
            pause_ns: 0,
            stop: StopRule::default(),
            observe: Observe::default(),
            aa_arm: None,
        }
    }

    fn nice(value: i32, tunables: &[(&str, &str)]) -> Arm {
        let mut arm = Arm::unchanged("nice");
        arm.policy = Some(Policy {
            nice: Some(value),
            ..Policy::new(Class::Other)
        });
        let pairs = tunables.iter();
        arm.tunables = pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        arm
    }

    #[test]
    fn a_nice_value_that_autogroup_takes_away_is_foreseen() {
        let root = |on: &str| tree(&[("proc/sys/kernel/sched_autogroup_enabled", on)]);
        let said = |on: &str, arm: Arm| {
            let all = foreseen_warnings(
                root(on).path(),
                &experiment(vec![Arm::unchanged("default"), arm]),
            );
            all.into_iter().map(|w| w.what).collect::<Vec<_>>()
        };
        let warned = said("1\n", nice(5, &[]));
        assert_eq!(warned.len(), 1, "{warned:?}");
        assert!(warned[0].contains("does not count against other sessions"));
        let none: [&str; 0] = [];
        assert_eq!(said("1\n", nice(0, &[])), none);
        assert_eq!(said("1\n", nice(5, &[("autogroup", "off")])), none);
        assert_eq!(said("0\n", nice(5, &[])), none);
        assert_eq!(said("1\n", Arm::unchanged("other")), none);
    }
}
