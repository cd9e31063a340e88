//! Files in memory in which a process tells the agent something while it runs.

use collect::tasks::Pid;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

/// Files in memory of a process whose names begin so, by the rest of their names.
pub fn find_files(root: &Path, pid: Pid, begin: &str) -> BTreeMap<String, File> {
    let directory = root.join(format!("proc/{pid}/fd"));
    let begin = format!("/memfd:{begin}");
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path()).filter_map(|path| {
        let target = std::fs::read_link(&path).unwrap_or_default();
        let name = target.to_string_lossy();
        // The kernel adds that it has no name in a file system.
        let rest = name.strip_prefix(&begin)?.split(' ').next()?.to_owned();
        Some((rest, File::open(path).ok()?))
    });
    files.collect()
}
