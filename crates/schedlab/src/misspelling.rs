//! Words that are typed wrong, where clap's guess at what was meant is not ours.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};

/// The error with the subcommand that is nearest to what was typed: clap takes `rn` for `kernel`,
/// which has both letters, rather than for `run`.
pub fn with_nearest(mut error: Error, root: &Command, args: &[String]) -> Error {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let before = args.iter().take_while(|arg| *arg != typed);
    let command = before.fold(root, |command, arg| {
        command.find_subcommand(arg).unwrap_or(command)
    });
    let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    match model::find_nearest(typed, shown.map(Command::get_name)) {
        Some(nearest) => {
            let nearest = ContextValue::Strings(vec![nearest.to_owned()]);
            error.insert(ContextKind::SuggestedSubcommand, nearest);
        }
        None => {
            error.remove(ContextKind::SuggestedSubcommand);
        }
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::{CommandFactory, Parser};

    fn said(args: &[&str]) -> String {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let error = Cli::try_parse_from(&args).unwrap_err();
        with_nearest(error, &Cli::command(), &args).to_string()
    }

    #[test]
    fn a_misspelt_command_is_answered_with_the_nearest() {
        for (typed, meant) in [
            ("rn", "run"),
            ("rnu", "run"),
            ("plna", "plan"),
            ("chekc", "check"),
            ("raport", "report"),
            ("comprae", "compare"),
        ] {
            let said = said(&["schedlab", typed]);
            assert!(said.contains(&format!("exists: '{meant}'")), "{said}");
        }
        let nested = said(&["schedlab", "vm", "strat"]);
        assert!(nested.contains("exists: 'start'"), "{nested}");
        let strange = said(&["schedlab", "qqq"]);
        assert!(!strange.contains("exists"), "{strange}");
    }
}
