//! `schedlab target`: the machines that experiments run on.

use crate::args::{FarArgs, TargetCommand};
use crate::commands::doctor::add_section;
use crate::exit::{self, CliError};
use crate::measure::interrupt_flag;
use crate::output::{self, Plain};
use crate::targets;
use machines::Looked;
use model::{Check, CheckState};
use std::process::ExitCode;

pub fn target(command: &TargetCommand) -> Result<ExitCode, CliError> {
    match command {
        TargetCommand::Check {
            target,
            yes,
            format,
        } => {
            let far = FarArgs {
                target: target.clone(),
                yes: *yes,
            };
            check(&far, *format)
        }
    }
}

fn check(far: &FarArgs, format: Plain) -> Result<ExitCode, CliError> {
    let Looked { checks, missing } =
        targets::named_target(far, &interrupt_flag()?)?.find_lacks()?;
    let code = match missing.is_empty() {
        true => exit::DONE,
        false => exit::UNMET,
    };
    match format {
        Plain::Json => output::json(&serde_json::json!({
            "target": far.target,
            "checks": checks,
            "missing": missing,
        }))?,
        Plain::Text => output::print_text(text(&checks, missing.is_empty()))?,
    }
    match (format, missing.is_empty()) {
        (Plain::Text, false) => Err(CliError::Unmet(missing)),
        _ => Ok(ExitCode::from(code)),
    }
}

fn text(checks: &[Check], ready: bool) -> String {
    let mut out = String::new();
    for (state, title) in [(CheckState::Caution, "Lacks:"), (CheckState::Ok, "Has:")] {
        let of_state: Vec<&Check> = checks.iter().filter(|c| c.state == state).collect();
        add_section(&mut out, title, &of_state, state == CheckState::Caution);
    }
    if ready {
        out += "A run can start there.\n";
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_comes_first_with_its_remedy() {
        let check = |name: &str, state| Check {
            name: name.to_owned(),
            value: "none".to_owned(),
            state,
            effect: "It cannot be measured.".to_owned(),
            remedy: "install it".to_owned(),
        };
        let checks = [
            check("kernel", CheckState::Ok),
            check("root", CheckState::Caution),
        ];
        let text = text(&checks, true);
        let place = |needle: &str| text.find(needle).unwrap();
        assert!(place("root") < place("→ install it") && place("→ install it") < place("kernel"));
        assert!(text.ends_with("A run can start there.\n"), "{text}");
        assert_eq!(text.matches("install it").count(), 1);
    }
}
