//! From an experiment's target to something that starts agents, and what must
//! hold on this machine before one is started.

use crate::agreement::{Question, started_by_connecting};
use crate::args::{FarArgs, WaitArgs};
use crate::exit::{self, CliError, unrestored_error};
use crate::output::note;
use crate::request;
use agent::Restored;
use agent::machine_lock::{self, Lock, LockError};
use doors::shown::Stream;
use machines::{By, Host, Target};
use model::printable::one_line;
use model::{Problem, TargetSpec};
use plan::PlanError;
use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A target that gives up what it starts when `interrupted` is set.
pub fn target(
    spec: &TargetSpec,
    wait: WaitArgs,
    interrupted: &Arc<AtomicBool>,
) -> Result<Box<dyn Target>, CliError> {
    made(spec, wait, interrupted)
}

/// The machine that was named. What a file starts by the connection is asked about.
pub fn named_target(
    args: &FarArgs,
    interrupted: &Arc<AtomicBool>,
) -> Result<Box<dyn Target>, CliError> {
    let (spec, is_typed) = request::target_of(&args.target)?;
    if !is_typed {
        agreed_to_connect(&args.target, &spec, args.yes)?;
    }
    target(&spec, WaitArgs::default(), interrupted)
}

fn agreed_to_connect(file: &str, spec: &TargetSpec, yes: bool) -> Result<(), CliError> {
    let starts = started_by_connecting(spec)?;
    if starts.is_empty() {
        return Ok(());
    }
    let question = Question {
        shown: &format!(
            "{}: this command\n  {}\n",
            one_line(file),
            starts.join("\n  ")
        ),
        asked: "Start this?",
        yes,
        unanswered: "the file says what a connection starts, and nobody is here to agree to it",
    };
    question.ask_user().map(drop)
}

/// Runs `schedlab WORDS` on another machine, in place of doing the same here.
pub fn run_elsewhere(args: &FarArgs, words: &[&str]) -> Result<ExitCode, CliError> {
    let mut target = named_target(args, &Arc::default())?;
    // What it prints is piped, for it must not write to the terminal here.
    let ran = doors::shown::run_program(&mut target.schedlab_command(words)?, Stream::Output);
    let status = ran.map_err(CliError::internal)?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(exit::INTERNAL)))
}

/// This machine, for the loads that run here beside a target that is another.
pub fn make_controller(interrupted: &Arc<AtomicBool>) -> Result<Box<dyn Target>, CliError> {
    made(&TargetSpec::local(), WaitArgs::default(), interrupted)
}

fn made(
    spec: &TargetSpec,
    wait: WaitArgs,
    interrupted: &Arc<AtomicBool>,
) -> Result<Box<dyn Target>, CliError> {
    Ok(machines::make_target(spec, &host_of(wait, interrupted)?)?)
}

/// Whatever targets need of this machine, and the flag that ends what they start.
pub fn host_of(wait: WaitArgs, interrupted: &Arc<AtomicBool>) -> Result<Host, CliError> {
    Ok(Host {
        wait: wait.wait,
        interrupted: interrupted.clone(),
        ..host()?
    })
}

/// The way in which this machine boots kernels of arms, where the target is that.
pub fn reboots(spec: &TargetSpec) -> Option<By> {
    machines::local::reboot_way(spec).filter(|_| spec.is_local())
}

/// Refuses a run of which this process would not see the end.
pub fn stays_up(spec: &TargetSpec) -> Result<(), CliError> {
    match reboots(spec) {
        None => Ok(()),
        Some(_) => Err(CliError::usage(
            "this machine must be restarted for its kernels, and the run would not go on afterwards",
            "schedlab boot start FILE; for a run that was begun so: schedlab boot start --resume DIR",
        )),
    }
}

/// The CPUs that a load may use there; empty where nobody knows them beforehand.
pub fn cpus(spec: &TargetSpec) -> Vec<u32> {
    match machines::known_cpus(spec) {
        Some(count) => (0..count).collect(),
        None if spec.is_local() => load::allowed_cpus(),
        None => Vec::new(),
    }
}

/// On a machine that a target brings. This machine's state is another user's for a guest's
/// root, or one that QEMU may not enter.
const STATE_ELSEWHERE: &str = "/run/schedlab-state";

/// This program as the agent, and the installed schedulers and tools within reach.
fn host() -> Result<Host, CliError> {
    let tools = tools()?;
    let needed = schedulers::install_directory().into_iter();
    let state = (agent::STATE_VARIABLE, STATE_ELSEWHERE);
    Ok(Host {
        environment: agent_environment()?,
        elsewhere: vec![(state.0.to_owned(), state.1.to_owned())],
        path: vec![tools.bin_dir()],
        needed: needed.chain([tools.directory().to_owned()]).collect(),
        ..Host::default()
    })
}

