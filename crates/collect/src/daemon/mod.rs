//! Processes that run on the target already: found by their ID, their name, their cgroup, or the port
//! that they listen on.

mod ports;
mod tree;

pub use tree::find as find_cgroup;

use crate::tasks::{self, Pid};
use model::Daemon;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Bytes of a command's name that the kernel keeps (`TASK_COMM_LEN` without its end).
const LONGEST_NAME: usize = 15;

/// A daemon as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its processes.
    pub processes: Vec<Pid>,
    /// The path of its cgroup below the root of all, where it was found by one.
    pub cgroup: Option<PathBuf>,
}

/// Why a daemon cannot be found, or not be changed, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}; {remedy}")]
pub struct NoDaemon {
    /// Description of what is wrong.
    pub what: String,
    /// The remedy.
    pub remedy: String,
}

impl NoDaemon {
    fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        NoDaemon {
            what: what.into(),
            remedy: remedy.into(),
        }
    }
}

/// The processes of a daemon as they are now. Those of the kernel, of schedlab and the first of all
/// are refused.
pub fn find(root: &Path, daemon: &Daemon) -> Result<Found, NoDaemon> {
    let ours: BTreeSet<Pid> = tasks::process_tree(root, own()).into_iter().collect();
    let (mut processes, cgroup) = match daemon {
        Daemon::Pid(pid) => (tree_of(root, *pid), None),
        Daemon::Name(name) => (named(root, name, &ours), None),
        Daemon::Port(port) => (listening(root, *port, &ours), None),
        of_cgroup => {
            let below = tree::find(root, of_cgroup)?;
            (tree::members(root, &below), Some(below))
        }
    };
    processes.sort_unstable();
    processes.dedup();
    if processes.is_empty() {
        return Err(nobody(daemon));
    }
    match forbidden(root, &processes, &ours) {
        Some((pid, whose)) => Err(refused(daemon, root, pid, whose)),
        None => Ok(Found { processes, cgroup }),
    }
}

fn own() -> Pid {
    std::process::id().cast_signed()
}

/// A process that runs, with all that it started; none if it has ended.
fn tree_of(root: &Path, pid: Pid) -> Vec<Pid> {
    match tasks::read_stat(root, pid).is_some_and(|stat| stat.is_running()) {
        true => tasks::process_tree(root, pid),
        false => Vec::new(),
    }
}

/// Processes with this name and all that they started, but those that schedlab itself started: a load
/// may have the name of its daemon.
fn named(root: &Path, name: &str, ours: &BTreeSet<Pid>) -> Vec<Pid> {
    let all = tasks::list_processes(root).into_iter();
    let others = all.filter(|pid| !ours.contains(pid));
    let is_named = |pid: &Pid| {
        tasks::read_stat(root, *pid)
            .is_some_and(|stat| stat.is_running() && stat.command == short(name))
    };
    let named: Vec<Pid> = others.filter(is_named).collect();
    named
        .into_iter()
        .flat_map(|pid| tasks::process_tree(root, pid))
        .collect()
}

/// Processes that listen on a port, and all that they started, but those that schedlab itself started.
fn listening(root: &Path, port: u16, ours: &BTreeSet<Pid>) -> Vec<Pid> {
    let listening = ports::find_listening(root, port).into_iter();
    let others = listening.filter(|pid| !ours.contains(pid));
    others
        .flat_map(|pid| tasks::process_tree(root, pid))
        .collect()
}

