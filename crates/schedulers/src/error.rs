//! Errors when a scheduler is installed or looked up.

use crate::toolchain::Missing;
use crate::version::Version;
use std::path::PathBuf;

/// Error in installing or looking up a scheduler.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No variable of the environment says where the cache is.
    #[error("no cache directory: set SCHEDLAB_CACHE_DIR, XDG_CACHE_HOME or HOME")]
    NoCacheDirectory,
    /// A name that neither the catalog nor crates.io has.
    #[error(
        "`{name}` is not a sched_ext scheduler that can be installed; {}",
        .nearest.map_or("schedlab scheduler list has all".to_owned(), |n| format!("did you mean `{n}`?"))
    )]
    UnknownName {
        /// Name as it was given, without a version.
        name: String,
        /// Name of the catalog that is close to it, if any.
        nearest: Option<&'static str>,
    },
    /// A text after the `@` that is no version.
    #[error("`{version}` is not a version of {name}; write one such as {name}@1.1.4")]
    BadVersion {
        /// Name of the scheduler.
        name: String,
        /// Text in the place of the version.
        version: String,
    },
    /// Tools of the build that this machine lacks, all of them.
    #[error("building a scheduler needs what is not here: {}", Missing::describe(.0))]
    MissingTools(Vec<Missing>),
    /// The registry did not answer, and no version is installed that could do.
    #[error(
        "the newest version of {name} could not be found out ({why}); \
         check the network, or name a version: {name}@1.1.4"
    )]
    NewestUnknown {
        /// Name of the scheduler.
        name: String,
        /// Words of cargo about it.
        why: String,
    },
    /// A scheduler outside of the catalog was asked for without a version.
    #[error(
        "no version of {name} was tried with schedlab; name one: {name}@1.1.4, or take the newest: {name}@latest"
    )]
    NoVersion {
        /// Name of the scheduler.
        name: String,
    },
    /// Root's build could not be started as another user.
    #[error(
        "root's builds run as another user, and here none can run as {user} ({why}); \
         install it as an ordinary user, or build it as root with --as-root"
    )]
    NoOtherUser {
        /// Name of the other user.
        user: String,
        /// Reason for which nothing can run as that user.
        why: String,
    },
    /// Cargo ended with an error.
    #[error(
        "{name} {version} did not build{}; the last lines of {}:\n{}",
        as_whom(.user), log.display(), tail.join("\n")
    )]
    BuildFailed {
        /// Name of the scheduler.
        name: String,
        /// Version that was built.
        version: String,
        /// Whom root's build ran as.
        user: Option<String>,
        /// File with all that cargo said.
        log: PathBuf,
        /// Last lines of the log.
        tail: Vec<String>,
    },
    /// A scheduler of our own was asked for outside of the source tree.
    #[error(
        "{name} is built from schedlab's source tree, and no sched/{name} is above this program \
         or the working directory; run it in the source tree"
    )]
    NoSourceTree {
        /// Name of the scheduler.
        name: String,
    },
    /// Cargo does not understand the source of a scheduler of our own.
    #[error("the version of the scheduler in {} could not be found out: {why}", directory.display())]
    BadSourceTree {
        /// Directory of the scheduler in the source tree.
        directory: PathBuf,
        /// Words of cargo about it.
        why: String,
    },
    /// A version of a scheduler of our own was asked for that the source tree does not have.
    #[error("the source tree has {name} {found} and not {wanted}; leave the version out")]
    OtherVersion {
        /// Name of the scheduler.
        name: String,
        /// Version in the source tree.
        found: Version,
        /// Version that was asked for.
        wanted: Version,
    },
    /// A commit whose files could not be taken.
    #[error(transparent)]
    Git(#[from] git::Error),
    /// A repository without the crate of a scheduler.
    #[error(
        "the repository has no crate {name} at that commit; name one of its packages: \
         scx_NAME@git:REPOSITORY#REVISION"
    )]
    NoSuchCrate {
        /// Name of the scheduler.
        name: String,
    },
    /// The operating system refused a step.
    #[error("{step}: {}: {source}", object.display())]
    Io {
        /// Step that failed, as in "create a link".
        step: &'static str,
        /// File or directory that the step was about.
        object: PathBuf,
        /// Error of the operating system.
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