/// Environment of an agent on this machine, with its schedulers and tools within reach.
pub fn environment_here() -> Result<Vec<(OsString, OsString)>, CliError> {
    let host = host()?;
    let path = host.longer_path(&env::var_os("PATH").unwrap_or_default());
    let environment = host.environment.into_iter();
    let mut all: Vec<_> = environment
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    all.push(("PATH".into(), path));
    Ok(all)
}

/// The installed tools.
pub fn tools() -> Result<tools::Cache, CliError> {
    Ok(tools::Cache::in_directory(&schedulers::cache_directory()?))
}

/// A guest as experiments have it.
pub fn vm_options() -> Result<vm::Options, CliError> {
    Ok(machines::vm::agent_options(&host()?)?)
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

/// This machine, ready for the trials of a target that takes its CPUs: locked, and with nothing
/// of an earlier run in force. `None` where the trials are elsewhere; who runs them there looks.
pub fn made_ready(
    spec: &TargetSpec,
    wait: WaitArgs,
    interrupted: &AtomicBool,
) -> Result<Option<Lock>, CliError> {
    if !machines::find_abilities(spec)
        .map_err(PlanError::from)?
        .here
    {
        return Ok(None);
    }
    let lock = machine_lock_after(wait, interrupted)?;
    restore_leftovers()?;
    Ok(Some(lock))
}

/// Is a run under way that one on this target would have to wait for?
pub fn is_in_use(spec: &TargetSpec) -> Result<bool, CliError> {
    if !machines::find_abilities(spec)
        .map_err(PlanError::from)?
        .here
    {
        return Ok(false);
    }
    match machine_lock::acquire() {
        Ok(_lock) => Ok(false),
        Err(LockError::Held { .. } | LockError::HeldElsewhere) => Ok(true),
        // Where the lock is needed this is an error.
        Err(_) => Ok(false),
    }
}

/// Refuses where an agent on this machine would wait for that of another run, and names the run.
pub fn check_unused(spec: &TargetSpec) -> Result<(), CliError> {
    match spec.is_local() && agent::is_busy()? {
        true => machine_lock().map(drop),
        false => Ok(()),
    }
}

/// The lock of the machine, after the run that has it where that is wanted.
fn machine_lock_after(wait: WaitArgs, interrupted: &AtomicBool) -> Result<Lock, CliError> {
    let mut since: Option<Instant> = None;
    loop {
        let error = match machine_lock::acquire() {
            Err(error @ (LockError::Held { .. } | LockError::HeldElsewhere)) if wait.wait => error,
            other => {
                if let Some(since) = since {
                    note!("Waited {}.", in_whole_seconds(since.elapsed()));
                }
                return taken(other);
            }
        };
        if interrupted.load(Ordering::Relaxed) {
            return Err(CliError::Interrupted);
        }
        if since.is_none() {
            note!("Waiting for its end: {}", under_way(&error));
        }
        since.get_or_insert_with(Instant::now);
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn in_whole_seconds(waited: Duration) -> String {
    model::format_duration_ns(model::whole_nanos(Duration::from_secs(waited.as_secs())))
}

fn taken(lock: Result<Lock, LockError>) -> Result<Lock, CliError> {
    let lock = lock.map_err(|error| match error {
        LockError::Held { .. } | LockError::HeldElsewhere => CliError::Unmet(vec![Problem {
            object: "this machine".into(),
            what: under_way(&error),
            remedy: "wait for it or end it: two at once would disturb each other; `schedlab run --wait` waits"
                .into(),
        }]),
        error => CliError::internal(error),
    })?;
    if let Some(pid) = lock.beside {
        note!(
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
    if let Ok(words) = doors::read::kernel_bytes(process.join("cmdline")) {
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
    let stat = collect::tasks::read_stat(Path::new("/"), pid)?;
    let after_boot = Duration::from_nanos(collect::stat::ticks_to_ns(stat.start_ticks));
    let uptime = doors::read::kernel_text("/proc/uptime").ok()?;
    let uptime = Duration::try_from_secs_f64(uptime.split(' ').next()?.parse().ok()?).ok()?;
    let start = jiff::Zoned::now().checked_sub(uptime.checked_sub(after_boot)?);
    Some(start.ok()?.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// Undo what an earlier run left; says on standard error what that was. Nothing may be
/// measured or changed while something of it is still in force.
pub fn restore_leftovers() -> Result<(), CliError> {
    let restored = agent::restore()?;
    print_restored(&restored, "by an earlier run");
    match restored.failed.as_slice() {
        [] => Ok(()),
        failed => Err(unrestored_error(failed)),
    }
}

/// Prints what was put back, on standard error.
pub fn print_restored(restored: &Restored, by_whom: &str) {
    for (path, value) in &restored.written {
        note!(
            "put back, left {by_whom}: {} = {}",
            path.display(),
            value.trim()
        );
    }
    for pid in &restored.killed {
        note!("ended, left {by_whom}: process {pid}");
    }
    for what in &restored.removed {
        note!("removed or put back, left {by_whom}: {what}");
    }
}
