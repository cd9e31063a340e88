//! Kernels, modules and packages: any bytes are read or refused, and names that come out
//! are names.

use vm::kernel::{apt, image, vmlinux};
use vm::{disk, elf as elf_file, modules, name};

/// Kernel modules, programs and kernels as ELF files.
pub fn elf(input: &[u8]) {
    let depends = elf_file::module_depends(input);
    assert!(depends.iter().all(|name| !name.is_empty()));
    elf_file::has_pvh_entry(input);
    for id in [
        elf_file::build_id(input),
        elf_file::build_id_of_notes(input),
    ] {
        assert!(id.is_none_or(|id| !id.is_empty()));
    }
    if let Some(kept) = elf_file::without_debug(input) {
        assert!(kept.len() <= input.len());
    }
}

/// The header of a kernel image: its release never makes a path.
pub fn bzimage(input: &[u8]) {
    if let Ok(uts) = image::uts_in(input) {
        let part = name::file_name_part(&uts.release);
        assert!(!part.is_empty() && !part.contains('/') && !part.starts_with('.'));
    }
    if let Some(payload) = vmlinux::payload(input) {
        assert!(payload.len() <= input.len());
    }
}

/// The header of a qcow2 image: one that is let through names no other file.
pub fn disk_image(input: &[u8]) {
    if disk::problem_in(input).is_none() {
        assert!(input.starts_with(b"QFI\xfb"));
        assert_eq!(input[8..16], [0; 8], "a backing file");
        assert!(input[7] != 3 || input[79] & 4 == 0, "an external data file");
    }
}

/// Output of apt-cache, and the lists of a kernel's modules.
pub fn debian_packages(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let found = apt::parse_stanza(&text).into_iter();
    for package in found.chain(apt::parse_search(&text)) {
        assert!(name::is_package(&package.name));
        assert!(package.version.is_empty() || name::is_version(&package.version));
        assert!(package.depends.iter().all(|d| name::is_package(d)));
    }
    for (module, _) in modules::parse_index(&text) {
        assert!(!module.is_empty() && !module.contains('/'));
    }
}
