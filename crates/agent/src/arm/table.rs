//! The table of the ingredients of arms. To add one: its file, and a line here.
//!
//! Whatever else has to know about ingredients asks here: the reader of experiment files
//! and of the command line, the lists, the checks of an experiment, and each trial.

use super::ingredient::{Around, Ingredient};
use super::requirement::Asked;
use super::{
    built_in, cpus, daemon, env, handicap, hypervisor, kernel, policy, profile, quota, scheduler,
    tunables, uclamp, weight,
};
use load::registry::Registry;
use model::{Arm, Invalid, Problem, Workload};
use std::path::Path;

/// Ingredients in the order in which they are put in force. They are undone in reverse order. A
/// change on the command line is offered to them in reverse order, too, because any path may be a
/// scheduler, and any `NAME=VALUE` a tunable.
pub static INGREDIENTS: Registry<dyn Ingredient> = Registry::new(&[
    &tunables::Tuning,
    &scheduler::OwnScheduler,
    &built_in::BuiltIn,
    &profile::Profile,
    &policy::ThreadPolicy,
    &weight::RoleWeight,
    &cpus::RoleCpus,
    &quota::RoleQuota,
    &uclamp::Uclamp,
    &env::Environment,
    &kernel::OwnKernel,
    &hypervisor::HypervisorScheduler,
    &handicap::Handicap,
    &daemon::OfDaemon,
]);

/// Reads a change of the command line into an arm, and says whose it is; `None` if it is nobody's.
pub fn parse(change: &str, arm: &mut Arm) -> Option<Result<&'static dyn Ingredient, Invalid>> {
    let mut all = INGREDIENTS.iter().rev();
    all.find_map(|ingredient| Some(ingredient.parse(change, arm)?.map(|()| ingredient)))
}

/// Refuses an arm that no machine could put in force.
pub fn check(arm: &Arm, around: &Around) -> Result<(), Invalid> {
    let mut stored = arm.ingredients.keys();
    if let Some(name) = stored.find(|name| {
        INGREDIENTS
            .iter()
            .all(|known| known.name() != name.as_str())
    }) {
        let what = format!("this version has no ingredient `{name}`");
        return Err(Invalid::new(name, what)
            .with_remedy("use the schedlab that the experiment is from, or a newer one"));
    }
    INGREDIENTS
        .iter()
        .try_for_each(|ingredient| ingredient.check(arm, around))
}

/// All that an arm asks of the machine.
pub(crate) fn asked_facts(arm: &Arm) -> Vec<Asked> {
    let all = INGREDIENTS.iter();
    all.flat_map(|ingredient| ingredient.asked_facts(arm))
        .collect()
}

/// Problems of the target with an arm.
pub(crate) fn require(root: &Path, arm: &Arm, workloads: &[Workload]) -> Vec<Problem> {
    let all = INGREDIENTS.iter();
    all.flat_map(|ingredient| ingredient.require(root, arm, workloads))
        .collect()
}
