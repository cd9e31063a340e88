//! Arguments of `schedlab hunt`: those of a run, and what makes a hunt of it.

use super::RunArgs;
use clap::Args;

/// Words that make a hunt of an experiment.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct HuntWords {
    /// Provocations beside every workload, in guests only: hotplug,affinity,nice,forks,cgroups,stops
    /// (schedlab list provocations)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub provoke: Vec<String>,
    /// Rate of each --event below which arms are the same, whatever the ratio: 0.1/min
    #[arg(long, value_name = "RATE", requires = "event")]
    pub same_below: Option<String>,
    /// Ratio of rates of each --event within which arms are the same: 1.5
    #[arg(long, value_name = "RATIO", requires = "event")]
    pub same_within: Option<f64>,
}

#[derive(Debug, Args)]
pub struct HuntArgs {
    #[command(flatten)]
    pub run: RunArgs,
    #[command(flatten)]
    pub hunt: HuntWords,
}
