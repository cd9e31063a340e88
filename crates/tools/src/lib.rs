//! Benchmarks that many distributions do not package, or not usably: which ones schedlab
//! knows, which are installed, and how they are fetched and built.
//!
//! Everything lives in one directory of the cache (see [`Cache`]):
//!
//! ```text
//! CACHE/tools/
//!   schbench-24e32b8ef67c/           one tool in one version
//!     bin/schbench
//!     schedlab-tool                  what it is, for the results
//!   bin/schbench                     -> the program of the version that was installed last
//! ```
//!
//! Agents have `bin/` behind the directories of PATH, so workloads find these programs by name.
//! The programs are separate works under their own licences; nothing of them is linked into
//! schedlab or comes with it.

#![cfg_attr(test, allow(clippy::unwrap_used))]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod cache;
mod catalog;
mod error;
mod fetch;
mod install;

pub use cache::{Cache, Installed};
pub use catalog::{Git, Library, Package, Source, TOOLS, Tool, find_tool};
pub use error::Error;
pub use install::{Installer, Step};
