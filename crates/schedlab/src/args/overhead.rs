//! Arguments of `schedlab overhead`.

use super::WaitArgs;
use crate::output::Plain;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct OverheadArgs {
    /// The workload that is watched, with one load
    #[arg(short, long, value_name = "WORKLOAD", default_value = "wakeup:100%")]
    pub workload: String,
    /// Most blocks; a block is one trial for each collector and one without
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub max_blocks: u32,
    /// Wall time for the trials: 2m, 1h [default: until all is decided]
    #[arg(long, value_name = "TIME")]
    pub budget: Option<String>,
    #[command(flatten)]
    pub wait: WaitArgs,
    /// Results directory [default: results/overhead-TIME/]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    pub format: Plain,
    /// No progress, only the table
    #[arg(short, long)]
    pub quiet: bool,
}
