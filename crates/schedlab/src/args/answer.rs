//! Words of all commands that measure and then answer.

use crate::output::Plain;
use clap::Args;

/// The form of an answer.
#[derive(Debug, Clone, Copy, Args)]
pub struct AnswerArgs {
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    pub format: Plain,
    /// No progress, only the answer
    #[arg(short, long)]
    pub quiet: bool,
}

/// Another run of this machine.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct WaitArgs {
    /// Wait for the end of another run, if one is under way
    #[arg(long)]
    pub wait: bool,
}
