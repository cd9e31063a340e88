//! `schedlab bisect` as it is typed.

use super::{AnswerArgs, ExperimentArgs, WaitArgs};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct BisectArgs {
    /// Scheduler, with arguments if it takes some: scx_rusty, 'scx_rusty --slice-us-overutil 5000';
    /// kernel: Linux itself, which guests boot; with --build a file that it makes in the tree: bin/sort
    pub program: String,
    /// Shell command that builds the program in the tree of a commit; the workload finds the path
    /// of the program in the variable PROGRAM. It runs as you do; where root bisects, as who called sudo, else nobody
    #[arg(long, value_name = "COMMAND")]
    pub build: Option<String>,
    /// Start of a kernel's configuration: a target of its make, or a file [default: defconfig]
    #[arg(long, value_name = "CONFIG", conflicts_with = "build")]
    pub config: Option<String>,
    /// File of options that are merged into a kernel's configuration
    #[arg(long, value_name = "FILE", conflicts_with = "build")]
    pub fragment: Vec<PathBuf>,
    /// Patch that each commit is built with, such as one without which it does not run here; a commit to which
    /// it does not apply is skipped. Can be repeated
    #[arg(long, value_name = "FILE")]
    pub patch: Vec<PathBuf>,
    /// Repository of its source, a path or a URL
    #[arg(long, value_name = "REPOSITORY")]
    pub repository: String,
    /// Commit at which it was as it should be: a tag, a branch, or a commit
    #[arg(long, value_name = "REVISION")]
    pub good: String,
    /// Commit at which it is worse
    #[arg(long, value_name = "REVISION")]
    pub bad: String,
    /// Only commits that change this file or directory, from the top of the repository. Can be repeated
    #[arg(long, value_name = "PATH")]
    pub path: Vec<String>,
    /// Session of the ledger that pays for the whole bisection, as for a question of schedlab propose
    #[arg(long, value_name = "N")]
    pub session: Option<u32>,
    #[command(flatten)]
    pub experiment: ExperimentArgs,
    #[command(flatten)]
    pub wait: WaitArgs,
    /// Directory of the bisection; one that holds it already goes on [default:
    /// results/bisect-TIME/]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub answer: AnswerArgs,
}
