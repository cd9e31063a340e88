//! KVM or emulation? `/dev/kvm` alone says little (nested, locked down, another
//! architecture's firmware), so a guest is booted with it once per boot of the
//! host, and the answer is kept in the cache.

use super::architecture::Architecture;
use super::failure::unmet_error;
use super::frame::{PROBE_ANSWER, PROBE_ARGUMENT};
use super::launch::Launch;
use super::machine::Machine;
use super::qemu::{Accel, CommandLine, Descriptors, Root};
use super::view::{KVM, USER_VARIABLE};
use crate::VmError;
use doors::written;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A guest with KVM says its line within a second; a loaded host gets more.
const PROBE_LIMIT: Duration = Duration::from_secs(10);
const PROBE_MEMORY: u64 = 512 << 20;

/// The accelerator that is used, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub accel: Accel,
    pub why: String,
}

/// An answer in the cache; holds for one boot of the host and one QEMU.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Answer {
    host_boot: String,
    qemu: String,
    works: bool,
    why: String,
}

/// `wanted` is `kvm`, `tcg`, or nothing for the best that works.
pub fn choose(
    wanted: Option<&str>,
    (architecture, qemu): (&'static Architecture, &str),
    kernel: &Path,
    initramfs: &Path,
    cache: &Path,
    launch: &Launch,
) -> Result<Choice, VmError> {
    match wanted {
        Some("tcg") => Ok(choice(Accel::Tcg, "asked for")),
        None | Some("kvm") if !architecture.is_of_this_machine() => foreign(wanted, architecture),
        Some("kvm") => Ok(choice(Accel::Kvm, "asked for")),
        Some(other) => Err(unmet_error(
            "target vm",
            &format!("there is no accelerator {other:?}"),
            "write kvm or tcg, or leave it out",
        )),
        None => {
            let qemu = (architecture, qemu);
            Ok(find_out(qemu, kernel, initramfs, cache, launch))
        }
    }
}

/// KVM gives a guest the CPUs of this machine as they are.
fn foreign(wanted: Option<&str>, of: &Architecture) -> Result<Choice, VmError> {
    let why = format!(
        "the guest is {}, and this machine {}",
        of.name,
        std::env::consts::ARCH
    );
    match wanted {
        None => Ok(choice(Accel::Tcg, &why)),
        Some(_) => Err(unmet_error(
            "target vm",
            &format!("{why}, so there is no KVM for it"),
            "leave out accel",
        )),
    }
}

fn choice(accel: Accel, why: &str) -> Choice {
    Choice {
        accel,
        why: why.to_owned(),
    }
}

fn find_out(
    (architecture, version): (&'static Architecture, &str),
    kernel: &Path,
    initramfs: &Path,
    cache: &Path,
    launch: &Launch,
) -> Choice {
    if let Err(e) = fs::File::options().read(true).write(true).open(KVM) {
        return choice(Accel::Tcg, &format!("{KVM} cannot be used: {e}"));
    }
    if let Some(user) = launch.user().filter(|_| !launch.can_use_kvm()) {
        return choice(Accel::Tcg, &barred(&user.name));
    }
    let kept = cache.join("kvm-works.json");
    let host_boot = doors::read::kernel_text("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    // A program of the same version may be another one, or a script around it, and who
    // runs it may not use the device.
    let qemu = &launch.describe(architecture, version);
    let answer = recall(&kept, &host_boot, qemu).unwrap_or_else(|| {
        tracing::info!("finding out whether KVM works (once per boot of this host)");
        let tried = try_kvm(architecture, kernel, initramfs, launch);
        let answer = Answer {
            host_boot,
            qemu: qemu.to_owned(),
            works: tried.is_ok(),
            why: tried
                .err()
                .unwrap_or_else(|| "a guest booted with it".to_owned()),
        };
        if !launch.is_interrupted() {
            remember(&kept, &answer);
        }
        answer
    });
    let accel = if answer.works { Accel::Kvm } else { Accel::Tcg };
    let why = if answer.works {
        answer.why
    } else {
        format!("KVM was tried: {}", answer.why)
    };
    Choice { accel, why }
}

/// Root may use the device, and the user that QEMU runs as may not.
fn barred(user: &str) -> String {
    format!(
        "{KVM} is not for the user {user}, and a node of it cannot be made for QEMU here: that takes \
         CAP_SYS_ADMIN and CAP_MKNOD; or let a group have it (chgrp kvm {KVM}; chmod 660 {KVM}), or \
         name a user who may use it ({USER_VARIABLE})"
    )
}

fn recall(kept: &Path, host_boot: &str, qemu: &str) -> Option<Answer> {
    let answer: Answer = serde_json::from_slice(&doors::read::small_file_bytes(kept).ok()?).ok()?;
    (answer.host_boot == host_boot && answer.qemu == qemu).then_some(answer)
}

fn remember(kept: &Path, answer: &Answer) {
    let written = serde_json::to_vec(answer)
        .map_err(Into::into)
        .and_then(|json| written::write_file(kept, json));
    if let Err(e) = written {
        tracing::debug!("{} cannot be written: {e}", kept.display());
    }
}

fn try_kvm(
    architecture: &'static Architecture,
    kernel: &Path,
    initramfs: &Path,
    launch: &Launch,
) -> Result<(), String> {
    let line = CommandLine {
        architecture,
        accel: Accel::Kvm,
        cpus: 1,
        topology: None,
        memory_bytes: PROBE_MEMORY,
        kernel: kernel.to_owned(),
        initramfs: initramfs.to_owned(),
        xen: None,
        xen_scheduler: None,
        device_tree: None,
        append: PROBE_ARGUMENT.to_owned(),
        root: Root::Nothing,
        shared: PathBuf::new(),
        forwards: Vec::new(),
        forwards_later: false,
        incoming: None,
        virtual_time: None,
        descriptors: Descriptors::default(),
    };
    let (machine, _channels) = Machine::start(line, launch).map_err(|e| e.to_string())?;
    let start = Instant::now();
    while start.elapsed() < PROBE_LIMIT && !launch.is_interrupted() {
        let end = machine.wait_for_end(Duration::from_millis(20));
        if machine.console.tail().contains(PROBE_ANSWER) {
            return Ok(());
        }
        if let Some(how) = end {
            return Err(how.lines().next().unwrap_or_default().to_owned());
        }
    }
    Err(format!(
        "a guest did not boot with it within {} s",
        PROBE_LIMIT.as_secs()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_holds_for_one_boot_of_the_host_and_one_qemu() {
        let dir = tempfile::tempdir().unwrap();
        let kept = dir.path().join("kvm.json");
        assert_eq!(recall(&kept, "boot", "7.2"), None);
        let answer = Answer {
            host_boot: "boot".to_owned(),
            qemu: "7.2".to_owned(),
            works: false,
            why: "it looped".to_owned(),
        };
        remember(&kept, &answer);
        assert_eq!(recall(&kept, "boot", "7.2"), Some(answer));
        assert_eq!(recall(&kept, "next boot", "7.2"), None);
        assert_eq!(recall(&kept, "boot", "10.0"), None);
    }

    #[test]
    fn what_is_asked_for_is_not_tried() {
        let nowhere = Path::new("/nowhere");
        let launch = Launch::default();
        let own = (Architecture::of_this_machine(), "7.2");
        let chosen = |wanted| choose(Some(wanted), own, nowhere, nowhere, nowhere, &launch);
        assert_eq!(chosen("tcg").unwrap().accel, Accel::Tcg);
        assert_eq!(chosen("kvm").unwrap().accel, Accel::Kvm);
        assert!(
            chosen("xen")
                .unwrap_err()
                .to_string()
                .contains("kvm or tcg")
        );
    }

    #[test]
    fn a_guest_of_another_architecture_is_emulated_and_kvm_is_refused() {
        let own = Architecture::of_this_machine();
        let all = crate::architecture::ALL.into_iter();
        let other = all.into_iter().find(|one| *one != own).unwrap();
        let nowhere = Path::new("/nowhere");
        let launch = Launch::default();
        let chosen = |wanted| choose(wanted, (other, "7.2"), nowhere, nowhere, nowhere, &launch);
        let emulated = chosen(None).unwrap();
        assert_eq!(emulated.accel, Accel::Tcg);
        assert!(emulated.why.contains(other.name), "{}", emulated.why);
        let refused = chosen(Some("kvm")).unwrap_err().to_string();
        assert!(refused.contains("no KVM"), "{refused}");
    }
}
