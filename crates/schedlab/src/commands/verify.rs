//! `schedlab verify`: are the bytes those that were packed, does the evidence prove
//! the treatment, do the histograms give the trials' figures, and the trials the
//! report's?

use crate::exit::{self, CliError};
use crate::opened::Opened;
use crate::output::say;
use report::verify::{self, Verification};
use results::{ResultSet, capsule};
use std::path::Path;
use std::process::ExitCode;

pub fn verify(path: &Path) -> Result<ExitCode, CliError> {
    let opened = Opened::open(path)?;
    let results = ResultSet::read(opened.dir())?;
    let mut findings = Findings::default();
    findings.bytes(&opened)?;
    findings.evidence(&results);
    findings.numbers(&results)?;
    for line in &findings.fine {
        say!("  ok       {line}");
    }
    for line in &findings.unknown {
        say!("  unknown  {line}");
    }
    for line in &findings.wrong {
        say!("  DIFFERS  {line}");
    }
    Ok(match findings.wrong.len() {
        0 => {
            say!("{}: what it says is what it holds", path.display());
            ExitCode::SUCCESS
        }
        n => {
            say!("{}: {n} differences", path.display());
            ExitCode::from(exit::DIFFERS)
        }
    })
}

/// One line each.
#[derive(Default)]
struct Findings {
    fine: Vec<String>,
    unknown: Vec<String>,
    wrong: Vec<String>,
}

impl Findings {
    fn bytes(&mut self, opened: &Opened) -> Result<(), CliError> {
        let Some((tampering, fingerprint)) = capsule::check_sums(opened.dir())? else {
            let what = format!("bytes: there is no {}, so nobody knows them", capsule::SUMS);
            match opened.is_capsule() {
                true => self.wrong.push(what),
                false => self
                    .unknown
                    .push(format!("{what}; `schedlab pack` writes it")),
            }
            return Ok(());
        };
        if tampering.is_empty() {
            self.fine.push(format!("bytes: fingerprint {fingerprint}"));
        }
        self.wrong.extend(tampering.iter().map(ToString::to_string));
        Ok(())
    }

    fn evidence(&mut self, results: &ResultSet) {
        let before = self.wrong.len();
        let mut proven = 0;
        for stored in results.trials.iter().filter(|stored| stored.trial.is_ok()) {
            let trial = &stored.trial;
            let judged = match results.experiment.arms.get(trial.place.arm) {
                // What sched_ext was before the arm is not stored: that one
                // comparison is the agent's alone.
                Some(arm) => agent::judge_evidence(arm, None, &trial.result.evidence),
                None => Err("its arm is not in the experiment".to_owned()),
            };
            match judged {
                Ok(()) => proven += 1,
                Err(why) => self.wrong.push(format!(
                    "trial {}, {}, {}: counts, but {why}",
                    trial.place.index, trial.cell, trial.arm
                )),
            }
        }
        if self.wrong.len() == before {
            self.fine.push(format!(
                "evidence: proves the arm in all {proven} trials that count"
            ));
        }
    }

    fn numbers(&mut self, results: &ResultSet) -> Result<(), CliError> {
        let what = "trials: figures that come from histograms";
        self.verification(what, verify::histograms(results));
        let path = results.dir.join(capsule::REPORT);
        if !path.exists() {
            self.unknown
                .push(format!("report: there is no {}", capsule::REPORT));
            return Ok(());
        }
        let said = std::fs::read_to_string(&path)
            .map_err(|e| CliError::internal(format!("reading {}: {e}", path.display())))?;
        match verify::report(results, &said) {
            Ok(verification) => self.verification("report: numbers", verification),
            Err(error) => self.wrong.push(format!("{}: {error}", capsule::REPORT)),
        }
        Ok(())
    }

    fn verification(&mut self, what: &str, verification: Verification) {
        let Verification {
            numbers,
            differences,
        } = verification;
        if differences.is_empty() {
            self.fine.push(format!("{what}: {numbers} recomputed"));
        }
        self.wrong
            .extend(differences.iter().map(ToString::to_string));
    }
}
