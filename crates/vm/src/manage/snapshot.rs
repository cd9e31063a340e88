//! Live snapshots of guests that run in the background: QEMU's migration stream in
//! a file, and beside it what is needed to continue it (the same machine again).
//!
//! Only guests with an image as their root have them: QEMU cannot move a mounted 9p
//! share. The image itself is read-only, so it is not copied; what a guest wrote is
//! in its memory.

use super::{StartRequest, connect};
use crate::VmError;
use crate::cache;
use crate::failure::{io, unmet_error};
use crate::frame::{Frame, FrameKind};
use crate::image_path;
use crate::qmp::Monitor;
use crate::saved_state;
use doors::written::{self, Part};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// State that a snapshot continues from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Name of the snapshot.
    pub name: String,
    /// The guest it was taken of, and the machine that must be the same again.
    pub request: StartRequest,
    /// Time at which it was saved, in seconds since the epoch.
    pub created_unix_s: u64,
    /// `uname -r` of the guest.
    pub release: String,
    /// Facts of the machine when it was saved.
    pub facts: BTreeMap<String, String>,
    /// Size of the saved memory.
    pub bytes: u64,
}

/// Save the guest; it goes on running.
pub fn create(guest: &str, name: &str) -> Result<(), VmError> {
    let place = Place::of(name)?;
    if place.dir.exists() {
        let remedy = format!("choose another name, or `schedlab vm snapshot delete {name}`");
        return Err(unmet_error(
            &format!("snapshot {name}"),
            "it exists",
            &remedy,
        ));
    }
    let mut stream = connect(guest)?;
    check_root(guest)?;
    Frame::new(FrameKind::Snapshot, 0, name)
        .write(&mut stream)
        .map_err(io("talk to", Path::new("the guest's keeper")))?;
    let answer = Frame::read(&mut stream).ok().flatten();
    match answer {
        Some(frame) if frame.kind == FrameKind::Ready => Ok(()),
        Some(frame) => Err(unmet_error(
            &format!("snapshot {name}"),
            &frame.payload_text(),
            "the guest goes on; `schedlab vm stop` and `start` give a fresh one",
        )),
        None => Err(unmet_error(
            &format!("snapshot {name}"),
            "the guest's keeper is gone",
            "start the guest again",
        )),
    }
}

/// Said before anything is stopped, and plainer than QEMU does.
fn check_root(guest: &str) -> Result<(), VmError> {
    let status = super::place::Place::for_guest(guest)?.status();
    let root = status.and_then(|status| status.facts.get("vm.root").cloned());
    if root.is_none_or(|root| image_path(&root).is_some()) {
        return Ok(());
    }
    Err(unmet_error(
        &format!("guest {guest}"),
        "its root is this machine's files, which QEMU cannot save",
        "start the guest with --root image:PATH; `schedlab image build` makes an image",
    ))
}

/// Sorted by name.
pub fn list() -> Result<Vec<Snapshot>, VmError> {
    let entries = fs::read_dir(directory()?).into_iter().flatten().flatten();
    let mut found: Vec<Snapshot> = entries
        .filter_map(|entry| Place { dir: entry.path() }.read().ok())
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Deletes a snapshot. Guests that go on from it are not touched.
pub fn delete(name: &str) -> Result<(), VmError> {
    let place = Place::of(name)?;
    load(name)?;
    written::remove_recorded(&place.dir).map_err(io("remove", &place.dir))
}

/// Continues the snapshot as the guest `guest`.
pub fn restore(name: &str, guest: &str) -> Result<super::Status, VmError> {
    let snapshot = load(name)?;
    super::start(&StartRequest {
        name: guest.to_owned(),
        snapshot: Some(name.to_owned()),
        ..snapshot.request
    })
}

pub(super) fn load(name: &str) -> Result<Snapshot, VmError> {
    Place::of(name)?.read().map_err(|_| {
        unmet_error(
            &format!("snapshot {name}"),
            "there is no such snapshot",
            "see `schedlab vm snapshot list`",
        )
    })
}

/// The file that a snapshot's memory is in.
pub(super) fn memory_path(name: &str) -> Result<PathBuf, VmError> {
    Ok(Place::of(name)?.dir.join("memory"))
}

/// The keeper's part: stop, save, go on.
pub(super) fn save(snapshot: Snapshot, monitor: &mut Monitor) -> Result<(), VmError> {
    let place = Place::of(&snapshot.name)?;
    let parent = directory()?;
    let part = Part::create_in(&parent).map_err(io("create", &parent))?;
    // The memory of a guest is for nobody else.
    written::make_private_directory(&part.path()).map_err(io("create", &part.path()))?;
    let memory = part.path().join("memory");
    let written =
        written::create_new_file(&memory).and_then(|file| saved_state::write(monitor, file));
    let resumed = monitor.run("cont", json!({}));
    written
        .and(resumed.map(drop))
        .map_err(io("save", &memory))?;
    let bytes = fs::metadata(&memory).map_or(0, |m| m.len());
    let snapshot = Snapshot { bytes, ..snapshot };
    let json = serde_json::to_vec_pretty(&snapshot).map_err(|e| VmError::Garbled(e.to_string()))?;
    let description = part.path().join("snapshot.json");
    written::write_file(&description, json).map_err(io("write", &description))?;
    part.put_at(&place.dir)
        .map_err(io("put in place", &place.dir))
}

pub(super) fn now_unix_s() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0, |d| d.as_secs())
}

fn directory() -> Result<PathBuf, VmError> {
    Ok(cache::directory()?.join("snapshots"))
}

struct Place {
    dir: PathBuf,
}

impl Place {
    fn of(name: &str) -> Result<Self, VmError> {
        super::check_name("snapshot", name)?;
        Ok(Place {
            dir: directory()?.join(name),
        })
    }

    fn read(&self) -> std::io::Result<Snapshot> {
        let text = doors::read::small_file_bytes(self.dir.join("snapshot.json"))?;
        Ok(serde_json::from_slice(&text)?)
    }
}
