//! The uncompressed kernel inside a bzImage. Under emulation the guest's own
//! decompressor costs more than the whole firmware, so it is unpacked once on the
//! host and entered directly (PVH, as in `arch/x86/platform/pvh`). Where that is
//! not possible the bzImage is booted, which only takes longer.

use crate::vm::{cache, elf, unpack};
use std::fs;
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
pub const DIRECTORY: &str = "vmlinux";

/// The unpacked kernel in the cache; `None` where it cannot be had or entered.
pub fn cached(bzimage: &Path, key: &str, cache_dir: &Path) -> Option<PathBuf> {
    let dir = cache_dir.join(DIRECTORY);
    let path = dir.join(format!("{key}.elf"));
    if cache::is_for_all(&path) {
        return Some(path);
    }
    let kernel = unpack(&fs::read(bzimage).ok()?)?;
    if !elf::has_pvh_entry(&kernel) {
        return None;
    }
    fs::create_dir_all(&dir).ok()?;
    cache::write_whole(&path, &kernel).ok()?;
    Some(path)
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
mod tests {
    use super::*;

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
    fn an_unknown_or_broken_payload_is_left_to_the_guest() {
        assert_eq!(unpack(&bzimage(b"LZO?")), None);
        assert_eq!(unpack(&bzimage(b"\x1f\x8bbroken")), None);
    }
}
