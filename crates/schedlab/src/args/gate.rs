//! `schedlab gate` as it is typed.

use super::UnpackArgs;
use clap::{Args, ValueEnum};
use report::gate::{By, FailOn};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct GateArgs {
    /// Stored results directory or capsule
    pub baseline: PathBuf,
    /// New results directory or capsule [default: that of the newest run, results/latest]
    pub new: Option<PathBuf>,
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
