//! `schedlab gate` as it is typed.

use super::UnpackArgs;
use clap::{Args, ValueEnum};
use report::gate::{By, FailOn};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct GateArgs {
    /// Stored results directory or capsule; with --history the new one [default there: results/latest]
    #[arg(required_unless_present = "history")]
    pub baseline: Option<PathBuf>,
    /// New results directory or capsule [default: that of the newest run, results/latest]
    #[arg(conflicts_with = "history")]
    pub new: Option<PathBuf>,
    /// Judge by the last good runs of the history in place of a stored run
    #[arg(long, conflicts_with_all = ["by", "exact"])]
    pub history: bool,
    /// Good runs of each series that count
    #[arg(long, value_name = "N", default_value_t = 10, requires = "history", value_parser = clap::value_parser!(u32).range(3..=1000))]
    pub last: u32,
    /// Directory of the history [default: history/ in the state directory]
    #[arg(long, value_name = "DIR", requires = "history")]
    pub store: Option<PathBuf>,
    /// Exit with 5 on this [default: regression; with --virtual: difference]
    #[arg(long, value_name = "WHAT")]
    pub fail_on: Option<GateFailOn>,
    /// Compare these [default: effects where there are several arms, else levels]
    #[arg(long, value_name = "WHAT")]
    pub by: Option<Compared>,
    /// Compare each trial exactly; both runs must be in virtual time (clock = "virtual")
    #[arg(long = "virtual", conflicts_with = "by")]
    pub exact: bool,
    #[arg(long, value_enum, default_value_t = GateFormat::Text)]
    pub format: GateFormat,
    #[command(flatten)]
    pub unpack: UnpackArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GateFailOn {
    /// An arm is worse than in the stored run, by more than the smallest effect
    Regression,
    /// It is worse or better; with --virtual: any figure is another one
    Difference,
    /// It is worse, or that is not decided
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Compared {
    /// Each arm over the baseline of its own run: what the machine does on another day falls out
    Effects,
    /// The bare figures of each arm
    Levels,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GateFormat {
    Text,
    Json,
    /// JUnit XML: what fails is a failure, what is not decided is skipped, what was not measured is an error
    Junit,
    /// KTAP, the lines of kernel test systems: the same tests
    Ktap,
    Markdown,
}

impl GateArgs {
    /// Figures that are compared; none for the usual.
    pub fn compared_figures(&self) -> Option<By> {
        match (self.exact, self.by) {
            (true, _) => Some(By::Trials),
            (false, Some(Compared::Effects)) => Some(By::Effects),
            (false, Some(Compared::Levels)) => Some(By::Levels),
            (false, None) => None,
        }
    }

    /// Calls that make the check fail.
    pub fn fail_on(&self) -> FailOn {
        match (self.fail_on, self.exact) {
            (Some(GateFailOn::Regression), _) | (None, false) => FailOn::Regression,
            (Some(GateFailOn::Difference), _) | (None, true) => FailOn::Difference,
            (Some(GateFailOn::Unknown), _) => FailOn::Unknown,
        }
    }
}
