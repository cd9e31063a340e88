//! Errors of the agent itself, which end it; those of a trial are in its result.

use crate::state::STATE_VARIABLE;
use std::io;
use std::path::{Path, PathBuf};

/// Error of the agent, its guard or its journal.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The operating system refused a step.
    #[error("{step} {}: {source}", path.display())]
    Io {
        /// Verb of the step that failed, as in "open".
        step: &'static str,
        /// Path that the step was about, or the name of a thread.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Another agent, or a guard at work, holds the state directory.
    #[error(
        "{}: in use{}; wait for it, or end that process",
        directory.display(),
        .pid.map(|pid| format!(" by process {pid}")).unwrap_or_default()
    )]
    Busy {
        /// State directory.
        directory: PathBuf,
        /// Process that holds it, where that is known.
        pid: Option<u32>,
    },
    /// A file or directory of the state that another user could change.
    #[error(
        "{} belongs to user {owner}, who could change what is undone; give it to this user, or name \
         another directory in {STATE_VARIABLE}",
        path.display()
    )]
    Foreign {
        /// File or directory.
        path: PathBuf,
        /// User ID of its owner.
        owner: u32,
    },
    /// There was a journal that held something, and it is gone.
    #[error(
        "the journal in {} is missing, and changes were in force when it was removed. A run that \
         is under way, or its guard, undoes them from its open file; if there is neither, restart \
         the machine, or look at what the last run changed and remove {}",
        directory.display(),
        sign.display()
    )]
    JournalMissing {
        /// State directory.
        directory: PathBuf,
        /// File that says that there is a journal.
        sign: PathBuf,
    },
    /// No variable of the environment says where the state directory is.
    #[error(
        "there is no directory for what must be undone: neither HOME nor XDG_STATE_HOME is set and \
         there is no /run/user/UID of this user; name one in {STATE_VARIABLE}"
    )]
    NoStateDirectory,
}

impl AgentError {
    pub(crate) fn io(step: &'static str, path: &Path, source: io::Error) -> Self {
        AgentError::Io {
            step,
            path: path.to_owned(),
            source,
        }
    }
}
