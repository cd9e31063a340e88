//! `schedlab import`: runs of other tools as a results directory, and the report on it.

use crate::args::ImportArgs;
use crate::commands::report::on_new;
use crate::exit::CliError;
use crate::measure::{build, default_dir};
use ::import::{Converted, ImportError, Imported, Options, read_table, table};
use model::{Severity, Warning};
use std::path::Path;
use std::process::ExitCode;

/// Faults that are listed; more of them say nothing new.
const MOST_FAULTS: usize = 20;
const SKIP_BAD: &str = "--skip-bad";

pub fn import(args: &ImportArgs) -> Result<ExitCode, CliError> {
    let mut imported = read(args)?;
    match args.skip_bad {
        true => leave_out(&mut imported),
        false if !imported.faults.is_empty() => return Err(refused_in_part(&imported)),
        false => {}
    }
    let options = Options {
        tool: args.tool.name.to_owned(),
        name: args.tool.name.to_owned(),
        baseline: args.baseline.clone(),
        confidence: Some(args.confidence),
        build: build(),
    };
    let first = args
        .paths
        .first()
        .map_or(Path::new("."), |path| path.as_path());
    let converted =
        Converted::from_imported(imported, first, options).map_err(|e| refused(&[e]))?;
    let dir = args.output.clone();
    let dir = dir.unwrap_or_else(|| default_dir(args.tool.name));
    converted.write(&dir)?;
    on_new(&dir, args.format)
}

fn read(args: &ImportArgs) -> Result<Imported, CliError> {
    let Some(arm) = &args.arm else {
        return args.tool.read(&args.paths).map_err(|e| refused(&[e]));
    };
    if args.tool.name != table::NAME {
        return Err(CliError::Usage {
            message: format!("{} has no columns to name", args.tool.name),
            help: Some("--arm, --cell and --metric are for `schedlab import table`".to_owned()),
        });
    }
    let columns = table::Columns {
        arm: arm.clone(),
        cells: args.cells.clone(),
        metrics: args.metrics.clone(),
        thousands: args.thousands,
    };
    read_table(&args.paths, &columns).map_err(|e| refused(&[e]))
}

fn leave_out(imported: &mut Imported) {
    let faults = std::mem::take(&mut imported.faults);
    imported
        .warnings
        .extend(faults.into_iter().map(|fault| Warning {
            severity: Severity::Serious,
            what: format!("Left out: {fault}."),
            remedy: String::new(),
        }));
}

/// All faults, with the way to what is good beside them.
fn refused_in_part(imported: &Imported) -> CliError {
    let mut faults = imported.faults.clone();
    let is_named = faults.iter().any(|fault| fault.remedy.contains(SKIP_BAD));
    if let Some(last) = faults
        .last_mut()
        .filter(|_| !imported.runs.is_empty() && !is_named)
    {
        let way = format!("or leave out what is wrong with {SKIP_BAD}");
        last.remedy = match last.remedy.as_str() {
            "" => format!("correct it, {way}"),
            remedy => format!("{remedy}; {way}"),
        };
    }
    refused(&faults)
}

/// All faults, each with its place.
fn refused(faults: &[ImportError]) -> CliError {
    let shown = faults.iter().take(MOST_FAULTS).map(ToString::to_string);
    let mut lines: Vec<String> = shown.collect();
    let more = faults.len().saturating_sub(MOST_FAULTS);
    lines.extend((more > 0).then(|| format!("and {more} more")));
    let mut remedies: Vec<&str> = Vec::new();
    for fault in faults {
        let remedy = fault.remedy.as_str();
        if !remedy.is_empty() && !remedies.contains(&remedy) {
            remedies.push(remedy);
        }
    }
    CliError::Usage {
        message: lines.join("\n"),
        help: Some(remedies.join("\n")).filter(|help| !help.is_empty()),
    }
}
