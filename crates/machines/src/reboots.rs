//! Targets that are real machines and boot installed kernels of their own: the keys for it, and the
//! checks of the kernels that arms name.

use crate::{Can, TargetError};
use model::{Experiment, Fact, Invalid, KeyDef, Problem, Reset};
use std::collections::BTreeSet;

/// The key that allows a machine to be restarted.
pub(crate) const REBOOTS: KeyDef = KeyDef::new(
    "reboots",
    "`auto`, `kexec`, `grub` or `systemd-boot`",
    "the machine is not restarted",
    "Kernels of arms are installed kernels of the machine, by their releases; it is restarted for \
     each, once in a block, in this way; `auto`: the first that works.",
);

/// The key that says how often it is restarted.
pub(crate) const RESET: KeyDef = KeyDef::new(
    "reset",
    "`block`, `workload` or `trial`",
    "`block`",
    "Restarts the machine, where `reboots` allows that, before each block, each workload of a block \
     or each trial.",
);

/// The abilities of a machine, with those that come with restarts.
pub(crate) fn can(usual: Can, reboots: bool, reset: Option<Reset>) -> Can {
    match reboots {
        false => usual,
        true => Can {
            kernels: true,
            reboots: true,
            reset: reset.unwrap_or(Reset::Block),
            ..usual
        },
    }
}

/// Refuses restarts of a machine that is not restarted, and what no real machine can.
pub(crate) fn check(reboots: bool, reset: Option<Reset>) -> Result<(), Invalid> {
    match reset {
        None => Ok(()),
        Some(Reset::Block | Reset::Workload | Reset::Trial) if reboots => Ok(()),
        Some(_) if !reboots => Err(Invalid::new(
            "reset",
            "this machine is not restarted, so there is nothing that `reset` could say",
        )
        .with_remedy("reboots = \"auto\" allows it, and then each arm names a kernel; or leave it out")),
        Some(_) => Err(Invalid::new(
            "reset",
            "a real machine is restarted for each block, workload or trial, and goes on from no snapshot",
        )
        .with_remedy("reset = \"workload\"")),
    }
}

/// Releases of the kernels that arms name, each once.
pub(crate) fn named_kernels(experiment: &Experiment) -> BTreeSet<&str> {
    let kernels = experiment.arms.iter().map(|arm| arm.kernel.as_deref());
    kernels.flatten().collect()
}

/// The kernel that runs, beside the one that was asked for.
pub(crate) fn kernel_fact(wanted: &str, found: &str) -> Fact {
    Fact::new("kernel", found.to_owned()).with_wanted(wanted.to_owned())
}

/// A machine that came up with another kernel than it was asked for.
pub(crate) fn came_with_another(wanted: &str, found: &str) -> TargetError {
    TargetError::Gone {
        why: format!(
            "the machine was to boot {wanted} and came up with {found}: {wanted} does not boot, or it \
             panicked and the machine fell back"
        ),
        tail: String::new(),
    }
}

/// A machine without root, which alone may restart it.
pub fn needs_root(object: &str) -> Problem {
    Problem {
        object: object.to_owned(),
        what: "only root may restart it with another kernel".to_owned(),
        remedy: "run as root, or by sudo".to_owned(),
    }
}
