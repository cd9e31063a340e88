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
//!   git/0a1b2c3d4e5f/bin/scx_rusty   one root a commit; no plain name leads there
//!   src/                             trees of commits, while they are built
//!   build/                           the build directory that all of them share
//!   build-65534/                     the same for root, whose builds are nobody's
//!   log/scx_rusty-1.1.4.log          what cargo said
//! ```
//!
//! So an agent finds `scx_rusty` and `scx_rusty@1.1.4` alike as file names in
//! [`bin_dirs`], without knowing about versions. The programs are linked with
//! the host's libraries; a guest sees them because its root is the host's.
//!
//! Schedulers are separate programs under their own licences (GPL-2.0-only);
//! nothing of them is linked into schedlab.

#![cfg_attr(test, allow(clippy::unwrap_used))]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod build;
mod cache;
mod catalog;
mod error;
mod layers;
mod list;
mod measured_tasks;
mod own;
mod registry;
mod revision;
mod spaces;
mod step;
mod toolchain;
mod version;
mod workshop;

pub use build::Installer;
pub use cache::{Cache, Installed};
pub use catalog::{find_nearest, other_version};
pub use error::Error;
pub use layers::default_args;
pub use list::{Entry, list_schedulers};
pub use revision::GitName;
pub use spaces::{ReadySpace, SPACES, find_space};
pub use step::Step;
pub use version::Version;

use doors::started::Agreed;
use std::path::PathBuf;

/// Build `name` into this user's cache, or find it there.
/// Without a version that of the catalog is taken. `name` may carry it: `scx_rusty@1.1.4`,
/// `scx_rusty@latest`. Root's builds run as another user, unless `as_root`.
pub fn install(
    name: &str,
    as_root: bool,
    progress: &mut dyn FnMut(Step),
) -> Result<Installed, Error> {
    let user = confine::User::for_builds().filter(|_| !as_root);
    let installer = Installer::new(Cache::from_env()?, Agreed::by_command()).with_user(user);
    installer.install(name, None, progress)
}

/// Builds a scheduler of a repository, or finds the one of its commit. Gives the program and the
/// commit. Root's builds run as another user.
pub fn install_git(
    of: GitName,
    agreed: Agreed,
    progress: &mut dyn FnMut(Step),
) -> Result<(PathBuf, String), Error> {
    let user = confine::User::for_builds();
    let installer = Installer::new(Cache::from_env()?, agreed).with_user(user);
    installer.install_git(of, progress)
}

/// The directories in which an agent finds schedulers by name.
pub fn bin_dirs() -> Result<Vec<PathBuf>, Error> {
    Ok(vec![Cache::from_env()?.bin_dir()])
}

/// The directory of all that schedlab keeps for later runs.
pub fn cache_directory() -> Result<PathBuf, Error> {
    Ok(Cache::from_env()?.root().to_owned())
}

/// The directory with all that is installed, where links in `bin_dirs` lead to.
pub fn install_directory() -> Option<PathBuf> {
    Cache::from_env().ok().map(|cache| cache.schedulers_dir())
}

/// `scx_rusty@1.1.4` into the name and the version.
fn split_name(name: &str) -> (&str, Option<&str>) {
    match name.split_once('@') {
        Some((name, version)) => (name, Some(version)),
        None => (name, None),
    }
}
