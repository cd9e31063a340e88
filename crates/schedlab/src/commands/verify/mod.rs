//! `schedlab verify`: are the bytes those that were packed, is nothing missing, does the
//! evidence prove the treatment, do the histograms give the trials' figures, and the
//! trials the report's? And what of all that could not be made again.

mod findings;
mod race;

use super::tune;
use crate::args::VerifyArgs;
use crate::exit::{self, CliError};
use crate::latest;
use crate::output::{self, Plain, say};
use crate::results_argument::Opened;
use findings::Findings;
use model::printable::one_line;
use results::{ResultSet, capsule};
use std::path::Path;
use std::process::ExitCode;

pub fn verify(args: &VerifyArgs) -> Result<ExitCode, CliError> {
    let path = latest::or_newest(args.results.as_deref())?;
    if tune::is_race(&path) {
        return race::verify_race(&path, args);
    }
    let findings = check_results(&path, args)?;
    match args.format {
        Plain::Json => output::json(&findings.json())?,
        Plain::Text => print(&path, &findings),
    }
    Ok(exit_code(findings.count_wrong()))
}

fn exit_code(differences: usize) -> ExitCode {
    match differences {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(exit::DIFFERS),
    }
}

fn check_results(path: &Path, args: &VerifyArgs) -> Result<Findings, CliError> {
    let opened = Opened::open(path, &args.unpack)?;
    let results = ResultSet::read(opened.dir())?;
    let mut findings = Findings::default();
    findings.bytes(&opened, args)?;
    findings.signature(&opened, args)?;
    findings.target(&results);
    findings.plan(&results);
    findings.evidence(&results);
    findings.numbers(&results, opened.is_capsule())?;
    if capsule::is_capsules(opened.dir()) {
        let head = capsule::read_head(opened.dir(), path)?;
        findings.pages(&results, &head)?;
    }
    Ok(findings)
}

fn print(path: &Path, findings: &Findings) {
    findings.print();
    let name = path.display().to_string();
    let name = one_line(&name);
    let found = match findings.count_wrong() {
        0 => "what it says is what it holds".to_owned(),
        1 => "1 difference".to_owned(),
        n => format!("{n} differences"),
    };
    say!("{name}: {found}; {}", findings.conclusion());
}
