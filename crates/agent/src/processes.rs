//! Finding and ending all that a trial started, also what slipped out of its
//! session or lost its parent.

use collect::tasks::{self, Pid, filter_running};
use rustix::process::{Signal, kill_process};
use std::path::Path;
use std::time::Duration;

/// The environment variable that every process of a trial carries.
pub const MARKER: &str = "SCHEDLAB_TRIAL";

/// The same on the process of a sched_ext scheduler.
pub const SCHEDULER_MARKER: &str = "SCHEDLAB_SCHEDULER";

const ROOT: &str = "/";
/// Looks at processes that were killed, in all for less than [`KILL_LIMIT`].
const KILL_TRIES: u64 = 100;
/// Time in which processes must be killed and their end be seen.
pub const KILL_LIMIT: Duration = Duration::from_secs(15);

/// Processes that carry `variable` (`NAME=value`) and still run.
pub fn find_marked(variable: &str) -> Vec<Pid> {
    filter_running(tasks::with_environment(Path::new(ROOT), |entry| {
        entry == variable.as_bytes()
    }))
}

/// Processes of all trials of one agent: their marks begin with its name.
pub fn marked_by(agent: &str) -> Vec<Pid> {
    let beginnings = [MARKER, SCHEDULER_MARKER].map(|name| format!("{name}={agent}-"));
    filter_running(tasks::with_environment(Path::new(ROOT), |entry| {
        beginnings.iter().any(|b| entry.starts_with(b.as_bytes()))
    }))
}

/// Processes of the session that `pid` leads or led.
pub fn session(pid: Pid, start_ticks: u64) -> Vec<Pid> {
    let root = Path::new(ROOT);
    if tasks::read_stat(root, pid).is_some_and(|leader| leader.start_ticks != start_ticks) {
        // The id was given to another process: the session is gone.
        return Vec::new();
    }
    let mut found = tasks::list_processes(root);
    found.retain(|p| tasks::read_stat(root, *p).is_some_and(|stat| stat.session == pid));
    filter_running(found)
}

/// Descendants of this process, except `keep` and theirs. The agent is the reaper of
/// its descendants' orphans (PR_SET_CHILD_SUBREAPER), so that nothing that a trial
/// started can be anywhere else, whatever it did to its session and environment.
pub fn descendants(keep: &[Pid]) -> Vec<Pid> {
    let root = Path::new(ROOT);
    let mut found = tasks::process_tree(root, std::process::id() as Pid);
    let kept: Vec<Pid> = keep
        .iter()
        .flat_map(|pid| tasks::process_tree(root, *pid))
        .collect();
    // The first is this process.
    found.remove(0);
    found.retain(|pid| !kept.contains(pid));
    filter_running(found)
}

/// SIGKILL what `find` finds, again and again, until it finds nothing: a process
/// may fork while it is looked for.
pub fn kill_until_gone(find: impl Fn() -> Vec<Pid>) -> Result<Vec<Pid>, String> {
    let mut killed = Vec::new();
    for attempt in 0..KILL_TRIES {
        let found = find();
        if found.is_empty() {
            return Ok(killed);
        }
        kill_all(&found);
        killed.extend(found);
        killed.sort_unstable();
        killed.dedup();
        std::thread::sleep(Duration::from_millis(attempt.min(20) * 5));
    }
    are_gone(&find()).map(|()| killed)
}

/// An error where processes that were killed still run.
pub fn are_gone(left: &[Pid]) -> Result<(), String> {
    if left.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = left.iter().copied().map(describe).collect();
    Err(format!("still there after SIGKILL: {}", names.join(", ")))
}

/// `process 7 (sleep, state D)`, with the state of proc(5).
pub fn describe(pid: Pid) -> String {
    match tasks::read_stat(Path::new(ROOT), pid) {
        Some(stat) => format!("process {pid} ({}, state {})", stat.command, stat.state),
        None => format!("process {pid}"),
    }
}

pub fn kill_all(pids: &[Pid]) {
    for pid in pids
        .iter()
        .filter_map(|pid| rustix::process::Pid::from_raw(*pid))
    {
        // A process that is gone meanwhile is fine.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Reap ended processes that lost their parent. `keep` are children that someone else
/// waits for.
pub fn reap_orphans(keep: &[Pid]) {
    let root = Path::new(ROOT);
    let own = std::process::id() as Pid;
    for pid in tasks::list_processes(root) {
        let zombie = tasks::read_stat(root, pid).is_some_and(|s| s.parent == own && s.state == 'Z');
        if zombie && !keep.contains(&pid) {
            let _ = collect::sys::wait4(pid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    fn sleeper(variable: &str) -> Child {
        let (name, value) = variable.split_once('=').unwrap();
        let mut command = Command::new("sleep");
        command.arg("600").env(name, value).process_group(0);
        command.spawn().unwrap()
    }

    #[test]
    fn a_process_that_left_its_group_is_found_by_its_mark() {
        let agent = format!("test-{}", std::process::id());
        let variable = format!("{MARKER}={agent}-7");
        let mut child = sleeper(&variable);
        let pid = child.id() as Pid;
        // A new program has its environment only a moment after it was started.
        while find_marked(&variable).is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(marked_by(&agent), [pid]);
        assert!(marked_by(&agent[..agent.len() - 1]).is_empty());
        let killed = kill_until_gone(|| find_marked(&variable)).unwrap();
        assert_eq!(killed, [pid]);
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn a_session_of_another_process_with_the_same_id_is_left_alone() {
        let own = std::process::id() as Pid;
        assert!(session(own, 1).is_empty());
    }

    #[test]
    fn a_descendant_is_found_unless_it_is_kept() {
        let mut child = sleeper("SCHEDLAB_TEST=descendant");
        let pid = child.id() as Pid;
        assert!(descendants(&[]).contains(&pid));
        assert!(!descendants(&[pid]).contains(&pid));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
