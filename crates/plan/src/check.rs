//! What is no experiment that could run: one function for all, wherever they come from,
//! a file, a command line or the results of somebody else.
//!
//! Whatever reads a file looks at each table by itself too, with the functions of this
//! and of the other modules, so that the error is shown where the mistake is.

use crate::arms::{check_name, check_policy, check_shows, check_weight};
use crate::build::check_arm;
use crate::error::PlanError;
use crate::schedule::cells;
use crate::services::check_placeholders;
use crate::stack::check_services;
use crate::workloads::check_workload;
use model::check::{check_argv, check_count};
use model::{
    Antagonist, AntagonistProgram, Experiment, OpenLoopParams, Placement, Server, ServerProgram,
};
use std::collections::BTreeSet;

/// Everything that must hold of an experiment before anything is planned or started.
/// What the target lacks for it is not looked at.
pub fn check(experiment: &Experiment) -> Result<(), PlanError> {
    experiment.check()?;
    check_shows(&experiment.name).map_err(|e| e.about("name"))?;
    let target = target::can(&experiment.target)?;
    for arm in &experiment.arms {
        check_name(&arm.name)?;
        check_arm(arm, target, &experiment.workloads)?;
    }
    for workload in &experiment.workloads {
        let named = |e: PlanError| {
            let message = format!("workload `{}`: {e}", workload.name);
            e.renamed(message)
        };
        check_workload(workload).map_err(named)?;
        if let Some(server) = &workload.server {
            check_server(server).map_err(named)?;
        }
        check_services(&workload.services).map_err(named)?;
        check_antagonists(&workload.antagonists).map_err(named)?;
    }
    check_cells(experiment)
}

/// Cells are known by their names.
fn check_cells(experiment: &Experiment) -> Result<(), PlanError> {
    let mut names = BTreeSet::new();
    let twice = cells(experiment)
        .into_iter()
        .find(|cell| !names.insert(cell.name.clone()));
    match twice {
        None => Ok(()),
        Some(cell) => Err(
            PlanError::new(format!("there are two cells `{}`", cell.name))
                .with_help("each load once; or give one of the workloads another name"),
        ),
    }
}

/// A list of CPUs, or a part of those that there are.
pub(crate) fn check_cpus(key: &str, list: Option<&String>) -> Result<(), PlanError> {
    match list.map(|list| model::choose_cpus(list, &[0])) {
        Some(Err(what)) => Err(PlanError::new(what).about(key)),
        _ => Ok(()),
    }
}

pub(crate) fn check_client(client: &OpenLoopParams) -> Result<(), PlanError> {
    check_count("connections", client.connections.into())?;
    check_count("threads", client.threads.into())?;
    check_cpus("load-cpus", client.load_cpus.as_ref())
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

pub(crate) fn check_server(server: &Server) -> Result<(), PlanError> {
    check_placement(&server.placement)?;
    match &server.program {
        ServerProgram::Echo { threads }
        | ServerProgram::Memcached { threads, .. }
        | ServerProgram::Nginx { workers: threads } => {
            Ok(check_count("threads", (*threads).into())?)
        }
        ServerProgram::HttpEcho => Ok(()),
        ServerProgram::Command { argv, port, .. } => {
            check_argv("command", argv)?;
            check_placeholders(argv, *port).map_err(|e| e.about("command"))
        }
    }
}

pub(crate) fn check_antagonists(antagonists: &[Antagonist]) -> Result<(), PlanError> {
    let mut names = BTreeSet::new();
    for antagonist in antagonists {
        check_shows(&antagonist.name)?;
        if !names.insert(&antagonist.name) {
            return Err(
                PlanError::new(format!("there are two antagonists `{}`", antagonist.name))
                    .with_help("give one of them another `name`"),
            );
        }
        check_antagonist(antagonist)?;
    }
    Ok(())
}

pub(crate) fn check_antagonist(antagonist: &Antagonist) -> Result<(), PlanError> {
    check_placement(&antagonist.placement)?;
    match &antagonist.program {
        AntagonistProgram::Spinner { threads } => {
            let check = |threads: u32| check_count("threads", threads.into());
            Ok(threads.map_or(Ok(()), check)?)
        }
        AntagonistProgram::StressNg { .. } => Ok(()),
        AntagonistProgram::Command { argv } => Ok(check_argv("command", argv)?),
    }
}
