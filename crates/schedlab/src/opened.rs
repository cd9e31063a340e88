//! Results that are given as a directory or as a capsule.

use crate::args::UnpackArgs;
use crate::exit::CliError;
use results::capsule::{self, Limits};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The directory of some results; an unpacked capsule is removed at the end.
pub struct Opened {
    dir: PathBuf,
    /// Directory of an unpacked capsule.
    unpacked: Option<TempDir>,
}

impl Opened {
    pub fn open(path: &Path, limits: &UnpackArgs) -> Result<Opened, CliError> {
        if path.is_dir() {
            return Ok(Opened {
                dir: path.to_owned(),
                unpacked: None,
            });
        }
        if !path.exists() {
            return Err(CliError::usage(
                format!("{} does not exist", path.display()),
                "give a results directory, or a capsule that `schedlab pack` made",
            ));
        }
        let temporary = tempfile::tempdir().map_err(CliError::internal)?;
        let limits = Limits {
            bytes: limits.unpack_limit,
        };
        Ok(Opened {
            dir: capsule::unpack(path, temporary.path(), limits)?,
            unpacked: Some(temporary),
        })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn is_capsule(&self) -> bool {
        self.unpacked.is_some()
    }
}
