//! What a run is given besides the experiment, and how it ends.

use crate::pool::Member;
use machines::{Restart, Target};
use model::{Build, Calibration, RailHit, Trial};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Needs of a run besides the experiment.
pub struct Options<'a> {
    /// Runs the loads that are to run on the controller, where the target is another
    /// machine. Without it they run on the target.
    pub controller: Option<&'a mut dyn Target>,
    /// Set from outside (a signal) to end after undoing everything.
    pub interrupted: &'a AtomicBool,
    /// Trials of earlier starts of the same plan.
    pub done: Vec<Trial>,
    /// Calibrations of earlier starts, by the name of the cell.
    pub calibrations: BTreeMap<String, Calibration>,
    /// When this start began, RFC 3339 in UTC.
    pub began: String,
    /// Build of this runner, which agents must have as well.
    pub build: Build,
    /// Go on where this start differs from the earlier ones, and say so in the results.
    pub anyway: bool,
    /// The last start goes on: the machine was restarted in order for the next kernel. Its trials
    /// are neighbours of those that come.
    pub continues: bool,
    /// Time that earlier starts spent beside trials, as where the machine was restarted.
    pub away: Duration,
    /// Other machines that measure the same, whose blocks decide with those of this run. The
    /// trials in `done` are known there.
    pub pool: Option<Member<'a>>,
    /// Cells that this start leaves as they are, by their indices in the plan.
    pub left_out: BTreeSet<usize>,
}

impl std::fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Options")
    }
}

/// End of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Decided, at the last block, or out of budget.
    Done,
    /// Ended from outside, after everything was undone.
    Interrupted,
    /// Ended by a rail of the workload, after the arm was taken back.
    Railed(RailHit),
    /// This machine must go down for the next trial; the run goes on after the boot.
    Restarts(Restart),
}
