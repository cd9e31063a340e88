use crate::machine::processes_of;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

/// A trial takes no longer, also on a busy machine.
const LONGEST_TRIAL: Duration = Duration::from_secs(20);

/// The processes that are killed, with SIGKILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    /// The schedlab that was started; its agent notices that it is alone.
    Runner,
    /// The child of the runner: the agent, or the QEMU whose guest has it.
    Agent,
    /// Runner and agent at once: the guard puts everything back.
    Both,
    /// The guard alone; and when another is there, runner and agent at once.
    Guard,
    /// The runner, while its agent is stopped.
    WhileStopped,
    /// The agent, and the runner before it has another.
    AgentFirst,
    /// The runner, and the agent while it undoes everything.
    RunnerFirst,
    /// Guard and workload too: nobody is left to put anything back but `restore`.
    All,
}

impl Victim {
    /// All victims, in the order in which they take turns.
    pub const EACH: [Victim; 8] = [
        Victim::Runner,
        Victim::Agent,
        Victim::Both,
        Victim::Guard,
        Victim::WhileStopped,
        Victim::AgentFirst,
        Victim::RunnerFirst,
        Victim::All,
    ];

    /// Is everything put back without `restore`?
    pub(crate) fn leaves_a_guard(self) -> bool {
        self != Victim::All
    }

    /// Kills the victims of a run whose processes name these directories.
    pub(crate) fn kill(self, runner: &Child, directories: &[&Path]) {
        let children = children_of(runner.id());
        let end_children = || children.iter().copied().for_each(end);
        match self {
            Victim::Runner => end(Pid::from_child(runner)),
            // The runner goes on with another agent, for as long as it is let.
            Victim::Agent => {
                end_children();
                std::thread::sleep(Duration::from_millis(200));
            }
            Victim::Both => {
                end(Pid::from_child(runner));
                end_children();
            }
            Victim::Guard => {
                end_guard(directories);
                let children = children_of(runner.id());
                end(Pid::from_child(runner));
                children.into_iter().for_each(end);
            }
            Victim::WhileStopped => {
                // Without its guard it has nothing in force, and nobody would end it.
                let is_guarded = !guards(directories).is_empty();
                for agent in named(directories, b"schedlab\0agent\0") {
                    if is_guarded {
                        let _ = kill_process(agent, Signal::STOP);
                    }
                }
                end(Pid::from_child(runner));
            }
            Victim::AgentFirst => {
                end_children();
                std::thread::sleep(Duration::from_millis(5));
                end(Pid::from_child(runner));
            }
            Victim::RunnerFirst => {
                end(Pid::from_child(runner));
                std::thread::sleep(Duration::from_millis(20));
                end_children();
            }
            Victim::All => processes_of(directories).into_iter().for_each(end),
        }
    }
}

/// Kills the guard, and waits until there is another: until the next trial, or turn.
fn end_guard(directories: &[&Path]) {
    let before = guards(directories);
    before.iter().copied().for_each(end);
    let limit = Instant::now() + LONGEST_TRIAL;
    let is_new = |pid: &Pid| !before.contains(pid);
    while !before.is_empty() && !guards(directories).iter().any(is_new) && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn guards(directories: &[&Path]) -> Vec<Pid> {
    named(directories, b"schedlab\0guard\0")
}

/// Processes whose command line begins so.
fn named(directories: &[&Path], beginning: &[u8]) -> Vec<Pid> {
    let mut found = processes_of(directories);
    found.retain(|pid| {
        let path = format!("/proc/{}/cmdline", pid.as_raw_nonzero());
        fs::read(path).is_ok_and(|line| line.starts_with(beginning))
    });
    found
}

fn end(pid: Pid) {
    // It may have ended by itself.
    let _ = kill_process(pid, Signal::KILL);
}

fn children_of(pid: u32) -> Vec<Pid> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| {
            let pids = list.split_whitespace().filter_map(|pid| pid.parse().ok());
            pids.filter_map(Pid::from_raw).collect::<Vec<Pid>>()
        })
        .collect()
}
