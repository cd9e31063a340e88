use crate::machine::processes_of;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

/// The processes that are killed, with SIGKILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    /// The schedlab that was started; its agent notices that it is alone.
    Runner,
    /// The child of the runner: the agent, or the QEMU whose guest has it.
    Agent,
    /// Runner and agent at once: the guard puts everything back.
    Both,
    /// Guard and workload too: nobody is left to put anything back but `restore`.
    All,
}

impl Victim {
    /// All victims, in the order in which they take turns.
    pub const EACH: [Victim; 4] = [Victim::Runner, Victim::Agent, Victim::Both, Victim::All];

    /// Kills the victims of a run whose processes name this directory.
    pub(crate) fn kill(self, runner: &Child, directory: &Path) {
        let children = children_of(runner.id());
        match self {
            Victim::Runner => end(Pid::from_child(runner)),
            // The runner goes on with another agent, for as long as it is let.
            Victim::Agent => {
                children.into_iter().for_each(end);
                std::thread::sleep(Duration::from_millis(200));
            }
            Victim::Both => {
                end(Pid::from_child(runner));
                children.into_iter().for_each(end);
            }
            Victim::All => processes_of(directory).into_iter().for_each(end),
        }
    }
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
