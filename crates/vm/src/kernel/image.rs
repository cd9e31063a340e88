//! The head of a kernel image: for which architecture is it, and which release and build?
//! Offsets from Documentation/arch/x86/boot.rst and Documentation/arch/arm64/booting.rst of the kernel.

use crate::architecture::{AARCH64, Architecture, X86_64};
use doors::read::{open_file, start_of};
use std::path::Path;

/// `boot_flag`, `header`, `kernel_version` and `xloadflags` of the setup header.
const BOOT_FLAG: usize = 0x1fe;
const HEADER: usize = 0x202;
const KERNEL_VERSION: usize = 0x20e;
const XLOADFLAGS: usize = 0x236;
const XLF_KERNEL_64: u8 = 1;
/// Place of the magic in the arm64 `Image`.
const ARM64_MAGIC: usize = 56;
/// The setup part is at most 64 sectors; the release text lies in it.
const SETUP_BYTES: u64 = 64 * 512;
/// `__NEW_UTS_LEN`: no kernel says more in uname(2).
const LONGEST_NAME: usize = 64;
/// Both names, and the builder's between them.
const LONGEST_TEXT: usize = 512;

/// The answer of uname(2) under a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uts {
    /// `uname -r`.
    pub release: String,
    /// The build: its number, its options, the package and the date. `None` where the
    /// image does not say it.
    pub version: Option<String>,
}

/// The architecture and the names of a kernel image, or what else the file is.
pub(crate) fn uts(path: &Path) -> Result<(&'static Architecture, Uts), String> {
    let unread = |e: std::io::Error| format!("cannot be read: {e}");
    let head = start_of(open_file(path).map_err(unread)?, SETUP_BYTES);
    if !is_arm64(&head) {
        return Ok((&X86_64, uts_in(&head)?));
    }
    let image = doors::read::large_file_bytes(path).map_err(unread)?;
    Ok((&AARCH64, banner_in(&image)?))
}

fn is_arm64(head: &[u8]) -> bool {
    head.get(ARM64_MAGIC..ARM64_MAGIC + 4) == Some(b"ARM\x64")
}

/// The names of an arm64 image, which tells them where it greets: `Linux version RELEASE (BUILDER)
/// (COMPILER) VERSION` (init/version-timestamp.c). The text that init/version.c has in place of that until it
/// is linked may come first; it has no number of the build.
pub fn banner_in(image: &[u8]) -> Result<Uts, String> {
    const GREETING: &[u8] = b"Linux version ";
    let greets = |at: &usize| image[*at..].starts_with(GREETING);
    // Far faster than to compare at every place.
    let begins = image
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == GREETING[0]);
    let texts = begins.map(|(at, _)| at).filter(greets);
    let names = texts.filter_map(|at| names_in(&printable(&image[at + GREETING.len()..])));
    let mut found: Option<Uts> = None;
    for uts in names {
        if uts.version.is_some() {
            return Ok(uts);
        }
        found.get_or_insert(uts);
    }
    found.ok_or("is an arm64 kernel that names no release; is it compressed?".to_owned())
}

/// Release and version in a greeting, the version where it has the number of a build.
fn names_in(text: &str) -> Option<Uts> {
    let (release, rest) = text.split_once(' ')?;
    let version = rest.find(" #").map(|at| &rest[at + 1..]);
    let version = version.filter(|text| text[1..].starts_with(|c: char| c.is_ascii_digit()));
    release
        .starts_with(|c: char| c.is_ascii_digit())
        .then(|| Uts {
            release: limited(release),
            version: version.map(limited),
        })
}

fn printable(bytes: &[u8]) -> String {
    bytes
        .iter()
        .take_while(|b| b.is_ascii_graphic() || **b == b' ')
        .take(LONGEST_TEXT)
        .map(|b| char::from(*b))
        .collect()
}

fn limited(name: &str) -> String {
    name.chars().take(LONGEST_NAME).collect()
}

