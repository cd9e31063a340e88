//! Readers of the kernel, one module an interface.
//!
//! Each takes the root directory as an argument (`/` in earnest, a fixture tree in
//! tests), reads when asked, keeps no state, and returns numbers in the unit that
//! the name of the field gives. What is missing is `None`, never a zero.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod cgroup;
pub mod daemon;
pub mod delays;
pub mod distance;
pub mod energy;
pub mod events;
pub mod fair_scheduler;
pub mod frequency;
pub mod hardware;
pub mod kernel_config;
pub mod kernel_log;
pub mod machine;
pub mod migrations;
pub mod pace;
pub mod perf;
pub mod policy;
pub mod preflight;
pub mod psi;
pub mod rusage;
pub mod sched_ext;
pub mod sched_trace;
pub mod schedstat;
pub mod scheduler_stats;
pub mod stat;
pub mod sys;
pub mod system;
pub mod tasks;
pub mod thermal;
pub mod tools;
mod tracefs;

use std::path::Path;

/// The text of a small kernel file without the newline at its end.
/// `None` if it is not there or may not be read.
pub fn read_trimmed(path: &Path) -> Option<String> {
    let text = doors::read::kernel_text(path).ok()?;
    Some(text.trim_end().to_owned())
}

/// A kernel file that holds one number.
pub fn read_number<T: std::str::FromStr>(path: &Path) -> Option<T> {
    read_trimmed(path)?.parse().ok()
}

/// `always [madvise] never` → `madvise`, and `none voluntary (full)` → `full`.
pub fn find_chosen(text: &str) -> Option<String> {
    let word = text
        .split_ascii_whitespace()
        .find(|word| word.starts_with(['[', '(']))?;
    Some(word.trim_matches(['[', ']', '(', ')']).to_owned())
}
