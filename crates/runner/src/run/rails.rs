//! Rails that a trial hit: the run ends, and its results say so.

use super::Run;
use crate::RunError;
use model::{RailHit, Severity, Trial, Warning};

impl Run<'_> {
    /// True where the last trial hit a rail. The run then ends.
    pub(super) fn is_railed(&mut self) -> Result<bool, RunError> {
        let Some(trial) = self.trials.last().filter(|trial| has_hit(trial)) else {
            return Ok(false);
        };
        let label = format!("{} b{} {}", trial.cell, trial.place.block, trial.arm);
        let hit = trial.result.rail.clone();
        self.heed_rail(hit, &label)
    }

    /// Keeps a rail that a trial hit, and says so in the results. `false` where there is none.
    pub(super) fn heed_rail(
        &mut self,
        hit: Option<RailHit>,
        label: &str,
    ) -> Result<bool, RunError> {
        let Some(hit) = hit else {
            return Ok(false);
        };
        self.writer.add_warnings(vec![Warning {
            severity: Severity::Serious,
            what: format!("{} This ended the run, in the trial {label}.", hit.in_words()),
            remedy: "See what the service did then, in its own log. `schedlab run --resume DIR` goes on, where that \
                     is wanted."
                .to_owned(),
        }])?;
        self.railed = Some(hit);
        Ok(true)
    }
}

/// Did a rail end this trial?
pub(super) fn has_hit(trial: &Trial) -> bool {
    trial.result.rail.is_some()
}
