//! `schedlab doctor`: what moves figures on this machine, and how to change it.

use crate::args::DoctorArgs;
use crate::exit::{self, CliError};
use crate::output::Plain;
use crate::{output, targets};
use agent::Fixed;
use collect::preflight::{self, Finding, Machine, WATCH};
use model::{Check, CheckState};
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

const WIDTH: usize = 78;

pub fn doctor(args: &DoctorArgs) -> Result<ExitCode, CliError> {
    if let Some(far) = &args.far {
        return targets::run_elsewhere(far, &words(args));
    }
    let mut findings = look();
    let mut changes = Vec::new();
    if args.fix {
        // Not in the middle of somebody's trial.
        let _lock = targets::machine_lock()?;
        // What a run left in force is not what was before the fixes.
        targets::restore_leftovers()?;
        findings = look();
        changes = change(&findings)?;
        findings = look();
    }
    match args.format {
        Plain::Text => output::print_text(text(&findings, &changes, args.full))?,
        Plain::Json => output::json(&Report::of(&findings, &changes))?,
    }
    let failed = changes.iter().any(|change| change.after.is_err());
    Ok(ExitCode::from(if failed {
        exit::UNMET
    } else {
        exit::DONE
    }))
}

/// The same command, for the machine itself.
fn words(args: &DoctorArgs) -> Vec<&'static str> {
    let given = [("--fix", args.fix), ("--full", args.full)];
    let given = given
        .into_iter()
        .filter_map(|(word, given)| given.then_some(word));
    std::iter::once("doctor")
        .chain(given)
        .chain([args.format.option_word()])
        .collect()
}

fn look() -> Vec<Finding> {
    let mut findings = preflight::check_machine(&Machine::watch(Path::new("/"), WATCH));
    findings.extend(super::snapshot::check_snapshots().map(|check| Finding {
        check,
        fix: Vec::new(),
    }));
    findings
}

fn change(findings: &[Finding]) -> Result<Vec<Fixed>, CliError> {
    let writes: Vec<_> = findings.iter().flat_map(|f| f.fix.clone()).collect();
    Ok(agent::apply_fixes(&writes)?)
}

#[derive(Serialize)]
struct Report<'a> {
    checks: Vec<&'a Check>,
    /// Names of the checks that `--fix` would change.
    fixable: Vec<&'a str>,
    changed: Vec<Changed<'a>>,
}

#[derive(Serialize)]
struct Changed<'a> {
    path: &'a Path,
    before: &'a str,
    after: Option<&'a str>,
    error: Option<&'a str>,
}

impl<'a> Report<'a> {
    fn of(findings: &'a [Finding], changes: &'a [Fixed]) -> Self {
        Report {
            checks: findings.iter().map(|f| &f.check).collect(),
            fixable: fixable(findings),
            changed: changes.iter().map(Changed::of).collect(),
        }
    }
}

impl<'a> Changed<'a> {
    fn of(fixed: &'a Fixed) -> Self {
        Changed {
            path: &fixed.path,
            before: &fixed.before,
            after: fixed.after.as_deref().ok(),
            error: fixed.after.as_ref().err().map(String::as_str),
        }
    }
}

fn fixable(findings: &[Finding]) -> Vec<&str> {
    let with_fix = findings.iter().filter(|f| !f.fix.is_empty());
    with_fix.map(|f| f.check.name.as_str()).collect()
}

fn text(findings: &[Finding], changes: &[Fixed], full: bool) -> String {
    let mut out = String::new();
    add_changes(&mut out, changes);
    for (state, title) in [
        (CheckState::Caution, "Moves figures here:"),
        (CheckState::Ok, "Fine:"),
        (CheckState::Unknown, "Unknown here:"),
    ] {
        let of_state = findings.iter().filter(|f| f.check.state == state);
        let checks: Vec<&Check> = of_state.map(|f| &f.check).collect();
        add_section(
            &mut out,
            title,
            &checks,
            full || state == CheckState::Caution,
        );
    }
    add_advice(&mut out, findings, changes);
    out
}

pub(super) fn add_section(out: &mut String, title: &str, checks: &[&Check], explained: bool) {
    if checks.is_empty() {
        return;
    }
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{title}");
    for check in checks {
        let _ = writeln!(out, "  {:<16} {}", check.name, check.value);
        if explained {
            let effect = report::wrap_text(&check.effect, WIDTH, 4, 4);
            let remedy = report::wrap_text(&format!("→ {}", check.remedy), WIDTH, 4, 6);
            for line in effect.into_iter().chain(remedy) {
                let _ = writeln!(out, "{line}");
            }
        }
    }
    out.push('\n');
}

fn add_changes(out: &mut String, changes: &[Fixed]) {
    if changes.is_empty() {
        return;
    }
    let _ = writeln!(out, "Changed, until `schedlab restore` or the next boot:");
    for Fixed {
        path,
        before,
        after,
    } in changes
    {
        let path = path.display();
        let _ = match after {
            Ok(after) => writeln!(out, "  {path}: {before} → {after}"),
            Err(why) => writeln!(out, "  {path}: still {before}: {why}"),
        };
    }
    out.push('\n');
}

fn add_advice(out: &mut String, findings: &[Finding], changes: &[Fixed]) {
    let fixable = fixable(findings);
    if changes.is_empty() && !fixable.is_empty() {
        let names = fixable.join(", ");
        let _ = writeln!(
            out,
            "`schedlab doctor --fix` (as root) changes: {names}.\n\
             `schedlab restore` puts back what it changed."
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(name: &str, state: CheckState) -> Finding {
        let fix = match state {
            CheckState::Caution => vec![preflight::Write {
                path: format!("/sys/{name}").into(),
                text: "0".to_owned(),
            }],
            _ => Vec::new(),
        };
        Finding {
            check: Check {
                name: name.to_owned(),
                value: "on".to_owned(),
                state,
                effect: "It moves figures.".to_owned(),
                remedy: "switch it off".to_owned(),
            },
            fix,
        }
    }

    #[test]
    fn cautions_come_first_with_their_effect_and_remedy() {
        let findings = [
            finding("smt", CheckState::Ok),
            finding("turbo", CheckState::Caution),
        ];
        let text = text(&findings, &[], false);
        let position = |needle: &str| text.find(needle).unwrap();
        assert!(position("turbo") < position("smt"));
        assert!(text.contains("    → switch it off"), "{text}");
        assert_eq!(text.matches("It moves figures.").count(), 1);
        assert!(text.contains("--fix` (as root) changes: turbo."), "{text}");
    }

    #[test]
    fn in_full_every_check_is_explained() {
        let findings = [finding("smt", CheckState::Ok)];
        assert!(text(&findings, &[], true).contains("It moves figures."));
    }

    #[test]
    fn a_change_that_failed_says_why_and_what_is_still_in_force() {
        let changes = [Fixed {
            path: "/sys/turbo".into(),
            before: "1".to_owned(),
            after: Err("permission denied".to_owned()),
        }];
        let text = text(&[], &changes, false);
        assert!(
            text.contains("/sys/turbo: still 1: permission denied"),
            "{text}"
        );
    }
}
