//! `schedlab report`: the same answer again, from the results directory alone.

use crate::args::{FailOn, ReportArgs};
use crate::exit::{self, CliError};
use crate::latest;
use crate::output::{self, note, say};
use crate::results_argument::Opened;
use doors::shown::{self, Stream};
use report::lacks::{find_lacks, lost_places};
use report::{Comparison, FORMATS, Format, Options, Table, Verdict};
use results::ResultSet;
use results::capsule::{PAGES, REPORT};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub fn report(args: &ReportArgs) -> Result<ExitCode, CliError> {
    let dir = latest::or_newest(args.dir.as_deref())?;
    let opened = Opened::open(&dir, &args.unpack)?;
    let results = ResultSet::read(opened.dir())?;
    let table = match args.open {
        true => Table::from_results(&results),
        false => Table::for_format(&results, args.format),
    };
    match (&args.hgrm, &args.output) {
        (Some(dir), _) => write_distributions(dir, &results)?,
        (None, Some(path)) => {
            let options = Options {
                full: args.full,
                ..Options::default()
            };
            output::file(path, render(args.format, &table, &results, options)?)?;
        }
        (None, None) => print(args.format, &table, &results, args.full)?,
    }
    if args.open {
        output::open(&write_report_files(&table, &results)?);
    }
    Ok(match args.fail_on {
        Some(_) => verdict_code(&table, &results, args.fail_on),
        None => ExitCode::SUCCESS,
    })
}

fn write_distributions(dir: &Path, results: &ResultSet) -> Result<(), CliError> {
    output::directory(dir)?;
    let files = report::hgrm_files(results);
    for file in &files {
        output::file(
            &dir.join(&file.name),
            shown::clean_text(&file.text).into_string().into_bytes(),
        )?;
    }
    say!("{} distributions in {}", files.len(), dir.display());
    Ok(())
}

fn render(
    format: &Format,
    table: &Table,
    results: &ResultSet,
    options: Options,
) -> Result<Vec<u8>, CliError> {
    let text = format
        .render_report(table, results, &options)
        .map_err(CliError::internal)?;
    Ok(text.into_string().into_bytes())
}

/// To standard output.
pub fn print(
    format: &Format,
    table: &Table,
    results: &ResultSet,
    full: bool,
) -> Result<(), CliError> {
    let color = output::has_colours(Stream::Output);
    let width = output::width();
    let options = Options { color, full, width };
    let report = format.render_report(table, results, &options);
    output::write(&report.map_err(CliError::internal)?)
}

/// The report on results that were just written by another command than `run`, with its files, and
/// the directory on standard error.
pub fn on_new(dir: &Path, format: &Format) -> Result<ExitCode, CliError> {
    latest::remember(dir);
    let results = ResultSet::read(dir)?;
    let table = Table::from_results(&results);
    write_report_files(&table, &results)?;
    print(format, &table, &results, false)?;
    note!("Results: {}", dir.display());
    Ok(ExitCode::SUCCESS)
}

/// `report/` in the results directory; gives the path of the HTML page.
pub fn write_report_files(table: &Table, results: &ResultSet) -> Result<PathBuf, CliError> {
    let mut page = PathBuf::new();
    let files = FORMATS.iter().filter_map(|f| Some((f, f.file?)));
    for (format, name) in files {
        let text = render(
            format,
            table,
            results,
            Options {
                full: true,
                ..Options::default()
            },
        )?;
        let path = results::write::write_derived(&results.dir, &format!("report/{name}"), &text)?;
        if format.name == "html" {
            page = path;
        }
    }
    Ok(page)
}

/// The report as a capsule has it, by path: for programs, as a page, and as text.
pub fn for_capsule(results: &ResultSet) -> Result<Vec<(&'static str, String)>, CliError> {
    let table = Table::from_results(results);
    let [page, text] = PAGES;
    let options = Options {
        full: true,
        ..Options::default()
    };
    let of = |path: &'static str, name: &str| {
        let format = Format::find_by_name(name).ok_or_else(|| CliError::internal(name))?;
        let report = format.render_report(&table, results, &options);
        Ok((path, report.map_err(CliError::internal)?.into_string()))
    };
    [(REPORT, "json"), (page, "html"), (text, "text")]
        .into_iter()
        .map(|(path, name)| of(path, name))
        .collect()
}

/// The exit code of a report. The verdict that was asked for weighs more than a lost trial.
pub fn verdict_code(table: &Table, results: &ResultSet, fail_on: Option<FailOn>) -> ExitCode {
    let Some(fail_on) = fail_on else {
        let lacks = lost_places(results).is_some() || table.trials_that_count() == 0;
        return ExitCode::from(if lacks { exit::TRIALS_LOST } else { exit::DONE });
    };
    let (regressed, open) = (has_regression(table), undecided(table));
    let lacks = find_lacks(table, results);
    warn_of_lacks(&lacks);
    let uncompared = lacks.iter().any(|lack| lack.cell.is_some());
    let fails = match fail_on {
        FailOn::Regression => false,
        FailOn::Events => table.has_worse_events(),
        FailOn::Unknown => open > 0 || uncompared,
    };
    if regressed || fails {
        return ExitCode::from(exit::REGRESSION);
    }
    if !lacks.is_empty() {
        return ExitCode::from(exit::TRIALS_LOST);
    }
    // A check that passes because nothing was found out must not look like one that passed.
    if open > 0 {
        tracing::warn!(
            "no regression was found, but not all is decided ({open} of {} comparisons are open); \
             --fail-on unknown fails on that, too",
            deciding(table).count()
        );
    }
    ExitCode::from(exit::DONE)
}

/// Says why a check does not pass, or on what it does not rest.
pub fn warn_of_lacks(lacks: &[impl Display]) {
    for lack in lacks.iter().take(MOST_LACKS) {
        tracing::warn!("not measured: {lack}");
    }
    let more = lacks.len().saturating_sub(MOST_LACKS);
    if more > 0 {
        tracing::warn!("not measured: {more} more of this kind");
    }
}

/// More lines of what was not measured say nothing new.
const MOST_LACKS: usize = 10;

fn has_regression(table: &Table) -> bool {
    let worse = |c: &Comparison| c.deciding && c.verdict == Verdict::Worse;
    table.all_comparisons().any(worse)
}

/// Comparisons that decide, without those of the baseline under another name.
fn deciding(table: &Table) -> impl Iterator<Item = &Comparison> {
    table.all_comparisons().filter(|c| c.deciding && !c.aa)
}

fn undecided(table: &Table) -> usize {
    let open = |c: &&Comparison| c.verdict == Verdict::Unknown;
    deciding(table).filter(open).count()
}
