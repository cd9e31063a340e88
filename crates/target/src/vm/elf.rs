//! The little of ELF (elf(5), 64-bit little-endian) that a guest needs: what a
//! kernel module depends on, and how much of a program is loaded when it runs.

/// Offsets and sizes in the file header, section headers and program headers.
const E_PHOFF: usize = 0x20;
const E_SHOFF: usize = 0x28;
const E_PHENTSIZE: usize = 0x36;
const E_PHNUM: usize = 0x38;
const E_SHENTSIZE: usize = 0x3a;
const E_SHNUM: usize = 0x3c;
const E_SHSTRNDX: usize = 0x3e;

/// The names after `depends=` in a module's `.modinfo`.
pub fn module_depends(module: &[u8]) -> Vec<String> {
    let info = section(module, b".modinfo").unwrap_or_default();
    info.split(|b| *b == 0)
        .filter_map(|entry| std::str::from_utf8(entry).ok()?.strip_prefix("depends="))
        .flat_map(|names| names.split(','))
        .filter(|name| !name.is_empty())
        .map(|name| name.replace('-', "_"))
        .collect()
}

/// A copy of a static program without what is never loaded (debug information,
/// symbols, section headers): the kernel looks at the program headers only.
/// `None` when it is no such program.
pub fn without_debug(program: &[u8]) -> Option<Vec<u8>> {
    let segments = segments(program)?;
    let mut end = word(program, E_PHOFF)? + segments.len() * half(program, E_PHENTSIZE)?;
    for header in segments {
        // p_offset + p_filesz
        end = end.max(word(header, 0x08)? + word(header, 0x20)?);
    }
    let mut kept = program.get(..end)?.to_vec();
    for field in [E_SHOFF, E_SHOFF + 4, E_SHNUM, E_SHSTRNDX] {
        let width = if field < E_PHENTSIZE { 4 } else { 2 };
        kept.get_mut(field..field + width)?.fill(0);
    }
    Some(kept)
}

/// Whether a kernel has the note that tells where to enter it (`XEN_ELFNOTE_PHYS32_ENTRY`).
pub fn has_pvh_entry(kernel: &[u8]) -> bool {
    const PT_NOTE: u32 = 4;
    segments(kernel)
        .into_iter()
        .flatten()
        .filter(|header| header.starts_with(&PT_NOTE.to_le_bytes()))
        .filter_map(|header| {
            let start = word(header, 0x08)?;
            kernel.get(start..start.checked_add(word(header, 0x20)?)?)
        })
        .any(notes_have_pvh_entry)
}

/// A note is the sizes of its name and content, its type, and both, padded to 4.
fn notes_have_pvh_entry(notes: &[u8]) -> bool {
    const PHYS32_ENTRY: u32 = 18;
    let mut rest = notes;
    while let Some(header) = rest.get(..12) {
        let number = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let (name, content) = (number(0) as usize, number(4) as usize);
        if number(8) == PHYS32_ENTRY && rest.get(12..16) == Some(b"Xen\0") {
            return true;
        }
        let next = 12 + name.next_multiple_of(4) + content.next_multiple_of(4);
        rest = rest.get(next..).unwrap_or_default();
    }
    false
}

/// The program headers.
fn segments(file: &[u8]) -> Option<Vec<&[u8]>> {
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (start, size) = (word(file, E_PHOFF)?, half(file, E_PHENTSIZE)?);
    (0..half(file, E_PHNUM)?)
        .map(|index| file.get(start + index * size..start + (index + 1) * size))
        .collect()
}

fn section<'a>(file: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let start = word(file, E_SHOFF)?;
    let size = half(file, E_SHENTSIZE)?;
    let header = |index: usize| file.get(start + index * size..);
    let content = |header: &[u8]| {
        let offset = word(header, 0x18)?;
        file.get(offset..offset + word(header, 0x20)?)
    };
    let names = content(header(half(file, E_SHSTRNDX)?)?)?;
    (0..half(file, E_SHNUM)?).find_map(|index| {
        let header = header(index)?;
        let at = u32::from_le_bytes(header.get(..4)?.try_into().ok()?) as usize;
        let rest = names.get(at..)?;
        (rest.starts_with(name) && rest.get(name.len()) == Some(&0)).then(|| content(header))?
    })
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let value = u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?);
    usize::try_from(value).ok()
}

fn half(bytes: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_le_bytes(
        bytes.get(at..at + 2)?.try_into().ok()?,
    )))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An ELF file with a `.modinfo` section and nothing else.
    pub(crate) fn module(depends: &str) -> Vec<u8> {
        let names = b"\0.shstrtab\0.modinfo\0";
        let info = format!("license=GPL\0depends={depends}\0name=x\0");
        let mut file = vec![0u8; 0x40];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        let (names_at, info_at) = (file.len(), file.len() + names.len());
        file.extend(names);
        file.extend(info.as_bytes());
        let table = file.len();
        for (name, offset, size) in [
            (0, 0, 0),
            (1, names_at, names.len()),
            (11, info_at, info.len()),
        ] {
            let mut header = [0u8; 0x40];
            header[..4].copy_from_slice(&(name as u32).to_le_bytes());
            header[0x18..0x20].copy_from_slice(&(offset as u64).to_le_bytes());
            header[0x20..0x28].copy_from_slice(&(size as u64).to_le_bytes());
            file.extend(header);
        }
        file[E_SHOFF..E_SHOFF + 8].copy_from_slice(&(table as u64).to_le_bytes());
        for (field, value) in [(E_SHENTSIZE, 0x40u16), (E_SHNUM, 3), (E_SHSTRNDX, 1)] {
            file[field..field + 2].copy_from_slice(&value.to_le_bytes());
        }
        file
    }

    #[test]
    fn a_module_names_what_it_depends_on() {
        assert_eq!(module_depends(&module("9pnet,net-fs")), ["9pnet", "net_fs"]);
        assert!(module_depends(&module("")).is_empty());
        assert!(module_depends(b"not an ELF file").is_empty());
    }

    #[test]
    fn the_entry_note_is_found_behind_others() {
        let note = |owner: &[u8; 4], kind: u32| {
            let mut bytes = Vec::new();
            for number in [4, 5, kind] {
                bytes.extend(u32::to_le_bytes(number));
            }
            bytes.extend(owner);
            bytes.extend([0; 8]);
            bytes
        };
        let with = [note(b"GNU\0", 18), note(b"Xen\0", 6), note(b"Xen\0", 18)].concat();
        let without = [note(b"GNU\0", 18), note(b"Xen\0", 6)].concat();
        assert!(notes_have_pvh_entry(&with));
        assert!(!notes_have_pvh_entry(&without));
        assert!(!has_pvh_entry(b"not an ELF file"));
    }

    #[test]
    fn a_program_without_its_debug_part_still_runs() {
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let kept = without_debug(&program).unwrap();
        assert!(kept.len() < program.len());
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kept");
        ::tests::write_program(&path, kept);
        let output = std::process::Command::new(&path)
            .arg("--list")
            .output()
            .unwrap();
        assert!(output.status.success());
    }

    #[test]
    fn what_is_no_program_is_left_alone() {
        assert_eq!(without_debug(b"#!/bin/sh\n"), None);
    }
}
