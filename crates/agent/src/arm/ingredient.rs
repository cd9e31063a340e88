//! Definition of an ingredient of arms. [`super::table`] lists them.

use super::requirement::Asked;
pub use super::scheduler::Ending;
use crate::fence::Fence;
use crate::interrupt::Interrupt;
use crate::journal::Journal;
use crate::roles::Roles;
use crate::roles::cgroup::Settings;
use crate::stop::Stop;
use collect::tasks::Pid;
use load::{Keys, Launch};
use model::{
    Arm, Fact, Invalid, KeyDef, Problem, Role, RolePolicy, SchedulerBinary, TrialFile, Warning,
    Workload,
};
use serde_json::{Map, Value};
use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

/// A form on the command line, and what it means.
pub type Form = (&'static str, &'static str);

/// The experiment around an arm.
#[derive(Debug)]
pub struct Around<'a> {
    /// Does its target boot the kernels of arms?
    pub boots: bool,
    /// Are they installed kernels of a machine that is restarted for each?
    pub reboots: bool,
    /// Workloads that the arm is measured with.
    pub workloads: &'a [Workload],
}

/// One kind of change that arms make: how it is written, and what it does to the machine.
pub trait Ingredient: Sync {
    /// The name under which an arm holds it.
    fn name(&self) -> &'static str;

    /// Descriptions of its keys of `[[arm]]`.
    fn keys(&self) -> &'static [KeyDef] {
        &[]
    }

    /// Reads its keys of `[[arm]]` into the arm. Faults stay in the keys.
    fn read(&self, keys: &mut Keys, arm: &mut Arm);

    /// Writes the keys from which [`Ingredient::read`] has its part of the arm, if the arm has
    /// one: here the key of its name, with what the arm holds under it.
    fn write(&self, arm: &Arm, keys: &mut Map<String, Value>) {
        if let Some(value) = arm.ingredients.get(self.name()) {
            keys.insert(self.name().to_owned(), value.clone());
        }
    }

    /// Keys whose values are texts, also where they look like numbers.
    fn texts(&self) -> &'static [&'static str] {
        &[]
    }

    /// Forms of its changes on the command line, for the lists.
    fn forms(&self) -> &'static [Form];

    /// Reads a change of the command line into the arm; `None` if it is not one of its own.
    fn parse(&self, change: &str, arm: &mut Arm) -> Option<Result<(), Invalid>>;

    /// Roles whose processes it may change, one at a time (`to`); none where it changes the machine.
    fn roles(&self) -> &'static [Role] {
        &[]
    }

    /// Can the arm's part of it change under a process that runs, and back?
    fn in_place(&self, _arm: &Arm) -> bool {
        false
    }

    /// Names in each of the arms that take turns what any of them changes, where there is nothing
    /// that could be undone: so each turn sets it and proves it.
    fn name_in_all(&self, _arms: &mut [Arm], _of: &Workload) {}

    /// Refuses what no machine could put in force.
    fn check(&self, _arm: &Arm, _around: &Around) -> Result<(), Invalid> {
        Ok(())
    }

    /// Problems of the target with the arm under these workloads. Nothing is changed.
    fn require(&self, _root: &Path, _arm: &Arm, _workloads: &[Workload]) -> Vec<Problem> {
        Vec::new()
    }

    /// Facts that the arm asks of the machine, known before anything is read.
    fn asked_facts(&self, _arm: &Arm) -> Vec<Asked> {
        Vec::new()
    }

    /// The arm's part of it for one trial, not in force yet. There is one for arms that
    /// leave it alone too, since that is to be proven as well. `None` where somebody else
    /// puts it in force: the target, or the load.
    fn make_change<'a>(&self, _arm: &'a Arm, _of: &'a Workload) -> Option<Box<dyn Change + 'a>> {
        None
    }
}

/// One ingredient of one trial.
pub trait Change: Sync {
    /// The step that takes its time when it is put in force, and the longest that it may take.
    fn step(&self) -> Option<(String, Duration)> {
        None
    }

    /// Puts it in force. What is changed is in the journal first; where this fails,
    /// `undo` takes back what was changed before.
    fn apply(&mut self, _ground: Ground) -> Result<(), Stop> {
        Ok(())
    }

    /// Adds to the way in which processes of a role are started.
    fn prepare_launch(&self, _role: &Role, _launch: &mut Launch) {}

    /// Gives its part to a process that leads a role, before that runs its program: whatever it starts
    /// inherits it.
    fn before_exec(&self, _root: &Path, _role: &Role, _pid: Pid) -> Result<(), String> {
        Ok(())
    }

    /// Gives its part to all threads of a role that are there, when a window is about to open.
    fn equip_threads(&self, _root: &Path, _role: &Role, _leader: Pid) -> Result<(), String> {
        Ok(())
    }

