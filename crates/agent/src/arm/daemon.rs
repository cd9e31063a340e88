//! Arms that are for a daemon: processes that run on the target before a trial and go on after it
//! (`to = { unit = … }` and the like). What the arm has for them is given to them when the trial
//! begins, read back, and taken back when it ends; the keys themselves are those of other
//! ingredients, which ask for their facts.

use super::ingredient::{Around, At, Change, Form, Ground, Ingredient, Undone, problem};
use super::table::INGREDIENTS;
use crate::daemon::threads::{self, Before, Given};
use crate::journal::{Journal, Undo};
use crate::kernel_file;
use crate::roles::cgroup::{Cgroup, Settings};
use crate::stop::Stop;
use collect::daemon::{self, NoDaemon};
use collect::tasks::{self, Pid};
use load::Keys;
use model::readings::{self, CPUS, PROCESSES, QUOTA, WEIGHT};
use model::{Arm, Daemon, Fact, Invalid, Problem, Role, RolePolicy, Severity, Warning, Workload};
use serde_json::Map;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

const KEY: &str = "to";
const EXAMPLE: &str = "to = { unit = \"mysqld.service\" }, or cgroup, container, pid, name, port";

pub struct OfDaemon;

impl Ingredient for OfDaemon {
    fn name(&self) -> &'static str {
        "daemon"
    }

    /// `to` is read with the keys that are of no ingredient.
    fn read(&self, _: &mut Keys, _: &mut Arm) {}

    fn forms(&self) -> &'static [Form] {
        &[]
    }

    fn parse(&self, _: &str, _: &mut Arm) -> Option<Result<(), Invalid>> {
        None
    }

    fn in_place(&self, _: &Arm) -> bool {
        true
    }

    fn check(&self, arm: &Arm, around: &Around) -> Result<(), Invalid> {
        let daemon = match (&arm.daemon, arm.to == Role::Daemon) {
            (None, false) => return Ok(()),
            (Some(daemon), true) => daemon,
            _ => {
                let what = "the arm is for a daemon, and does not say which";
                return Err(Invalid::new(KEY, what).with_remedy(EXAMPLE));
            }
        };
        check_value(daemon)?;
        check_keys(arm, daemon)?;
        match around.boots && !around.reboots {
            true => Err(Invalid::new(
                KEY,
                "a guest boots for the experiment, and no daemon runs there",
            )
            .with_remedy("start it as [[workload.service]], and write to = \"server\"")),
            false => Ok(()),
        }
    }

    fn require(&self, root: &Path, arm: &Arm, _: &[Workload]) -> Vec<Problem> {
        let Some(daemon) = &arm.daemon else {
            return Vec::new();
        };
        let found = lacks(root, arm, daemon).err().into_iter();
        found
            .map(|lack| problem(arm, format!("{KEY}: {}", lack.what), &lack.remedy))
            .collect()
    }

    fn make_change<'a>(&self, arm: &'a Arm, _: &'a Workload) -> Option<Box<dyn Change + 'a>> {
        let daemon = arm.daemon.as_ref()?;
        Some(Box::new(Changed {
            arm,
            daemon,
            given: Given::from_arm(arm),
            before: Vec::new(),
            files: Vec::new(),
        }))
    }
}

/// Refuses what finds nothing on any machine.
fn check_value(daemon: &Daemon) -> Result<(), Invalid> {
    let (key, text) = daemon.key_and_text();
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let is_right = match daemon {
        Daemon::Cgroup(path) => !path.is_empty() && !path.split('/').any(|part| part == ".."),
        Daemon::Unit(name) => !name.is_empty() && !name.contains('/'),
        // It is given to the command of an engine.
        Daemon::Container(name) => {
            name.chars().all(is_word) && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        }
        Daemon::Pid(pid) => *pid > 1,
        Daemon::Name(name) => !name.is_empty(),
        Daemon::Port(port) => *port > 0,
    };
    if is_right {
        return Ok(());
    }
    let what = match daemon {
        Daemon::Pid(1) => "process 1 starts and ends all others, so no arm changes it".to_owned(),
        Daemon::Pid(pid) => format!("{pid} is no ID of a process"),
        Daemon::Cgroup(_) => format!("`{text}` is no path of a cgroup"),
        _ => format!("`{text}` is no name of a {key}"),
    };
    Err(Invalid::new(KEY, what).with_remedy(EXAMPLE))
}

