//! The state of a guest in a file: QEMU's migration stream
//! (docs/devel/migration of QEMU). Only a guest with an image as its root can be saved:
//! QEMU cannot move a mounted 9p share. The image is read-only; what the guest wrote is in its
//! memory.

use crate::VmError;
use crate::boot::Guest;
use crate::failure::io;
use crate::frame::Ready;
use crate::qmp::Monitor;
use doors::written;
use serde_json::json;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const SAVE_LIMIT: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_millis(50);

/// A guest that can be continued as often as wanted. Its file has no name, so nothing is left of
/// it when this process has ended, however it ends.
#[derive(Debug)]
pub struct Saved {
    memory: File,
    /// Size of the state.
    pub bytes: u64,
    /// Greeting of the guest when it had booted.
    pub ready: Ready,
}

impl Saved {
    /// The state of no guest, for a target that brings no machine.
    pub fn without_guest() -> std::io::Result<Self> {
        Ok(Saved {
            memory: tempfile::tempfile()?,
            bytes: 0,
            ready: Ready {
                release: String::new(),
                version: String::new(),
                build_id: None,
                uptime_ns: 0,
            },
        })
    }

    /// Path of the state for this process.
    pub(crate) fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.memory.as_raw_fd()).into()
    }
}

impl Guest {
    /// Saves the guest, which ends, into a file below a directory.
    pub fn save(self, directory: &Path) -> Result<Saved, VmError> {
        let failed = |e| io("save the guest in", directory)(e);
        written::make_directory(directory).map_err(failed)?;
        let memory = tempfile::tempfile_in(directory).map_err(failed)?;
        let file = memory.try_clone().map_err(failed)?;
        let mut monitor = self.machine.monitor().map_err(failed)?;
        write(&mut monitor, file).map_err(failed)?;
        Ok(Saved {
            bytes: memory.metadata().map_err(failed)?.len(),
            memory,
            ready: self.ready.clone(),
        })
    }
}

/// Stops the guest and writes its state.
pub(crate) fn write(monitor: &mut Monitor, mut file: File) -> std::io::Result<()> {
    monitor.run("stop", json!({}))?;
    // Else QEMU holds back, as if the stream went over a network.
    monitor.run(
        "migrate-set-parameters",
        json!({ "max-bandwidth": i64::MAX }),
    )?;
    let (reader, writer) = std::io::pipe()?;
    monitor.give_file("memory", writer.into())?;
    let written = std::thread::spawn(move || doors::read::copy_within(reader, &mut file, u64::MAX));
    monitor.run("migrate", json!({ "uri": "fd:memory" }))?;
    let saved = wait_until_saved(monitor);
    if saved
        .as_ref()
        .is_err_and(|e| e.kind() == std::io::ErrorKind::TimedOut)
    {
        return saved;
    }
    // A disk that is full ends the stream, and QEMU knows only of that.
    written
        .join()
        .unwrap_or_else(|_| Err(std::io::ErrorKind::Other.into()))?;
    saved
}

fn wait_until_saved(monitor: &mut Monitor) -> std::io::Result<()> {
    let start = Instant::now();
    while start.elapsed() < SAVE_LIMIT {
        let state = monitor.run("query-migrate", json!({}))?;
        match state["status"].as_str() {
            Some("completed") => return Ok(()),
            Some("failed" | "cancelled") => {
                let why = state["error-desc"].as_str().unwrap_or("no reason given");
                return Err(std::io::Error::other(why.to_owned()));
            }
            _ => std::thread::sleep(LOOK),
        }
    }
    let _ = monitor.run("migrate_cancel", json!({}));
    Err(std::io::ErrorKind::TimedOut.into())
}
