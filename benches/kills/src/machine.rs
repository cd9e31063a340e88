use rustix::process::Pid;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Everything that a run may change and must put back.
#[derive(Debug)]
pub(crate) struct Machine {
    knobs: BTreeMap<PathBuf, String>,
    cgroups: BTreeSet<PathBuf>,
}

impl Machine {
    pub(crate) fn now() -> Self {
        let mut files = Vec::new();
        scheduler_knobs("/proc/sys/kernel", &mut files);
        // Features, slices and the like of EEVDF, and the base slice's scaling.
        scheduler_knobs("/sys/kernel/debug/sched", &mut files);
        let knobs = files.into_iter().filter_map(|path| {
            let value = fs::read_to_string(&path).ok()?;
            Some((path, value))
        });
        let mut cgroups = BTreeSet::new();
        our_groups(Path::new("/sys/fs/cgroup"), &mut cgroups);
        Machine {
            knobs: knobs.collect(),
            cgroups,
        }
    }

    pub(crate) fn knobs_unlike(&self, before: &Self) -> usize {
        let changed = before
            .knobs
            .iter()
            .filter(|(k, v)| self.knobs.get(*k) != Some(v));
        changed.count()
    }

    pub(crate) fn cgroups_beyond(&self, before: &Self) -> usize {
        self.cgroups.difference(&before.cgroups).count()
    }
}

fn scheduler_knobs(dir: &str, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let files_of_it = entries.map(|e| e.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // `debug` is a picture of all run queues.
        path.is_file() && name != "debug" && (dir.ends_with("sched") || name.starts_with("sched_"))
    });
    files.extend(files_of_it);
}

fn our_groups(dir: &Path, found: &mut BTreeSet<PathBuf>) {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let dirs = entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir()));
    for path in dirs.map(|e| e.path()) {
        if path
            .file_name()
            .is_some_and(|n| n.to_string_lossy().contains("schedlab"))
        {
            found.insert(path.clone());
        }
        our_groups(&path, found);
    }
}

/// The processes that live and have this directory in their environment or arguments, as
/// all have that a run starts there. This one has not.
pub(crate) fn processes_of(directory: &Path) -> Vec<Pid> {
    let directory = directory.as_os_str().as_encoded_bytes();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ours = entries.filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let names_it = ["environ", "cmdline"].iter().any(|file| {
            let bytes = fs::read(entry.path().join(file)).unwrap_or_default();
            bytes.windows(directory.len()).any(|part| part == directory)
        });
        names_it.then(|| Pid::from_raw(pid)).flatten()
    });
    ours.collect()
}
