//! The little of ELF (elf(5), 64-bit little-endian) that a guest needs: what a
//! kernel module depends on, how much of a program is loaded when it runs, whether
//! a kernel can be entered directly, and which build it is. The files may be a stranger's: no bytes make
//! these functions panic.

use model::printable::write_hexadecimal;
use object::LittleEndian;
use object::elf::{
    DT_NEEDED, DT_NULL, DT_RPATH, DT_RUNPATH, DT_STRSZ, DT_STRTAB, Dyn64, FileHeader64,
    SymbolSection,
};
use object::pod::from_bytes_mut;
use object::read::elf::{Dyn, FileHeader, NoteIterator, ProgramHeader};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

type Header = FileHeader64<LittleEndian>;

const LE: LittleEndian = LittleEndian;

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

/// Path of the dynamic linker that a program names; `None` for one without, and for what is no
/// program.
pub fn interpreter(program: &[u8]) -> Option<PathBuf> {
    let segments = header(program)?.program_headers(LE, program).ok()?;
    let path = segments
        .iter()
        .find_map(|s| s.interpreter(LE, program).ok()?)?;
    Some(PathBuf::from(OsStr::from_bytes(path)))
}

/// Words for the dynamic linker in a program or library.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dynamic {
    /// Names of the libraries that it is loaded with.
    pub needed: Vec<OsString>,
    /// Directories, joined by colons, in which its libraries are looked for.
    pub runpath: Option<OsString>,
    /// The same, older, and for the libraries of its libraries, too.
    pub rpath: Option<OsString>,
}

/// Words for the dynamic linker; `None` where there are none.
pub fn read_dynamic(file: &[u8]) -> Option<Dynamic> {
    let segments = header(file)?.program_headers(LE, file).ok()?;
    let all = segments.iter().find_map(|s| s.dynamic(LE, file).ok()?)?;
    let end = all.iter().position(|entry| entry.tag(LE) == DT_NULL);
    let all = &all[..end.unwrap_or(all.len())];
    let with = |tag| all.iter().filter(move |entry| entry.tag(LE) == tag);
    let value = |tag| with(tag).next().map(|entry| entry.val(LE));
    let (at, size) = (value(DT_STRTAB)?, value(DT_STRSZ)?);
    let table = segments
        .iter()
        .find_map(|s| s.data_range(LE, file, at, size).ok()?)?;
    let text = |entry: &Dyn64<LittleEndian>| {
        let text = table.get(usize::try_from(entry.val(LE)).ok()?..)?;
        let end = text.iter().position(|byte| *byte == 0)?;
        Some(OsStr::from_bytes(&text[..end]).to_owned())
    };
    Some(Dynamic {
        needed: with(DT_NEEDED).filter_map(text).collect(),
        runpath: with(DT_RUNPATH).find_map(text),
        rpath: with(DT_RPATH).find_map(text),
    })
}

/// Number of the machine that a file is for.
pub fn machine(file: &[u8]) -> Option<u16> {
    Some(header(file)?.e_machine(LE).0)
}

/// A copy of a static program without what is never loaded (debug information,
/// symbols, section headers): the kernel looks at the program headers only.
/// `None` when it is no such program.
pub fn without_debug(program: &[u8]) -> Option<Vec<u8>> {
    let header = header(program)?;
    let segments = header.program_headers(LE, program).ok()?;
    let table = segments.len() as u64 * u64::from(header.e_phentsize(LE));
    let mut end = header.e_phoff.get(LE).checked_add(table)?;
    for segment in segments {
        let file_end = segment.p_offset(LE).checked_add(segment.p_filesz(LE))?;
        end = end.max(file_end);
    }
    let mut kept = program.get(..usize::try_from(end).ok()?)?.to_vec();
    let (header, _) = from_bytes_mut::<Header>(&mut kept).ok()?;
    header.e_shoff.set(LE, 0);
    header.e_shnum.set(LE, 0);
    header.e_shstrndx.set(LE, SymbolSection(0));
    Some(kept)
}

/// True if a kernel has the note that tells where to enter it (`XEN_ELFNOTE_PHYS32_ENTRY`).
pub fn has_pvh_entry(kernel: &[u8]) -> bool {
    const PHYS32_ENTRY: u32 = 18;
    let mut notes = all_notes(kernel);
    notes.any(|notes| find_note(notes, b"Xen", PHYS32_ENTRY).is_some())
}

/// The build ID of a kernel (`NT_GNU_BUILD_ID`), as hexadecimal digits.
pub fn build_id(kernel: &[u8]) -> Option<String> {
    all_notes(kernel).find_map(build_id_in)
}

/// The same from notes alone, as `/sys/kernel/notes` has them of the running kernel.
pub fn build_id_of_notes(notes: &[u8]) -> Option<String> {
    build_id_in(NoteIterator::new(LE, 4, notes).ok()?)
}

