//! Where a role runs: the keys that servers, services and antagonists have in common.

use crate::error::PlanError;
use crate::table::{Value, keys_of, no_fault, own_keys, split};
use agent::arm::{check_policy, check_weight, read_policy};
use load::Keys;
use model::Placement;
use serde::Deserialize;

/// The table of a role: where it runs, what `read` makes of its keys, and the keys that are
/// left. (serde's `flatten` would lose the places of errors.)
pub(crate) fn read_role<'i, R, T: Deserialize<'i>>(
    mut role: Value<'i>,
    read: impl FnOnce(&mut Keys) -> R,
) -> Result<(Placement, R, T), PlanError> {
    let mut keys = keys_of(&role)?;
    let placement = placement(&mut keys);
    let read = read(&mut keys);
    split(&mut role, keys.asked_keys());
    let own = own_keys(role, keys.asked_keys())?;
    no_fault(keys)?;
    check_placement(&placement)?;
    Ok((placement, read, own))
}

pub(crate) fn placement(keys: &mut Keys) -> Placement {
    Placement {
        cpus: keys.get("cpus"),
        weight: keys.get("weight"),
        quota_percent: keys.percent("quota"),
        nice: keys.get("nice"),
        policy: read_policy(keys),
        memory_node: keys.get("memory-node"),
    }
}

pub(crate) fn check_placement(placement: &Placement) -> Result<(), PlanError> {
    check_cpus("cpus", placement.cpus.as_ref())?;
    placement.weight.map_or(Ok(()), check_weight)?;
    let quota = placement.quota_percent;
    if quota.is_some_and(|q| !(1.0..=1e6).contains(&q)) {
        return Err(PlanError::new("a quota is at least 1% of a CPU")
            .with_help("quota = \"50%\"")
            .about_key("quota"));
    }
    if placement.nice.is_some_and(|n| !(-20..=19).contains(&n)) {
        return Err(PlanError::new("a nice value is -20 to 19").about_key("nice"));
    }
    if placement.nice.is_some() && placement.policy.is_some() {
        return Err(PlanError::new("`nice` beside a `policy`")
            .with_help("write the nice value into the policy")
            .about_key("nice"));
    }
    Ok(placement.policy.as_ref().map_or(Ok(()), check_policy)?)
}

/// A list of CPUs, or a part of those that there are.
pub(crate) fn check_cpus(key: &str, list: Option<&String>) -> Result<(), PlanError> {
    match list.map(|list| model::choose_cpus(list, &[0])) {
        Some(Err(what)) => Err(PlanError::new(what).about_key(key)),
        _ => Ok(()),
    }
}