/// The names that the first bytes of a bzImage tell, or what else they are.
pub fn uts_in(head: &[u8]) -> Result<Uts, String> {
    if head.get(BOOT_FLAG..BOOT_FLAG + 2) != Some(&[0x55, 0xaa])
        || head.get(HEADER..HEADER + 4) != Some(b"HdrS")
    {
        return Err(what_else(head).to_owned());
    }
    if head.get(XLOADFLAGS).is_none_or(|f| f & XLF_KERNEL_64 == 0) {
        return Err("is a 32-bit kernel; guests have 64 bits".to_owned());
    }
    let offset = head.get(KERNEL_VERSION..).and_then(|at| at.first_chunk());
    let start = 0x200 + usize::from(u16::from_le_bytes(*offset.unwrap_or(&[0, 0])));
    // RELEASE (BUILDER@HOST) VERSION, as in arch/x86/boot/version.c.
    let text = printable(head.get(start..).unwrap_or_default());
    let (release, rest) = text.split_once(' ').unwrap_or((&text, ""));
    if release.is_empty() {
        return Err("is a bzImage that names no release".to_owned());
    }
    let version = rest.split_once(") ").map(|(_, version)| limited(version));
    Ok(Uts {
        release: limited(release),
        version: version.filter(|version| !version.is_empty()),
    })
}

fn what_else(head: &[u8]) -> &'static str {
    if head.starts_with(b"\x7fELF") {
        "is an ELF file (vmlinux?), not a bzImage"
    } else {
        "is neither an x86-64 bzImage nor an arm64 Image"
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A setup header with a release, as short as the reader allows.
    pub(crate) fn bzimage(release: &str) -> Vec<u8> {
        let mut head = vec![0u8; 0x400];
        head[BOOT_FLAG..BOOT_FLAG + 2].copy_from_slice(&[0x55, 0xaa]);
        head[HEADER..HEADER + 4].copy_from_slice(b"HdrS");
        head[KERNEL_VERSION..KERNEL_VERSION + 2].copy_from_slice(&0x100u16.to_le_bytes());
        head[XLOADFLAGS] = XLF_KERNEL_64;
        let text = format!("{release} (builder@host) #1 SMP Debian 7.2.13-1 (2026-11-02)");
        head[0x300..0x300 + text.len()].copy_from_slice(text.as_bytes());
        head
    }

    /// An arm64 image with a release, and a text in front of it that only looks like one.
    pub(crate) fn arm64_image(release: &str) -> Vec<u8> {
        let mut image = vec![0u8; 64];
        image[ARM64_MAGIC..].copy_from_slice(b"ARM\x64\0\0\0\0");
        image.extend(b"Linux version of %s\0");
        let compiler = "(x@y) (gcc (Debian) 15.2.0, GNU ld 2.45)";
        for number in ["", "1"] {
            let build = format!("#{number} SMP Debian 7.2.13-1 (2026-11-02)");
            image.extend(format!("Linux version {release} {compiler} {build}\n\0").as_bytes());
        }
        image
    }

    #[test]
    fn an_arm64_image_tells_its_release_and_its_build() {
        let uts = Uts {
            release: "7.2.13+deb14-arm64".to_owned(),
            version: Some("#1 SMP Debian 7.2.13-1 (2026-11-02)".to_owned()),
        };
        let image = arm64_image("7.2.13+deb14-arm64");
        assert!(is_arm64(&image));
        assert_eq!(banner_in(&image), Ok(uts));
        assert!(banner_in(&image[..80]).unwrap_err().contains("compressed"));
    }

    #[test]
    fn a_bzimage_tells_its_release_and_its_build() {
        let uts = Uts {
            release: "7.2.13+deb14-amd64".to_owned(),
            version: Some("#1 SMP Debian 7.2.13-1 (2026-11-02)".to_owned()),
        };
        assert_eq!(uts_in(&bzimage("7.2.13+deb14-amd64")), Ok(uts));
    }

    #[test]
    fn names_are_as_long_as_uname_tells_them() {
        let uts = uts_in(&bzimage(&"r".repeat(70))).expect("a bzImage");
        assert_eq!(uts.release.len(), 64);
    }

    #[test]
    fn other_files_are_named_for_what_they_are() {
        assert!(uts_in(b"\x7fELF\x02").unwrap_err().contains("ELF"));
        assert!(
            uts_in(b"hello")
                .unwrap_err()
                .contains("neither an x86-64 bzImage")
        );
    }

    #[test]
    fn a_32_bit_kernel_is_refused() {
        let mut head = bzimage("6.1.0");
        head[XLOADFLAGS] = 0;
        assert!(uts_in(&head).unwrap_err().contains("32-bit"));
    }
}
