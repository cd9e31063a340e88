//! The uncompressed kernel inside a bzImage. Under emulation the guest's own
//! decompressor costs more than the whole firmware, so it is unpacked once on the
//! host and entered directly (PVH, as in `arch/x86/platform/pvh`). Where that is
//! not possible the bzImage is booted, which only takes longer.

use crate::{cache, elf, unpack};
use doors::written;
use std::io::Write;
use std::path::{Path, PathBuf};

/// `setup_sects`, `payload_offset`, `payload_length` of the setup header
/// (Documentation/arch/x86/boot.rst).
const SETUP_SECTS: usize = 0x1f1;
const PAYLOAD_OFFSET: usize = 0x248;
const PAYLOAD_LENGTH: usize = 0x24c;
/// The payload ends with its unpacked size.
const SIZE_BYTES: usize = 4;
/// Several times what a kernel with everything built in has.
const LARGEST: u64 = 1 << 30;

/// First bytes and the program that unpacks what starts with them.
const FORMATS: [(&[u8], &str); 5] = [
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\xfd7zXZ\0", "xz"),
    (b"\x1f\x8b", "gzip"),
    (b"\x02\x21\x4c\x18", "lz4"),
    (b"BZh", "bzip2"),
];

/// Below the cache.
pub(crate) const DIRECTORY: &str = "vmlinux";

/// The unpacked kernel in the cache; `None` where it cannot be had or entered.
pub(crate) fn find_unpacked(bzimage: &Path, key: &str, cache_dir: &Path) -> Option<PathBuf> {
    let dir = cache_dir.join(DIRECTORY);
    let path = dir.join(format!("{key}.elf"));
    if cache::is_for_all(&path) {
        return Some(path);
    }
    let kernel = unpack(&doors::read::large_file_bytes(bzimage).ok()?)?;
    if !elf::has_pvh_entry(&kernel) {
        return None;
    }
    written::make_directory(&dir).ok()?;
    cache::write_whole(&path, &kernel).ok()?;
    Some(path)
}

/// The build ID of the kernel in a bzImage, and in the cache from then on; `None` where it
/// has none, or cannot be unpacked.
pub(crate) fn build_id(bzimage: &Path, key: &str, cache_dir: &Path) -> Option<String> {
    let dir = cache_dir.join(DIRECTORY);
    let path = dir.join(format!("{key}.build-id"));
    if let Ok(known) = doors::read::small_file_text(&path) {
        return Some(known);
    }
    let id = elf::build_id(&unpack(&doors::read::large_file_bytes(bzimage).ok()?)?)?;
    // One that cannot be kept is found again.
    let _ = written::make_directory(&dir).map(|_| cache::write_whole(&path, id.as_bytes()));
    Some(id)
}

fn unpack(bzimage: &[u8]) -> Option<Vec<u8>> {
    let payload = payload(bzimage)?;
    let (_, program) = FORMATS
        .iter()
        .find(|(magic, _)| payload.starts_with(magic))?;
    let (input, mut writer) = std::io::pipe().ok()?;
    let packed = payload.to_vec();
    // It ends with an error where the program does not read all of it.
    std::thread::spawn(move || writer.write_all(&packed));
    let (kernel, _) = unpack::output_of(program, input.into(), LARGEST).ok()?;
    // gzip says with an error that something follows what it unpacked.
    (!kernel.is_empty()).then_some(kernel)
}

/// The packed kernel in a bzImage.
pub fn payload(bzimage: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| {
        let bytes = bzimage.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    // "If this field is set to 0, the real value is 4."
    let sectors = match *bzimage.get(SETUP_SECTS)? {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let start = ((sectors + 1) * 512).checked_add(word(PAYLOAD_OFFSET)?)?;
    let end = start
        .checked_add(word(PAYLOAD_LENGTH)?)?
        .checked_sub(SIZE_BYTES)?;
    bzimage.get(start..end)
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)]
mod tests {
    use super::*;
    use std::fs;

    fn bzimage(packed: &[u8]) -> Vec<u8> {
        let mut image = vec![0u8; 1024];
        image[SETUP_SECTS] = 1;
        image[PAYLOAD_OFFSET..PAYLOAD_OFFSET + 4].copy_from_slice(&16u32.to_le_bytes());
        let length = (packed.len() + SIZE_BYTES) as u32;
        image[PAYLOAD_LENGTH..PAYLOAD_LENGTH + 4].copy_from_slice(&length.to_le_bytes());
        image.extend([0; 16]);
        image.extend(packed);
        image.extend([0; SIZE_BYTES]);
        image
    }

    #[test]
    fn the_payload_lies_behind_the_setup_sectors() {
        assert_eq!(payload(&bzimage(b"packed")), Some(&b"packed"[..]));
        assert_eq!(payload(b"short"), None);
    }

    #[test]
    fn a_build_id_is_read_from_the_image_once() {
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("vmlinuz");
        let of_image = || build_id(&image, "6.18-abcd", dir.path());
        fs::write(&image, bzimage(b"LZO?")).unwrap();
        assert_eq!(of_image(), None);
        let kernel = elf::tests::kernel(include_bytes!("../notes.bin"));
        let plain = dir.path().join("plain");
        fs::write(&plain, &kernel).unwrap();
        let packed = std::process::Command::new("gzip")
            .arg("-c")
            .arg(&plain)
            .output()
            .unwrap();
        fs::write(&image, bzimage(&packed.stdout)).unwrap();
        let id = elf::build_id(&kernel);
        assert!(id.is_some());
        assert_eq!(of_image(), id);
        fs::remove_file(&image).unwrap();
        assert_eq!(of_image(), id);
    }

    #[test]
    fn an_unknown_or_broken_payload_is_left_to_the_guest() {
        assert_eq!(unpack(&bzimage(b"LZO?")), None);
        assert_eq!(unpack(&bzimage(b"\x1f\x8bbroken")), None);
    }
}
