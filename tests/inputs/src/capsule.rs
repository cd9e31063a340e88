//! Capsules: whatever is unpacked lies where it belongs, is a regular file, and is no more
//! than was allowed.
//!
//! An input that begins with the magic of gzip is taken as it is; any other is a tar
//! archive, compressed here, since hardly any change of compressed bytes is a change of
//! the archive.

use crate::results::fast_directory;
use flate2::Compression;
use flate2::write::GzEncoder;
use results::ResultSet;
use results::capsule::{Limits, check_sums, unpack_capsule};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Small, so that the limits are met.
const LIMITS: Limits = Limits { bytes: 1 << 20 };

/// A capsule as `verify` opens it.
pub fn capsule(input: &[u8]) {
    let dir = fast_directory();
    let file = dir.path().join("capsule.tar.gz");
    fs::write(&file, gzipped(input)).expect("room for it");
    let into = dir.path().join("into");
    fs::create_dir(&into).expect("a new directory");
    let unpacked = unpack_capsule(&file, &into, LIMITS, &AtomicBool::new(false));
    let bytes = look_through(&into);
    assert!(bytes <= LIMITS.bytes, "{bytes} bytes");
    let names = fs::read_dir(dir.path()).expect("it is there").count();
    assert_eq!(names, 2, "nothing lies beside it");
    if let Ok(top) = unpacked {
        assert_eq!(fs::read_dir(&into).expect("it is there").count(), 1);
        let _ = check_sums(&top, true);
        let _ = ResultSet::read(&top);
    }
}

fn gzipped(input: &[u8]) -> Vec<u8> {
    if input.starts_with(&[0x1f, 0x8b]) {
        return input.to_vec();
    }
    let mut gzip = GzEncoder::new(Vec::new(), Compression::none());
    gzip.write_all(input).expect("memory takes all");
    gzip.finish().expect("memory takes all")
}

/// The size of all files, which are nothing else than files and show as what they are.
fn look_through(dir: &Path) -> u64 {
    let mut bytes = 0;
    for entry in fs::read_dir(dir).expect("a directory") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("text");
        assert!(!name.starts_with('.') && !name.contains(model::printable::is_hidden));
        let found = entry.metadata().expect("an entry");
        match found.is_dir() {
            true => bytes += look_through(&entry.path()),
            false => {
                assert!(found.is_file(), "{name} is no file");
                bytes += found.len();
            }
        }
    }
    bytes
}
