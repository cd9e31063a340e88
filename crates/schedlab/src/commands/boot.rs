//! `schedlab boot`: an experiment whose kernels this machine boots, which goes on after each boot.
//!
//! A unit of systemd starts `schedlab boot resume` at every boot until the run has ended. The
//! machine's own kernel stays the default of the boot loader (`reboot`).

use crate::args::{BootCommand, BootNextArgs, BootStart, BootStep, ExperimentArgs, WaitArgs};
use crate::exit::{self, CliError};
use crate::measure::{Boots, Run, default_dir, interrupt_flag, take_results};
use crate::notify::{self, Notices};
use crate::output::{self, Plain, say};
use crate::repeat::agreed_to_resume;
use crate::request::{Wanted, read_measurable, read_wanted};
use crate::systemd::{self, quote_word, systemctl, unit};
use crate::targets;
use doors::started::{Agreed, tool_command};
use machines::Restart;
use model::{Experiment, Problem};
use reboot::{By, FRUITLESS, Once, Record};
use report::Table;
use results::{ResultSet, read};
use runner::{Event, Outcome};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Unit of a run that goes on across boots.
pub const UNIT: &str = "schedlab-boot";

pub fn boot(command: &BootCommand) -> Result<ExitCode, CliError> {
    match command {
        BootCommand::Plan { experiment, format } => plan(experiment, *format),
        BootCommand::Start(args) => start(args),
        BootCommand::Resume => resume(),
        BootCommand::Status { format } => status(*format),
        BootCommand::Stop => stop(),
        BootCommand::Feature { feature, name, by } => match feature {
            None => {
                let root = Path::new("/");
                // slurmd asks when it starts, which is when the entry of this boot has done its work.
                if reboot::is_once(root) && rustix::process::geteuid().is_root() {
                    reboot::clear_prepared(root).map_err(unmet)?;
                }
                say!(
                    "{}",
                    machines::kernel_feature(name, &reboot::running_release())
                );
                Ok(ExitCode::SUCCESS)
            }
            Some(feature) => prepare(feature, name, *by),
        },
    }
}

/// Makes the kernel of a feature that of the next boot; Slurm restarts the node afterwards.
fn prepare(feature: &str, name: &str, by: By) -> Result<ExitCode, CliError> {
    let root = Path::new("/");
    let releases = reboot::installed_releases(root);
    let kernel = releases
        .iter()
        .find(|release| machines::kernel_feature(name, release) == feature);
    let kernel = kernel.ok_or_else(|| {
        let features = releases
            .iter()
            .map(|release| machines::kernel_feature(name, release));
        unmet(Problem {
            object: format!("feature {feature}"),
            what: "it is that of no kernel that is installed here".to_owned(),
            remedy: format!("those are {}", features.collect::<Vec<_>>().join(", ")),
        })
    })?;
    require_root()?;
    let once = Once::find(root, kernel, by).map_err(unmet)?;
    once.prepare().map_err(unmet)?;
    Ok(ExitCode::SUCCESS)
}

/// `schedlab boot-next`: a step on the machine that another one restarts.
pub fn next(args: &BootNextArgs) -> Result<ExitCode, CliError> {
    let root = Path::new("/");
    let find = |kernel: &String| Once::find(root, kernel, args.by);
    match args.step {
        BootStep::Check => {
            let mut problems: Vec<Problem> = args
                .kernels
                .iter()
                .filter_map(|kernel| find(kernel).err())
                .collect();
            if !rustix::process::geteuid().is_root() {
                problems.push(machines::needs_root("the user"));
            }
            output::json(&problems)?;
        }
        BootStep::Restart => {
            let [kernel] = &args.kernels[..] else {
                return Err(CliError::usage("one kernel is booted", "name its release"));
            };
            let once = find(kernel).map_err(unmet)?;
            once.prepare().map_err(unmet)?;
            reboot::restart_machine(once.way()).map_err(unmet)?;
        }
        BootStep::Clear => {
            reboot::clear_prepared(root).map_err(unmet)?;
            reboot::wait_for_services();
        }
        BootStep::Home => home()?,
    }
    Ok(ExitCode::SUCCESS)
}

