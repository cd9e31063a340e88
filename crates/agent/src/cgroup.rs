//! Processes of a cgroup: found, killed, and the group removed. The same files in
//! version 1 and 2, see Documentation/admin-guide/cgroup-v2.rst.

use crate::processes;
pub use collect::cgroup::members;
use collect::cgroup::with_groups_below;
use collect::tasks::Pid;
use doors::written;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// Until the kernel has taken ended processes out of a group.
const EMPTY_TRIES: u32 = 100;

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
