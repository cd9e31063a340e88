//! The ingredients of arms. To add one: its file, and a line in
//! [`INGREDIENTS`].

use super::asked::Asked;
use super::{policy, scheduler, tunables, weight};
use crate::fence::Fence;
use crate::interrupt::Interrupt;
use crate::journal::Journal;
use crate::roles::Roles;
use crate::stop::Stop;
use collect::tasks::Pid;
use model::{Arm, Fact, Problem, RolePolicy, SchedulerBinary, TrialFile, Warning, Workload};
use std::path::Path;
use std::time::Duration;

/// In the order in which they are put in force; they are undone the other way round.
pub static INGREDIENTS: [&dyn Ingredient; 4] = [
    &tunables::Tuning,
    &scheduler::OwnScheduler,
    &policy::ThreadPolicy,
    &weight::ServerWeight,
];

/// One kind of change that arms make.
pub trait Ingredient: Sync {
    /// Problems of the target with the arm under these workloads. Nothing is changed.
    fn check(&self, root: &Path, arm: &Arm, workloads: &[Workload]) -> Vec<Problem>;

    /// Facts that the arm asks of the machine, known before anything is read.
    fn asks(&self, arm: &Arm) -> Vec<Asked>;

    /// The arm's part of it for one trial, not in force yet. There is one for arms that
    /// leave it alone too, since that is to be proven as well.
    fn change<'a>(&self, arm: &'a Arm, workload: &'a Workload) -> Box<dyn Change + 'a>;
}

/// One ingredient of one trial.
pub trait Change {
    /// The step that takes its time when it is put in force, and the longest that it may take.
    fn step(&self) -> Option<(String, Duration)> {
        None
    }

    /// Puts it in force. What is changed is in the journal first; where this fails,
    /// `undo` takes back what was changed before.
    fn apply(&mut self, _ground: Ground) -> Result<(), Stop> {
        Ok(())
    }

    /// What is found now. A fact needs to say what is wanted only where the arm alone
    /// does not say it ([`Ingredient::asks`]).
    fn facts(&self, at: &At) -> Vec<Fact>;

    /// Settings of the machine that keep it from having its effect.
    fn warnings(&self, _root: &Path) -> Vec<Warning> {
        Vec::new()
    }

    /// `Err` when it is in force no longer, which ends the trial.
    fn check_alive(&mut self) -> Result<(), Stop> {
        Ok(())
    }

    /// Why it is not in force any more, as far as anybody said so.
    fn reason(&mut self) -> Option<String> {
        None
    }

    /// Its own process, which is no part of the workload.
    fn process(&self) -> Option<Pid> {
        None
    }

    /// The program of that process.
    fn program(&self) -> Option<&SchedulerBinary> {
        None
    }

    /// The longest that `undo` may take.
    fn undo_limit(&self) -> Duration {
        Duration::ZERO
    }

    /// Takes back what `apply` changed, if it changed anything.
    fn undo(&mut self, _root: &Path) -> Undone {
        Undone::default()
    }
}

/// The parts of a trial that putting a change in force needs.
pub struct Ground<'a> {
    pub root: &'a Path,
    /// Keeps processes of the change together; its mark is theirs.
    pub fence: &'a Fence,
    pub journal: &'a mut Journal,
    pub interrupt: &'a Interrupt,
}

/// Where facts are found.
pub struct At<'a> {
    pub root: &'a Path,
    /// The policies of the threads that were looked at.
    pub policies: &'a [RolePolicy],
    /// The processes beside the load.
    pub roles: &'a Roles,
}

/// The outcome of undoing a change.
#[derive(Debug, Default)]
pub struct Undone {
    /// The output of its process.
    pub log: Option<TrialFile>,
    /// Changes that could not be undone.
    pub errors: Vec<String>,
}

/// All that an arm asks of the machine.
pub fn asks(arm: &Arm) -> Vec<Asked> {
    let asked = INGREDIENTS
        .iter()
        .flat_map(|ingredient| ingredient.asks(arm));
    asked.collect()
}

/// Problems of the target with an arm.
pub fn check(root: &Path, arm: &Arm, workloads: &[Workload]) -> Vec<Problem> {
    let all = INGREDIENTS.iter();
    all.flat_map(|ingredient| ingredient.check(root, arm, workloads))
        .collect()
}

/// The changes of one trial.
pub fn changes<'a>(arm: &'a Arm, workload: &'a Workload) -> Vec<Box<dyn Change + 'a>> {
    let all = INGREDIENTS.iter();
    all.map(|ingredient| ingredient.change(arm, workload))
        .collect()
}

/// A problem of an arm.
pub fn problem(arm: &Arm, what: String, remedy: &str) -> Problem {
    Problem {
        object: format!("arm {}", arm.name),
        what,
        remedy: remedy.to_owned(),
    }
}
