//! The processes of a trial, kept together so that none outlives it.
//!
//! Every process carries the trial's mark in its environment and belongs to a session
//! that the journal names; where the kernel lets us, it also lives in a cgroup of the
//! trial's own, which no process leaves by forking, by a session of its own or by
//! changing its environment. What escapes all three is still a descendant of the agent
//! ([`processes::descendants`]), which is dead when a guard or `schedlab restore` looks.
//!
//! **The group must not change what is measured.** A group that a controller is handed
//! down to is a unit of scheduling, of memory or of I/O: its threads would share the
//! weight of one group, and a sched_ext scheduler would be told of it. So it is made
//! below the group that the agent is in, and used only if no controller comes down to it
//! (`cgroup.controllers` is empty). On a host with systemd that is always so: a group
//! with processes in it hands nothing down ("No Internal Process Constraint" of
//! cgroup-v2.rst). The root group is exempt from that rule, and the roles' weights hand
//! the cpu controller down from there, so nothing is made right below it while it has
//! that controller: so it is in schedlab's guests. Pressure is accounted in each group
//! at every switch; that is turned off. Of version 1, the freezer's hierarchy serves,
//! which does not schedule.

use crate::cgroup;
use crate::error::AgentError;
use crate::journal::{Journal, Undo};
use crate::processes::{self, MARKER};
use collect::tasks::{self, Pid};
use doors::written;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Beginning of the names of all our groups.
pub(crate) const PREFIX: &str = "schedlab-";
/// A process that is just running its program has no environment for a moment.
const ENVIRONMENT_TRIES: u32 = 20;

#[derive(Debug, Clone)]
pub struct Fence {
    /// Value of [`MARKER`] in the environment of its processes.
    pub mark: String,
    group: Option<PathBuf>,
}

impl Fence {
    /// In the journal first; the group is made where that can be done.
    pub fn set_up(root: &Path, mark: String, journal: &mut Journal) -> Result<Self, AgentError> {
        let mut fence = Fence { mark, group: None };
        journal.record(Undo::KillMarked {
            variable: fence.variable(),
        })?;
        if let Some(path) = home(root).map(|home| home.join(fence.name())) {
            journal.record(Undo::RemoveCgroup { path: path.clone() })?;
            fence.group = Some(path).filter(|path| make_group(path));
        }
        Ok(fence)
    }

    /// Beginning of the names of the trial's groups.
    pub fn name(&self) -> String {
        format!("{PREFIX}{}", self.mark)
    }

    fn variable(&self) -> String {
        format!("{MARKER}={}", self.mark)
    }

    /// Takes in a process that waits at its gate and leads a session.
    pub fn admit(&self, pid: Pid, start_ticks: u64, journal: &mut Journal) -> Result<(), String> {
        journal
            .record(Undo::KillSession { pid, start_ticks })
            .map_err(|e| e.to_string())?;
        if let Some(group) = &self.group {
            // Without it, the others still find the process.
            let _ = write(&group.join("cgroup.procs"), &pid.to_string());
        }
        Ok(())
    }

    /// Processes that carry the mark or are in the group.
    pub fn members(&self) -> Vec<Pid> {
        let mut found = processes::find_marked(&self.variable());
        found.extend(
            self.group
                .as_deref()
                .map(cgroup::members)
                .unwrap_or_default(),
        );
        found
    }

    /// Kills every process that carries the mark; gives those that ran.
    pub fn kill_marked(&self) -> Result<Vec<Pid>, String> {
        processes::kill_until_gone(|| processes::find_marked(&self.variable()))
    }

    /// Kills what left its session and took off the mark: the rest of the group, and
    /// those descendants of this process that do not belong to `keep`. Gives their
    /// names.
    pub fn kill_strays(&self, keep: &[Pid]) -> Result<Vec<String>, String> {
        let find = || {
            let mut found = self
                .group
                .as_deref()
                .map(cgroup::members)
                .unwrap_or_default();
            found.extend(processes::descendants(keep));
            found.sort_unstable();
            found.dedup();
            found
        };
        let mut strays = find();
        strays.retain(|pid| !self.is_marked(*pid));
        let names = strays.into_iter().map(processes::describe).collect();
        processes::kill_until_gone(find)?;
        Ok(names)
    }

    fn is_marked(&self, pid: Pid) -> bool {
        let variable = self.variable();
        for _ in 0..ENVIRONMENT_TRIES {
            let environment = tasks::read_environment(Path::new("/"), pid);
            if !environment.is_empty() {
                let mut entries = environment.split(|byte| *byte == 0);
                return entries.any(|entry| entry == variable.as_bytes());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    /// Kills what is left in the group and removes it.
    pub fn remove(&self) -> Result<(), String> {
        self.group
            .as_deref()
            .map_or(Ok(()), |group| cgroup::end_group(group).map(drop))
    }
}

/// Kills the processes in all groups that an agent made, which must have been in the
/// group that this process is in.
pub fn kill_groups_of(agent: &str) {
    let home = home(Path::new("/"));
    let entries = home.and_then(|home| fs::read_dir(home).ok());
    for entry in entries.into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(&format!("{PREFIX}{agent}-")) {
            processes::kill_all(&cgroup::members(&entry.path()));
        }
    }
}

/// The group that this process is in, of the first hierarchy that serves.
fn home(root: &Path) -> Option<PathBuf> {
    let text = doors::read::kernel_text(root.join("proc/self/cgroup")).ok()?;
    // `hierarchy:controllers:path`; version 2 has the hierarchy 0 and no controllers.
    let own = |controllers: &str| {
        let mut fields = text.lines().map(|line| line.splitn(3, ':').skip(1));
        fields.find_map(|mut f| (f.next()? == controllers).then(|| f.next()).flatten())
    };
    let hierarchies = [("", ""), ("", "unified"), ("freezer", "freezer")];
    hierarchies.into_iter().find_map(|(controllers, mount)| {
        let mount = root.join("sys/fs/cgroup").join(mount);
        let home = mount.join(own(controllers)?.trim_start_matches('/'));
        let is_root_with_cpu = home.components().eq(mount.components())
            && has_word(&home.join("cgroup.controllers"), "cpu");
        let own_pid = std::process::id().to_string();
        let holds_us = has_word(&home.join("cgroup.procs"), &own_pid);
        (holds_us && !is_root_with_cpu).then_some(home)
    })
}

fn has_word(path: &Path, word: &str) -> bool {
    let text = doors::read::kernel_text(path).unwrap_or_default();
    text.split_whitespace().any(|found| found == word)
}

/// `false` if there can be none here, or none that leaves the measurement alone.
fn make_group(path: &Path) -> bool {
    if written::make_cgroup(path).is_err() {
        return false;
    }
    // Neither file is there in version 1.
    let read = |file| collect::read_trimmed(&path.join(file));
    let is_alone = read("cgroup.controllers").is_none_or(|list| list.is_empty());
    let is_domain = read("cgroup.type").is_none_or(|kind| kind == "domain");
    if !is_alone || !is_domain {
        let _ = written::remove_cgroup(path);
        return false;
    }
    let _ = write(&path.join("cgroup.pressure"), "0");
    true
}

/// To a file of the kernel's, which is never created.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    File::options()
        .write(true)
        .open(path)?
        .write_all(text.as_bytes())
}
