//! The kernel's file systems: the few that init needs at once, and all that
//! programs expect.

use super::{Failure, at, log};
use rustix::mount::{MountFlags, mount};
use std::ffi::CString;
use std::fs;
use std::io;
use std::path::Path;

struct Mount {
    kind: &'static str,
    target: &'static str,
    options: &'static str,
}

const fn entry(kind: &'static str, target: &'static str, options: &'static str) -> Mount {
    Mount {
        kind,
        target,
        options,
    }
}

const EARLY: [Mount; 3] = [
    entry("proc", "/proc", ""),
    entry("sysfs", "/sys", ""),
    entry("devtmpfs", "/dev", "mode=755"),
];

const ALL: [Mount; 11] = [
    entry("proc", "/proc", ""),
    entry("sysfs", "/sys", ""),
    entry("devtmpfs", "/dev", "mode=755"),
    entry("devpts", "/dev/pts", "mode=620,gid=5,ptmxmode=666"),
    entry("tmpfs", "/dev/shm", "mode=1777"),
    entry("mqueue", "/dev/mqueue", ""),
    entry("cgroup2", "/sys/fs/cgroup", "nsdelegate"),
    entry("bpf", "/sys/fs/bpf", "mode=700"),
    entry("debugfs", "/sys/kernel/debug", ""),
    entry("tracefs", "/sys/kernel/tracing", ""),
    entry("securityfs", "/sys/kernel/security", ""),
];

pub fn mount_early() -> Result<(), Failure> {
    EARLY
        .iter()
        .try_for_each(|m| mount_one(m).map_err(at(format!("mount {}", m.target))))
}

/// A kernel need not have all of them; what is missing is logged.
pub fn mount_all() {
    for m in &ALL {
        if let Err(e) = mount_one(m) {
            log(&format!("mount {}: {e}", m.target));
        }
    }
    link_descriptors();
    delegate_controllers();
}

pub fn options(text: &str) -> CString {
    // The texts are ours and have no NUL.
    CString::new(text).unwrap_or_default()
}

fn mount_one(m: &Mount) -> io::Result<()> {
    if !Path::new(m.target).exists() {
        fs::create_dir_all(m.target)?;
    }
    let options = options(m.options);
    Ok(mount(
        m.kind,
        m.target,
        m.kind,
        MountFlags::empty(),
        options.as_c_str(),
    )?)
}

fn link_descriptors() {
    for (link, target) in [
        ("/dev/fd", "/proc/self/fd"),
        ("/dev/stdin", "/proc/self/fd/0"),
        ("/dev/stdout", "/proc/self/fd/1"),
        ("/dev/stderr", "/proc/self/fd/2"),
    ] {
        let _ = std::os::unix::fs::symlink(target, link);
    }
}

/// One by one: a kernel without one of them refuses the whole line.
fn delegate_controllers() {
    for controller in ["cpu", "cpuset", "io", "memory", "pids"] {
        let _ = fs::write(
            "/sys/fs/cgroup/cgroup.subtree_control",
            format!("+{controller}"),
        );
    }
}
