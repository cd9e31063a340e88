//! `schedlab pick` as it is typed.

use super::{AnswerArgs, WaitArgs};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct PickArgs {
    /// Use of this machine
    #[arg(long = "for", value_name = "USE", default_value = "desktop")]
    pub purpose: Purpose,
    /// Time for all of it
    #[arg(long, value_name = "TIME", default_value = "5m")]
    pub budget: String,
    /// An arm beside those that are tried anyway (batch, short and long slices, installed schedulers)
    #[arg(short, long = "arm", value_name = "ARM")]
    pub arms: Vec<String>,
    /// Try the arms of -a alone
    #[arg(long, requires = "arms")]
    pub only: bool,
    #[command(flatten)]
    pub wait: WaitArgs,
    /// Results directory [default: results/pick-TIME/]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub answer: AnswerArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Purpose {
    /// Frames of a game and short reactions, beside work in the background
    Desktop,
    /// Requests and answers, with all CPUs in use
    Server,
    /// Many processes that start and end
    Build,
    /// Wake-ups and jobs with deadlines
    Latency,
}
