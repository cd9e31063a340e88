//! Where a role runs: the keys that servers, services and antagonists have in common.

use crate::error::PlanError;
use crate::policy::{FilePolicy, check_policy, read_policy};
use crate::table::{Value, own_keys, split};
use load::units::Percent;
use model::Placement;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use toml::Spanned;

const KEYS: [&str; 6] = ["cpus", "weight", "quota", "nice", "policy", "memory-node"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FilePlacement {
    cpus: Option<String>,
    weight: Option<u32>,
    quota: Option<Percent>,
    nice: Option<i32>,
    policy: Option<Spanned<FilePolicy>>,
    memory_node: Option<u32>,
}

/// The table of a role: where it runs, and the keys of its own. (serde's `flatten` would
/// lose the places of errors.)
pub(crate) fn read_role<'i, T: Deserialize<'i>>(
    mut role: Value<'i>,
) -> Result<(Placement, T), PlanError> {
    let file = FilePlacement::deserialize(split(&mut role, &KEYS).into_deserializer())?;
    let own = own_keys(role, &KEYS)?;
    let placement = Placement {
        cpus: file.cpus,
        weight: file.weight,
        quota_percent: file.quota.map(|q| q.0),
        nice: file.nice,
        policy: file.policy.map(read_policy).transpose()?,
        memory_node: file.memory_node,
    };
    check_placement(&placement)?;
    Ok((placement, own))
}

pub(crate) fn check_placement(placement: &Placement) -> Result<(), PlanError> {
    check_cpus("cpus", placement.cpus.as_ref())?;
    placement
        .weight
        .map_or(Ok(()), check_weight)
        .map_err(|e| e.about("weight"))?;
    let quota = placement.quota_percent;
    if quota.is_some_and(|q| !(1.0..=1e6).contains(&q)) {
        return Err(PlanError::new("a quota is at least 1% of a CPU")
            .with_help("quota = \"50%\"")
            .about("quota"));
    }
    if placement.nice.is_some_and(|n| !(-20..=19).contains(&n)) {
        return Err(PlanError::new("a nice value is -20 to 19").about("nice"));
    }
    if placement.nice.is_some() && placement.policy.is_some() {
        return Err(PlanError::new("`nice` beside a `policy`")
            .with_help("write the nice value into the policy")
            .about("nice"));
    }
    placement.policy.as_ref().map_or(Ok(()), check_policy)
}

/// What `cpu.weight` of a cgroup takes.
pub(crate) fn check_weight(weight: u32) -> Result<(), PlanError> {
    if (1..=10_000).contains(&weight) {
        return Ok(());
    }
    Err(PlanError::new("a weight is 1 to 10000").with_help("weight = 100 is usual"))
}

/// A list of CPUs, or a part of those that there are.
pub(crate) fn check_cpus(key: &str, list: Option<&String>) -> Result<(), PlanError> {
    match list.map(|list| model::choose_cpus(list, &[0])) {
        Some(Err(what)) => Err(PlanError::new(what).about(key)),
        _ => Ok(()),
    }
}
