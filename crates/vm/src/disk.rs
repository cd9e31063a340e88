//! Disk images that a guest may have: raw ones, and qcow2 without another file behind
//! it. A qcow2 image can name any file of the host as the one that its missing blocks
//! are read from (docs/interop/qcow2.txt of QEMU).

use doors::read::start_of;
use std::fs::File;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Length of the header, up to and with the feature bits of version 3.
const HEADER_BYTES: u64 = 80;
const MAGIC: &[u8] = b"QFI\xfb";
const VERSION: usize = 4;
const BACKING_FILE_OFFSET: usize = 8;
const INCOMPATIBLE_FEATURES: usize = 72;
const EXTERNAL_DATA_FILE: u64 = 1 << 2;

/// Format as QEMU names it; by the name of the file, so that its content cannot choose.
pub(crate) fn format(image: &Path) -> &'static str {
    match image.extension() {
        Some(extension) if extension == "qcow2" => "qcow2",
        _ => "raw",
    }
}

/// Why the image cannot be used.
pub(crate) fn problem(image: &Path) -> Option<String> {
    // A disk of the machine is a device, and opening others may do something.
    let kind = match image.metadata() {
        Ok(found) => found.file_type(),
        Err(e) => return Some(format!("cannot be read: {e}")),
    };
    if !kind.is_file() && !kind.is_block_device() {
        return Some("is no file and no disk".to_owned());
    }
    match File::open(image).map(|file| start_of(file, HEADER_BYTES)) {
        Err(e) => Some(format!("cannot be read: {e}")),
        Ok(head) if format(image) == "qcow2" => problem_in(&head).map(str::to_owned),
        Ok(_) => None,
    }
}

/// Problem in the first bytes of a qcow2 image.
pub fn problem_in(head: &[u8]) -> Option<&'static str> {
    let number = |at: usize| head.get(at..).and_then(<[u8]>::first_chunk);
    let version = head.get(VERSION..).and_then(<[u8]>::first_chunk);
    let version = version.copied().map(u32::from_be_bytes);
    let backing = number(BACKING_FILE_OFFSET).copied().map(u64::from_be_bytes);
    let features = match version {
        Some(3) => number(INCOMPATIBLE_FEATURES)
            .copied()
            .map(u64::from_be_bytes),
        _ => Some(0),
    };
    match (version, backing, features) {
        _ if !head.starts_with(MAGIC) => Some("is named .qcow2 and is no such image"),
        (Some(2 | 3), Some(0), Some(features)) if features & EXTERNAL_DATA_FILE == 0 => None,
        (Some(2 | 3), Some(0), Some(_)) => Some("keeps its data in another file"),
        (Some(2 | 3), Some(_), Some(_)) => Some("has a backing file"),
        _ => Some("is a qcow2 image of an unknown version, or cut off"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(version: u32, backing: u64, features: u64) -> Vec<u8> {
        let mut head = vec![0; 104];
        head[..4].copy_from_slice(MAGIC);
        head[4..8].copy_from_slice(&version.to_be_bytes());
        head[8..16].copy_from_slice(&backing.to_be_bytes());
        head[72..80].copy_from_slice(&features.to_be_bytes());
        head
    }

    #[test]
    fn an_image_that_stands_alone_can_be_used() {
        assert_eq!(problem_in(&header(3, 0, 0)), None);
        assert_eq!(problem_in(&header(3, 0, 1)), None);
        // What is a feature in version 3 means nothing in version 2.
        assert_eq!(problem_in(&header(2, 0, EXTERNAL_DATA_FILE)), None);
    }

    #[test]
    fn an_image_that_names_other_files_is_refused() {
        for version in [2, 3] {
            let problem = problem_in(&header(version, 104, 0));
            assert_eq!(problem, Some("has a backing file"));
        }
        let elsewhere = problem_in(&header(3, 0, EXTERNAL_DATA_FILE));
        assert_eq!(elsewhere, Some("keeps its data in another file"));
    }

    #[test]
    fn what_is_no_image_is_refused() {
        assert!(problem_in(b"").is_some() && problem_in(b"QFI\xfb").is_some());
        assert!(problem_in(&header(4, 0, 0)).is_some());
        assert!(problem_in(&header(3, 0, 0)[..75]).is_some());
    }

    #[test]
    fn the_format_is_told_by_the_name() {
        assert_eq!(format(Path::new("a/b.qcow2")), "qcow2");
        assert_eq!(format(Path::new("a/b.squashfs")), "raw");
    }
}
