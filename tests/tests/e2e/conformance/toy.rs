//! A target as small as they get: an agent that a shell starts.

use machines::child::ChildSession;
use machines::{Boot, Can, Host, Session, Target, TargetDef, TargetError};
use model::KeyDef;
use serde::{Deserialize, Serialize};
use std::process::Command;

pub static DEF: TargetDef = TargetDef {
    name: "shell",
    summary: "behind a shell",
    keys: &[KeyDef::new(
        "shell",
        "path",
        "needed",
        "Program that starts the agent.",
    )],
    shorts: &[],
    read: |keys| Ok(model::TargetSpec::new("shell", &Shell::deserialize(keys)?)),
    can: |_| Ok(CAN),
    expose: None,
    shown: |spec| Ok(vec![("behind", spec.read_keys::<Shell>()?.shell)]),
    make: |spec, host| {
        Ok(Box::new(ShellTarget {
            keys: spec.read_keys()?,
            host: host.clone(),
        }))
    },
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
    reset: model::Reset::None,
};

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shell {
    shell: String,
}

struct ShellTarget {
    keys: Shell,
    host: Host,
}

impl Target for ShellTarget {
    fn kind(&self) -> &'static str {
        DEF.name
    }

    fn abilities(&self) -> Can {
        CAN
    }

    fn check(&mut self, _experiment: &model::Experiment) -> Vec<model::Problem> {
        Vec::new()
    }

    fn open_session(&mut self, boot: &Boot) -> Result<Box<dyn Session>, TargetError> {
        boot.is_the_targets_own()?;
        let program = self.host.program.clone().unwrap_or_default();
        let mut command = Command::new(&self.keys.shell);
        command.args(["-c", "exec \"$0\" agent"]).arg(program);
        command.envs(self.host.environment.iter().cloned());
        Ok(Box::new(ChildSession::spawn(command)?))
    }
}
