//! `schedlab propose` as it is typed.

use super::{AnswerArgs, ExperimentArgs, WaitArgs};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct ProposeArgs {
    #[command(flatten)]
    pub experiment: ExperimentArgs,
    /// Begin a session, with its whole error [default: go on with the newest one of this shell's user]
    #[arg(long, conflicts_with = "session")]
    pub new_session: bool,
    /// Session that pays
    #[arg(long, value_name = "N")]
    pub session: Option<u32>,
    /// List what was asked, at which price, and what came out
    #[arg(long, conflicts_with_all = ["new_session", "arms", "workloads", "file"])]
    pub ledger: bool,
    #[command(flatten)]
    pub wait: WaitArgs,
    /// Results directory [default: results/NAME-TIME/]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub answer: AnswerArgs,
}
