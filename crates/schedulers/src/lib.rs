//! The sched_ext schedulers that an experiment can name: which ones are known,
//! which are installed, and how they are built from crates.io or, our own, from
//! schedlab's source tree.
//!
//! Everything lives in one cache directory (see [`Cache`]):
//!
//! ```text
//! CACHE/schedulers/
//!   scx_rusty-1.1.4/bin/scx_rusty    one root of `cargo install` a version
//!   bin/scx_rusty                    -> the newest installed version
//!   bin/scx_rusty@1.1.4              -> that version
//!   build/                           the build directory that all of them share
//!   log/scx_rusty-1.1.4.log          what cargo said
//!   layers/default.json              the layers that scx_layered gets by default
//! ```
//!
//! So an agent finds `scx_rusty` and `scx_rusty@1.1.4` alike as file names in
//! [`bin_dirs`], without knowing about versions. The programs are linked with
//! the host's libraries; a guest sees them because its root is the host's.
//!
//! Schedulers are separate programs under their own licences (GPL-2.0-only);
//! nothing of them is linked into schedlab.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod build;
mod cache;
mod catalog;
mod error;
mod layers;
mod list;
mod measured;
mod own;
mod progress;
mod registry;
mod toolchain;
mod version;

pub use build::Installer;
pub use cache::{Cache, Installed};
pub use catalog::{CATALOG, Known, Place, Source, known};
pub use error::Error;
pub use layers::default_args;
pub use list::{Entry, list};
pub use progress::Progress;
pub use toolchain::{Missing, Toolchain};
pub use version::Version;

use std::path::PathBuf;

/// Build `name` into this user's cache, or find it there.
/// Without a version the newest one is taken. `name` may carry it: `scx_rusty@1.1.4`.
pub fn install(
    name: &str,
    version: Option<&str>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Installed, Error> {
    Installer::new(Cache::from_env()?).install(name, version, progress)
}

/// The directories in which an agent finds schedulers by name.
pub fn bin_dirs() -> Result<Vec<PathBuf>, Error> {
    Ok(vec![Cache::from_env()?.bin_dir()])
}

/// `scx_rusty@1.1.4` into the name and the version.
pub fn split_name(name: &str) -> (&str, Option<&str>) {
    match name.split_once('@') {
        Some((name, version)) => (name, Some(version)),
        None => (name, None),
    }
}
