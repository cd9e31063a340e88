//! Start of guests on this host: with which QEMU, as whom, in which view of the files, and
//! until when.

use super::architecture::Architecture;
use super::qemu;
use super::view::KVM;
use confine::Confinement;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug, Clone, Default)]
pub struct Launch {
    pub confinement: Confinement,
    /// CPUs of the host that all threads of QEMU stay on; all where there is none.
    pub cpus: Vec<u32>,
    /// Set from outside (a signal): a boot ends, and is not tried again.
    pub interrupted: Arc<AtomicBool>,
}

impl Launch {
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Whom QEMU runs as, where it is not who started it.
    pub fn user(&self) -> Option<&confine::User> {
        self.confinement.user.as_ref()
    }

    /// True if QEMU can open the device of KVM when it is started so.
    pub fn can_use_kvm(&self) -> bool {
        self.confinement.can_use(Path::new(KVM))
    }

    /// One QEMU, in one way to start it: what is found out of it holds for no other.
    pub fn describe(&self, qemu: &Architecture, version: &str) -> String {
        let program = qemu::path(qemu).unwrap_or_default();
        let user = self.user().map_or("oneself", |user| &user.name);
        let has_device = self.confinement.mounts && !self.confinement.own_devices.is_empty();
        let device = if has_device {
            " with a device of its own"
        } else {
            ""
        };
        format!("{} {version} as {user}{device}", program.display())
    }
}
