//! `schedlab tune` as it is typed.

use super::{ExperimentArgs, WaitArgs};
use crate::output::Plain;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct TuneArgs {
    /// What is varied: 'slice=0.1ms..10ms log', 'env.THREADS=1..8', nice=0,5,10,
    /// 'scx_lavd --slice-max-us=1000..20000 log'; several are combined. The first -a is the baseline
    /// [default: default], further ones are candidates, too
    #[arg(long, value_name = "KEY=VALUES")]
    pub vary: Vec<String>,
    /// What matters how much: 'http p99=3, hackbench=1' [default: all cells alike]
    #[arg(long, value_name = "WEIGHTS")]
    pub weigh: Option<String>,
    #[command(flatten)]
    pub experiment: ExperimentArgs,
    #[command(flatten)]
    pub wait: WaitArgs,
    /// Directory of the race; one that holds it already goes on [default: results/tune-TIME/]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    pub format: Plain,
    /// No progress, only the answer
    #[arg(short, long)]
    pub quiet: bool,
}
