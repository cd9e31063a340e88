//! This machine: the agent is a child process that talks over its standard streams.

use crate::child::ChildSession;
use crate::reboots::{self, REBOOTS, RESET};
use crate::{Boot, Can, Host, Restart, Session, Target, TargetDef, TargetError};
use doors::started::own_command;
use model::{Experiment, Fact, Problem, Reply, Request, Reset, TargetSpec};
use reboot::{By, Once, Record};
use serde::{Deserialize, Serialize};
use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const NAME: &str = "local";

/// Entry in the table of targets.
pub static DEF: TargetDef = TargetDef {
    name: NAME,
    summary: "this machine",
    keys: &[REBOOTS, RESET],
    shorts: &[],
    read: |keys| {
        let local = LocalSpec::deserialize(keys)?;
        reboots::check(local.reboots.is_some(), local.reset)?;
        Ok(TargetSpec::new(NAME, &local))
    },
    can: |spec| Ok(abilities(&spec.read_keys()?)),
    expose: None,
    shown: |spec| {
        let reboots = spec.read_keys::<LocalSpec>()?.reboots;
        let line = reboots.map(|by| ("which it restarts, by", by.to_string()));
        Ok(line.into_iter().collect())
    },
    make: |spec, host| Ok(Box::new(LocalTarget::of(&spec.read_keys()?, host))),
    fleet: None,
};

const CAN: Can = Can {
    kernels: false,
    reboots: false,
    cpus: None,
    apart: false,
    here: true,
    programs_of_here: true,
    is_guest: false,
    machines: None,
    reset: Reset::None,
};

/// This machine, as an experiment names it.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LocalSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reboots: Option<By>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reset: Option<Reset>,
}

/// The way to other kernels, where this machine may be restarted.
pub fn reboot_way(spec: &TargetSpec) -> Option<By> {
    spec.read_keys::<LocalSpec>().ok()?.reboots
}

fn abilities(spec: &LocalSpec) -> Can {
    reboots::can(CAN, spec.reboots.is_some(), spec.reset)
}

/// This machine, with an agent as a child process.
#[derive(Debug)]
pub struct LocalTarget {
    program: PathBuf,
    env: Vec<(OsString, OsString)>,
    /// The way to other kernels, where it may be restarted.
    reboots: Option<By>,
    reset: Option<Reset>,
    record: Option<PathBuf>,
}

impl LocalTarget {
    /// Target whose agent is the program of `host`, with its environment.
    pub fn new(host: &Host) -> Self {
        Self::of(&LocalSpec::default(), host)
    }

    fn of(spec: &LocalSpec, host: &Host) -> Self {
        // This very file, also after another build took its place.
        let this = || PathBuf::from("/proc/self/exe");
        let path = host.longer_path(&env::var_os("PATH").unwrap_or_default());
        let path = (OsString::from("PATH"), path);
        let more = host.environment.iter();
        let more = more.map(|(name, value)| (name.into(), value.into()));
        LocalTarget {
            program: host.program.clone().unwrap_or_else(this),
            env: std::iter::once(path).chain(more).collect(),
            reboots: spec.reboots,
            reset: spec.reset,
            record: host.record.clone(),
        }
    }

    fn agent(&self) -> Result<ChildSession, TargetError> {
        let mut command = own_command(&self.program);
        command.arg0("schedlab").arg("agent");
        command.envs(self.env.iter().cloned());
        ChildSession::spawn(command)
    }

    /// An agent on this kernel, in a boot that nothing was measured in; else the machine must go
    /// down.
    fn after_boot(&self, by: By, kernel: &str) -> Result<Rebooted, TargetError> {
        let file = self.record.as_ref().ok_or_else(not_armed)?;
        let unkept = |e: reboot::RecordError| unmet(e.to_string(), "make room, or mend the file");
        let record = Record::read(file).map_err(unkept)?;
        let mut record = record.ok_or_else(not_armed)?;
        if let Some(up) = record.find_fresh_boot(kernel) {
            up.used = true;
            let found = up.found.clone();
            record.write(file).map_err(unkept)?;
            if found != kernel {
                return Err(reboots::came_with_another(kernel, &found));
            }
            return Ok(Rebooted {
                agent: self.agent()?,
                facts: vec![reboots::kernel_fact(kernel, &found)],
            });
        }
        let once = Once::find(Path::new("/"), kernel, by).map_err(TargetError::Unmet)?;
        let by = once.way();
        record.add_request(kernel, by);
        // Before the boot loader knows: a boot that nobody remembers would be an endless one.
        record.write(file).map_err(unkept)?;
        once.prepare().map_err(TargetError::Unmet)?;
        let kernel = kernel.to_owned();
        Err(TargetError::Restarts(Restart { kernel, by }))
    }
}

fn not_armed() -> TargetError {
    unmet(
        "it must be restarted for its kernels, and this run would not go on afterwards".to_owned(),
        "schedlab boot start FILE",
    )
}

fn unmet(what: String, remedy: &str) -> TargetError {
    TargetError::Unmet(Problem {
        object: "this machine".to_owned(),
        what,
        remedy: remedy.to_owned(),
    })
}

impl Target for LocalTarget {
    fn kind(&self) -> &'static str {
        NAME
    }

    fn abilities(&self) -> Can {
        reboots::can(CAN, self.reboots.is_some(), self.reset)
    }

    fn check(&mut self, experiment: &Experiment) -> Vec<Problem> {
        let Some(by) = self.reboots else {
            return Vec::new();
        };
        let kernels = reboots::named_kernels(experiment).into_iter();
        let found = kernels.map(|kernel| Once::find(Path::new("/"), kernel, by));
        let mut problems: Vec<Problem> = found.filter_map(Result::err).collect();
        if !rustix::process::geteuid().is_root() {
            problems.push(reboots::needs_root("this machine"));
        }
        problems
    }

    fn opening_step(&self, boot: &Boot) -> String {
        match &boot.kernel {
            Some(kernel) => format!("starting the agent on {kernel}"),
            None => "starting the agent".to_owned(),
        }
    }

    fn open_session(&mut self, boot: &Boot) -> Result<Box<dyn Session>, TargetError> {
        match (&boot.kernel, self.reboots) {
            (Some(kernel), Some(by)) => Ok(Box::new(self.after_boot(by, kernel)?)),
            _ => {
                boot.is_the_targets_own()?;
                Ok(Box::new(self.agent()?))
            }
        }
    }
}

/// An agent on a kernel that was asked for.
struct Rebooted {
    agent: ChildSession,
    facts: Vec<Fact>,
}

impl Session for Rebooted {
    fn send_request(&mut self, request: &Request) -> Result<(), TargetError> {
        self.agent.send_request(request)
    }

    fn receive_reply(&mut self, wait: Duration) -> Result<Option<Reply>, TargetError> {
        self.agent.receive_reply(wait)
    }

    fn machine_facts(&mut self) -> Vec<Fact> {
        self.facts.clone()
    }
}
