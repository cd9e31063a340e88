//! Another machine, over ssh(1): the user's own program with its configuration.

mod line;
mod spec;

pub use spec::{KEYS, SshSpec};

use crate::far::FarTarget;
use crate::{Can, Short, TargetDef, reboots};
use model::{Reset, TargetSpec};
use serde::Deserialize;
use std::sync::Arc;

const NAME: &str = "ssh";

/// Entry in the table of targets.
pub static DEF: TargetDef = TargetDef {
    name: NAME,
    summary: "another machine, over ssh",
    keys: KEYS,
    shorts: &[Short::of_kind(NAME, "host")],
    read: |keys| {
        let ssh = SshSpec::deserialize(keys)?;
        ssh.check()?;
        Ok(TargetSpec::from(&ssh))
    },
    can: |spec| Ok(can(&SshSpec::from_target(spec)?)),
    expose: None,
    shown: |spec| Ok(SshSpec::from_target(spec)?.shown_lines()),
    make: |spec, host| {
        let ssh = SshSpec::from_target(spec)?;
        let can = can(&ssh);
        Ok(Box::new(FarTarget::new(Arc::new(ssh), can, host)))
    },
    fleet: None,
};

fn can(spec: &SshSpec) -> Can {
    reboots::can(CAN, spec.reboots.is_some(), spec.reset)
}

const CAN: Can = Can {
    kernels: false,
    reboots: false,
    cpus: None,
    apart: true,
    here: false,
    programs_of_here: false,
    is_guest: false,
    machines: None,
    reset: Reset::None,
};
