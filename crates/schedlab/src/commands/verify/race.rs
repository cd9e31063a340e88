//! `schedlab verify` of a race: it is made again from its trials, and each of its runs is verified.

use super::{check_results, exit_code, print, tune};
use crate::args::VerifyArgs;
use crate::exit::CliError;
use crate::output::{self, Plain, say};
use model::printable::one_line;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;

pub(super) fn verify_race(dir: &Path, args: &VerifyArgs) -> Result<ExitCode, CliError> {
    let replay = tune::replay_race(dir)?;
    let paths = replay.results.iter().map(|results| dir.join(results));
    let runs = paths.map(|path| Ok((check_results(&path, args)?, path)));
    let runs = runs.collect::<Result<Vec<_>, CliError>>()?;
    match args.format {
        Plain::Json => {
            let all = runs.iter();
            let all =
                all.map(|(findings, path)| json!({ "results": path, "findings": findings.json() }));
            output::json(&json!({
                "race": replay.summary_text(),
                "over": replay.is_over,
                "differences": replay.differences,
                "runs": all.collect::<Vec<_>>(),
            }))?;
        }
        Plain::Text => {
            runs.iter()
                .for_each(|(findings, path)| print(path, findings));
            let differences = replay.differences.iter();
            differences.for_each(|difference| say!("DIFFERS  {}", one_line(difference)));
            let name = dir.display().to_string();
            let found = match replay.differences.len() {
                0 => "the race follows from its trials".to_owned(),
                1 => "1 difference in the race".to_owned(),
                n => format!("{n} differences in the race"),
            };
            say!("{}: {found}; {}", one_line(&name), replay.summary_text());
        }
    }
    let in_runs: usize = runs
        .iter()
        .map(|(findings, _)| findings.count_wrong())
        .sum();
    Ok(exit_code(in_runs + replay.differences.len()))
}
