//! `schedlab plan` as it is typed.

use super::{ExperimentArgs, UnpackArgs, WaitArgs};
use crate::output::Plain;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct PlanArgs {
    #[command(flatten)]
    pub experiment: ExperimentArgs,
    /// Print at most this many blocks
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub blocks: u32,
    /// Measure some blocks now, and say what the budget will show; where arms may take turns
    /// (in-place), twice: in turns and in whole trials
    #[arg(
        long,
        value_name = "BLOCKS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "5",
        value_parser = clap::value_parser!(u32).range(2..=1000)
    )]
    pub pilot: Option<u32>,
    /// Say it from earlier results or capsules of these cells; several of one
    /// experiment tell whether more runs pay
    #[arg(long, value_name = "FILE|DIR", conflicts_with = "pilot")]
    pub from: Vec<PathBuf>,
    /// Say what it takes to see a change of this size: 3%
    #[arg(long, value_name = "PERCENT")]
    pub effect: Option<String>,
    #[command(flatten)]
    pub wait: WaitArgs,
    #[command(flatten)]
    pub unpack: UnpackArgs,
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    pub format: Plain,
}
