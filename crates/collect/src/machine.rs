//! Machine and kernel that this is.

use crate::{read_trimmed, sys};
use rustix::system::uname;
use std::path::Path;

/// Online CPUs that this process may run on.
pub fn usable_cpus() -> u32 {
    match rustix::thread::sched_getaffinity(None) {
        Ok(set) => set.count(),
        Err(_) => 1,
    }
}

/// `uname -r`.
pub fn kernel_release() -> String {
    uname().release().to_string_lossy().into_owned()
}

/// `none`, or whose guest this is.
pub(crate) fn find_hypervisor(root: &Path) -> String {
    if let Some(kind) = read_trimmed(&root.join("sys/hypervisor/type")) {
        return kind;
    }
    match sys::hypervisor_signature().as_deref() {
        None => "none",
        Some("KVMKVMKVM") => "kvm",
        Some("TCGTCGTCGTCG") => "tcg",
        Some("XenVMMXenVMM") => "xen",
        Some("Microsoft Hv") => "hyper-v",
        Some("VMwareVMware") => "vmware",
        Some(_) => "unknown",
    }
    .to_owned()
}
