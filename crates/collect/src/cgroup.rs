//! Processes of a cgroup. The same files in version 1 and 2, see
//! Documentation/admin-guide/cgroup-v2.rst.

use crate::tasks::{self, Pid};
use std::fs;
use std::path::{Path, PathBuf};

/// Processes of the group and of all groups below it that still run.
pub fn members(path: &Path) -> Vec<Pid> {
    let mut found = Vec::new();
    for group in with_groups_below(path) {
        // A threaded group does not list its processes; the group above it does.
        let text = doors::read::kernel_text(group.join("cgroup.procs")).unwrap_or_default();
        // Processes outside of this PID namespace are listed as 0.
        let pids = text.lines().filter_map(|line| line.parse::<Pid>().ok());
        found.extend(pids.filter(|pid| *pid > 0));
    }
    tasks::filter_running(found)
}

/// The group and all groups below it, each before those below it.
pub fn with_groups_below(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![path.to_owned()];
    let mut next = 0;
    while let Some(group) = found.get(next) {
        let entries = fs::read_dir(group).into_iter().flatten().flatten();
        let groups = entries.filter(|entry| entry.file_type().is_ok_and(|t| t.is_dir()));
        let groups: Vec<PathBuf> = groups.map(|entry| entry.path()).collect();
        found.extend(groups);
        next += 1;
    }
    found
}
