//! A cgroup of a role's own, with a weight and a quota of CPU time: cgroup v2
//! (`cpu.weight`, `cpu.max`), or the cpu controller of v1 (`cpu.shares`,
//! `cpu.cfs_quota_us`) where only that is mounted. See
//! Documentation/admin-guide/cgroup-v2.rst and scheduler/sched-bwc.rst.

use crate::cgroup;
use crate::journal::{Journal, Undo};
use collect::tasks::Pid;
use model::Placement;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const PERIOD_US: u64 = 100_000;
/// `cpu.shares` of a weight of 100.
const USUAL_SHARES: u64 = 1024;
const DISABLE: &str = "-cpu";

#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    #[error("no cgroup controller for CPU time is mounted; leave out weight and quota")]
    NoController,
    #[error("{step} {}: {source}; run as root, or leave out weight and quota", path.display())]
    Io {
        step: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{0}")]
    Journal(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

/// Place where groups are made.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    version: Version,
    path: PathBuf,
}

fn mount(root: &Path) -> Option<Mount> {
    let unified = root.join("sys/fs/cgroup");
    let controllers = collect::read_trimmed(&unified.join("cgroup.controllers"));
    if controllers.is_some_and(|list| list.split_whitespace().any(|name| name == "cpu")) {
        let (version, path) = (Version::V2, unified);
        return Some(Mount { version, path });
    }
    let v1 = ["cpu", "cpu,cpuacct"].map(|name| unified.join(name));
    let path = v1
        .into_iter()
        .find(|path| path.join("cpu.shares").exists())?;
    let version = Version::V1;
    Some(Mount { version, path })
}

/// The groups of a trial's roles. Whatever was made is removed at the end, also where
/// making or setting up the rest of it failed.
#[derive(Debug, Default)]
pub struct Groups {
    made: Vec<PathBuf>,
    /// The root group's file that hands the controller down, where these groups are the
    /// reason that it does.
    enabled: Option<PathBuf>,
}

impl Groups {
    /// Makes the group that a placement asks for, if it asks for one.
    pub fn make(
        &mut self,
        root: &Path,
        name: &str,
        placement: &Placement,
        journal: &mut Journal,
    ) -> Result<Option<Cgroup>, CgroupError> {
        if !placement.wants_cgroup() {
            return Ok(None);
        }
        let Mount { version, path } = mount(root).ok_or(CgroupError::NoController)?;
        if version == Version::V2 && self.enabled.is_none() {
            self.enabled = enable_cpu(&path, journal)?;
        }
        let path = path.join(name);
        record(journal, Undo::RemoveCgroup { path: path.clone() })?;
        fs::create_dir(&path).map_err(|source| failed("make", &path, source))?;
        self.made.push(path.clone());
        let group = Cgroup { version, path };
        for (file, text) in settings(version, placement) {
            group.write(file, &text)?;
        }
        Ok(Some(group))
    }

    /// Gives what could not be removed, and why.
    pub fn remove_all(&mut self) -> Vec<String> {
        let made = self.made.drain(..).rev();
        let mut errors: Vec<String> = made.filter_map(|path| cgroup::end(&path).err()).collect();
        if let Some(file) = self.enabled.take() {
            let disabled = fs::write(&file, DISABLE);
            errors.extend(
                disabled
                    .err()
                    .map(|e| format!("write {DISABLE} to {}: {e}", file.display())),
            );
        }
        errors
    }
}

/// One of the [`Groups`].
#[derive(Debug)]
pub struct Cgroup {
    version: Version,
    path: PathBuf,
}

impl Cgroup {
    /// Gives the group all of its parent's real-time share. With CONFIG_RT_GROUP_SCHED a new
    /// group of v1 has none, and no thread in it may be `fifo` or `rr`.
    pub fn allow_realtime(&self) -> Result<(), CgroupError> {
        let file = "cpu.rt_runtime_us";
        let of_parent = self.path.parent().map(|parent| parent.join(file));
        match of_parent.and_then(|file| collect::read_trimmed(&file)) {
            Some(runtime) => self.write(file, &runtime),
            None => Ok(()),
        }
    }

    /// Moves a process into the group; what it starts later stays there.
    pub fn add(&self, pid: Pid) -> Result<(), CgroupError> {
        self.write("cgroup.procs", &pid.to_string())
    }

    /// The weight of the group as the kernel has it; `None` if the process is not in it.
    pub fn weight_of(&self, pid: Pid) -> Option<u32> {
        let members = collect::read_trimmed(&self.path.join("cgroup.procs"))?;
        members.lines().find(|line| line.parse() == Ok(pid))?;
        let read = |file| collect::read_number::<u64>(&self.path.join(file));
        match self.version {
            Version::V2 => read("cpu.weight")?.try_into().ok(),
            // Of whole shares: the weight is the nearest.
            Version::V1 => ((read("cpu.shares")? * 100 + USUAL_SHARES / 2) / USUAL_SHARES)
                .try_into()
                .ok(),
        }
    }

    fn write(&self, file: &str, text: &str) -> Result<(), CgroupError> {
        let path = self.path.join(file);
        fs::write(&path, text).map_err(|source| failed("write", &path, source))
    }
}

/// Why groups with a weight or a quota cannot be made here, and what to do about it.
pub fn missing(root: &Path) -> Option<(String, String)> {
    let Some(mount) = mount(root) else {
        return Some((
            "no cgroup controller for CPU time (cpu) is mounted".to_owned(),
            "mount it, or leave out weight and quota".to_owned(),
        ));
    };
    let error = rustix::fs::access(&mount.path, rustix::fs::Access::WRITE_OK).err()?;
    Some((
        format!(
            "no cgroup can be made in {}: {}",
            mount.path.display(),
            io::Error::from(error)
        ),
        "run as root, or leave out weight and quota".to_owned(),
    ))
}

/// The root group hands the cpu controller down. The file in which it is said, if it
/// was not so before.
fn enable_cpu(path: &Path, journal: &mut Journal) -> Result<Option<PathBuf>, CgroupError> {
    let file = path.join("cgroup.subtree_control");
    let enabled = collect::read_trimmed(&file).unwrap_or_default();
    if enabled.split_whitespace().any(|name| name == "cpu") {
        return Ok(None);
    }
    let (path, text) = (file.clone(), DISABLE.to_owned());
    record(journal, Undo::Write { path, text })?;
    fs::write(&file, "+cpu").map_err(|source| failed("write", &file, source))?;
    Ok(Some(file))
}

fn record(journal: &mut Journal, undo: Undo) -> Result<(), CgroupError> {
    journal
        .record(undo)
        .map_err(|e| CgroupError::Journal(e.to_string()))
}

fn failed(step: &'static str, path: &Path, source: io::Error) -> CgroupError {
    CgroupError::Io {
        step,
        path: path.to_owned(),
        source,
    }
}

/// Files of the group and what to write there.
fn settings(version: Version, placement: &Placement) -> Vec<(&'static str, String)> {
    let quota_us = placement
        .quota_percent
        .map(|percent| model::whole((percent / 100.0 * PERIOD_US as f64).round()));
    let mut settings = Vec::new();
    match version {
        Version::V2 => {
            settings.extend(placement.weight.map(|w| ("cpu.weight", w.to_string())));
            settings.extend(quota_us.map(|us| ("cpu.max", format!("{us} {PERIOD_US}"))));
        }
        Version::V1 => {
            let shares = |weight: u32| u64::from(weight) * USUAL_SHARES / 100;
            settings.extend(
                placement
                    .weight
                    .map(|w| ("cpu.shares", shares(w).to_string())),
            );
            if let Some(us) = quota_us {
                settings.push(("cpu.cfs_period_us", PERIOD_US.to_string()));
                settings.push(("cpu.cfs_quota_us", us.to_string()));
            }
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placement() -> Placement {
        Placement {
            weight: Some(200),
            quota_percent: Some(50.0),
            ..Placement::default()
        }
    }

    #[test]
    fn both_versions_get_the_same_weight_and_quota_in_their_own_units() {
        let text = |version| {
            let settings = settings(version, &placement());
            settings
                .iter()
                .map(|(file, text)| format!("{file}={text}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            text(Version::V2),
            ["cpu.weight=200", "cpu.max=50000 100000"]
        );
        let v1 = [
            "cpu.shares=2048",
            "cpu.cfs_period_us=100000",
            "cpu.cfs_quota_us=50000",
        ];
        assert_eq!(text(Version::V1), v1);
    }

    #[test]
    fn a_role_that_names_neither_gets_no_group() {
        let root = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(root.path()).unwrap();
        let mut groups = Groups::default();
        let mut make = |placement| groups.make(root.path(), "x", &placement, &mut journal);
        assert!(make(Placement::default()).unwrap().is_none());
        let error = make(placement()).unwrap_err();
        assert!(error.to_string().contains("leave out weight"), "{error}");
    }

    #[test]
    fn what_groups_need_is_looked_for() {
        let (what, remedy) = missing(::tests::tree(&[]).path()).unwrap();
        assert!(what.contains("no cgroup controller"), "{what}");
        assert!(remedy.contains("leave out weight"), "{remedy}");
        let root = ::tests::tree(&[("sys/fs/cgroup/cgroup.controllers", "cpu io\n")]);
        assert_eq!(missing(root.path()), None);
    }

    #[test]
    fn the_weight_of_a_group_is_that_of_its_processes() {
        let weight = |version, file: &str, text: &str| {
            let root = ::tests::tree(&[("cgroup.procs", "7\n42\n"), (file, text)]);
            let path = root.path().to_owned();
            let group = Cgroup { version, path };
            (group.weight_of(42), group.weight_of(4))
        };
        assert_eq!(
            weight(Version::V2, "cpu.weight", "250\n"),
            (Some(250), None)
        );
        for wanted in [1, 3, 99, 100, 10_000] {
            let shares = &settings(Version::V1, &weighing(wanted))[0].1;
            let found = weight(Version::V1, "cpu.shares", shares);
            assert_eq!(found, (Some(wanted), None));
        }
    }

    fn weighing(weight: u32) -> Placement {
        Placement {
            weight: Some(weight),
            ..Placement::default()
        }
    }

    #[test]
    fn a_group_is_made_and_removed_on_this_machine() {
        let state = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(state.path()).unwrap();
        let name = format!("schedlab-test-{}", std::process::id());
        let mut groups = Groups::default();
        match groups.make(Path::new("/"), &name, &placement(), &mut journal) {
            Ok(group) => {
                let path = group.unwrap().path;
                assert!(path.exists());
                assert_eq!(groups.remove_all(), [""; 0]);
                assert!(!path.exists());
                journal.replay().unwrap();
            }
            Err(error) => ::tests::skipped(error),
        }
    }

    #[test]
    fn a_group_whose_settings_are_refused_is_removed_with_the_others() {
        let state = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(state.path()).unwrap();
        let name = format!("schedlab-refused-{}", std::process::id());
        let mut groups = Groups::default();
        // More than the kernel takes, in both versions.
        let wrong = Placement {
            quota_percent: Some(1e15),
            ..Placement::default()
        };
        match groups.make(Path::new("/"), &name, &wrong, &mut journal) {
            Err(CgroupError::Io { step: "write", .. }) => {
                let path = groups.made[0].clone();
                assert!(path.exists());
                assert_eq!(groups.remove_all(), [""; 0]);
                assert!(!path.exists());
            }
            Err(error) => ::tests::skipped(error),
            Ok(_) => panic!("a quota of {:?} percent was taken", wrong.quota_percent),
        }
    }
}