fn build_id_in(notes: Notes) -> Option<String> {
    const BUILD_ID: u32 = 3;
    let id = find_note(notes, b"GNU", BUILD_ID).filter(|id| !id.is_empty())?;
    Some(write_hexadecimal(id))
}

type Notes<'a> = NoteIterator<'a, Header>;

/// The notes of all segments of a program.
fn all_notes(program: &[u8]) -> impl Iterator<Item = Notes<'_>> {
    let segments = header(program).and_then(|h| h.program_headers(LE, program).ok());
    let segments = segments.unwrap_or_default().iter();
    segments.filter_map(move |segment| segment.notes(LE, program).ok()?)
}

fn find_note<'a>(mut notes: Notes<'a>, owner: &[u8], kind: u32) -> Option<&'a [u8]> {
    while let Ok(Some(note)) = notes.next() {
        if note.name() == owner && note.n_type(LE).0 == kind {
            return Some(note.desc());
        }
    }
    None
}

fn header(file: &[u8]) -> Option<&Header> {
    let header = Header::parse(file).ok()?;
    header.is_little_endian().then_some(header)
}

fn section<'a>(file: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    use object::read::elf::SectionHeader;
    let sections = header(file)?.sections(LE, file).ok()?;
    let (_, section) = sections.section_by_name(LE, name)?;
    section.data(LE, file).ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Offsets in the file header.
    const E_PHOFF: usize = 0x20;
    const E_SHOFF: usize = 0x28;
    const E_PHENTSIZE: usize = 0x36;
    const E_PHNUM: usize = 0x38;
    const E_SHENTSIZE: usize = 0x3a;
    const E_SHNUM: usize = 0x3c;
    const E_SHSTRNDX: usize = 0x3e;

    /// The header of an ELF file with nothing in it.
    fn empty_file() -> Vec<u8> {
        let mut file = vec![0u8; 0x40];
        file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        file
    }

    /// An ELF file with a `.modinfo` section and nothing else.
    pub(crate) fn module(depends: &str) -> Vec<u8> {
        let names = b"\0.shstrtab\0.modinfo\0";
        let info = format!("license=GPL\0depends={depends}\0name=x\0");
        let mut file = empty_file();
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

    /// A kernel with one segment of notes.
    pub(crate) fn kernel(notes: &[u8]) -> Vec<u8> {
        const PT_NOTE: u32 = 4;
        let mut file = empty_file();
        let mut segment = [0u8; 0x38];
        segment[..4].copy_from_slice(&PT_NOTE.to_le_bytes());
        let offset = (file.len() + segment.len()) as u64;
        segment[0x08..0x10].copy_from_slice(&offset.to_le_bytes());
        segment[0x20..0x28].copy_from_slice(&(notes.len() as u64).to_le_bytes());
        segment[0x30] = 4; // p_align
        file[E_PHOFF..E_PHOFF + 8].copy_from_slice(&0x40u64.to_le_bytes());
        for (field, value) in [(E_PHENTSIZE, 0x38u16), (E_PHNUM, 1)] {
            file[field..field + 2].copy_from_slice(&value.to_le_bytes());
        }
        file.extend(segment);
        file.extend(notes);
        file
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
        assert!(has_pvh_entry(&kernel(&with)));
        assert!(!has_pvh_entry(&kernel(&without)));
        assert!(!has_pvh_entry(b"not an ELF file"));
    }

    /// `/sys/kernel/notes` of a kernel of Amazon Linux 2023, as it is.
    const NOTES: &[u8] = include_bytes!("notes.bin");
    const ID: &str = "48dc540c8b76393804ca8088dbfa7d42911a9444";

    #[test]
    fn the_build_id_is_found_in_the_notes_of_a_running_kernel() {
        assert_eq!(build_id_of_notes(NOTES).as_deref(), Some(ID));
        assert_eq!(build_id(&kernel(NOTES)).as_deref(), Some(ID));
        // Without the first note, whose 36 bytes are the build ID.
        assert_eq!(build_id_of_notes(&NOTES[36..]), None);
        for cut in 0..36 {
            assert_eq!(build_id_of_notes(&NOTES[..cut]), None, "{cut}");
        }
        assert_eq!(build_id(b"not an ELF file"), None);
    }

    #[test]
    fn offsets_that_overflow_are_refused() {
        let most = u64::MAX.to_le_bytes();
        let mut far_away = kernel(b"");
        far_away[0x48..0x50].copy_from_slice(&most); // p_offset
        far_away[0x60..0x68].copy_from_slice(&most); // p_filesz
        assert_eq!(without_debug(&far_away), None);
        assert!(!has_pvh_entry(&far_away));
        let mut table = kernel(b"");
        table[E_PHOFF..E_PHOFF + 8].copy_from_slice(&most);
        assert_eq!(without_debug(&table), None);
        let mut sections = module("a");
        sections[E_SHOFF..E_SHOFF + 8].copy_from_slice(&(u64::MAX - 7).to_le_bytes());
        assert!(module_depends(&sections).is_empty());
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
