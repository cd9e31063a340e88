//! Processes and threads: `/proc/PID/{stat,status,task,environ}`, see proc(5).
//!
//! Tasks come and go while they are read: what vanished is left out.

use crate::stat::ticks_to_ns;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// `PF_KTHREAD` of include/linux/sched.h.
const PF_KTHREAD: u64 = 0x0020_0000;

/// A process or thread id.
pub type Pid = i32;

/// Fields of `/proc/PID/stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskStat {
    /// Id of the process (field 1).
    pub pid: Pid,
    /// Name of the program, without its brackets, 15 bytes at most (field 2).
    pub command: String,
    /// `R`, `S`, `D`, `Z` (zombie), …
    pub state: char,
    /// Id of the process that started it, or that took it over (field 4).
    pub parent: Pid,
    /// Id of its process group (field 5).
    pub group: Pid,
    /// Id of its session (field 6).
    pub session: Pid,
    /// CPU time of all threads, ended ones too; children not included.
    pub user_ns: u64,
    /// CPU time in the kernel, otherwise as `user_ns`.
    pub system_ns: u64,
    /// Minor and major, as the times.
    pub page_faults: u64,
    /// True for a thread of the kernel's own (`PF_KTHREAD` among the flags, field 9).
    pub is_of_kernel: bool,
    /// Clock ticks since boot: with the pid, this names a process for good.
    pub start_ticks: u64,
}

impl TaskStat {
    /// True unless it has ended. A zombie waits for its parent only.
    pub fn is_running(&self) -> bool {
        !matches!(self.state, 'Z' | 'X')
    }

    /// CPU time in user mode and in the kernel.
    pub fn cpu_ns(&self) -> u64 {
        self.user_ns + self.system_ns
    }
}

/// Fields of the process `pid`; `None` if it is gone.
pub fn read_stat(root: &Path, pid: Pid) -> Option<TaskStat> {
    parse_stat(&doors::read::kernel_text(root.join(format!("proc/{pid}/stat"))).ok()?)
}

/// The command is in brackets and may itself hold brackets and blanks.
fn parse_stat(text: &str) -> Option<TaskStat> {
    let (head, tail) = text.rsplit_once(')')?;
    let (pid, command) = head.split_once(" (")?;
    let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
    // Field 3 of proc(5) is the first after the command.
    let field = |number: usize| fields.get(number - 3).copied();
    Some(TaskStat {
        pid: pid.parse().ok()?,
        command: command.to_owned(),
        state: field(3)?.chars().next()?,
        parent: field(4)?.parse().ok()?,
        group: field(5)?.parse().ok()?,
        session: field(6)?.parse().ok()?,
        user_ns: ticks_to_ns(field(14)?.parse().ok()?),
        system_ns: ticks_to_ns(field(15)?.parse().ok()?),
        page_faults: field(10)?.parse::<u64>().ok()? + field(12)?.parse::<u64>().ok()?,
        is_of_kernel: field(9)?.parse::<u64>().ok()? & PF_KTHREAD != 0,
        start_ticks: field(22)?.parse().ok()?,
    })
}

/// Context switches of one thread, from its `status`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Switches {
    /// Number of switches because the thread waited for something.
    pub voluntary: u64,
    /// Number of switches because the thread was preempted.
    pub involuntary: u64,
}

/// Context switches of the thread `tid` of the process `pid`; `None` if it is gone.
pub fn read_switches(root: &Path, pid: Pid, tid: Pid) -> Option<Switches> {
    let text = doors::read::kernel_text(root.join(format!("proc/{pid}/task/{tid}/status"))).ok()?;
    let value = |key: &str| -> Option<u64> {
        let line = text.lines().find(|line| line.starts_with(key))?;
        line.split_ascii_whitespace().nth(1)?.parse().ok()
    };
    Some(Switches {
        voluntary: value("voluntary_ctxt_switches:")?,
        involuntary: value("nonvoluntary_ctxt_switches:")?,
    })
}

/// Largest resident memory that a process has had since it began its program, in bytes (`VmHWM` of
/// its `status`); `None` if it is gone, and for a zombie.
pub fn peak_memory_bytes(root: &Path, pid: Pid) -> Option<u64> {
    let text = doors::read::kernel_text(root.join(format!("proc/{pid}/status"))).ok()?;
    let line = text.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(kib.saturating_mul(1024))
}

