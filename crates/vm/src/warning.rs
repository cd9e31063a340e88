//! Warnings that the results of every guest carry: how its CPUs are made, and what its trials start from.

use crate::qemu;
use crate::snapshot::Snapshot;
use model::{Reset, Severity, Warning};

/// The note on what each trial starts from, on a machine that is called so. Trials from one snapshot
/// share what the programs in it had come to: code that was compiled, memory that was laid out.
pub fn starts_from(reset: Reset, machine: &str) -> Warning {
    let what = match reset {
        Reset::None => {
            format!(
                "what a trial runs is started anew, in a {machine} that is booted once for each kernel"
            )
        }
        Reset::Block => {
            format!(
                "what a trial runs is started anew, in a {machine} that is booted for each block"
            )
        }
        Reset::Workload => {
            format!(
                "what a trial runs is started anew, in a {machine} that is booted for each workload of a \
                 block"
            )
        }
        Reset::Trial => format!("each trial starts from a {machine} that was just booted"),
        Reset::Snapshot => {
            "all trials of a start go on from one snapshot, so a verdict is about the \
                            state that its services were saved in"
                .to_owned()
        }
        Reset::BlockSnapshot => {
            "all trials of a block go on from one snapshot, whose services were \
                                 started for that block"
                .to_owned()
        }
    };
    let remedy = match reset {
        Reset::Snapshot => {
            "reset = \"block-snapshot\", which starts the services anew for each block, or reset = \
             \"trial\""
        }
        _ => "",
    };
    Warning {
        severity: Severity::Note,
        what,
        remedy: remedy.to_owned(),
    }
}

/// The note on the snapshot that each trial goes on from, which is there or is still to be made.
pub fn goes_on_from(name: &str, found: Option<&Snapshot>) -> Warning {
    let what = match found {
        Some(found) => {
            let by = match found.done {
                Some(_) => "a run made",
                None => "was made by hand",
            };
            let words = found.in_words();
            format!(
                "all trials go on from the {words}, which {by}, so a verdict is about the state in it"
            )
        }
        None => format!(
            "there is no snapshot {name} yet: the run saves it when its services have answered one whole \
             load, and all trials of this run and of later ones go on from it"
        ),
    };
    Warning {
        severity: Severity::Note,
        what,
        remedy: "reset = \"block-snapshot\" starts the services anew for each block".to_owned(),
    }
}

/// The warning where CPUs are emulated, for this reason.
pub fn of_emulation(why: &str, version: &str) -> Warning {
    let mut remedy = format!("for performance, run on a host where KVM works (here: {why})");
    if !qemu::emulates_in_parallel(version) {
        remedy += "; QEMU from 8.1 on (in Debian 12: from bookworm-backports) emulates the CPUs of \
                   a guest in parallel, this one runs them in turns";
    }
    Warning {
        severity: Severity::Serious,
        what:
            "CPUs are emulated (TCG): figures show function and order of magnitude, not performance"
                .to_owned(),
        remedy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_qemu_whose_cpus_take_turns_is_told_of() {
        let remedy = |version| of_emulation("no /dev/kvm", version).remedy;
        assert!(remedy("7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)").contains("in turns"));
        assert!(!remedy("8.1.0").contains("in turns"));
        assert!(!remedy("10.0.2 (Debian 1:10.0.2+ds-2)").contains("in turns"));
    }

    #[test]
    fn what_each_trial_starts_from_is_said_of_every_reset() {
        let said = |reset| starts_from(reset, "guest").what;
        assert!(said(Reset::None).contains("started anew, in a guest that is booted once"));
        assert!(
            said(Reset::Block).contains("started anew, in a guest that is booted for each block")
        );
        assert!(said(Reset::Workload).contains("booted for each workload of a block"));
        assert!(said(Reset::Trial).contains("just booted"));
        assert!(said(Reset::Snapshot).contains("one snapshot, so a verdict is about the state"));
        assert!(said(Reset::BlockSnapshot).contains("started for that block"));
    }
}
