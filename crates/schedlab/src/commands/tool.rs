//! `schedlab tool`: benchmarks in the cache.

use crate::args::ToolCommand;
use crate::exit::CliError;
use crate::output::{self, Plain, note, say};
use crate::progress::Spinner;
use crate::targets;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tools::{Installer, Step, TOOLS, Tool};

pub fn tool(command: &ToolCommand) -> Result<ExitCode, CliError> {
    match command {
        ToolCommand::Install { tool, from, format } => install(tool, from.clone(), *format),
        ToolCommand::List { format } => list(*format),
    }
}

fn install(name: &str, from: Option<String>, format: Plain) -> Result<ExitCode, CliError> {
    let (name, version) = match name.split_once('@') {
        Some((name, version)) => (name, Some(version)),
        None => (name, None),
    };
    let tool = tools::find_tool(name)?;
    // Before anything of it is fetched.
    note!("{} has the licence {}", tool.name, tool.licence);
    let bar = Spinner::new()?;
    let cache = targets::tools()?;
    let installer = Installer::new(cache.clone())
        .with_source(from)
        .with_user(confine::User::for_builds());
    let installed = installer.install(tool, version, &mut |step| bar.show_line(&words(&step)));
    bar.end_display();
    let installed = installed?;
    let before = before_on_path(tool, &cache.bin_dir());
    match format {
        Plain::Text => {
            let programs = installed.programs.iter().map(|p| p.display().to_string());
            let programs: Vec<String> = programs.collect();
            let version = &installed.version;
            say!(
                "{} {version} is installed: {}",
                tool.name,
                programs.join(" ")
            );
            for program in &before {
                note!(
                    "workloads start {}, which is on PATH, and not the installed one",
                    program.display()
                );
            }
        }
        Plain::Json => output::json(&serde_json::json!({
            "name": tool.name,
            "version": installed.version,
            "licence": tool.licence,
            "programs": installed.programs,
            "on_path_before": before,
        }))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Programs of the same names that PATH has: they come first.
fn before_on_path(tool: &Tool, bin: &Path) -> Vec<PathBuf> {
    let found = tool.programs.iter().filter_map(|p| which::which(p).ok());
    found.filter(|program| !program.starts_with(bin)).collect()
}

fn words(step: &Step) -> String {
    match step {
        Step::Fetching(from) => format!("fetching {from}"),
        Step::Compiling => "compiling".to_owned(),
        Step::Unpacking => "unpacking".to_owned(),
    }
}

fn list(format: Plain) -> Result<ExitCode, CliError> {
    let cache = targets::tools()?;
    if format == Plain::Json {
        let entries = TOOLS.iter().map(|tool| {
            serde_json::json!({
                "name": tool.name,
                "about": tool.about,
                "licence": tool.licence,
                "programs": tool.programs,
                "installed": cache.current_version(tool),
                "default": tool.version,
                "from": tool.origin(),
            })
        });
        output::json(&entries.collect::<serde_json::Value>())?;
        return Ok(ExitCode::SUCCESS);
    }
    say!("{:<9} {:<13} {:<13} about", "tool", "installed", "default");
    for tool in TOOLS {
        let installed = cache.current_version(tool);
        let installed = installed.as_deref().unwrap_or("-");
        // The first digits of a commit are enough to tell it.
        let usual = tool.version.get(..12).unwrap_or(tool.version);
        say!(
            "{:<9} {installed:<13} {usual:<13} {}",
            tool.name,
            tool.about
        );
        say!("{:<37} licence: {}", "", tool.licence);
    }
    Ok(ExitCode::SUCCESS)
}