/// Number of times that a thread was moved to another CPU, from its `sched`
/// (proc_sched_show_task in kernel/sched/debug.c; before 6.15 only with CONFIG_SCHED_DEBUG).
pub fn read_migrations(root: &Path, pid: Pid, tid: Pid) -> Option<u64> {
    let text = doors::read::kernel_text(root.join(format!("proc/{pid}/task/{tid}/sched"))).ok()?;
    let line = text.lines().find(|l| l.starts_with("se.nr_migrations"))?;
    line.split_once(':')?.1.trim().parse().ok()
}

/// The threads of a process. A zombie keeps its leader.
pub fn list_threads(root: &Path, pid: Pid) -> Vec<Pid> {
    numbers_in(&root.join(format!("proc/{pid}/task")))
}

/// Every process.
pub fn list_processes(root: &Path) -> Vec<Pid> {
    numbers_in(&root.join("proc"))
}

fn numbers_in(directory: &Path) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

/// Threads of `pid` and all its descendants, parents first, at most `limit`.
pub fn threads_of_tree(root: &Path, pid: Pid, limit: usize) -> Vec<Pid> {
    let mut found = Vec::new();
    let mut children = Children::new(root);
    let mut queue = std::collections::VecDeque::from([pid]);
    while let Some(pid) = queue.pop_front() {
        for tid in list_threads(root, pid) {
            if found.len() == limit {
                return found;
            }
            found.push(tid);
            queue.extend(children.of(root, pid, tid));
        }
    }
    found
}

/// `pid` and all its descendants, parents first.
pub fn process_tree(root: &Path, pid: Pid) -> Vec<Pid> {
    let mut found = vec![pid];
    let mut children = Children::new(root);
    let mut next = 0;
    while next < found.len() {
        let pid = found[next];
        for tid in list_threads(root, pid) {
            found.extend(children.of(root, pid, tid));
        }
        next += 1;
    }
    found
}

/// Who started whom: by `/proc/PID/task/TID/children` where the kernel has it
/// (`CONFIG_PROC_CHILDREN`), else by the parent of every process, read once.
enum Children {
    ByThread,
    ByParent(BTreeMap<Pid, Vec<Pid>>),
}

impl Children {
    fn new(root: &Path) -> Self {
        let own = std::process::id();
        if root
            .join(format!("proc/{own}/task/{own}/children"))
            .exists()
        {
            return Children::ByThread;
        }
        let mut by_parent: BTreeMap<Pid, Vec<Pid>> = BTreeMap::new();
        for task in list_processes(root)
            .into_iter()
            .filter_map(|pid| read_stat(root, pid))
        {
            by_parent.entry(task.parent).or_default().push(task.pid);
        }
        Children::ByParent(by_parent)
    }

    /// Children that the thread `tid` of `pid` started.
    fn of(&mut self, root: &Path, pid: Pid, tid: Pid) -> Vec<Pid> {
        match self {
            Children::ByThread => {
                let path = root.join(format!("proc/{pid}/task/{tid}/children"));
                let text = doors::read::kernel_text(path).unwrap_or_default();
                text.split_ascii_whitespace()
                    .filter_map(|pid| pid.parse().ok())
                    .collect()
            }
            // The map does not tell threads apart: given out with the leader, once.
            Children::ByParent(by_parent) if pid == tid => {
                by_parent.remove(&pid).unwrap_or_default()
            }
            Children::ByParent(_) => Vec::new(),
        }
    }
}

/// Processes with an environment variable (`NAME=value`) that `is_wanted`.
pub fn with_environment(root: &Path, is_wanted: impl Fn(&[u8]) -> bool) -> Vec<Pid> {
    let mut found = list_processes(root);
    found.retain(|pid| {
        read_environment(root, *pid)
            .split(|b| *b == 0)
            .any(&is_wanted)
    });
    found
}

/// The environment that the process was started with, each variable with a zero behind
/// it, or what the process has written over it. Empty if it cannot be read.
pub fn read_environment(root: &Path, pid: Pid) -> Vec<u8> {
    doors::read::kernel_bytes(root.join(format!("proc/{pid}/environ"))).unwrap_or_default()
}