/// The name as the kernel keeps it.
fn short(name: &str) -> &str {
    let mut end = name.len().min(LONGEST_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

/// The processes above this one, which wait for it and run what it measures.
fn tasks_around(root: &Path) -> BTreeSet<Pid> {
    let mut above = BTreeSet::new();
    let mut next = tasks::read_stat(root, own()).map(|stat| stat.parent);
    while let Some(pid) = next.filter(|pid| *pid > 1 && !above.contains(pid)) {
        above.insert(pid);
        next = tasks::read_stat(root, pid).map(|stat| stat.parent);
    }
    above
}

/// A process that nobody may change, and whose it is. What is above schedlab has schedlab below it, so it
/// is the better word.
fn forbidden(root: &Path, processes: &[Pid], ours: &BTreeSet<Pid>) -> Option<(Pid, &'static str)> {
    let around = tasks_around(root);
    let is_of_kernel =
        |pid: &Pid| tasks::read_stat(root, *pid).is_some_and(|stat| stat.is_of_kernel);
    let find = |is: &dyn Fn(&Pid) -> bool, whose| {
        let found = processes.iter().copied().find(|pid| is(pid));
        found.map(|pid| (pid, whose))
    };
    find(
        &|pid| *pid == 1,
        "which is the first process of the machine",
    )
    .or_else(|| {
        find(
            &|pid| around.contains(pid),
            "which schedlab itself runs under",
        )
    })
    .or_else(|| find(&|pid| ours.contains(pid), "which is schedlab's own"))
    .or_else(|| find(&is_of_kernel, "which is a thread of the kernel"))
}

fn refused(daemon: &Daemon, root: &Path, pid: Pid, whose: &str) -> NoDaemon {
    let command = tasks::read_stat(root, pid).map_or_else(String::new, |stat| stat.command);
    NoDaemon::new(
        format!("{daemon} has the process {pid} ({command}), {whose}"),
        "name the daemon alone, as by its unit or its ID: to = { pid = … }",
    )
}

fn nobody(daemon: &Daemon) -> NoDaemon {
    let (what, remedy) = match daemon {
        Daemon::Pid(pid) => (
            format!("no process has the ID {pid}; it has ended"),
            "name one that runs, or find it by its name: to = { name = … }",
        ),
        Daemon::Name(name) => (
            format!(
                "no process that schedlab did not start is called {}",
                short(name)
            ),
            "start it first; `ps -e` has the names",
        ),
        Daemon::Port(port) => (
            format!("no process that schedlab did not start listens on TCP port {port}"),
            "start it first; `ss -ltnp` has the ports, those of others only for root",
        ),
        of_cgroup => (
            format!("{of_cgroup} has no process that runs"),
            "start it before the run",
        ),
    };
    NoDaemon::new(what, remedy)
}

/// Names of the commands of processes, each once.
pub fn names(root: &Path, processes: &[Pid]) -> BTreeSet<String> {
    let stats = processes
        .iter()
        .filter_map(|pid| tasks::read_stat(root, *pid));
    stats.map(|stat| stat.command).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const HERE: &str = "/";

    fn why(daemon: &Daemon) -> String {
        let refused = find(Path::new(HERE), daemon).unwrap_err();
        assert!(!refused.remedy.is_empty());
        refused.what
    }

    #[test]
    fn a_process_is_found_by_its_id_with_what_it_started() {
        // An orphan of a shell: neither under this process nor above it.
        let script = "sh -c 'sleep 600; :' > /dev/null 2>&1 & echo $!";
        let output = Command::new("sh").args(["-c", script]).output().unwrap();
        let pid: Pid = String::from_utf8_lossy(&output.stdout)
            .trim()
            .parse()
            .unwrap();
        let root = Path::new(HERE);
        // The child is a shell until it runs its program.
        let is_both = |names: &BTreeSet<String>| names.iter().eq(["sh", "sleep"]);
        let found = loop {
            let found = find(root, &Daemon::Pid(pid)).unwrap();
            if is_both(&names(root, &found.processes)) {
                break found;
            }
            std::thread::yield_now();
        };
        for pid in &found.processes {
            let pid = rustix::process::Pid::from_raw(*pid).unwrap();
            // One of the two ends with the other.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        assert_eq!((found.cgroup, found.processes.len()), (None, 2));
        while tree_of(root, pid).len() > 1 {
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_has_ended_and_what_is_called_otherwise_is_nobody() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = child.id().cast_signed();
        child.wait().unwrap();
        assert!(why(&Daemon::Pid(pid)).contains("it has ended"));
        let absent = Daemon::Name("of-nobody".to_owned());
        assert!(why(&absent).contains("is called of-nobody"));
    }

    #[test]
    fn schedlab_the_first_process_and_all_above_schedlab_are_refused() {
        let own = why(&Daemon::Pid(super::own()));
        assert!(own.contains("schedlab's own"), "{own}");
        let first = why(&Daemon::Pid(1));
        assert!(first.contains("first process"), "{first}");
        let root = Path::new(HERE);
        for above in tasks_around(root) {
            let above = find(root, &Daemon::Pid(above));
            assert!(above.is_err(), "{above:?}");
        }
    }

    #[test]
    fn a_thread_of_the_kernel_is_refused() {
        let stat = "44 (kworker/0:1) I 2 0 0 0 -1 2097152 0 0 0 0 0 0 0 0 20 0 1 0 9 0 0\n";
        let root = ::tests::tree(&[("proc/44/stat", stat), ("proc/44/task/44/stat", stat)]);
        let refused = find(root.path(), &Daemon::Name("kworker/0:1".to_owned())).unwrap_err();
        assert!(refused.what.contains("of the kernel"), "{refused}");
    }

    #[test]
    fn a_name_is_compared_as_the_kernel_keeps_it() {
        assert_eq!(short("containerd-shim-runc-v2"), "containerd-shim");
        assert_eq!(short("mysqld"), "mysqld");
        assert_eq!(short("aaaaaaaaaaaaaaé"), "aaaaaaaaaaaaaa");
    }
}
