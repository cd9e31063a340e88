//! `schedlab scheduler`: sched_ext schedulers in the cache.

use crate::args::SchedulerCommand;
use crate::exit::CliError;
use crate::output::{self, Plain, say};
use crate::progress::Spinner;
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
    let bar = Spinner::new()?;
    let installed = schedulers::install(scheduler, as_root, &mut |step| {
        bar.show_line(&sources::step_words(&step));
    });
    bar.end_display();
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
    let entries = schedulers::list_schedulers(&cache, true)?;
    if format == Plain::Json {
        output::json(&json(&entries))?;
        return Ok(ExitCode::SUCCESS);
    }
    for line in lines(&entries) {
        say!("{line}");
    }
    Ok(ExitCode::SUCCESS)
}

/// A table whose columns are as wide as what stands in them.
fn lines(entries: &[Entry]) -> Vec<String> {
    let head = ["scheduler", "installed", "default", "newest", ""].map(str::to_owned);
    let row = |entry: &Entry| {
        let newest = entry.newest.as_ref().map(ToString::to_string);
        [
            entry.name.clone(),
            joined(&entry.installed),
            entry.usual.unwrap_or("-").to_owned(),
            newest.unwrap_or_else(|| "?".to_owned()),
            entry.about.to_owned(),
        ]
    };
    let rows: Vec<[String; 5]> = [head].into_iter().chain(entries.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths = [0, 1, 2, 3].map(width);
    let line = |row: &[String; 5]| {
        let cells = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:<width$}  "));
        let line = cells.collect::<String>() + &row[4];
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stay_in_line_where_many_versions_are_installed() {
        let entry = |name: &str, installed: &[&str]| Entry {
            name: name.into(),
            installed: installed.iter().map(|v| v.parse().unwrap()).collect(),
            usual: Some("1.1.3"),
            newest: None,
            about: "for games",
        };
        let many = entry("scx_lavd", &["1.0.19", "1.0.20", "1.1.3"]);
        let lines = lines(&[many, entry("scx_rusty", &[])]);
        let at = |text: &str, line: usize| lines[line].rfind(text).unwrap();
        assert_eq!(at("1.1.3", 1), at("1.1.3", 2), "{lines:?}");
        assert_eq!(at("default", 0), at("1.1.3", 2), "{lines:?}");
        assert_eq!(at("newest", 0), at("?", 1), "{lines:?}");
    }
}
