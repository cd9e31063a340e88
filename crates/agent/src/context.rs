//! Parts of the agent that a trial may use while it runs.

use crate::guard::GuardKeeper;
use crate::interrupt::Interrupt;
use crate::journal::Journal;
use model::{Reply, Request};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Parts of the agent that a trial needs.
pub struct Context<'a> {
    pub root: &'a Path,
    pub executable: &'a Path,
    pub journal: &'a mut Journal,
    pub interrupt: &'a Interrupt,
    /// Directory of the folders of services.
    pub folders: PathBuf,
    /// Names the trial on its processes; no other trial has it.
    pub mark: String,
    /// Its guard, the one child of the agent that belongs to no trial.
    pub guard: &'a mut GuardKeeper,
    pub say: &'a mut dyn FnMut(Reply),
    /// Waits for a request that belongs to the trial under way; `None` when the time has
    /// passed, or when the trial is interrupted.
    pub hear: &'a mut dyn FnMut(Duration) -> Option<Request>,
}

impl Context<'_> {
    /// The step under way, and how long it may take.
    pub fn progress(&mut self, step: impl Into<String>, limit: Duration) {
        announce(self.say, step.into(), limit);
    }
}

/// Says which step is under way, and how long it may take.
pub fn announce(say: &mut dyn FnMut(Reply), step: String, limit: Duration) {
    say(Reply::Progress {
        step,
        limit_ns: model::whole_nanos(limit),
    });
}
