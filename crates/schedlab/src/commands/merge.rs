//! `schedlab merge`: runs of one experiment as one result, and the report on it.

use crate::args::MergeArgs;
use crate::commands::report::on_new;
use crate::exit::CliError;
use crate::measure::{build, default_dir};
use crate::results_argument::Opened;
use model::{Severity, Warning};
use report::compare::{describe_unmatched, same_run};
use results::merge::{Part, has_name_of_machine};
use results::{FORMAT, Manifest, ResultSet, RunState};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

pub fn merge(args: &MergeArgs) -> Result<ExitCode, CliError> {
    let open = |path| Opened::open(path, &args.unpack);
    let opened: Vec<Opened> = args
        .parts
        .iter()
        .map(|path| open(path))
        .collect::<Result<_, _>>()?;
    let read = |opened: &Opened| ResultSet::read(opened.dir());
    let all: Vec<ResultSet> = opened.iter().map(read).collect::<Result<_, _>>()?;
    check(&args.parts, &all)?;
    let part = |(path, results)| Part {
        machine: machine(path, results),
        results,
    };
    let parts: Vec<Part> = args
        .parts
        .iter()
        .map(|path| path.as_path())
        .zip(&all)
        .map(part)
        .collect();
    let name = &all[0].manifest.name;
    let dir = args.output.clone();
    let dir = dir.unwrap_or_else(|| default_dir(&format!("{name}-merged")));
    let go_on = "go on with them by `schedlab run --resume`, and merge again";
    results::merge::merge_runs(&parts, &dir, manifest(&parts, Some(go_on)))?;
    on_new(&dir, args.format)
}

/// Runs, each of them once, of the same experiment.
fn check(paths: &[std::path::PathBuf], all: &[ResultSet]) -> Result<(), CliError> {
    let shown = |index: usize| paths[index].display();
    for (index, results) in all.iter().enumerate() {
        if results.experiment.import_source().is_some() {
            return Err(CliError::usage(
                format!("{} was imported and has no blocks", shown(index)),
                "merge runs of schedlab",
            ));
        }
        if results.manifest.state == RunState::Running {
            return Err(CliError::usage(
                format!("{} is under way, or its process died", shown(index)),
                "wait for its end, or go on with `schedlab run --resume`",
            ));
        }
        if !results.manifest.sources.is_empty() {
            return Err(CliError::usage(
                format!("{} was merged itself", shown(index)),
                "name the runs that it was merged from",
            ));
        }
        let unlike = describe_unmatched(&all[0], results);
        if !unlike.is_empty() {
            return Err(CliError::usage(
                format!(
                    "A, {}, and B, {}, are of different experiments:\n{}",
                    shown(0),
                    shown(index),
                    unlike.join("\n")
                ),
                "merge runs of one experiment file; `schedlab compare` puts different ones side by side",
            ));
        }
        let again = (0..index).find(|before| same_run(&all[*before], results).is_some());
        if let Some(before) = again {
            return Err(CliError::usage(
                format!("{} and {} are the same run", shown(before), shown(index)),
                "name each run once, since its evidence counts once",
            ));
        }
        let seed = results.manifest.seed;
        let twin = (0..index).find(|before| all[*before].manifest.seed == seed);
        if let Some(before) = twin {
            return Err(CliError::usage(
                format!(
                    "{} and {} both have the seed {seed}, and so the same order of arms in each block: \
                     the evidence of two runs adds up only where each drew its own",
                    shown(before),
                    shown(index)
                ),
                "give each run a seed of its own: `schedlab run --seed N`",
            ));
        }
    }
    Ok(())
}

/// The host name where that tells machines apart, else the place of the results.
fn machine(path: &Path, results: &ResultSet) -> String {
    let host = &results.system.hostname;
    match has_name_of_machine(&results.experiment) && !host.is_empty() {
        true => host.clone(),
        false => path.display().to_string(),
    }
}

/// The manifest of merged runs. `go_on`: the remedy where one of them came to no end; `None` where it
/// need not.
pub fn manifest(parts: &[Part], go_on: Option<&str>) -> Manifest {
    let first = &parts[0].results.manifest;
    let machines: BTreeSet<&str> = parts.iter().map(|part| part.machine.as_str()).collect();
    let machines: Vec<&str> = machines.into_iter().collect();
    let merged = Warning {
        severity: Severity::Note,
        what: format!(
            "Merged from {}, on {}. The head of the report is that of the first.",
            report::format_count(parts.len(), "run"),
            machines.join(", ")
        ),
        remedy: String::new(),
    };
    let mut warnings = vec![merged];
    warnings.extend(reservations(parts, go_on));
    for warning in parts
        .iter()
        .flat_map(|part| &part.results.manifest.warnings)
    {
        // There are more blocks now.
        if !warnings.contains(warning) && !runner::says_of_budget(warning) {
            warnings.push(warning.clone());
        }
    }
    let build = build();
    Manifest {
        format: FORMAT,
        tool_version: build.version,
        tool_commit: build.commit,
        name: first.name.clone(),
        seed: first.seed,
        created: jiff::Timestamp::now().to_string(),
        state: RunState::Running,
        warnings,
        sources: Vec::new(),
        together: false,
    }
}

/// Differences between the runs that the report of one cannot know.
fn reservations(parts: &[Part], go_on: Option<&str>) -> Vec<Warning> {
    let caution = |what: String, remedy: &str| Warning {
        severity: Severity::Caution,
        what,
        remedy: remedy.to_owned(),
    };
    let is_whole = |part: &&Part| part.results.manifest.state == RunState::Done;
    let broken = parts.iter().filter(|part| !is_whole(part));
    let broken: Vec<String> = broken
        .map(|part| format!("{} ({})", part.machine, part.results.manifest.created))
        .collect();
    let starts = parts.iter().flat_map(|part| &part.results.starts);
    let builds: BTreeSet<String> = starts.map(|start| start.build.to_string()).collect();
    let mut found = Vec::new();
    if let (Some(go_on), false) = (go_on, broken.is_empty()) {
        found.push(caution(
            format!("Runs that ended before their plan: {}.", broken.join(", ")),
            go_on,
        ));
    }
    if builds.len() > 1 {
        let builds: Vec<String> = builds.into_iter().collect();
        found.push(caution(
            format!(
                "The runs are of several builds of schedlab: {}.",
                builds.join(", ")
            ),
            "measure with one build, since its generators are part of the load",
        ));
    }
    found
}
