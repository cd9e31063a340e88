//! Runs that another tool measured, one arm after the other, and that were imported.
//!
//! Their trials are stored as those of a run are, with one difference: each is in a block of its
//! own. Arms are compared within blocks only, so no reader of results, this version or another,
//! finds a pair to call better or worse.

use crate::experiment::{Experiment, TargetSpec};
use serde::{Deserialize, Serialize};

/// Name of the target of imported runs. No target has this name, so nothing can be measured
/// there.
pub const TARGET: &str = "imported";

/// The source of imported runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedFrom {
    /// Name of the tool that measured, as `schedlab import` has it.
    pub tool: String,
}

impl ImportedFrom {
    /// The target of runs that `tool` measured.
    pub fn target_spec(tool: &str) -> TargetSpec {
        let tool = tool.to_owned();
        TargetSpec::new(TARGET, &ImportedFrom { tool })
    }
}

impl Experiment {
    /// The source of the runs; `None` for those that schedlab measured.
    pub fn import_source(&self) -> Option<ImportedFrom> {
        let target = Some(&self.target).filter(|target| target.kind() == TARGET)?;
        Some(target.read_keys().unwrap_or(ImportedFrom {
            tool: "another tool".to_owned(),
        }))
    }
}

/// Name of the figure that says of how many parts the figure `metric` of a run is the mean:
/// pairs of netperf that ran at once, for example.
pub fn parts_metric(metric: &str) -> String {
    format!("{metric}_parts")
}

/// Name of the figure with the standard deviation of those parts (ddof = 0).
pub fn parts_sd(metric: &str) -> String {
    format!("{metric}_parts_sd")
}
