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
    /// The machine as it is, with this knob.
    pub(crate) fn now(knob: Option<&Path>) -> Self {
        let knobs = knob.into_iter().filter_map(|path| {
            let value = fs::read_to_string(path).ok()?;
            Some((path.to_owned(), value))
        });
        let mut cgroups = BTreeSet::new();
        our_groups(Path::new("/sys/fs/cgroup"), &mut cgroups);
        Machine {
            knobs: knobs.collect(),
            cgroups,
        }
    }

    /// The same with containers, each of which has its group.
    pub(crate) fn with_containers(mut self, names: Vec<String>) -> Self {
        let named = names.iter().map(|name| Path::new("container").join(name));
        self.cgroups.extend(named);
        self
    }

    /// What of it is not as before.
    pub(crate) fn unlike(&self, before: &Self) -> Unlike {
        let changed = before.knobs.iter();
        let changed = changed.filter(|(k, v)| self.knobs.get(*k) != Some(v));
        Unlike {
            knobs: changed.map(|(path, _)| path.clone()).collect(),
            cgroups: self.cgroups.difference(&before.cgroups).cloned().collect(),
        }
    }
}

/// Knobs and cgroups that are not as before. What others on the machine change comes and goes, so
/// only what was seen at every look counts.
#[derive(Debug)]
pub(crate) struct Unlike {
    pub(crate) knobs: BTreeSet<PathBuf>,
    pub(crate) cgroups: BTreeSet<PathBuf>,
}

impl Unlike {
    pub(crate) fn is_nothing(&self) -> bool {
        self.knobs.is_empty() && self.cgroups.is_empty()
    }

    /// Keeps what is the same at another look.
    pub(crate) fn keep(&mut self, other: &Self) {
        self.knobs.retain(|path| other.knobs.contains(path));
        self.cgroups.retain(|path| other.cgroups.contains(path));
    }
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

/// The processes that live and have one of these directories in their environment or arguments,
/// as all have that a run starts there. This one has not, and an sshd is the test's own.
pub(crate) fn processes_of(directories: &[&Path]) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ours = entries.filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let of_process = |file: &str| fs::read(entry.path().join(file)).unwrap_or_default();
        let names_one = ["environ", "cmdline"].iter().any(|file| {
            let bytes = of_process(file);
            directories.iter().any(|directory| {
                let directory = directory.as_os_str().as_encoded_bytes();
                bytes.windows(directory.len()).any(|part| part == directory)
            })
        });
        let is_sshd = of_process("comm").starts_with(b"sshd");
        (names_one && !is_sshd)
            .then(|| Pid::from_raw(pid))
            .flatten()
    });
    ours.collect()
}

/// The command line of a process, and for each of its threads the state, the tracer and where it is in
/// the kernel. Who is still there after a kill is to say what it waits for.
pub(crate) fn threads_in_words(pid: Pid) -> String {
    let process = PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()));
    let command = fs::read(process.join("cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    let tasks = fs::read_dir(process.join("task"));
    let threads = tasks.into_iter().flatten().flatten().map(|thread| {
        let read = |file| fs::read_to_string(thread.path().join(file)).unwrap_or_default();
        let status = read("status");
        let wanted = [
            "Name:",
            "State:",
            "PPid:",
            "TracerPid:",
            "SigPnd:",
            "ShdPnd:",
        ];
        let lines = status
            .lines()
            .filter(|line| wanted.iter().any(|name| line.starts_with(name)));
        let lines: Vec<&str> = lines.collect();
        format!(
            "  {}; {} {}",
            lines.join(" ").replace('\t', " "),
            read("syscall").trim(),
            read("stack").replace('\n', " ")
        )
    });
    let threads: Vec<String> = threads.collect();
    format!("{}: {command}\n{}", process.display(), threads.join("\n"))
}
