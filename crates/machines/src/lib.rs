//! Targets: the places of trials. A target is only a way to start the agent and to talk to it;
//! what happens in a trial is written once, in the `agent` crate.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

use model::{Calibration, Check, Experiment, Fact, Measurement, Problem, Reply, Request, Warning};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

pub mod child;
pub mod conformance;
mod def;
pub mod exec;
pub mod fake;
pub mod far;
pub mod local;
mod reboots;
pub mod slurm;
pub mod ssh;
pub mod stream;
mod table;
pub mod vm;
mod xen;

pub use ::reboot::By;
pub use ::vm::Saved;
pub use ::vm::snapshot::Done;
pub use reboots::needs_root;
pub use slurm::kernel_feature;

pub use def::{
    Can, Expose, Fleet, Host, Keys, Leaving, Made, MadeFleet, MakeFleet, ReadError, Say, Short,
    Shown, TargetDef,
};
pub use table::{
    TARGETS, find_abilities, find_by_name, find_by_short, find_def, find_fleet, known_cpus,
    make_target, starts_by_connecting,
};

/// Error of a target or of an agent on it.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The operating system refused a step on this machine.
    #[error("{step}: {object}: {source}")]
    Io {
        /// Step that failed, as in "starting the agent".
        step: &'static str,
        /// File or program that the step was about.
        object: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A requirement is not met; the run ends before the first trial.
    #[error("{}: {}; {}", .0.object, .0.what, .0.remedy)]
    Unmet(Problem),
    /// The agent or its machine is gone. `tail` holds the last lines it left.
    #[error("the agent ended: {why}")]
    Gone {
        /// Reason: exit status, signal, or the end of its stream.
        why: String,
        /// Last lines of its standard error or of its console; empty if there are none.
        tail: String,
    },
    /// Asked for from outside while something was started.
    #[error("interrupted")]
    Interrupted,
    /// This machine must go down for its next trial; the run goes on after the boot.
    #[error("this machine restarts with {}", .0.kernel)]
    Restarts(Restart),
    /// The agent sent what is no message, or more than any message has.
    #[error("the agent said something that is not a message: {0}")]
    Garbled(String),
}

/// A boot that is prepared, and waits for the machine to go down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restart {
    /// Release of the kernel that it boots.
    pub kernel: String,
    /// The way to it.
    pub by: By,
}

/// Settings that are the same for all trials until the next open: the kernel, for a VM.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Boot {
    /// The kernel that the arm names; `None` is the target's own.
    pub kernel: Option<String>,
}

impl Boot {
    /// For a target that boots no kernels.
    pub fn is_the_targets_own(&self) -> Result<(), TargetError> {
        match &self.kernel {
            None => Ok(()),
            Some(kernel) => Err(TargetError::Unmet(Problem {
                object: format!("kernel {kernel}"),
                what: "this target boots no kernels".to_owned(),
                remedy: "use a target that does: `schedlab list targets`".to_owned(),
            })),
        }
    }
}

/// A target as it is seen before any run of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Looked {
    /// All that was looked at; a caution keeps some arms or workloads from it.
    pub checks: Vec<Check>,
    /// Reasons for which no run could start there now.
    pub missing: Vec<Problem>,
}

/// A place for trials, which starts agents.
pub trait Target {
    /// `local`, `vm`, …
    fn kind(&self) -> &'static str;

    /// Abilities of this target for an experiment.
    fn abilities(&self) -> Can;

    /// Problems of the host side with this experiment, before anything is started.
    fn check(&mut self, experiment: &Experiment) -> Vec<Problem>;

    /// The step that `open` takes, for people who wait for it.
    fn opening_step(&self, _boot: &Boot) -> String {
        "starting the agent".to_owned()
    }

    /// Start an agent, and the machine below it where the target brings one.
    fn open_session(&mut self, boot: &Boot) -> Result<Box<dyn Session>, TargetError>;

    /// Continues an agent and its machine from where they were saved, for this boot.
    fn go_on(&mut self, boot: &Boot, _saved: &Saved) -> Result<Box<dyn Session>, TargetError> {
        self.open_session(boot)
    }

