//! From an experiment's target to something that starts agents, and what must
//! hold on this machine before one is started.

use crate::exit::CliError;
use agent::Restored;
use agent::machine_lock::{self, Lock, LockError};
use model::{Experiment, Problem, TargetSpec};
use std::env;
use target::Target;
use target::local::LocalTarget;
use target::vm::{self, VmTarget};

pub fn target(experiment: &Experiment) -> Result<Box<dyn Target>, CliError> {
    match &experiment.target {
        TargetSpec::Local => {
            let program = env::current_exe().map_err(CliError::internal)?;
            Ok(Box::new(LocalTarget::new(program, agent_environment()?)))
        }
        TargetSpec::Vm(spec) => Ok(Box::new(VmTarget::new(spec.clone(), vm_options()?))),
    }
}

/// A guest with this program as its agent, and the installed schedulers within reach.
pub fn vm_options() -> Result<vm::Options, CliError> {
    let mut options = vm::Options::of_this_process()?;
    options.environment.extend(agent_environment()?);
    Ok(options)
}

/// Where the agent finds installed schedulers.
fn agent_environment() -> Result<Vec<(String, String)>, CliError> {
    let dirs = schedulers::bin_dirs()?;
    let joined = env::join_paths(dirs).map_err(CliError::internal)?;
    let name = agent::SCHEDULERS_VARIABLE.to_owned();
    Ok(vec![(name, joined.to_string_lossy().into_owned())])
}

/// One run at a time on one machine.
pub fn machine_lock() -> Result<Lock, CliError> {
    machine_lock::acquire().map_err(|error| match error {
        LockError::Held { .. } => CliError::Unmet(vec![Problem {
            object: "this machine".into(),
            what: error.to_string(),
            remedy: "two at once would disturb each other".into(),
        }]),
        error => CliError::internal(error),
    })
}

/// Undo what an earlier run left; says on standard error what that was.
pub fn restore_leftovers() -> Result<Restored, CliError> {
    let restored = agent::restore().map_err(|error| match error {
        agent::AgentError::Busy { .. } => CliError::Unmet(vec![Problem {
            object: "the journal of this machine".into(),
            what: error.to_string(),
            remedy: "another agent is at work, or is just undoing what it changed".into(),
        }]),
        error => CliError::internal(error),
    })?;
    say(&restored, "by an earlier run");
    Ok(restored)
}

/// What was put back, on standard error.
pub fn say(restored: &Restored, by_whom: &str) {
    for (path, value) in &restored.written {
        eprintln!(
            "put back, left {by_whom}: {} = {}",
            path.display(),
            value.trim()
        );
    }
    for pid in &restored.killed {
        eprintln!("ended, left {by_whom}: process {pid}");
    }
}
