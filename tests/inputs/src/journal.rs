//! The journal of what must be undone: whatever bytes are in it, none is lost that is not
//! undone, and an entry behind them is found.
//!
//! No entry of an input is ever undone, for that kills processes and writes files.

use crate::results::fast_directory;
use agent::journal::{Entry, Journal, Undo, lines, path_in};
use model::printable::is_hidden;
use std::fs;
use std::path::Path;

/// A boot as the seeds name it.
const BOOT: &str = "b";

/// The journal's file.
pub fn journal(input: &[u8]) {
    let held = lines(input).flatten().filter(|b| !b.is_ascii_whitespace());
    assert!(held.eq(input.iter().filter(|b| !b.is_ascii_whitespace())));
    for line in lines(input) {
        if let Entry::Unreadable(why) = Entry::read(line, BOOT) {
            assert!(!why.contains(is_hidden), "{why}");
        }
    }
    an_entry_behind_it_is_found(input);
    let this_boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let is_of_this_boot = |line| matches!(Entry::read(line, this_boot.trim()), Entry::Current(_));
    if !lines(input).any(is_of_this_boot) {
        what_cannot_be_read_is_kept(input, this_boot.trim());
    }
}

fn an_entry_behind_it_is_found(input: &[u8]) {
    let entry = br#"{"boot":"b","undo":"write","path":"/knob","text":"1"}"#;
    let undo = Undo::Write {
        path: "/knob".into(),
        text: "1".to_owned(),
    };
    let behind = [input, entry].concat();
    let last = lines(&behind).last().expect("the entry");
    assert_eq!(Entry::read(last, BOOT), Entry::Current(undo));
}

fn what_cannot_be_read_is_kept(input: &[u8], boot: &str) {
    let dir = fast_directory();
    fs::write(path_in(dir.path()), input).expect("room for it");
    let mut journal = Journal::open(dir.path()).expect("it can be opened");
    let expected = unreadable(dir.path(), boot);
    let restored = journal.replay().expect("it can be replayed");
    assert!(restored.written.is_empty() && restored.killed.is_empty());
    assert_eq!(restored.failed.len(), expected.len());
    assert_eq!(unreadable(dir.path(), boot), expected);
    let again = journal.replay().expect("it can be replayed");
    assert_eq!((again.stale, again.failed), (0, restored.failed));
}

fn unreadable(dir: &Path, boot: &str) -> Vec<Vec<u8>> {
    let bytes = fs::read(path_in(dir)).expect("the journal");
    let unread = |line: &&[u8]| Entry::read(line, boot).is_unreadable();
    lines(&bytes).filter(unread).map(<[u8]>::to_vec).collect()
}
