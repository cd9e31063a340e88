//! The words of `schedlab watch`.

use super::FarArgs;
use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub struct WatchArgs {
    /// The results directory of the run, or of one on another machine: ssh:HOST:DIR [default: the
    /// newest run]
    #[arg(value_name = "DIR|ssh:HOST:DIR")]
    pub results: Option<String>,
    #[command(flatten)]
    pub far: Option<FarArgs>,
    /// A page of this machine in place of the terminal [default address: 127.0.0.1:0]
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "127.0.0.1:0",
        conflicts_with = "format"
    )]
    pub page: Option<String>,
    /// On the terminal, or for a program: a line of JSON for each change
    #[arg(long, value_enum, default_value_t = WatchFormat::Text)]
    pub format: WatchFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WatchFormat {
    /// On the terminal
    Text,
    /// A line for each change, until the run has ended
    Json,
}
