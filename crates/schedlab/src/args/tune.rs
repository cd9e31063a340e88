//! `schedlab tune` as it is typed.

use super::{AnswerArgs, ExperimentArgs, WaitArgs};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct TuneArgs {
    /// Settings to vary: 'slice=0.1ms..10ms log', 'env.THREADS=1..8', nice=0,5,10,
    /// 'scx_lavd --slice-max-us=1000..20000 log'; several are combined. The first -a is the baseline
    /// [default: default], further ones are candidates, too
    #[arg(long, value_name = "KEY=VALUES")]
    pub vary: Vec<String>,
    /// Ready spaces of schedulers, by name: scx_lavd (schedlab list spaces shows them)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub space: Vec<String>,
    /// Weights of cells and metrics: 'http p99=3, hackbench=1' [default: all cells alike]
    #[arg(long, value_name = "WEIGHTS")]
    pub weigh: Option<String>,
    /// What to make better, with constraints as ratios to the baseline:
    /// 'minimise request_p99 where requests_per_sec >= 0.98'; of two metrics the front is shown, too
    #[arg(long, value_name = "GOAL", conflicts_with = "weigh")]
    pub objective: Option<String>,
    /// Metrics that a winner must not make worse by more than matters
    #[arg(long, value_name = "METRICS", value_delimiter = ',')]
    pub must_not_worsen: Vec<String>,
    /// Session of the ledger that pays for the confirmation, as a question of schedlab propose
    #[arg(long, value_name = "N")]
    pub session: Option<u32>,
    #[command(flatten)]
    pub experiment: ExperimentArgs,
    #[command(flatten)]
    pub wait: WaitArgs,
    /// Directory of the race; one that holds it already goes on [default: results/tune-TIME/]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub answer: AnswerArgs,
}
