//! Snapshots of guests that run in the background: QEMU's migration stream in a file, and beside it
//! what is needed to continue it (the same machine again).
//!
//! Only guests with an image as their root have them: QEMU cannot move a mounted 9p
//! share. The image itself is read-only, so it is not copied; what a guest wrote is
//! in its memory.

use super::{StartRequest, connect};
use crate::VmError;
use crate::VmSpec;
use crate::cache;
use crate::failure::{io, unmet_error};
use crate::frame::{Frame, FrameKind};
use crate::image_path;
use crate::snapshot::{Listed, Snapshot, exists_error};
use doors::written::{self, Part};
use std::path::{Path, PathBuf};

/// Save the guest; it goes on running.
pub fn create(guest: &str, name: &str) -> Result<(), VmError> {
    super::check_name("snapshot", name)?;
    if find_directory()?.join(name).exists() {
        return Err(exists_error(name));
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

/// Snapshots sorted by name, with those whose description cannot be read.
pub fn list() -> Result<Vec<Listed>, VmError> {
    Ok(Snapshot::list(&find_directory()?))
}

/// The snapshot of this name.
pub fn find(name: &str) -> Result<Option<Snapshot>, VmError> {
    Snapshot::find(&find_directory()?, name)
}

/// Deletes a snapshot, also one whose description cannot be read. Guests that go on from it are not
/// touched.
pub fn delete(name: &str) -> Result<(), VmError> {
    if let Ok(None) | Err(VmError::Io { .. }) = find(name) {
        return Err(absent_error(name));
    }
    super::check_name("snapshot", name)?;
    let directory = find_directory()?;
    let place = directory.join(name);
    // It is gone at once, and nobody sees a part of it.
    let part = Part::create_in(&directory).map_err(io("write below", &directory))?;
    let away = part.directory().join("old");
    written::move_durably(&place, &away).map_err(io("remove", &place))
}

/// Continues the snapshot as the guest `guest`. It must be of this build, and its kernel and image unchanged.
pub fn restore(name: &str, guest: &str) -> Result<super::Status, VmError> {
    let snapshot = find(name)?.ok_or_else(|| absent_error(name))?;
    super::start(&StartRequest {
        name: guest.to_owned(),
        spec: VmSpec {
            snapshot: Some(name.to_owned()),
            ..snapshot.spec
        },
        options: snapshot.options,
    })
}

fn absent_error(name: &str) -> VmError {
    unmet_error(
        &format!("snapshot {name}"),
        "there is no such snapshot",
        "see `schedlab vm snapshot list`",
    )
}

/// Directory in which each snapshot is a directory of its name.
pub fn find_directory() -> Result<PathBuf, VmError> {
    Ok(cache::directory()?.join("snapshots"))
}
