//! Targets that are real machines and boot installed kernels of their own: the keys for it, and the
//! checks of the kernels that arms name.

use crate::{Can, TargetError};
use model::{Experiment, Fact, KeyDef, Problem, Reset};
use std::collections::BTreeSet;

/// The key that allows a machine to be restarted.
pub(crate) const REBOOTS: KeyDef = KeyDef::new(
    "reboots",
    "`auto`, `kexec`, `grub` or `systemd-boot`",
    "the machine is not restarted",
    "Kernels of arms are installed kernels of the machine, by their releases; it is restarted for \
     each, once in a block, in this way; `auto`: the first that works.",
);

/// The abilities of a machine, with those that come with restarts.
pub(crate) const fn can(usual: Can, reboots: bool) -> Can {
    match reboots {
        false => usual,
        true => Can {
            kernels: true,
            reboots: true,
            reset: Reset::Block,
            ..usual
        },
    }
}

/// Releases of the kernels that arms name, each once.
pub(crate) fn kernels(experiment: &Experiment) -> BTreeSet<&str> {
    let kernels = experiment.arms.iter().map(|arm| arm.kernel.as_deref());
    kernels.flatten().collect()
}

/// The kernel that runs, beside the one that was asked for.
pub(crate) fn fact(wanted: &str, found: &str) -> Fact {
    Fact::found("kernel", found.to_owned()).wants(wanted.to_owned())
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
