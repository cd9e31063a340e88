//! Errors of the agent itself, which end it; those of a trial are in its result.

use crate::state::STATE_VARIABLE;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("{step} {}: {source}", path.display())]
    Io {
        step: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error(
        "{}: in use{}; wait for it, or end that process",
        directory.display(),
        .pid.map(|pid| format!(" by process {pid}")).unwrap_or_default()
    )]
    Busy {
        directory: PathBuf,
        pid: Option<u32>,
    },
    #[error(
        "{} belongs to user {owner}, who could change what is undone; give it to this user, or name \
         another directory in {STATE_VARIABLE}",
        path.display()
    )]
    Foreign { path: PathBuf, owner: u32 },
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
