//! Operations that the BPF part of a sched_ext scheduler implements, read from its program.
//!
//! A program carries its BPF object, in which the function of an operation is in a section of its
//! own: `struct_ops/lavd_cgroup_set_weight`. So the file says what the kernel never tells.

use doors::read::{open_file, start_of};
use std::path::Path;

/// Beginning of the names of the sections; `struct_ops.s/` for functions that may sleep.
const SECTION: &[u8] = b"struct_ops";
/// Bytes of a program that are looked at. The largest scheduler has 40 MB with its debug data.
const MOST_BYTES: u64 = 256 << 20;
/// Longest name of a section that is looked at.
const LONGEST_NAME: usize = 128;

/// Operation that the kernel calls when `cpu.weight` of a cgroup changes.
pub const SET_WEIGHT: &str = "cgroup_set_weight";

/// Whether the program implements an operation; `None` where its file has no sections of
/// operations, as one that loads its BPF object from elsewhere.
pub fn has_operation(program: &Path, operation: &str) -> Option<bool> {
    let bytes = start_of(open_file(program).ok()?, MOST_BYTES);
    let mut sections = sections(&bytes).peekable();
    sections.peek()?;
    Some(sections.any(|name| name.ends_with(operation.as_bytes())))
}

/// Names of functions behind `struct_ops/` and `struct_ops.s/`.
fn sections(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let starts = memchr_all(bytes, SECTION);
    starts.filter_map(|start| {
        let rest = &bytes[start + SECTION.len()..];
        let name = rest
            .strip_prefix(b".s")
            .unwrap_or(rest)
            .strip_prefix(b"/")?;
        let end = name
            .iter()
            .position(|b| !b.is_ascii_alphanumeric() && *b != b'_')?;
        (1..=LONGEST_NAME).contains(&end).then(|| &name[..end])
    })
}

/// Places at which a text begins.
fn memchr_all<'a>(bytes: &'a [u8], text: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    bytes
        .windows(text.len())
        .enumerate()
        .filter_map(move |(at, window)| (window == text).then_some(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn program(text: &str) -> Option<bool> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scx_x");
        fs::write(&path, text).unwrap();
        has_operation(&path, SET_WEIGHT)
    }

    #[test]
    fn a_program_implements_what_it_has_a_section_of() {
        let with = "\0struct_ops/x_enqueue\0struct_ops/x_cgroup_set_weight\0";
        assert_eq!(program(with), Some(true));
        assert_eq!(program("struct_ops.s/x_cgroup_set_weight\0"), Some(true));
        let without = "cgroup_set_weight\0struct_ops/x_enqueue\0struct_ops.s/x_init\0";
        assert_eq!(program(without), Some(false));
    }

    #[test]
    fn nothing_is_known_of_a_program_without_operations() {
        assert_eq!(program("#!/bin/sh\nexec scx_y\n"), None);
        assert_eq!(has_operation(Path::new("/nonexistent"), SET_WEIGHT), None);
    }
}
