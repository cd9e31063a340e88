//! Start of guests on this host: with which QEMU, as whom, in which view of the files, and
//! until when.

use super::qemu;
use confine::Confinement;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug, Clone, Default)]
pub struct Launch {
    pub confinement: Confinement,
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

    /// One QEMU, in one way to start it: what is found out of it holds for no other.
    pub fn describe(&self, version: &str) -> String {
        let program = qemu::path().unwrap_or_default();
        let user = self.user().map_or("oneself", |user| &user.name);
        format!("{} {version} as {user}", program.display())
    }
}
