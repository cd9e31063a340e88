//! A place that a command leads to: a container, a pod, a device, or a machine with options of one's own.
//! It is a far machine as ssh(1) and srun(1) lead to one, by another line.

mod line;
mod presets;
mod spec;

pub use spec::{ExecSpec, KEYS};

use crate::far::FarTarget;
use crate::{Can, TargetDef};
use model::{Reset, TargetSpec};
use serde::Deserialize;
use std::sync::Arc;

const NAME: &str = "exec";

/// Entry in the table of targets.
pub static DEF: TargetDef = TargetDef {
    name: NAME,
    summary: "a place that a command leads to: a container, a pod, a device",
    keys: KEYS,
    shorts: presets::SHORTS,
    read: |keys| {
        let exec = ExecSpec::deserialize(keys)?;
        exec.check()?;
        Ok(TargetSpec::from(&exec))
    },
    can: |spec| ExecSpec::from_target(spec).map(|_| CAN),
    expose: None,
    shown: |spec| Ok(ExecSpec::from_target(spec)?.shown_lines()),
    make: |spec, host| {
        let exec = ExecSpec::from_target(spec)?;
        Ok(Box::new(FarTarget::new(Arc::new(exec), CAN, host)))
    },
    fleet: None,
};

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
