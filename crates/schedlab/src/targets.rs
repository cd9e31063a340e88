//! From an experiment's target to something that starts agents, and what must
//! hold on this machine before one is started.

use crate::exit::CliError;
use agent::Restored;
use agent::machine_lock::{self, Lock, LockError};
use model::{Experiment, Problem, TargetSpec};
use std::env;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use target::Target;
use target::local::LocalTarget;
use target::vm::{self, VmTarget};

/// A target that gives up what it starts when `interrupted` is set.
pub fn target(
    experiment: &Experiment,
    interrupted: &Arc<AtomicBool>,
) -> Result<Box<dyn Target>, CliError> {
    match &experiment.target {
        TargetSpec::Local => {
            // This very file, also after another build took its place.
            let program = "/proc/self/exe".into();
            Ok(Box::new(LocalTarget::new(program, agent_environment()?)))
        }
        TargetSpec::Vm(spec) => {
            let target = VmTarget::new(*spec.clone(), vm_options()?);
            Ok(Box::new(target.with_interrupt(interrupted.clone())))
        }
    }
}

/// In the guest's memory. The host's state is another user's for the guest's root, or one
/// that QEMU may not enter.
const STATE_IN_GUEST: &str = "/run/schedlab-state";

/// A guest with this program as its agent, and the installed schedulers within reach.
pub fn vm_options() -> Result<vm::Options, CliError> {
    let mut options = vm::Options::of_this_process()?;
    options.shown.extend(schedulers::directory());
    options.environment.extend(agent_environment()?);
    let state = (agent::STATE_VARIABLE.to_owned(), STATE_IN_GUEST.to_owned());
    options.environment.extend([state]);
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
    let lock = machine_lock::acquire().map_err(|error| match error {
        LockError::Held { .. } | LockError::HeldElsewhere => CliError::Unmet(vec![Problem {
            object: "this machine".into(),
            what: error.to_string(),
            remedy: "two at once would disturb each other".into(),
        }]),
        error => CliError::internal(error),
    })?;
    if let Some(pid) = lock.beside {
        eprintln!(
            "another user has a run under way (process {pid}), or keeps others from starting one; \
             it can disturb this one"
        );
    }
    Ok(lock)
}

/// Undo what an earlier run left; says on standard error what that was. Nothing may be
/// measured or changed while something of it is still in force.
pub fn restore_leftovers() -> Result<(), CliError> {
    let restored = agent::restore()?;
    say(&restored, "by an earlier run");
    match restored.failed.as_slice() {
        [] => Ok(()),
        failed => Err(unrestored(failed)),
    }
}

/// Something that an earlier run changed is still in force.
pub fn unrestored(failed: &[String]) -> CliError {
    CliError::Internal {
        message: format!(
            "what an earlier run changed could not be undone:\n{}",
            failed.join("\n")
        ),
        help: Some("remove the cause, then: schedlab restore".to_owned()),
    }
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
