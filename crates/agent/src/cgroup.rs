//! Processes of a cgroup: found, killed, and the group removed. The same files in
//! version 1 and 2, see Documentation/admin-guide/cgroup-v2.rst.

use crate::processes;
use collect::tasks::Pid;
use doors::written;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Until the kernel has taken ended processes out of a group.
const EMPTY_TRIES: u32 = 100;

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
    processes::filter_running(found)
}

/// Kills every process of the group and removes it; gives those that ran. A group
/// that is gone is fine.
pub fn end_group(path: &Path) -> Result<Vec<Pid>, String> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let mut killed = members(path);
    // All at once (Linux 5.14), so that none escapes by forking.
    if let Ok(mut file) = File::options().write(true).open(path.join("cgroup.kill")) {
        let _ = file.write_all(b"1");
    }
    killed.extend(processes::kill_until_gone(|| members(path))?);
    killed.sort_unstable();
    killed.dedup();
    remove(path)?;
    Ok(killed)
}

/// Removes a group whose processes have ended. One that is gone is fine.
pub fn remove(path: &Path) -> Result<(), String> {
    for group in with_groups_below(path).iter().rev() {
        remove_one(group)?;
    }
    Ok(())
}

fn remove_one(path: &Path) -> Result<(), String> {
    let mut tries = 0;
    loop {
        match written::remove_cgroup(path) {
            Ok(()) => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(_) if tries < EMPTY_TRIES => tries += 1,
            Err(e) => return Err(format!("remove {}: {e}", path.display())),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The group itself first, parents before their children.
fn with_groups_below(path: &Path) -> Vec<PathBuf> {
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
