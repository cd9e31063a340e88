//! The arm in force: all its changes together, as the machine, the processes of the roles and the proof
//! meet them.

use super::ingredient::{At, Change, Ending, Ground, Undone};
use super::table::INGREDIENTS;
use crate::roles::cgroup::Settings;
use crate::stop::Stop;
use collect::tasks::Pid;
use load::Launch;
use model::{Arm, Fact, Role, SchedulerBinary, TrialFile, Warning, Workload};
use std::path::Path;
use std::time::Duration;

/// An arm with its changes, in the order in which they are made.
pub(crate) struct InForce<'a> {
    pub arm: &'a Arm,
    changes: Vec<Box<dyn Change + 'a>>,
}

/// Logs and errors of an arm that was taken back.
#[derive(Debug, Default)]
pub(crate) struct TakenBack {
    /// Output of the programs of the arm.
    pub logs: Vec<TrialFile>,
    /// Changes that could not be undone.
    pub errors: Vec<String>,
}

impl<'a> InForce<'a> {
    /// The arm for a workload. Nothing is changed yet.
    pub fn new(arm: &'a Arm, workload: &'a Workload) -> Self {
        let all = INGREDIENTS.iter();
        let changes = all.filter_map(|ingredient| ingredient.make_change(arm, workload));
        InForce {
            arm,
            changes: changes.collect(),
        }
    }

    /// Puts the arm in force, and calls `announce` before each step that takes its time. What an
    /// earlier trial warned of is among `warnings`, and is not said twice.
    pub fn apply(
        &mut self,
        ground: &mut Ground,
        warnings: &mut Vec<Warning>,
        mut announce: impl FnMut(String, Duration),
    ) -> Result<(), Stop> {
        for change in &mut self.changes {
            if let Some((step, limit)) = change.step() {
                announce(step, limit);
            }
            change.apply(ground.reborrow())?;
            add_new(warnings, change.warnings(ground.root));
        }
        Ok(())
    }

    /// True if a step takes its time when the arm is put in force.
    pub fn has_steps(&self) -> bool {
        self.changes.iter().any(|change| change.step().is_some())
    }

    /// `Err` when the arm is in force no longer. What has come since is given its part.
    pub fn check_alive(
        &mut self,
        ground: &mut Ground,
        warnings: &mut Vec<Warning>,
    ) -> Result<(), Stop> {
        for change in &mut self.changes {
            change.check_alive()?;
            add_new(warnings, change.keep_up(ground.reborrow())?);
        }
        Ok(())
    }

    /// Takes everything back, the last change first.
    pub fn take_back(&mut self, root: &Path) -> TakenBack {
        let mut taken_back = TakenBack::default();
        for change in self.changes.iter_mut().rev() {
            let Undone { log, errors } = change.undo(root);
            taken_back.logs.extend(log);
            taken_back.errors.extend(errors);
        }
        taken_back
    }

    /// The longest that taking it back may take.
    pub fn undo_limit(&self) -> Duration {
        self.changes.iter().map(|change| change.undo_limit()).sum()
    }

    /// The way in which a process of a role is started under the arm.
    pub fn launch(&self, role: &Role, launch: &Launch) -> Launch {
        let mut launch = launch.clone();
        for change in &self.changes {
            change.prepare_launch(role, &mut launch);
        }
        launch
    }

    /// Gives a process that leads a role its part before it runs its program.
    pub fn before_exec(&self, root: &Path, role: &Role, pid: Pid) -> Result<(), String> {
        let mut changes = self.changes.iter();
        changes.try_for_each(|change| change.before_exec(root, role, pid))
    }

    /// Gives all threads of a role that are there their part.
    pub fn equip_threads(&self, root: &Path, role: &Role, leader: Pid) -> Result<(), Stop> {
        let mut changes = self.changes.iter();
        let equipped = changes.try_for_each(|change| change.equip_threads(root, role, leader));
        equipped.map_err(Stop::Void)
    }

    /// True if new threads of the role are to be equipped as they come.
    pub fn must_follow_threads(&self, role: &Role) -> bool {
        let mut changes = self.changes.iter();
        changes.any(|change| change.must_follow_threads(role))
    }

    /// Settings that the arm asks of the cgroup of a role.
    pub fn group_settings(&self, role: &Role) -> Settings {
        let asked = self
            .changes
            .iter()
            .map(|change| change.group_settings(role));
        asked.fold(Settings::default(), Settings::overlaid)
    }

    /// True if the arm makes threads of the role real-time ones.
    pub fn is_realtime(&self, role: &Role) -> bool {
        self.changes.iter().any(|change| change.is_realtime(role))
    }

    /// Facts as they are now.
    pub fn facts(&self, at: &At) -> Vec<Fact> {
        let changes = self.changes.iter();
        changes.flat_map(|change| change.facts(at)).collect()
    }

    /// The end of a part of the arm that has ended without being asked to.
    pub fn find_ending(&mut self, root: &Path) -> Option<Ending> {
        let mut changes = self.changes.iter_mut();
        changes.find_map(|change| change.find_ending(root))
    }

    /// Why the arm is not in force any more, as far as anybody said so.
    pub fn reason(&mut self) -> Option<String> {
        self.changes.iter_mut().find_map(|change| change.reason())
    }

    /// The processes of the arm itself, which are no part of the workload.
    pub fn processes(&self) -> impl Iterator<Item = Pid> {
        self.changes.iter().filter_map(|change| change.process())
    }

    /// The program of the scheduler that the arm attached.
    pub fn program(&self) -> Option<SchedulerBinary> {
        let mut changes = self.changes.iter();
        changes.find_map(|change| change.program().cloned())
    }

    /// Processes beside the workload that the arm changes.
    pub fn reached_processes(&self, root: &Path) -> Vec<Pid> {
        let changes = self.changes.iter();
        changes
            .flat_map(|change| change.reached_processes(root))
            .collect()
    }
}

/// An arm that takes turns is applied many times, and each warning is of the trial.
fn add_new(warnings: &mut Vec<Warning>, more: impl IntoIterator<Item = Warning>) {
    for warning in more {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
}
