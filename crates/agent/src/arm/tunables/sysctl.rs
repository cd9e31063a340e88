//! Sysctls and files of debugfs `sched` by their full names, of which schedlab knows nothing but the
//! file: `vm.swappiness` is /proc/sys/vm/swappiness, see sysctl(8), and `debugfs.sched.verbose` is
//! /sys/kernel/debug/sched/verbose. The value is passed on as it is, and read back.

use std::path::{Path, PathBuf};

/// Sysctls that name programs which the kernel starts as root. An experiment of a stranger must
/// not bring one.
const PROGRAMS: [&str; 5] = [
    "kernel.core_pattern",
    "kernel.modprobe",
    "kernel.hotplug",
    "kernel.poweroff_cmd",
    "fs.binfmt_misc",
];
/// Start of the names of files in debugfs.
pub const DEBUGFS: &str = "debugfs.sched.";
const LONGEST_VALUE: usize = 200;

/// True if it is the full name of a sysctl and not a name of schedlab's own.
pub fn is_full_name(name: &str) -> bool {
    name.contains('.') && !name.starts_with(super::FEATURE)
}

/// Refuses names and values that are none on any kernel.
pub fn check(name: &str, value: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':');
    let parts = || name.split('.');
    if name.len() > 120 || parts().any(|part| part.is_empty() || !part.chars().all(plain)) {
        return Err(format!(
            "tunable {name}: a sysctl is named as in sysctl(8): vm.swappiness"
        ));
    }
    if name.strip_prefix(DEBUGFS) == Some("features") {
        return Err(format!(
            "tunable {name}: features are set one by one: feature.PLACE_LAG"
        ));
    }
    let starts = |program: &&&str| {
        let rest = name.strip_prefix(**program);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    if let Some(program) = PROGRAMS.iter().find(starts) {
        return Err(format!(
            "tunable {name}: {program} names programs that the kernel starts as root, and is not set"
        ));
    }
    let value = one_space(value);
    if value.is_empty() || value.len() > LONGEST_VALUE || value.chars().any(char::is_control) {
        return Err(format!("tunable {name}: {value:?} is no value of a sysctl"));
    }
    Ok(value)
}

/// The file of a sysctl, or of debugfs, below the root.
pub fn path(root: &Path, name: &str) -> PathBuf {
    let (directory, name) = match name.strip_prefix(DEBUGFS) {
        Some(name) => ("sys/kernel/debug/sched", name),
        None => ("proc/sys", name),
    };
    root.join(directory).join(name.replace('.', "/"))
}

/// Several numbers are written with any space between them, and read with tabs.
pub fn one_space(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}