    /// True if threads of the role do not inherit it, so that new ones are to be equipped as they come.
    fn must_follow_threads(&self, _role: &Role) -> bool {
        false
    }

    /// Settings that it asks of the cgroup of a role.
    fn group_settings(&self, _role: &Role) -> Settings {
        Settings::default()
    }

    /// True if threads of the role will be real-time ones, to which the group must give their time.
    fn is_realtime(&self, _role: &Role) -> bool {
        false
    }

    /// Facts as they are now. A fact needs to say what is wanted only where the arm alone does
    /// not say it ([`Ingredient::asked_facts`]).
    fn facts(&self, at: &At) -> Vec<Fact>;

    /// Settings of the machine that keep it from having its effect.
    fn warnings(&self, _root: &Path) -> Vec<Warning> {
        Vec::new()
    }

    /// `Err` when it is in force no longer, which ends the trial.
    fn check_alive(&mut self) -> Result<(), Stop> {
        Ok(())
    }

    /// Puts it in force on what has come since it was applied. Gives a warning where there was any.
    fn keep_up(&mut self, _ground: Ground) -> Result<Option<Warning>, Stop> {
        Ok(None)
    }

    /// Processes beside the workload that it changes.
    fn reached_processes(&self, _root: &Path) -> Vec<Pid> {
        Vec::new()
    }

    /// Its end, where it has ended without being asked to.
    fn find_ending(&mut self, _root: &Path) -> Option<Ending> {
        None
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
#[derive(Debug)]
pub struct Ground<'a> {
    /// Directory above /proc and /sys.
    pub root: &'a Path,
    /// Keeps processes of the change together; its mark is theirs.
    pub(crate) fence: &'a Fence,
    /// Journal in which a change is recorded before it is made.
    pub journal: &'a mut Journal,
    pub(crate) interrupt: &'a Interrupt,
}

impl Ground<'_> {
    /// The same ground for one change of several.
    pub(crate) fn reborrow(&mut self) -> Ground<'_> {
        Ground {
            root: self.root,
            fence: self.fence,
            journal: self.journal,
            interrupt: self.interrupt,
        }
    }
}

/// Places where facts are found.
#[derive(Debug)]
pub struct At<'a> {
    /// Directory above /proc and /sys.
    pub root: &'a Path,
    /// The policies of the threads that were looked at.
    pub policies: &'a [RolePolicy],
    /// The processes of the roles that lead all others of theirs.
    pub leaders: &'a [(Role, Pid)],
    /// The processes beside the load.
    pub(crate) roles: &'a Roles,
}

/// The outcome of undoing a change.
#[derive(Debug, Default)]
pub struct Undone {
    /// The output of its process.
    pub log: Option<TrialFile>,
    /// Changes that could not be undone.
    pub errors: Vec<String>,
}

/// The error of a change that would take the place of an earlier one of the same arm: its name
/// would say both.
pub fn twice_error(what: &'static str, first: impl Display, second: impl Display) -> Invalid {
    Invalid::new(
        what,
        format!("`{first}` and `{second}` both set the {what}"),
    )
    .with_remedy("leave one of them out; to compare them, give each an arm of its own")
}

/// Reads `KEY=TEXT` of the command line into an ingredient that an arm holds as this text.
pub fn parse_text(key: &'static str, change: &str, arm: &mut Arm) -> Option<Result<(), Invalid>> {
    let text = value_of(change, key)?;
    let before = arm.ingredients.insert(key.to_owned(), text.into());
    Some(match before.as_ref().and_then(Value::as_str) {
        Some(first) => Err(twice_error(key, first, text)),
        None => Ok(()),
    })
}

/// The value of `KEY=VALUE`, where it is this key.
pub fn value_of<'a>(change: &'a str, key: &str) -> Option<&'a str> {
    let (found, value) = change.split_once('=')?;
    (found.trim() == key).then(|| value.trim())
}

/// The problem of a key that is for the arm's role, where a workload does not have that role.
pub fn without_role(arm: &Arm, key: &str, workloads: &[Workload]) -> Option<Problem> {
    let has: fn(&Workload) -> bool = match arm.to {
        Role::Load | Role::Daemon => return None,
        Role::Server => Workload::is_served,
        Role::Antagonist => |w| !w.antagonists.is_empty(),
    };
    let without = workloads.iter().find(|w| !has(w))?;
    let what = format!(
        "its {key} is for the role {}, which the workload {} does not have",
        arm.to.name(),
        without.name
    );
    let remedy =
        format!("leave out `to`, and the {key} goes to the load; or leave out the workload");
    Some(problem(arm, what, &remedy))
}

/// A problem of an arm.
pub fn problem(arm: &Arm, what: String, remedy: &str) -> Problem {
    Problem {
        object: format!("arm {}", arm.name),
        what,
        remedy: remedy.to_owned(),
    }
}