fn unmet(problem: Problem) -> CliError {
    CliError::Unmet(vec![problem])
}

/// The record of the run across boots.
fn file() -> Result<PathBuf, CliError> {
    Ok(Record::file_path(&agent::state_dir()?))
}

fn record() -> Result<Option<Record>, CliError> {
    Record::read(&file()?).map_err(CliError::internal)
}

fn keep(record: &Record) -> Result<(), CliError> {
    record.write(&file()?).map_err(CliError::internal)
}

fn begun_run() -> Result<Record, CliError> {
    let help = match rustix::process::geteuid().is_root() {
        true => "schedlab boot start FILE",
        false => "root has the record: run as root, or by sudo",
    };
    record()?.ok_or_else(|| CliError::usage("no run goes on across boots", help))
}

/// Only root may do it.
fn require_root() -> Result<(), CliError> {
    match rustix::process::geteuid().is_root() {
        true => Ok(()),
        false => Err(unmet(machines::needs_root("this machine"))),
    }
}

/// The kernels of an experiment and the way to each, or why there is none.
type Kernels = BTreeMap<String, Result<By, Problem>>;

fn kernels(experiment: &Experiment) -> Result<Kernels, CliError> {
    let target = &experiment.target;
    let by = targets::reboots(target).ok_or_else(|| {
        CliError::usage(
            "the experiment restarts no machine of its own",
            "[target] kind = \"local\" with reboots = \"auto\"; over ssh `schedlab run` restarts it",
        )
    })?;
    let names = experiment.arms.iter().filter_map(|arm| arm.kernel.clone());
    let way = |name: &String| Once::find(Path::new("/"), name, by).map(|once| once.way());
    Ok(names.map(|name| (name.clone(), way(&name))).collect())
}

fn plan(args: &ExperimentArgs, format: Plain) -> Result<ExitCode, CliError> {
    let experiment = read_wanted(args)?.experiment;
    let kernels = kernels(&experiment)?;
    let (least, most) = (
        schedule::least_blocks(&experiment),
        experiment.stop.max_blocks,
    );
    let plan = schedule::plan_blocks(&experiment);
    let between = schedule::between_trials(&experiment, &plan);
    let boots = |blocks: u32| between.boots.saturating_mul(u64::from(blocks));
    let missing: Vec<&Problem> = kernels
        .values()
        .filter_map(|way| way.as_ref().err())
        .collect();
    if format == Plain::Json {
        let ways = kernels.iter().map(|(name, way)| (name, way.as_ref().ok()));
        output::json(&json!({
            "name": experiment.name,
            "kernels": ways.collect::<BTreeMap<_, _>>(),
            "own_kernel": reboot::running_release(),
            "boots": { "least": boots(least), "most": boots(most) },
            "missing": missing,
        }))?;
    } else {
        say!("{}", experiment.name);
        for (name, way) in &kernels {
            let arms = experiment
                .arms
                .iter()
                .filter(|arm| arm.kernel.as_ref() == Some(name));
            let arms: Vec<&str> = arms.map(|arm| arm.name.as_str()).collect();
            let way = way
                .as_ref()
                .map_or("no way to it".to_owned(), |by| format!("by {by}"));
            say!("  {name:<28} {way:<16} arms: {}", arms.join(", "));
        }
        say!(
            "each is booted {} in a block, in an order of its own: at most {} boots for {most} blocks, \
             and {} for the {least} that are the least that decide",
            match between.boots / (kernels.len() as u64).max(1) {
                1 => "once".to_owned(),
                times => format!("{times} times"),
            },
            boots(most),
            boots(least)
        );
        let block = schedule::block_ns(&experiment, &plan).saturating_sub(between.boots_ns);
        let block = model::format_duration_ns(block);
        say!("trials of a block take about {block}, beside the boots");
        let tries = experiment.stop.max_attempts;
        say!(
            "a kernel that does not come up is tried {tries} times in each cell of the first block"
        );
        say!("at the end it boots {} again", reboot::running_release());
    }
    match missing.is_empty() {
        true => Ok(ExitCode::SUCCESS),
        false => Err(CliError::Unmet(missing.into_iter().cloned().collect())),
    }
}

