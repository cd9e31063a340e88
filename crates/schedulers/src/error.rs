//! Errors when a scheduler is installed or looked up.

use crate::toolchain::Missing;
use crate::version::Version;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no cache directory: set SCHEDLAB_CACHE_DIR, XDG_CACHE_HOME or HOME")]
    NoCacheDirectory,
    #[error(
        "`{name}` is not a sched_ext scheduler that can be installed; {}",
        .nearest.map_or("schedlab scheduler list has all".to_owned(), |n| format!("did you mean `{n}`?"))
    )]
    UnknownName {
        name: String,
        nearest: Option<&'static str>,
    },
    #[error("`{version}` is not a version of {name}; write one such as {name}@1.1.4")]
    BadVersion { name: String, version: String },
    #[error("building a scheduler needs what is not here: {}", Missing::describe(.0))]
    MissingTools(Vec<Missing>),
    #[error(
        "the newest version of {name} could not be found out ({why}); \
         check the network, or name a version: {name}@1.1.4"
    )]
    NewestUnknown { name: String, why: String },
    #[error(
        "no version of {name} was tried with schedlab; name one: {name}@1.1.4, or take the newest: {name}@latest"
    )]
    NoVersion { name: String },
    #[error(
        "root's builds run as another user, and here none can run as {user} ({why}); \
         install it as an ordinary user, or build it as root with --as-root"
    )]
    NoOtherUser { user: String, why: String },
    #[error(
        "{name} {version} did not build{}; the last lines of {}:\n{}",
        as_whom(.user), log.display(), tail.join("\n")
    )]
    BuildFailed {
        name: String,
        version: String,
        /// Whom root's build ran as.
        user: Option<String>,
        log: PathBuf,
        tail: Vec<String>,
    },
    #[error(
        "{name} is built from schedlab's source tree, and no sched/{name} is above this program \
         or the working directory; run it in the source tree"
    )]
    NoSourceTree { name: String },
    #[error("the version of the scheduler in {} could not be found out: {why}", directory.display())]
    BadSourceTree { directory: PathBuf, why: String },
    #[error("the source tree has {name} {found} and not {wanted}; leave the version out")]
    OtherVersion {
        name: String,
        found: Version,
        wanted: Version,
    },
    #[error("{step}: {}: {source}", object.display())]
    Io {
        step: &'static str,
        object: PathBuf,
        source: std::io::Error,
    },
}

fn as_whom(user: &Option<String>) -> String {
    match user {
        Some(user) => format!(" (as the user {user}, since root's builds run as another)"),
        None => String::new(),
    }
}

impl Error {
    /// For `map_err`: names the step and what it was done to.
    pub(crate) fn io(
        step: &'static str,
        object: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Error {
        let object = object.into();
        move |source| Error::Io {
            step,
            object,
            source,
        }
    }
}
