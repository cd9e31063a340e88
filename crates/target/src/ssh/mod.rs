//! Another machine, over ssh(1): the user's own program with its configuration.

mod line;
mod spec;

pub use spec::{KEYS, SshSpec};

use crate::far::FarTarget;
use crate::{Can, TargetDef};
use model::{Reset, TargetSpec};
use serde::Deserialize;
use std::sync::Arc;

const NAME: &str = "ssh";

/// Entry in the table of targets.
pub static DEF: TargetDef = TargetDef {
    name: NAME,
    summary: "another machine, over ssh",
    keys: KEYS,
    short: Some("host"),
    read: |keys| {
        let ssh = SshSpec::deserialize(keys)?;
        ssh.check()?;
        Ok(TargetSpec::from(&ssh))
    },
    can: |spec| {
        SshSpec::of(spec)?;
        Ok(CAN)
    },
    expose: None,
    shown: |spec| Ok(SshSpec::of(spec)?.shown()),
    make: |spec, host| {
        Ok(Box::new(FarTarget::new(
            Arc::new(SshSpec::of(spec)?),
            CAN,
            host,
        )))
    },
    fleet: None,
};

const CAN: Can = Can {
    kernels: false,
    cpus: None,
    apart: true,
    here: false,
    reset: Reset::None,
};
