//! Finding and ending all that a trial started, also what slipped out of its
//! session or lost its parent.

use collect::tasks::{self, Pid};
use rustix::process::{Signal, kill_process};
use std::path::Path;
use std::time::Duration;

/// The environment variable that every process of a trial carries.
pub const MARKER: &str = "SCHEDLAB_TRIAL";

/// The same on the process of a sched_ext scheduler.
pub const SCHEDULER_MARKER: &str = "SCHEDLAB_SCHEDULER";

const ROOT: &str = "/";

/// Processes that carry `variable` and still run.
pub fn marked(variable: &str) -> Vec<Pid> {
    running(tasks::with_environment(Path::new(ROOT), variable))
}

/// Processes of the session that `pid` leads or led.
pub fn session(pid: Pid, start_ticks: u64) -> Vec<Pid> {
    let root = Path::new(ROOT);
    if tasks::stat(root, pid).is_some_and(|leader| leader.start_ticks != start_ticks) {
        // The id was given to another process: the session is gone.
        return Vec::new();
    }
    let mut found = tasks::all(root);
    found.retain(|p| tasks::stat(root, *p).is_some_and(|stat| stat.session == pid));
    running(found)
}

/// Zombies wait for their parent only.
fn running(mut pids: Vec<Pid>) -> Vec<Pid> {
    let root = Path::new(ROOT);
    pids.retain(|pid| tasks::stat(root, *pid).is_some_and(|stat| !matches!(stat.state, 'Z' | 'X')));
    pids
}

/// SIGKILL what `find` finds, again and again, until it finds nothing: a process
/// may fork while it is looked for.
pub fn kill_until_gone(find: impl Fn() -> Vec<Pid>) -> Result<Vec<Pid>, String> {
    let mut killed = Vec::new();
    for attempt in 0..100u64 {
        let found = find();
        if found.is_empty() {
            return Ok(killed);
        }
        for pid in &found {
            kill(*pid, Signal::KILL);
            if !killed.contains(pid) {
                killed.push(*pid);
            }
        }
        std::thread::sleep(Duration::from_millis(attempt.min(20) * 5));
    }
    Err(format!("kill {:?}: still there after SIGKILL", find()))
}

/// A process that is gone meanwhile is fine.
pub fn kill(pid: Pid, signal: Signal) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid) {
        let _ = kill_process(pid, signal);
    }
}

/// Reap ended processes that lost their parent: the agent is their reaper
/// (PR_SET_CHILD_SUBREAPER). `keep` are children that someone else waits for.
pub fn reap_orphans(keep: &[Pid]) {
    let root = Path::new(ROOT);
    let own = std::process::id() as Pid;
    for pid in tasks::all(root) {
        let zombie = tasks::stat(root, pid).is_some_and(|s| s.parent == own && s.state == 'Z');
        if zombie && !keep.contains(&pid) {
            let _ = collect::sys::wait4(pid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    #[test]
    fn a_process_that_left_its_group_is_found_by_its_mark() {
        let variable = format!("{MARKER}=test-{}", std::process::id());
        let (name, value) = variable.split_once('=').unwrap();
        let mut child = Command::new("sleep")
            .arg("600")
            .env(name, value)
            .process_group(0)
            .spawn()
            .unwrap();
        let pid = child.id() as Pid;
        // A new program has its environment only a moment after it was started.
        while marked(&variable).is_empty() {
            std::thread::yield_now();
        }
        let killed = kill_until_gone(|| marked(&variable)).unwrap();
        assert_eq!(killed, [pid]);
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn a_session_of_another_process_with_the_same_id_is_left_alone() {
        let own = std::process::id() as Pid;
        assert!(session(own, 1).is_empty());
    }
}