/// The processes that have not ended.
pub fn filter_running(mut pids: Vec<Pid>) -> Vec<Pid> {
    let root = Path::new("/");
    pids.retain(|pid| read_stat(root, *pid).is_some_and(|stat| stat.is_running()));
    pids
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tests::tree as fixture;

    fn stat_line(pid: Pid, command: &str, parent: Pid) -> String {
        let rest = "50 50 0 -1 0 300 0 4 0 11 22 0 0 20 0 1 0 9876 0 0";
        format!("{pid} ({command}) S {parent} {rest}\n")
    }

    #[test]
    fn a_command_with_brackets_and_blanks_does_not_shift_the_fields() {
        let stat = parse_stat(&stat_line(7, "a) b (c", 3)).unwrap();
        assert_eq!(stat.command, "a) b (c");
        assert_eq!((stat.pid, stat.parent, stat.session), (7, 3, 50));
        assert_eq!(stat.user_ns, ticks_to_ns(11));
        assert_eq!(stat.system_ns, ticks_to_ns(22));
        assert_eq!(stat.page_faults, 304);
        assert_eq!(stat.start_ticks, 9876);
    }

    #[test]
    fn context_switches_are_read_of_each_thread() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t2\n";
        let root = fixture(&[("proc/7/task/8/status", status)]);
        let expected = Switches {
            voluntary: 5,
            involuntary: 2,
        };
        assert_eq!(read_switches(root.path(), 7, 8), Some(expected));
    }

    #[test]
    fn the_peak_of_memory_is_in_kibibytes_and_not_known_of_a_zombie() {
        let status = "Name:\tx\nVmPeak:\t  900 kB\nVmHWM:\t    512 kB\nVmRSS:\t 4 kB\n";
        let root = fixture(&[
            ("proc/7/status", status),
            ("proc/8/status", "Name:\tx\nState:\tZ (zombie)\n"),
        ]);
        assert_eq!(peak_memory_bytes(root.path(), 7), Some(512 << 10));
        assert_eq!(peak_memory_bytes(root.path(), 8), None);
        assert_eq!(peak_memory_bytes(root.path(), 9), None);
    }

    #[test]
    fn migrations_are_read_of_each_thread() {
        let sched = "x (7, #threads: 1)\n---\nse.exec_start    :   40.9\n\
                     se.nr_migrations                             :                   12\n";
        let root = fixture(&[("proc/7/task/8/sched", sched)]);
        assert_eq!(read_migrations(root.path(), 7, 8), Some(12));
        assert_eq!(read_migrations(root.path(), 7, 9), None);
    }

    #[test]
    fn a_tree_is_found_by_parents_where_the_kernel_lists_no_children() {
        let files: Vec<(String, String)> = [(7, 1), (8, 7), (9, 8), (10, 1)]
            .iter()
            .flat_map(|(pid, parent)| {
                [
                    (format!("proc/{pid}/stat"), stat_line(*pid, "x", *parent)),
                    (format!("proc/{pid}/task/{pid}/status"), String::new()),
                ]
            })
            .collect();
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(p, t)| (p.as_str(), t.as_str()))
            .collect();
        let root = fixture(&files);
        assert_eq!(process_tree(root.path(), 7), [7, 8, 9]);
        assert_eq!(threads_of_tree(root.path(), 7, 10), [7, 8, 9]);
        assert_eq!(threads_of_tree(root.path(), 7, 2), [7, 8]);
    }

    #[test]
    fn a_real_child_is_in_the_tree_of_its_parent() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let own = std::process::id() as Pid;
        let tree = process_tree(Path::new("/"), own);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(tree.contains(&(child.id() as Pid)));
    }

    #[test]
    fn processes_are_found_by_an_environment_variable() {
        let root = fixture(&[
            ("proc/7/environ", "HOME=/root\0SCHEDLAB_TRIAL=abc\0"),
            ("proc/8/environ", "SCHEDLAB_TRIAL=abcd\0"),
        ]);
        let is_wanted = |variable: &[u8]| variable == b"SCHEDLAB_TRIAL=abc";
        assert_eq!(with_environment(root.path(), is_wanted), [7]);
    }
}
