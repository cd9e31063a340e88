//! A Xen host in a virtual machine as a place for trials: the agent runs in dom0, and the guests
//! that a workload asks for run beside it. The machine itself is the crate `vm`'s. On a real Xen
//! host the target is `ssh`, to its dom0.

use crate::vm::{expose_paths, guest_abilities, make_target, shown_lines};
use crate::{Keys, ReadError, Short, TargetDef};
use ::vm::{VmSpec, XEN, xen_keys};
use model::TargetSpec;

/// Entry in the table of targets.
pub static DEF: TargetDef = TargetDef {
    name: XEN,
    summary: "Xen with a dom0 of its own, in a virtual machine (QEMU; no root needed)",
    keys: xen_keys::KEYS,
    shorts: &[Short::of_kind(XEN, "xen")],
    read,
    can: |spec| Ok(guest_abilities(&VmSpec::from_target(spec)?)),
    expose: Some(expose_paths),
    shown: shown_lines,
    make: make_target,
    fleet: None,
};

fn read(keys: Keys) -> Result<TargetSpec, ReadError> {
    let vm = xen_keys::read(keys)?;
    vm.check()?;
    Ok(TargetSpec::from(&vm))
}
