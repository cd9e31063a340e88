//! kexec(8): the running kernel starts the next one. A boot after that is the machine's own, since
//! firmware and boot loader know nothing of it.

use crate::program::{find_installed, run_program};
use crate::{ARGUMENTS, image, with_ours};
use std::path::{Path, PathBuf};

/// A kernel that can be started so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kexec {
    program: String,
    kernel: PathBuf,
    initrd: Option<PathBuf>,
    arguments: String,
}

impl Kexec {
    pub fn find(root: &Path, release: &str) -> Result<Self, String> {
        let (kernel, initrd) = image(root, release)?;
        let program = find_installed(&["kexec"]);
        let program = program.ok_or("kexec is not installed (Debian: kexec-tools)")?;
        let read = |path: &str| doors::read::kernel_text(root.join(path)).unwrap_or_default();
        if read("proc/sys/kernel/kexec_load_disabled").trim() != "0" {
            return Err("this kernel starts no other one (kexec_load_disabled)".to_owned());
        }
        let lockdown = read("sys/kernel/security/lockdown");
        if lockdown.contains('[') && !lockdown.contains("[none]") {
            return Err("this kernel is locked down, and starts only signed ones".to_owned());
        }
        Ok(Kexec {
            program,
            kernel,
            initrd,
            arguments: arguments(&read("proc/cmdline")),
        })
    }

    pub fn prepare(&self) -> Result<(), String> {
        let initrd = self.initrd.as_ref();
        let initrd = initrd.map(|path| format!("--initrd={}", path.display()));
        let arguments = format!("--command-line={}", self.arguments);
        let kernel = self.kernel.display().to_string();
        // -a: by the system call that takes files, else by the older one.
        let mut words = vec!["-a", "-l", &kernel, &arguments];
        words.extend(initrd.as_deref());
        run_program(&self.program, &words).map(drop)
    }
}

/// Arguments of the next kernel: those of this one, without what its boot loader or an earlier boot
/// of ours added.
fn arguments(running: &str) -> String {
    let ours: Vec<&str> = ARGUMENTS.split(' ').collect();
    let is_own = |word: &&str| {
        !word.starts_with("BOOT_IMAGE=") && !word.starts_with("initrd=") && !ours.contains(word)
    };
    let kept: Vec<&str> = running.split_whitespace().filter(is_own).collect();
    with_ours(&kept.join(" "))
}

/// Forgets a kernel that is loaded.
pub(crate) fn unload_kernel(root: &Path) -> Result<(), String> {
    let loaded = doors::read::kernel_text(root.join("sys/kernel/kexec_loaded"));
    match (loaded.as_deref().map(str::trim), find_installed(&["kexec"])) {
        (Ok("1"), Some(program)) => run_program(&program, &["-u"]).map(drop),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_kernel_has_the_arguments_of_this_one_and_restarts_after_a_panic() {
        let running = "BOOT_IMAGE=/boot/vmlinuz-6.1 root=UUID=ab ro quiet\n";
        let next = arguments(running);
        assert_eq!(next, format!("root=UUID=ab ro quiet {ARGUMENTS}"));
        assert_eq!(arguments(&next), next);
        assert_eq!(
            arguments("ro -- single"),
            format!("ro {ARGUMENTS} -- single")
        );
    }
}
