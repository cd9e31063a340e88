//! A small file system that a test fills.

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::ffi::CString;
use std::path::{Path, PathBuf};

/// A tmpfs of a fixed size, until it is dropped.
#[derive(Debug)]
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Makes the directory `at` and mounts a disk of `size`, such as `64k`, on it.
    ///
    /// # Errors
    ///
    /// Words on why there can be none here: it needs root.
    pub fn mount(at: &Path, size: &str) -> Result<SmallDisk, String> {
        let why = |error: &dyn std::fmt::Display| format!("mounting a small disk: {error}");
        let options = CString::new(format!("size={size}")).map_err(|error| why(&error))?;
        std::fs::create_dir(at).map_err(|error| why(&error))?;
        mount(
            "tmpfs",
            at,
            "tmpfs",
            MountFlags::empty(),
            options.as_c_str(),
        )
        .map_err(|error| why(&error))?;
        Ok(SmallDisk(at.to_owned()))
    }

    /// Directory where it is mounted.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Another test that starts a process just now has a copy of each open file for a moment, so that it
        // may be busy.
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}
