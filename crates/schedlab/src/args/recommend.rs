//! `schedlab recommend` as it is typed.

use super::UnpackArgs;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct RecommendArgs {
    /// Results directories or capsules of one machine, against one baseline [default: the newest run,
    /// results/latest]
    #[arg(value_name = "DIR|CAPSULE")]
    pub results: Vec<PathBuf>,
    /// What matters how much: 'http p99=3, hackbench=1', or a file with one NAME = NUMBER on each line; a
    /// name is a cell, a workload, a metric, or one of the first two with a metric [default: all cells
    /// alike]
    #[arg(long, value_name = "WEIGHTS|FILE")]
    pub weigh: Option<String>,
    /// A difference that is smaller is no reason to change anything [default: the smallest effect of the
    /// results]
    #[arg(long, value_name = "PERCENT")]
    pub care: Option<String>,
    #[arg(long, value_enum, default_value_t = RecommendFormat::Text)]
    pub format: RecommendFormat,
    #[command(flatten)]
    pub unpack: UnpackArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RecommendFormat {
    Text,
    Json,
    Markdown,
}
