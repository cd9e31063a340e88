//! `schedlab history` as it is typed.

use super::{AnswerArgs, UnpackArgs, WaitArgs};
use crate::output::Plain;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum HistoryCommand {
    /// Add runs; one that is there is not added again
    Add {
        /// Results directories or capsules
        #[arg(required = true, value_name = "FILE|DIR")]
        runs: Vec<PathBuf>,
        #[command(flatten)]
        unpack: UnpackArgs,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// List the series with their last figures
    List(ListArgs),
    /// Draw all series that changed as one HTML file, which needs no network
    Page {
        /// The file
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        /// Open it in a browser (xdg-open)
        #[arg(long)]
        open: bool,
        #[command(flatten)]
        place: PlaceArgs,
    },
    /// Show a series, a run or an alarm; of two runs say why figures of them are in no series together
    Show {
        /// The beginning of the hash of a series, a run or an alarm, or of those of two runs
        #[arg(required = true, num_args = 1..=2, value_name = "HASH")]
        hashes: Vec<String>,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Look for changes in all series, and keep an alarm for each that was not told before
    Check {
        #[command(flatten)]
        limits: CheckLimits,
        /// Exit with 5 if such an alarm is open
        #[arg(long, value_name = "WHAT")]
        fail_on: Option<FailOnAlarm>,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Measure both versions of an alarm beside each other on this machine, and end it by what comes out
    Confirm(Box<ConfirmArgs>),
    /// Find the commit between the two versions of an alarm, with the work of its cell: each step is an interleaved
    /// comparison with the earlier version
    Bisect(Box<BisectHistoryArgs>),
    /// Remove old runs, with what only they had, but nothing of an open alarm; says first what goes
    Prune {
        /// Age from which on runs go: 2y, 18mo, 400d
        #[arg(long, value_name = "TIME")]
        older_than: String,
        /// Say what would go, and change nothing
        #[arg(long)]
        dry_run: bool,
        /// Remove it without asking
        #[arg(short, long, conflicts_with = "dry_run")]
        yes: bool,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Close an alarm by hand
    Close {
        /// The beginning of its hash
        #[arg(value_name = "HASH")]
        alarm: String,
        /// Reason, for those who come later
        #[arg(long, value_name = "TEXT")]
        because: String,
        #[command(flatten)]
        store: StoreArgs,
    },
}

#[derive(Debug, Args)]
pub struct ListArgs {
    /// List the runs instead
    #[arg(long)]
    pub runs: bool,
    #[arg(long, value_enum, default_value_t = ListFormat::Text)]
    pub format: ListFormat,
    /// Write it to a file, whole or not at all, as a collector of text files wants it
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub place: PlaceArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    Text,
    Json,
    /// OpenMetrics for Prometheus: last figures, moments of the last runs, and alarms
    Openmetrics,
}

#[derive(Debug, Args)]
pub struct ConfirmArgs {
    /// The beginning of the alarm's hash
    #[arg(value_name = "HASH")]
    pub alarm: String,
    /// Wall time for the trials: 2m, 1h [default: the experiment's]
    #[arg(long, value_name = "TIME")]
    pub budget: Option<String>,
    /// Most blocks [default: the experiment's]
    #[arg(long, value_name = "N")]
    pub max_blocks: Option<u32>,
    /// Results directory [default: results/NAME-confirm-TIME/]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Run the experiment of the history without asking
    #[arg(short, long)]
    pub yes: bool,
    #[command(flatten)]
    pub wait: WaitArgs,
    /// No progress, only the answer
    #[arg(short, long)]
    pub quiet: bool,
    #[command(flatten)]
    pub store: StoreArgs,
}

#[derive(Debug, Args)]
pub struct BisectHistoryArgs {
    /// The beginning of the alarm's hash
    #[arg(value_name = "HASH")]
    pub alarm: String,
    /// Wall time for the trials of each step: 2m, 1h [default: the experiment's]
    #[arg(long, value_name = "TIME")]
    pub budget: Option<String>,
    /// Most blocks of each step [default: the experiment's]
    #[arg(long, value_name = "N")]
    pub max_blocks: Option<u32>,
    /// Directory of the bisection; one that holds it already goes on [default: results/bisect-TIME/]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Run the experiment of the history without asking
    #[arg(short, long)]
    pub yes: bool,
    #[command(flatten)]
    pub wait: WaitArgs,
    #[command(flatten)]
    pub answer: AnswerArgs,
    #[command(flatten)]
    pub place: PlaceArgs,
    /// What is bisected, where the alarm is not between two commits of a scheduler: words of schedlab bisect without a
    /// workload, such as kernel --repository linux --good v6.17 --bad v6.18
    #[arg(last = true, value_name = "WORDS")]
    pub words: Vec<String>,
}

/// A run that adds itself to a history.
#[derive(Debug, Clone, Default, Args)]
pub struct FollowArgs {
    /// Add the run to the history at its end, and look for alarms: in its usual place, or in =DIR
    #[arg(
        long,
        value_name = "DIR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        conflicts_with = "rehearse"
    )]
    pub history: Option<String>,
    /// With --history: then measure open alarms of this machine, for so long at most: 30m
    #[arg(long, value_name = "TIME", requires = "history")]
    pub confirm: Option<String>,
    /// With --confirm: then look for the commit of what was confirmed to be worse, in trials of so long at most: 1h
    #[arg(long, value_name = "TIME", requires = "confirm")]
    pub bisect: Option<String>,
}

/// Size and rate of alarms.
#[derive(Debug, Clone, Args)]
pub struct CheckLimits {
    /// Smallest change of a ratio that is of interest
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = plan::parse_fraction)]
    pub effect: f64,
    /// False alarms that all series together may have in a year, on average, if nothing changes
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    pub false_alarms: f64,
}

/// Place of a history.
#[derive(Debug, Clone, Args)]
pub struct PlaceArgs {
    /// Directory of the history [default: history/ in the state directory]
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
}

/// Place of a history, and the form in which it is shown.
#[derive(Debug, Clone, Args)]
pub struct StoreArgs {
    #[command(flatten)]
    pub place: PlaceArgs,
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    pub format: Plain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOnAlarm {
    /// An arm became worse
    Worse,
    /// It became worse or better
    Any,
}
