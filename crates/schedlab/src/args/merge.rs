//! `schedlab merge` as it is typed.

use super::{UnpackArgs, format};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct MergeArgs {
    /// Capsules or results directories, two or more
    #[arg(required = true, num_args = 2..)]
    pub parts: Vec<PathBuf>,
    /// Results directory [default: results/NAME-merged-TIME]
    #[arg(short, long)]
    pub output: Option<PathBuf>,
    /// Format of the report that is printed
    #[arg(long, value_parser = format(), default_value = "text")]
    pub format: &'static report::Format,
    #[command(flatten)]
    pub unpack: UnpackArgs,
}