fn start(args: &BootStart) -> Result<ExitCode, CliError> {
    let (experiment, wanted) = match &args.resume {
        Some(directory) => (read::read_plan(directory)?.0, None),
        None => {
            let wanted = read_measurable(&args.experiment)?;
            (wanted.experiment.clone(), Some(wanted))
        }
    };
    let given = args.resume.as_ref().or(args.output.as_ref());
    let directory = match given {
        Some(given) => systemd::absolute_path(given)?,
        None => agent::runs_dir()?.join(default_dir(&experiment.name)),
    };
    let service = service(&experiment.name, &directory)?;
    if args.dry_run {
        say!("# {}\n{service}", unit(UNIT, "service").display());
        return Ok(ExitCode::SUCCESS);
    }
    systemd::require("over ssh another machine restarts this one: `schedlab run`")?;
    Notices::for_addresses(&args.notify)?;
    require_root()?;
    if reboot::is_once(Path::new("/")) {
        return Err(CliError::usage(
            "this machine runs a kernel that was booted once, and not its own",
            "restart it first",
        ));
    }
    let missing: Vec<Problem> = kernels(&experiment)?
        .into_values()
        .filter_map(Result::err)
        .collect();
    if !missing.is_empty() {
        return Err(CliError::Unmet(missing));
    }
    begin_run(&directory, &experiment, wanted, args, &service)
}

/// Writes everything that goes on after a boot, and starts it.
fn begin_run(
    directory: &Path,
    experiment: &Experiment,
    wanted: Option<Wanted>,
    args: &BootStart,
    service: &str,
) -> Result<ExitCode, CliError> {
    let interrupted = interrupt_flag()?;
    let wait = WaitArgs::default();
    if args.resume.is_some() {
        agreed_to_resume(
            &mut take_results(directory, wait, &interrupted)?,
            args.yes,
            false,
        )?;
    }
    let lock = targets::made_ready(&experiment.target, wait, &interrupted)?;
    if let Some(other) = record()?.filter(|record| record.ended.is_none()) {
        return Err(CliError::usage(
            format!("a run goes on already, in {}", other.directory.display()),
            "schedlab boot status; schedlab boot stop ends it",
        ));
    }
    let notify = args.notify.iter().map(|to| notify::from_anywhere(to));
    let notify = notify.collect::<Result<_, _>>()?;
    if let Some(wanted) = wanted {
        drop(Run::start(Some(directory), wanted)?);
    }
    let name = format!("{UNIT}.service");
    let begun = systemd::write(&unit(UNIT, "service"), service)
        .and_then(|()| systemctl(&["daemon-reload"]))
        .and_then(|()| systemctl(&["enable", &name]))
        .and_then(|()| keep(&Record::new(directory.to_owned(), notify)));
    drop(lock);
    if let Err(error) = begun.and_then(|()| systemctl(&["start", "--no-block", &name])) {
        // Nothing goes on that was not begun whole.
        let _ = doors::written::remove_file(&file()?);
        let _ = remove_unit();
        return Err(error);
    }
    say!(
        "this machine restarts now, and goes on after each boot; results are in {}\n\
         how far it is: schedlab boot status\n\
         its words:     journalctl -u {UNIT}\n\
         to end it:     schedlab boot stop",
        directory.display()
    );
    Ok(ExitCode::SUCCESS)
}

/// The unit that goes on at each boot, after all that starts at a boot has started.
fn service(name: &str, directory: &Path) -> Result<String, CliError> {
    let program = systemd::program_for_root()?.display().to_string();
    let command = [&program, "boot", "resume"].map(quote_word).join(" ");
    let mounts = [directory.display().to_string(), program].map(|path| quote_word(&path));
    // The results stay those of who called sudo, whose directories are written to at each boot.
    let variables = [
        agent::STATE_VARIABLE,
        "SCHEDLAB_CACHE_DIR",
        "SUDO_UID",
        "SUDO_GID",
    ];
    let variables = variables.iter().filter_map(|name| {
        let value = std::env::var(name).ok()?;
        Some(format!(
            "Environment={}\n",
            quote_word(&format!("{name}={value}"))
        ))
    });
    Ok(format!(
        "[Unit]\nDescription=schedlab: {} across boots\nAfter=multi-user.target\n\
         RequiresMountsFor={}\n\n[Service]\nType=exec\nUser=root\n{}ExecStart={command}\n\
         TimeoutStopSec=5min\nKillMode=mixed\n\n[Install]\nWantedBy=multi-user.target\n",
        name.replace('%', "%%"),
        mounts.join(" "),
        variables.collect::<String>(),
    ))
}