/// Refuses changes that a process which runs cannot take.
fn check_keys(arm: &Arm, daemon: &Daemon) -> Result<(), Invalid> {
    let is_refused = |ingredient: &&dyn Ingredient| {
        let roles = ingredient.roles();
        let mut keys = Map::new();
        ingredient.write(arm, &mut keys);
        !keys.is_empty() && !roles.is_empty() && !roles.contains(&Role::Daemon)
    };
    if let Some(ingredient) = INGREDIENTS.iter().find(is_refused) {
        let what = format!("a process that runs cannot be given {}", ingredient.name());
        return Err(Invalid::new(ingredient.name(), what)
            .with_remedy("a daemon takes policy and cpus, and by its cgroup weight and quota"));
    }
    let of_group = arm.weight.map(|_| WEIGHT);
    let of_group = of_group.or(arm.ingredients.contains_key("quota").then_some(QUOTA));
    match of_group.filter(|_| !daemon.is_cgroup()) {
        Some(what) => Err(Invalid::new(
            KEY,
            format!("a {what} is that of a cgroup, and {daemon} may share its own with others"),
        )
        .with_remedy("name the unit, the container or the cgroup of the daemon")),
        None => Ok(()),
    }
}

/// An error that says what this machine lacks for the arm.
fn lacks(root: &Path, arm: &Arm, daemon: &Daemon) -> Result<(), NoDaemon> {
    let found = daemon::find(root, daemon)?;
    let no = |what: String, remedy: &str| NoDaemon {
        what,
        remedy: remedy.to_owned(),
    };
    if let Some(group) = group(root, arm, found.cgroup.as_deref())? {
        let texts = group.texts_before(settings(arm)).unwrap_or_default();
        let refused = texts.iter().find_map(|(path, _)| {
            let error = rustix::fs::access(path, rustix::fs::Access::WRITE_OK).err()?;
            Some(format!(
                "write {}: {}",
                path.display(),
                io::Error::from(error)
            ))
        });
        if let Some(what) = refused {
            return Err(no(what, "run as root"));
        }
    }
    match Given::from_arm(arm).is_nothing() || rustix::process::geteuid().is_root() {
        true => Ok(()),
        false => Err(no(
            format!("the threads of {daemon} are changed and put back as root only"),
            "run as root",
        )),
    }
}

fn settings(arm: &Arm) -> Settings {
    super::weight::settings_of(arm, &Role::Daemon)
}

/// The group of the cpu controller that the arm changes, with all files that it writes.
fn group(root: &Path, arm: &Arm, below: Option<&Path>) -> Result<Option<Cgroup>, NoDaemon> {
    let settings = settings(arm);
    let Some(below) = below.filter(|_| settings != Settings::default()) else {
        return Ok(None);
    };
    let lack = |what: String| NoDaemon {
        what,
        remedy: "hand the cpu controller down to it (for a unit: CPUWeight= or \
                 `systemctl set-property UNIT CPUAccounting=yes`), or leave out weight and quota"
            .to_owned(),
    };
    let group = Cgroup::find_group(root, below).ok_or_else(|| {
        let path = below.display();
        lack(format!(
            "/{path} is no group of the controller for CPU time"
        ))
    })?;
    let missing = group.texts_before(settings).err();
    match missing {
        Some(file) => Err(lack(format!("there is no {}", file.display()))),
        None => Ok(Some(group)),
    }
}

/// The daemon's part of one trial.
struct Changed<'a> {
    arm: &'a Arm,
    daemon: &'a Daemon,
    given: Given,
    /// Threads that were changed.
    before: Vec<Before>,
    /// Files of its cgroup that were written, with what they said.
    files: Vec<(PathBuf, String)>,
}

impl Changed<'_> {
    /// Gives threads that have it not what the arm has for them, and gives their number.
    fn give(&mut self, root: &Path, journal: &mut Journal) -> Result<usize, Stop> {
        if self.given.is_nothing() {
            return Ok(0);
        }
        let record = |before: &Before| {
            let undo = Undo::PutBackThreads(before.clone());
            journal.record(undo).map_err(|e| e.to_string())
        };
        let given =
            threads::change_threads(root, self.daemon, &self.given, &mut self.before, record);
        given.map_err(|why| Stop::Void(format!("{}: {why}", self.daemon)))
    }

    fn set_group(&mut self, root: &Path, journal: &mut Journal) -> Result<(), Stop> {
        let void = |why: String| Stop::Void(format!("{}: {why}", self.daemon));
        let found = daemon::find(root, self.daemon).map_err(|e| void(e.to_string()))?;
        let group = group(root, self.arm, found.cgroup.as_deref());
        let Some(group) = group.map_err(|e| void(e.to_string()))? else {
            return Ok(());
        };
        let settings = settings(self.arm);
        let before = group.texts_before(settings).unwrap_or_default();
        for (path, text) in before {
            let undo = Undo::Write {
                path: path.clone(),
                text: text.clone(),
            };
            journal.record(undo).map_err(|e| void(e.to_string()))?;
            self.files.push((path, text));
        }
        group.set(settings).map_err(|e| void(e.to_string()))
    }

    /// Policies and CPUs of all its threads, as the kernel has them.
    fn facts_of_threads(&self, root: &Path, processes: &[Pid]) -> Vec<Fact> {
        let (mut policies, mut cpus) = (Vec::new(), BTreeSet::new());
        for tid in processes
            .iter()
            .flat_map(|pid| tasks::list_threads(root, *pid))
        {
            // A thread that ended meanwhile has neither.
            let Ok(policy) = collect::policy::read(tid) else {
                continue;
            };
            policies.push(RolePolicy {
                role: Role::Daemon,
                policy,
                threads: 1,
            });
            cpus.extend(super::cpus::cpus_of(tid));
        }
        let mut facts = readings::policy_facts(&policies);
        if self.given.cpus.is_some() && !cpus.is_empty() {
            facts.push(Fact::new(CPUS, joined(cpus)));
        }
        facts
    }

    fn facts_of_group(&self, root: &Path, below: Option<&Path>) -> Vec<Fact> {
        let Some(group) = below.and_then(|below| Cgroup::find_group(root, below)) else {
            return Vec::new();
        };
        let wanted = settings(self.arm);
        let weight = wanted.weight.and_then(|_| group.weight());
        let weight = weight.map(|weight| Fact::new(WEIGHT, weight.to_string()));
        let quota = wanted.quota.and_then(|_| group.quota());
        let quota = quota.map(|quota| Fact::new(QUOTA, quota.to_string()));
        weight.into_iter().chain(quota).collect()
    }
}

