//! The head of a kernel image: is it an x86-64 bzImage, and which release and build?
//! Offsets from Documentation/arch/x86/boot.rst of the kernel.

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

/// The names of an x86-64 bzImage, or what else the file is.
pub(crate) fn uts(path: &Path) -> Result<Uts, String> {
    let file = open_file(path).map_err(|e| format!("cannot be read: {e}"))?;
    let head = start_of(file, SETUP_BYTES);
    uts_in(&head)
}

/// The names that the first bytes of an image tell, or what else they are.
pub fn uts_in(head: &[u8]) -> Result<Uts, String> {
    if head.get(BOOT_FLAG..BOOT_FLAG + 2) != Some(&[0x55, 0xaa])
        || head.get(HEADER..HEADER + 4) != Some(b"HdrS")
    {
        return Err(what_else(head).to_owned());
    }
    if head.get(XLOADFLAGS).is_none_or(|f| f & XLF_KERNEL_64 == 0) {
        return Err("is a 32-bit kernel; the guest is x86-64".to_owned());
    }
    let offset = head.get(KERNEL_VERSION..).and_then(|at| at.first_chunk());
    let start = 0x200 + usize::from(u16::from_le_bytes(*offset.unwrap_or(&[0, 0])));
    // RELEASE (BUILDER@HOST) VERSION, as in arch/x86/boot/version.c.
    let text: String = head
        .iter()
        .skip(start)
        .take_while(|b| b.is_ascii_graphic() || **b == b' ')
        .take(LONGEST_TEXT)
        .map(|b| char::from(*b))
        .collect();
    let limited = |name: &str| name.chars().take(LONGEST_NAME).collect::<String>();
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
    } else if head.get(ARM64_MAGIC..ARM64_MAGIC + 4) == Some(b"ARM\x64") {
        "is an arm64 kernel; the guest is x86-64"
    } else {
        "is not an x86-64 bzImage"
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
        let mut arm = vec![0u8; 64];
        arm[ARM64_MAGIC..].copy_from_slice(b"ARM\x64\0\0\0\0");
        assert!(uts_in(&arm).unwrap_err().contains("arm64"));
        assert!(
            uts_in(b"hello")
                .unwrap_err()
                .contains("not an x86-64 bzImage")
        );
    }

    #[test]
    fn a_32_bit_kernel_is_refused() {
        let mut head = bzimage("6.1.0");
        head[XLOADFLAGS] = 0;
        assert!(uts_in(&head).unwrap_err().contains("32-bit"));
    }
}
