//! `schedlab scheduler`: sched_ext schedulers in the cache.

use crate::args::SchedulerCommand;
use crate::exit::CliError;
use crate::output::{self, Plain, say};
use crate::sources;
use schedulers::Entry;
use std::process::ExitCode;

pub fn scheduler(command: &SchedulerCommand) -> Result<ExitCode, CliError> {
    match command {
        SchedulerCommand::Install {
            scheduler,
            as_root,
            format,
        } => install(scheduler, *as_root, *format),
        SchedulerCommand::List { format } => list(*format),
    }
}

fn install(scheduler: &str, as_root: bool, format: Plain) -> Result<ExitCode, CliError> {
    let bar = sources::progress_bar()?;
    let installed = schedulers::install(scheduler, as_root, &mut |step| {
        bar.set_message(sources::words(&step));
    });
    bar.finish_and_clear();
    let installed = installed.map_err(CliError::from)?;
    match format {
        Plain::Text => say!(
            "{} {} is installed: {}",
            installed.name,
            installed.version,
            installed.program.display()
        ),
        Plain::Json => output::json(&serde_json::json!({
            "name": installed.name,
            "version": installed.version.to_string(),
            "program": installed.program,
        }))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(format: Plain) -> Result<ExitCode, CliError> {
    let cache = schedulers::Cache::from_env()?;
    let entries = schedulers::list(&cache, true)?;
    if format == Plain::Json {
        output::json(&json(&entries))?;
        return Ok(ExitCode::SUCCESS);
    }
    say!(
        "{:<15} {:<12} {:<8} {:<8}",
        "scheduler",
        "installed",
        "default",
        "newest"
    );
    for entry in &entries {
        let newest = entry.newest.as_ref().map(ToString::to_string);
        say!(
            "{:<15} {:<12} {:<8} {:<8} {}",
            entry.name,
            joined(&entry.installed),
            entry.usual.unwrap_or("-"),
            newest.as_deref().unwrap_or("?"),
            entry.about
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn joined(versions: &[schedulers::Version]) -> String {
    match versions {
        [] => "-".to_owned(),
        versions => {
            let texts: Vec<String> = versions.iter().map(ToString::to_string).collect();
            texts.join(", ")
        }
    }
}

fn json(entries: &[Entry]) -> serde_json::Value {
    let entries = entries.iter().map(|entry| {
        let versions = entry.installed.iter().map(ToString::to_string);
        serde_json::json!({
            "name": entry.name,
            "about": entry.about,
            "installed": versions.collect::<Vec<_>>(),
            "default": entry.usual,
            "newest": entry.newest.as_ref().map(ToString::to_string),
        })
    });
    entries.collect()
}