    /// Keeps a saved machine under the name that the target has for it, with the work that was done before. Sessions
    /// go on from it then. The state is given back where the target has no name.
    fn keep_state(&mut self, saved: Saved, _done: Done) -> Result<Option<Saved>, TargetError> {
        Ok(Some(saved))
    }

    /// Calibrations of the state that every session goes on from; `None` where sessions begin with a start of
    /// the machine.
    fn recall_calibrations(&self) -> Option<BTreeMap<String, Calibration>> {
        None
    }

    /// Leaves the machine as it was found, when a run has its end.
    fn leave_machine(&mut self) -> Result<(), TargetError> {
        Ok(())
    }

    /// Looks at what the target lacks; nothing is applied there.
    fn find_lacks(&mut self) -> Result<Looked, TargetError> {
        Err(no_machine_of_its_own(self.kind()))
    }

    /// A command that runs `schedlab ARGS` there, by a user who may change the machine.
    fn schedlab_command(&mut self, _args: &[&str]) -> Result<Command, TargetError> {
        Err(no_machine_of_its_own(self.kind()))
    }

    /// Warnings for every reader of the results (such as: emulated CPUs).
    fn warnings(&self) -> Vec<Warning> {
        Vec::new()
    }

    /// Files of this machine that these words name, and that what runs there does not see.
    fn hidden_in(&self, _words: &str) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Facts for `system.json` that the agent cannot see (`vm.accel`, `vm.qemu`, …).
    fn facts(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }
}

fn no_machine_of_its_own(kind: &str) -> TargetError {
    TargetError::Unmet(Problem {
        object: format!("target {kind}"),
        what: "nothing can be asked of it before a run".to_owned(),
        remedy: "name another machine, as ssh:HOST, or leave it out".to_owned(),
    })
}

/// One running agent. Dropping a session ends it and what it runs in.
pub trait Session: Send {
    /// Sends a request. An error where the agent is gone.
    fn send_request(&mut self, request: &Request) -> Result<(), TargetError>;

    /// Tells what will be asked after the greeting. A target on which each request takes a boot answers
    /// all of it by the boot of the greeting.
    fn foresee_requests(&mut self, _requests: Vec<Request>) {}

    /// The next reply; `None` when `wait` passed without one.
    fn receive_reply(&mut self, wait: Duration) -> Result<Option<Reply>, TargetError>;

    /// Console and kernel log since the last call, where the target has them.
    /// Written as `console.log` beside a trial.
    fn read_console(&mut self) -> Option<String> {
        None
    }

    /// State of the machine under an agent that does not answer, where somebody else can be asked.
    fn state_of_machine(&mut self) -> Option<String> {
        None
    }

    /// True if the machine is known to have died, and not its agent alone.
    fn is_machine_dead(&self) -> bool {
        false
    }

    /// Saves the machine with its agent and ends it, for a target that resets to a snapshot.
    fn save_machine(self: Box<Self>) -> Result<Saved, TargetError> {
        Err(TargetError::Unmet(Problem {
            object: "reset = \"snapshot\"".to_owned(),
            what: "this target cannot be saved".to_owned(),
            remedy: "use the target vm with an image".to_owned(),
        }))
    }

    /// Makes ports of the loopback address in there reachable on the loopback address here;
    /// gives their numbers here, in the same order. Earlier ones end.
    fn forward_ports(&mut self, _ports: &[u16]) -> Result<Vec<u16>, TargetError> {
        Err(TargetError::Unmet(Problem {
            object: "load-on = \"controller\"".to_owned(),
            what: "this target forwards no ports".to_owned(),
            remedy: "leave it out".to_owned(),
        }))
    }

    /// Address at which the controller reaches the machine over the network that people have.
    fn network_address(&self) -> Result<IpAddr, TargetError> {
        Err(TargetError::Unmet(Problem {
            object: "load-way = \"network\"".to_owned(),
            what: "this target has no address in the network of the controller".to_owned(),
            remedy: "leave it out, or use the target ssh or exec".to_owned(),
        }))
    }

    /// Facts of this machine, beside what they should be. A difference voids each trial.
    fn machine_facts(&mut self) -> Vec<Fact> {
        Vec::new()
    }

    /// Host-side readings since the last call (steal, load of the host): they
    /// explain a trial and are never judged (`Better::Neither`).
    fn host_readings(&mut self) -> Vec<Measurement> {
        Vec::new()
    }
}
