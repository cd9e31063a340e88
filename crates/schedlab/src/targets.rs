//! From an experiment's target to something that starts agents, and what must
//! hold on this machine before one is started.

use crate::args::WaitArgs;
use crate::exit::{CliError, unrestored};
use agent::Restored;
use agent::machine_lock::{self, Lock, LockError};
use model::printable::lines;
use model::{Experiment, Problem, TargetSpec};
use std::env;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use target::{Host, Target};

/// A target that gives up what it starts when `interrupted` is set.
pub fn target(
    experiment: &Experiment,
    interrupted: &Arc<AtomicBool>,
) -> Result<Box<dyn Target>, CliError> {
    made(&experiment.target, interrupted)
}

/// This machine, for the loads that run here beside a target that is another.
pub fn controller(interrupted: &Arc<AtomicBool>) -> Result<Box<dyn Target>, CliError> {
    made(&TargetSpec::local(), interrupted)
}

fn made(spec: &TargetSpec, interrupted: &Arc<AtomicBool>) -> Result<Box<dyn Target>, CliError> {
    let host = Host {
        interrupted: interrupted.clone(),
        ..host()?
    };
    Ok(target::make(spec, &host)?)
}

/// The CPUs that a load may use there; empty where nobody knows them beforehand.
pub fn cpus(spec: &TargetSpec) -> Vec<u32> {
    match target::cpus(spec) {
        Some(count) => (0..count).collect(),
        None if *spec == TargetSpec::local() => load::allowed_cpus(),
        None => Vec::new(),
    }
}

/// On a machine that a target brings. This machine's state is another user's for a guest's
/// root, or one that QEMU may not enter.
const STATE_ELSEWHERE: &str = "/run/schedlab-state";

/// This program as the agent, and the installed schedulers and tools within reach.
fn host() -> Result<Host, CliError> {
    let tools = tools()?;
    let needed = schedulers::directory().into_iter();
    let state = (agent::STATE_VARIABLE, STATE_ELSEWHERE);
    Ok(Host {
        environment: agent_environment()?,
        elsewhere: vec![(state.0.to_owned(), state.1.to_owned())],
        path: vec![tools.bin_dir()],
        needed: needed.chain([tools.directory().to_owned()]).collect(),
        ..Host::default()
    })
}

/// The installed tools.
pub fn tools() -> Result<tools::Cache, CliError> {
    Ok(tools::Cache::at(&schedulers::cache_directory()?))
}

/// A guest as experiments have it.
pub fn vm_options() -> Result<vm::Options, CliError> {
    Ok(target::vm::options(&host()?)?)
}

/// Variables that tell the agent where installed schedulers are.
fn agent_environment() -> Result<Vec<(String, String)>, CliError> {
    let dirs = schedulers::bin_dirs()?;
    let joined = env::join_paths(dirs).map_err(CliError::internal)?;
    let name = agent::SCHEDULERS_VARIABLE.to_owned();
    Ok(vec![(name, joined.to_string_lossy().into_owned())])
}

/// One run at a time on one machine.
pub fn machine_lock() -> Result<Lock, CliError> {
    taken(machine_lock::acquire())
}

/// The lock of the machine, after the run that has it where that is wanted.
pub fn machine_lock_after(wait: WaitArgs, interrupted: &AtomicBool) -> Result<Lock, CliError> {
    let mut told = false;
    loop {
        let error = match machine_lock::acquire() {
            Err(error @ (LockError::Held { .. } | LockError::HeldElsewhere)) if wait.wait => error,
            other => return taken(other),
        };
        if interrupted.load(Ordering::Relaxed) {
            return Err(CliError::Interrupted);
        }
        if !std::mem::replace(&mut told, true) {
            eprintln!("Waiting: {}", lines(&under_way(&error)));
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn taken(lock: Result<Lock, LockError>) -> Result<Lock, CliError> {
    let lock = lock.map_err(|error| match error {
        LockError::Held { .. } | LockError::HeldElsewhere => CliError::Unmet(vec![Problem {
            object: "this machine".into(),
            what: under_way(&error),
            remedy: "two at once would disturb each other; `schedlab run --wait` waits".into(),
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

/// The run that has the lock: its command, its directory and its start, as far as they can be
/// seen.
fn under_way(error: &LockError) -> String {
    let mut said = error.to_string();
    let LockError::Held { pid: Some(pid) } = error else {
        return said;
    };
    let process = Path::new("/proc").join(pid.to_string());
    if let Ok(words) = std::fs::read(process.join("cmdline")) {
        let words = String::from_utf8_lossy(&words);
        let words = words.trim_end_matches('\0').split('\0');
        said += &format!("\n{}", shlex::try_join(words).unwrap_or_default());
    }
    if let Ok(directory) = std::fs::read_link(process.join("cwd")) {
        said += &format!("\nin {}", directory.display());
    }
    if let Some(start) = start(*pid) {
        said += &format!("\nsince {start}");
    }
    said
}

/// The start of a process, in the time of this place.
fn start(pid: i32) -> Option<String> {
    let stat = collect::tasks::stat(Path::new("/"), pid)?;
    let after_boot = Duration::from_nanos(collect::stat::ticks_to_ns(stat.start_ticks));
    let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
    let uptime = Duration::try_from_secs_f64(uptime.split(' ').next()?.parse().ok()?).ok()?;
    let start = jiff::Zoned::now().checked_sub(uptime.checked_sub(after_boot)?);
    Some(start.ok()?.strftime("%Y-%m-%d %H:%M:%S").to_string())
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

/// Prints what was put back, on standard error.
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
