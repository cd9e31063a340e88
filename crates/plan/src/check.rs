//! Checks that an experiment could run: one function for all of them, wherever they come from,
//! a file, a command line or the results of somebody else.
//!
//! Whatever reads a file looks at each table by itself too, with the functions of this
//! and of the other modules, so that the error is shown where the mistake is.

use crate::antagonist::{check_antagonists, check_provocations};
use crate::arm::check_arm;
use crate::error::PlanError;
use crate::event::check_events;
use crate::name::{check_name, check_shows};
use crate::server::check_server;
use crate::stack::check_services;
use crate::turns;
use crate::workload::check_workload;
use machines::Can;
use model::{Experiment, Load, Place, Workload};
use schedule::list_cells;
use std::collections::BTreeSet;

/// Checks everything that must hold of an experiment before anything is planned or started.
/// Requirements of the target are not looked at.
pub fn check(experiment: &Experiment) -> Result<(), PlanError> {
    experiment.check()?;
    check_shows(&experiment.name).map_err(|e| e.about_key("name"))?;
    agent::check_events(&experiment.observe.perf)?;
    check_collectors(experiment.observe.collect.as_deref())?;
    let target = machines::find_abilities(&experiment.target)?;
    for arm in &experiment.arms {
        check_name(&arm.name)?;
        check_arm(arm, target, &experiment.workloads)?;
        check_collectors(arm.collect.as_deref())?;
    }
    for workload in &experiment.workloads {
        let named = |e: PlanError| {
            let message = format!("workload `{}`: {e}", workload.name);
            e.with_message(message)
        };
        check_workload(workload).map_err(named)?;
        if let Some(server) = &workload.server {
            check_server(server).map_err(named)?;
        }
        check_services(&workload.services).map_err(named)?;
        check_antagonists(&workload.antagonists).map_err(named)?;
        check_provocations(&workload.antagonists, target).map_err(named)?;
        check_snapshot_warmup(workload, target).map_err(named)?;
        check_load_place(workload, target).map_err(named)?;
    }
    turns::check_arms(experiment)?;
    check_trace(experiment)?;
    check_events(experiment, target)?;
    check_cells(experiment)
}

/// Checks that all collectors are among those that there are.
pub(crate) fn check_collectors(named: Option<&[String]>) -> Result<(), PlanError> {
    let known = || agent::COLLECTORS.iter().map(|def| def.name);
    let mut named = named.unwrap_or_default().iter().enumerate();
    let Some((at, unknown)) = named.find(|(_, name)| !known().any(|known| known == **name)) else {
        return Ok(());
    };
    let help = match model::find_nearest(unknown, known()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", known().collect::<Vec<_>>().join(", ")),
    };
    let error = PlanError::new(format!("there is no collector `{unknown}`"));
    Err(error.with_help(help).about_key(&format!("collect.{at}")))
}

/// Only a machine that is saved has a load before that, which may be without a warm-up, or with one for each
/// rate that it tries.
fn check_snapshot_warmup(workload: &Workload, target: Can) -> Result<(), PlanError> {
    let wrong = |what: &str, help: &str| {
        let help = format!("{help}, or leave snapshot-warmup out");
        let error = PlanError::new(what).with_help(help);
        Err(error.about_key("snapshot-warmup"))
    };
    let has_warmup =
        ::load::kind::find(workload.kind.name()).is_some_and(|def| def.usual.warmup_ns > 0);
    let is_search = |load: &Load| matches!(load, Load::MaxRate(_));
    match workload.snapshot_warmup_ns {
        None => Ok(()),
        Some(_) if !target.reset.has_snapshot() => wrong(
            "snapshot-warmup is of a load after which a guest is saved, and this target saves none",
            "reset = \"snapshot\" in [target]",
        ),
        Some(_) if !has_warmup => wrong(
            "snapshot-warmup is a longer warm-up, and this kind of workload has none",
            "choose a kind that has",
        ),
        Some(_) if workload.loads.iter().any(is_search) => wrong(
            "a search has its warm-up at each rate that it tries, so it takes no snapshot-warmup",
            "warmup = \"…\"",
        ),
        Some(_) => Ok(()),
    }
}

/// The CPUs of this machine are those of the guests, where several measure at once.
fn check_load_place(workload: &Workload, target: Can) -> Result<(), PlanError> {
    let is_shared = target.is_guest && target.machines.is_some();
    if !is_shared || workload.load_on != Place::Controller {
        return Ok(());
    }
    let what =
        "load-on = \"controller\" needs CPUs of this machine, and several guests at once have them";
    let error = PlanError::new(what).with_help("load-on = \"target\", or guests = 1 in [target]");
    Err(error.about_key("load-on"))
}

/// Each load of each workload must be able to say when its worst latency was, and the clock of
/// the load must be that of the kernel which is traced.
fn check_trace(experiment: &Experiment) -> Result<(), PlanError> {
    let Some(trace) = &experiment.observe.trace else {
        return Ok(());
    };
    let is_apart = machines::find_abilities(&experiment.target)?.apart;
    for workload in &experiment.workloads {
        if is_apart && workload.load_on == Place::Controller {
            let what = format!(
                "trace {}: the load of `{}` runs on the controller, where nothing is traced",
                trace.words(),
                workload.name
            );
            let help = "leave `trace` out, or set load-on = \"target\"";
            return Err(PlanError::new(what).with_help(help).about_key("trace"));
        }
        for load in &workload.loads {
            let found = ::load::watched_log(workload, load, trace);
            found.map_err(|problem| {
                PlanError::new(format!("{}: {}", problem.object, problem.what))
                    .with_help(problem.remedy)
                    .about_key("trace")
            })?;
        }
    }
    Ok(())
}

/// Cells are known by their names.
fn check_cells(experiment: &Experiment) -> Result<(), PlanError> {
    let mut names = BTreeSet::new();
    let twice = list_cells(experiment)
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
