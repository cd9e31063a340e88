//! This machine: the agent is a child process that talks over its standard streams.

use crate::child::ChildSession;
use crate::{Boot, Can, Host, Session, Target, TargetDef, TargetError};
use model::{Experiment, Problem, Reset, TargetSpec};
use serde::Deserialize;
use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

const NAME: &str = "local";

/// Entry in the table of targets.
pub static DEF: TargetDef = TargetDef {
    name: NAME,
    summary: "this machine",
    keys: &[],
    short: None,
    read: |keys| {
        Nothing::deserialize(keys)?;
        Ok(TargetSpec::local())
    },
    can: |_| Ok(CAN),
    expose: None,
    shown: |_| Ok(Vec::new()),
    make: |_, host| Ok(Box::new(LocalTarget::new(host))),
    fleet: None,
};

const CAN: Can = Can {
    kernels: false,
    cpus: None,
    apart: false,
    here: true,
    reset: Reset::None,
};

/// This machine has no keys.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// This machine, with an agent as a child process.
#[derive(Debug)]
pub struct LocalTarget {
    program: PathBuf,
    env: Vec<(OsString, OsString)>,
}

impl LocalTarget {
    /// Target whose agent is the program of `host`, with its environment.
    pub fn new(host: &Host) -> Self {
        // This very file, also after another build took its place.
        let this = || PathBuf::from("/proc/self/exe");
        let path = host.longer_path(&env::var_os("PATH").unwrap_or_default());
        let path = (OsString::from("PATH"), path);
        let more = host.environment.iter();
        let more = more.map(|(name, value)| (name.into(), value.into()));
        LocalTarget {
            program: host.program.clone().unwrap_or_else(this),
            env: std::iter::once(path).chain(more).collect(),
        }
    }
}

impl Target for LocalTarget {
    fn kind(&self) -> &'static str {
        NAME
    }

    fn can(&self) -> Can {
        CAN
    }

    fn check(&mut self, _experiment: &Experiment) -> Vec<Problem> {
        Vec::new()
    }

    fn open(&mut self, boot: &Boot) -> Result<Box<dyn Session>, TargetError> {
        boot.is_the_targets_own()?;
        let mut command = Command::new(&self.program);
        command.arg0("schedlab").arg("agent");
        command.envs(self.env.iter().cloned());
        Ok(Box::new(ChildSession::spawn(command)?))
    }
}