fn resume() -> Result<ExitCode, CliError> {
    let mut record = begun_run()?;
    if let Some(end) = &record.ended {
        say!("the run in {} has ended: {end}", record.directory.display());
        remove_unit()?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut notices = Notices::default();
    match go_on(&mut record, &mut notices) {
        Ok(Went::Down(restart)) => {
            say!("restarting with {} ({})", restart.kernel, restart.by);
            reboot::restart_machine(restart.by).map_err(unmet)?;
            Ok(ExitCode::SUCCESS)
        }
        Ok(Went::Stopped) => {
            // The next boot is nobody's wish.
            let mut record = begun_run()?;
            record.asked = None;
            keep(&record)?;
            reboot::clear_prepared(Path::new("/")).map_err(unmet)?;
            say!("stopped; it goes on with the next boot, or with: systemctl start {UNIT}");
            Ok(ExitCode::from(exit::INTERRUPTED))
        }
        Ok(Went::Done(text)) => end(&text, &mut notices).map(|()| ExitCode::SUCCESS),
        Err(error) => {
            end(&format!("error: {error}"), &mut notices)?;
            Err(error)
        }
    }
}

/// End of a part of the run between two boots.
enum Went {
    Down(Restart),
    Stopped,
    /// The run has its conclusion.
    Done(String),
}

fn go_on(record: &mut Record, notices: &mut Notices) -> Result<Went, CliError> {
    *notices = Notices::for_addresses(&record.notify)?;
    // The entry of one boot has served, also where another kernel came.
    reboot::clear_prepared(Path::new("/")).map_err(unmet)?;
    let interrupted = interrupt_flag()?;
    let wait = WaitArgs { wait: true };
    let held = take_results(&record.directory, wait, &interrupted)?;
    let (experiment, _) = read::read_plan(held.dir())?;
    let _lock = targets::made_ready(&experiment.target, wait, &interrupted)?;
    let mut run = Run::resume(held, Agreed::by_command(), None, &ExperimentArgs::default())?;
    let continues = record.goes_on(run.count_starts(), run.done_trials().len());
    keep(record)?;
    may_go_on(record)?;
    run.across_boots(Boots {
        record: Some(file()?),
        continues,
        away: Duration::from_secs(record.away_s),
    });
    match record.boots {
        0 => notices.start(run.name(), run.dir()),
        _ => notices.is_about(run.name(), run.dir()),
    }
    let mut see = |event: &Event| notices.report_event(event);
    match run.measure(&interrupted, wait, false, false, None, &mut see)? {
        Outcome::Restarts(_) if interrupted.load(Ordering::Relaxed) => Ok(Went::Stopped),
        Outcome::Restarts(restart) => Ok(Went::Down(restart)),
        Outcome::Interrupted => Ok(Went::Stopped),
        Outcome::Railed(hit) => Err(CliError::Railed(hit)),
        Outcome::Done => {
            let results = ResultSet::read(run.dir())?;
            let table = Table::from_results(&results);
            super::report::write_report_files(&table, &results)?;
            Ok(Went::Done(report::conclusion(&table).join("\n")))
        }
    }
}

/// Ends a run that would boot for ever.
fn may_go_on(record: &Record) -> Result<(), CliError> {
    let why = match record.brings_down() {
        Some(kernel) => {
            format!("{FRUITLESS} times the machine went down under {kernel}, in its trials")
        }
        None if record.fruitless > FRUITLESS => {
            format!("{FRUITLESS} boots in a row brought no trial")
        }
        None => return Ok(()),
    };
    let directory = record.directory.display();
    Err(CliError::Internal {
        message: format!("{why}; its words: journalctl -u {UNIT}"),
        help: Some(format!(
            "go on with: schedlab boot start --resume {directory}"
        )),
    })
}

/// No more boots but one, into the machine's own kernel, where another runs. What can be done is
/// done, also where the record cannot be kept.
fn end(text: &str, notices: &mut Notices) -> Result<(), CliError> {
    notices.report_end(text);
    let cleared = reboot::clear_prepared(Path::new("/")).map_err(unmet);
    let removed = remove_unit();
    let mut record = begun_run()?;
    record.ended = Some(text.to_owned());
    record.asked = None;
    let kept = keep(&record);
    home()?;
    cleared.and(removed).and(kept)
}

/// Restarts with the machine's own kernel, where this is a boot of ours.
fn home() -> Result<(), CliError> {
    if !reboot::is_once(Path::new("/")) {
        return Ok(());
    }
    say!("restarting with the machine's own kernel");
    reboot::restart_machine(By::Grub).map_err(unmet)
}

fn remove_unit() -> Result<(), CliError> {
    let service = unit(UNIT, "service");
    if service.exists() {
        systemctl(&["disable", &format!("{UNIT}.service")])?;
    }
    systemd::remove(&[service])
}

/// Is the unit at work, or will it be when the boot has come so far?
fn is_active() -> bool {
    let state = doors::read::output_of(tool_command("systemctl").args(["is-active", UNIT]));
    let said = state.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    reboot::is_starting()
        || said.is_ok_and(|said| ["active", "activating"].contains(&said.as_str()))
}

fn status(format: Plain) -> Result<ExitCode, CliError> {
    let record = begun_run()?;
    let trials = read::read_trials(&record.directory)?;
    let blocks = trials
        .iter()
        .map(|trial| trial.trial.place.block)
        .max()
        .unwrap_or(0);
    let good = trials.iter().filter(|trial| trial.trial.is_ok()).count();
    if format == Plain::Json {
        output::json(&json!({
            "record": record,
            "running": reboot::running_release(),
            "trials": trials.len(),
            "ok": good,
            "block": blocks,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    match &record.ended {
        None if !is_active() => say!(
            "stopped: {}\n  to go on: systemctl start {UNIT}",
            record.directory.display()
        ),
        None => say!("goes on: {}", record.directory.display()),
        Some(end) => say!(
            "ended: {}\n  {}",
            record.directory.display(),
            end.replace('\n', "\n  ")
        ),
    }
    say!("{good} of {} trials ok, block {blocks}", trials.len());
    let fruitless = match record.fruitless {
        0 => String::new(),
        n => format!(", the last {n} without a trial so far"),
    };
    say!(
        "{} boots{fruitless}; {} of them down",
        record.boots,
        model::format_duration_ns(record.away_s.saturating_mul(1_000_000_000))
    );
    say!(
        "running {}; the machine's own is {}",
        reboot::running_release(),
        record.own_kernel
    );
    if let Some(asked) = &record.asked {
        say!("asked for {} by {}", asked.kernel, asked.by);
    }
    say!("so far: schedlab report {}", record.directory.display());
    Ok(ExitCode::SUCCESS)
}

fn stop() -> Result<ExitCode, CliError> {
    require_root()?;
    if unit(UNIT, "service").exists() {
        // Its agent undoes what is in force.
        systemctl(&["stop", &format!("{UNIT}.service")])?;
    }
    remove_unit()?;
    reboot::clear_prepared(Path::new("/")).map_err(unmet)?;
    let mut record = match record() {
        Ok(record) => record.map_or_else(begun_run, Ok)?,
        Err(unreadable) => {
            // It says nothing any more, and must not keep another run from beginning.
            let file = file()?;
            let _ = doors::written::move_durably(&file, &file.with_extension("unreadable"));
            return Err(unreadable);
        }
    };
    record
        .ended
        .get_or_insert_with(|| "ended by hand".to_owned());
    record.asked = None;
    keep(&record)?;
    let directory = record.directory.display();
    say!(
        "ended; results so far: schedlab report {directory}\n\
         to go on:             schedlab boot start --resume {directory}"
    );
    if reboot::is_once(Path::new("/")) {
        say!(
            "the next boot brings the machine's own kernel, {}",
            record.own_kernel
        );
    }
    Ok(ExitCode::SUCCESS)
}
