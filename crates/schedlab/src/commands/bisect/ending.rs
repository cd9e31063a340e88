//! What a bisection found, for the terminal and for a notice.

use super::state::State;
use super::state_text::answer_text;
use crate::args::BisectArgs;
use crate::exit::{self, CliError};
use crate::output::{self, Plain, note};
use git::Next;
use referee::Outcome;
use std::path::PathBuf;
use std::process::ExitCode;

/// A bisection that has come to its end.
pub struct Ending {
    pub(super) dir: PathBuf,
    pub(super) state: State,
    pub(super) next: Next,
    /// The end of its question in the ledger, and that in words.
    pub(super) answered: Option<(Outcome, String)>,
}

impl Ending {
    /// Prints the answer as it was asked for, and gives the exit code.
    pub(super) fn print(&self, args: &BisectArgs) -> Result<ExitCode, CliError> {
        match args.answer.format {
            Plain::Json => output::json(&self.state)?,
            Plain::Text => {
                output::print_text(answer_text(&self.state, &self.next))?;
                if let Some((_, text)) = &self.answered {
                    output::print_text(text)?;
                }
            }
        }
        if !args.answer.quiet {
            note!("\nResults  {}", self.dir.display());
        }
        Ok(match (&self.next, &self.answered) {
            (_, Some((outcome, _))) if *outcome != Outcome::Accepted => {
                ExitCode::from(exit::REGRESSION)
            }
            (Next::First(_), _) => ExitCode::SUCCESS,
            _ => ExitCode::from(exit::TRIALS_LOST),
        })
    }

    /// `it came with 0123456789ab (balance less often)`, with what is doubtful, and the directory.
    pub fn describe(&self) -> String {
        let dir = self.dir.display();
        let (Next::First(first), Some(again)) = (&self.next, &self.state.again) else {
            return format!(
                "it came with {}, of {} commits; more time for each step decides (`schedlab history bisect`); see {dir}",
                self.state.name_suspects(),
                self.state.commits
            );
        };
        let short = first.get(..git::SHORT).unwrap_or(first);
        let doubt = match again.verdict.as_str() {
            "bad" => String::new(),
            _ => format!(
                ", but beside its own parent it was not found to be worse ({})",
                again.why
            ),
        };
        format!("it came with {short} ({}){doubt}; see {dir}", again.subject)
    }
}
