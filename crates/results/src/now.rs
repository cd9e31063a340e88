//! The step of a run at this moment, for those who watch it: a file that comes and goes beside the
//! reports.

use crate::ResultsError;
use crate::files::{io_error, read_json, to_json};
use doors::written;
use model::Pace;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Directory and name of the file.
const FOLDER: &str = "report";
const FILE: &str = "now.json";

/// The step under way.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Now {
    /// Number of the block; 0 before the first.
    pub block: u32,
    /// Name of the cell; empty before the first trial.
    pub cell: String,
    /// Name of the arm.
    pub arm: String,
    /// Number of the attempt, from 1 on.
    pub attempt: u32,
    /// Step, as the agent gives it; empty where it has given none.
    pub step: String,
    /// Figures of the trial that runs; none before the first second of its window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// Time at which the trial or the step began, in nanoseconds since 1970.
    pub since_unix_ns: u64,
    /// Time that the run took until the last block had ended, earlier starts included.
    pub elapsed_ns: u64,
    /// Most time that the run took from then on; none before the first block has ended.
    pub left_ns: Option<u64>,
    /// Time at which the last block ended, in nanoseconds since 1970.
    pub block_unix_ns: u64,
}

/// Nanoseconds since 1970.
pub fn unix_ns() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    model::whole_nanos(since_epoch.unwrap_or_default())
}

fn path_in(dir: &Path) -> PathBuf {
    dir.join(FOLDER).join(FILE)
}

impl Now {
    /// Writes it for those who watch. It need not survive a loss of power.
    pub fn write_in(&self, dir: &Path) -> Result<(), ResultsError> {
        let path = path_in(dir);
        let folder = dir.join(FOLDER);
        written::make_directory(&folder).map_err(io_error("creating", &folder))?;
        written::write_file(&path, to_json(&path, self)?).map_err(io_error("writing", &path))
    }

    /// The step of a run that is under way; none where nothing can be read.
    pub fn read_in(dir: &Path) -> Option<Now> {
        read_json(&path_in(dir)).ok()
    }

    /// Removes the file of a run that has ended, and its directory where that is empty.
    pub fn clear_in(dir: &Path) {
        // Who reads it sees by the state of the run that it is old.
        let _ = written::remove_file(&path_in(dir));
        let _ = written::remove_empty_directory(&dir.join(FOLDER));
    }
}

/// True while a process writes to these results.
pub fn is_under_way(dir: &Path) -> bool {
    written::is_held(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_read_by_others_until_the_run_has_ended() {
        let dir = tempfile::tempdir().unwrap();
        let now = Now {
            block: 3,
            cell: "wakeup 100%".to_owned(),
            step: "measuring".to_owned(),
            ..Now::default()
        };
        assert_eq!(Now::read_in(dir.path()), None);
        now.write_in(dir.path()).unwrap();
        assert_eq!(Now::read_in(dir.path()), Some(now));
        Now::clear_in(dir.path());
        assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none());
    }
}