fn joined(values: BTreeSet<String>) -> String {
    values.into_iter().collect::<Vec<_>>().join(" and ")
}

impl Change for Changed<'_> {
    fn apply(&mut self, ground: Ground) -> Result<(), Stop> {
        let Ground { root, journal, .. } = ground;
        let found = daemon::find(root, self.daemon);
        found.map_err(|e| Stop::Void(e.to_string()))?;
        self.set_group(root, journal)?;
        self.give(root, journal).map(drop)
    }

    /// Threads that the daemon started have inherited what it has; processes that others put into its
    /// cgroup, or that others started under its name, have not.
    fn keep_up(&mut self, ground: Ground) -> Result<Option<Warning>, Stop> {
        // One that is gone is no longer found, and the proof says so.
        if daemon::find(ground.root, self.daemon).is_err() {
            return Ok(None);
        }
        let late = self.give(ground.root, ground.journal)?;
        Ok((late > 0).then(|| Warning {
            severity: Severity::Caution,
            what: format!(
                "Threads came to {} while it was measured that had not inherited the policy of the \
                 arm. They were given it up to a second after their start.",
                self.daemon
            ),
            remedy:
                "Give the arm a weight or a quota of the cgroup, which holds for all that comes."
                    .to_owned(),
        }))
    }

    fn facts(&self, at: &At) -> Vec<Fact> {
        let Ok(found) = daemon::find(at.root, self.daemon) else {
            return Vec::new();
        };
        let names = daemon::names(at.root, &found.processes);
        let mut facts = vec![Fact::new(PROCESSES, joined(names))];
        facts.extend(self.facts_of_threads(at.root, &found.processes));
        facts.extend(self.facts_of_group(at.root, found.cgroup.as_deref()));
        facts
            .into_iter()
            .map(|fact| fact.about_role(&Role::Daemon))
            .collect()
    }

    fn reached_processes(&self, root: &Path) -> Vec<Pid> {
        let found = daemon::find(root, self.daemon);
        found.map_or_else(|_| Vec::new(), |found| found.processes)
    }

    fn undo(&mut self, root: &Path) -> Undone {
        let mut errors = Vec::new();
        for before in std::mem::take(&mut self.before).iter().rev() {
            errors.extend(before.put_back(root).1);
        }
        for (path, text) in std::mem::take(&mut self.files).iter().rev() {
            match kernel_file::write(path, text) {
                Err(e) if path.exists() => {
                    errors.push(format!("write {text:?} back to {}: {e}", path.display()));
                }
                // A group that is gone took its files along.
                _ => {}
            }
        }
        Undone { errors, log: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_daemon_could_be_is_refused_with_its_reason() {
        let refused = |key: &str, text: &str| {
            let daemon = Daemon::from_key(key, text).unwrap().unwrap();
            check_value(&daemon).unwrap_err().what
        };
        for (key, text, reason) in [
            ("pid", "1", "process 1 starts and ends all others"),
            ("pid", "-4", "-4 is no ID of a process"),
            ("cgroup", "/a/../b", "`/a/../b` is no path of a cgroup"),
            ("unit", "a/b", "`a/b` is no name of a unit"),
            ("container", "-v", "`-v` is no name of a container"),
        ] {
            let said = refused(key, text);
            assert!(said.contains(reason), "{said}");
        }
    }
}
