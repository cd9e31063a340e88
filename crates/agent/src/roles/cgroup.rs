//! A cgroup of a role's own, with a weight and a quota of CPU time: cgroup v2
//! (`cpu.weight`, `cpu.max`), or the cpu controller of v1 (`cpu.shares`,
//! `cpu.cfs_quota_us`) where only that is mounted. See
//! Documentation/admin-guide/cgroup-v2.rst and scheduler/sched-bwc.rst.

use crate::cgroup;
use crate::journal::{Journal, Undo};
use collect::tasks::{self, Pid};
use doors::written;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// `cpu.shares` of a weight of 100.
const USUAL_SHARES: u64 = 1024;
const DISABLE: &str = "-cpu";

/// CPU time of a group in each period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// `None`: as much as there is.
    pub runtime_us: Option<u64>,
    pub period_us: u64,
}

impl Quota {
    /// No limit, with the period that the kernel gives.
    pub const NONE: Quota = Quota {
        runtime_us: None,
        period_us: 100_000,
    };

    /// Percent of one CPU.
    pub fn of_percent(percent: f64) -> Self {
        let runtime_us = (percent / 100.0 * Quota::NONE.period_us as f64).round();
        Quota {
            runtime_us: Some(model::truncate_to_u64(runtime_us)),
            ..Quota::NONE
        }
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.runtime_us {
            Some(us) => write!(f, "{us} of {} us", self.period_us),
            None => f.write_str("max"),
        }
    }
}

/// The settings of a group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Settings {
    pub weight: Option<u32>,
    pub quota: Option<Quota>,
}

impl Settings {
    /// These settings, with those of an arm in place of its own.
    pub fn overlaid(self, of_arm: Settings) -> Self {
        Settings {
            weight: of_arm.weight.or(self.weight),
            quota: of_arm.quota.or(self.quota),
        }
    }
}

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
    /// Makes the group that has these settings, if there are any.
    pub fn make(
        &mut self,
        root: &Path,
        name: &str,
        settings: Settings,
        journal: &mut Journal,
    ) -> Result<Option<Cgroup>, CgroupError> {
        if settings == Settings::default() {
            return Ok(None);
        }
        let Mount { version, path } = mount(root).ok_or(CgroupError::NoController)?;
        if version == Version::V2 && self.enabled.is_none() {
            self.enabled = enable_cpu(&path, journal)?;
        }
        let path = path.join(name);
        record(journal, Undo::RemoveCgroup { path: path.clone() })?;
        written::make_cgroup(&path).map_err(|source| failed("make", &path, source))?;
        self.made.push(path.clone());
        let group = Cgroup { version, path };
        group.set(settings)?;
        Ok(Some(group))
    }

    /// Gives what could not be removed, and why.
    pub fn remove_all(&mut self) -> Vec<String> {
        let made = self.made.drain(..).rev();
        let mut errors: Vec<String> = made
            .filter_map(|path| cgroup::end_group(&path).err())
            .collect();
        if let Some(file) = self.enabled.take() {
            let disabled = written::write_kernel_file(&file, DISABLE);
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

    /// The group of the cpu controller with this path below the root of all; `None` if it is not there.
    pub fn find_group(root: &Path, below: &Path) -> Option<Self> {
        let Mount { version, path } = mount(root)?;
        let path = path.join(below);
        path.is_dir().then_some(Cgroup { version, path })
    }

    /// The files that these settings change, with what they say now. An error names the file that is
    /// not there.
    pub fn texts_before(&self, settings: Settings) -> Result<Vec<(PathBuf, String)>, PathBuf> {
        let files = settings.texts(self.version).into_iter();
        files
            .map(|(file, _)| {
                let path = self.path.join(file);
                let text = collect::read_trimmed(&path);
                text.map(|text| (path.clone(), text)).ok_or(path)
            })
            .collect()
    }

    /// Gives the group these settings; what they leave out stays as it is.
    pub fn set(&self, settings: Settings) -> Result<(), CgroupError> {
        let mut texts = settings.texts(self.version).into_iter();
        texts.try_for_each(|(file, text)| self.write(file, &text))
    }

    /// Moves a process into the group; what it starts later stays there.
    pub fn add_process(&self, pid: Pid) -> Result<(), CgroupError> {
        self.write("cgroup.procs", &pid.to_string())
    }

    fn has(&self, pid: Pid) -> bool {
        // Some engines put the processes of a container into a group below that of the container.
        let groups = collect::cgroup::with_groups_below(&self.path).into_iter();
        let lists = groups.filter_map(|path| collect::read_trimmed(&path.join("cgroup.procs")));
        let mut lists = lists.map(|list| list.lines().any(|line| line.parse() == Ok(pid)));
        lists.any(|is_there| is_there)
    }

    /// The quota of the group as the kernel has it; `None` if the process is not in it. A
    /// process that has ended is listed nowhere and went nowhere.
    pub fn quota_of(&self, root: &Path, pid: Pid) -> Option<Quota> {
        let has_ended =
            || tasks::read_stat(root, pid).is_some_and(|stat| "ZX".contains(stat.state));
        if !self.has(pid) && !has_ended() {
            return None;
        }
        self.quota()
    }

    /// The quota of the group as the kernel has it.
    pub fn quota(&self) -> Option<Quota> {
        let read = |file| collect::read_trimmed(&self.path.join(file));
        let (runtime, period) = match self.version {
            Version::V2 => {
                let text = read("cpu.max")?;
                let (runtime, period) = text.split_once(' ')?;
                (runtime.to_owned(), period.to_owned())
            }
            Version::V1 => (read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?),
        };
        let runtime_us = match runtime.as_str() {
            "max" | "-1" => None,
            text => Some(text.parse().ok()?),
        };
        let period_us = period.parse().ok()?;
        Some(Quota {
            runtime_us,
            period_us,
        })
    }

    /// The weight of the group as the kernel has it; `None` if the process is not in it.
    pub fn weight_of(&self, pid: Pid) -> Option<u32> {
        self.has(pid).then(|| self.weight())?
    }

    /// The weight of the group as the kernel has it.
    pub fn weight(&self) -> Option<u32> {
        let read = |file| collect::read_number::<u64>(&self.path.join(file));
        match self.version {
            Version::V2 => read("cpu.weight")?.try_into().ok(),
            // Of whole shares: the weight is the nearest.
            Version::V1 => ((read("cpu.shares")? * 100 + USUAL_SHARES / 2) / USUAL_SHARES)
                .try_into()
                .ok(),
        }
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Says which of these settings the kernel does not have.
    pub fn find_difference(&self, settings: Settings) -> Option<String> {
        let (weight, quota) = (self.weight(), self.quota());
        if let Some(wanted) = settings.weight.filter(|wanted| weight != Some(*wanted)) {
            let found = weight.map_or("none".to_owned(), |weight| weight.to_string());
            return Some(format!(
                "its cgroup has the weight {found} and not {wanted}"
            ));
        }
        let other = settings.quota.filter(|wanted| quota != Some(*wanted))?;
        let found = quota.map_or("none".to_owned(), |quota| quota.to_string());
        Some(format!("its cgroup has the quota {found} and not {other}"))
    }

    fn write(&self, file: &str, text: &str) -> Result<(), CgroupError> {
        let path = self.path.join(file);
        // No kernel makes the files of a group in a tree that a test made.
        let written = match cfg!(test) && !path.exists() {
            true => written::write_file(&path, text),
            false => written::write_kernel_file(&path, text),
        };
        written.map_err(|source| failed("write", &path, source))
    }
}

/// Why groups with a weight or a quota cannot be made here, and what to do about it.
pub fn find_obstacle(root: &Path) -> Option<(String, String)> {
    let Some(mount) = mount(root) else {
        return Some((
            "no cgroup controller for CPU time (cpu) is mounted".to_owned(),
            "mount it, or leave out weight and quota".to_owned(),
        ));
    };
    if let Err(error) = rustix::fs::access(&mount.path, rustix::fs::Access::WRITE_OK) {
        let (path, error) = (mount.path.display(), io::Error::from(error));
        return Some((
            format!("no cgroup can be made in {path}: {error}"),
            "run as root, or leave out weight and quota".to_owned(),
        ));
    }
    has_processes(&mount).then(|| {
        (
            format!(
                "processes are in the cgroup {} itself, as in a container, and such a one has no \
                 controller for groups below it",
                mount.path.display()
            ),
            "move them into a group below it, or leave out weight and quota".to_owned(),
        )
    })
}

/// True where the kernel would refuse to hand the controller down with EBUSY: a group of v2 that is
/// not the root of all, which has no `cgroup.type`, has either processes or controllers for others.
fn has_processes(mount: &Mount) -> bool {
    let read = |file| collect::read_trimmed(&mount.path.join(file)).unwrap_or_default();
    mount.version == Version::V2
        && mount.path.join("cgroup.type").exists()
        && !hands_down_cpu(&read("cgroup.subtree_control"))
        && !read("cgroup.procs").is_empty()
}

fn hands_down_cpu(controllers: &str) -> bool {
    controllers.split_whitespace().any(|name| name == "cpu")
}

/// Why groups with a quota cannot be made here, and what to do about it. In v2 only a group
/// below the root has the file of quotas, so that it is missing is found in a trial.
pub fn no_quota(root: &Path) -> Option<(String, String)> {
    find_obstacle(root).or_else(|| {
        let Mount { version, path } = mount(root)?;
        let lacks = version == Version::V1 && !path.join("cpu.cfs_quota_us").exists();
        lacks.then(|| {
            (
                "this kernel has no quotas of CPU time (CONFIG_CFS_BANDWIDTH)".to_owned(),
                "leave out the quota, or use another kernel".to_owned(),
            )
        })
    })
}

/// The root group hands the cpu controller down. The file in which it is said, if it
/// was not so before.
fn enable_cpu(path: &Path, journal: &mut Journal) -> Result<Option<PathBuf>, CgroupError> {
    let file = path.join("cgroup.subtree_control");
    if hands_down_cpu(&collect::read_trimmed(&file).unwrap_or_default()) {
        return Ok(None);
    }
    let (path, text) = (file.clone(), DISABLE.to_owned());
    record(journal, Undo::Write { path, text })?;
    written::write_kernel_file(&file, "+cpu").map_err(|source| failed("write", &file, source))?;
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

impl Settings {
    /// Files of the group and what to write there.
    fn texts(self, version: Version) -> Vec<(&'static str, String)> {
        let mut texts = Vec::new();
        match version {
            Version::V2 => {
                texts.extend(self.weight.map(|w| ("cpu.weight", w.to_string())));
                texts.extend(self.quota.map(|quota| {
                    let runtime = quota.runtime_us.map(|us| us.to_string());
                    let runtime = runtime.unwrap_or_else(|| "max".to_owned());
                    ("cpu.max", format!("{runtime} {}", quota.period_us))
                }));
            }
            Version::V1 => {
                let shares = |weight: u32| u64::from(weight) * USUAL_SHARES / 100;
                texts.extend(self.weight.map(|w| ("cpu.shares", shares(w).to_string())));
                if let Some(quota) = self.quota {
                    let runtime = quota.runtime_us.map(|us| us.to_string());
                    let runtime = runtime.unwrap_or_else(|| "-1".to_owned());
                    texts.push(("cpu.cfs_period_us", quota.period_us.to_string()));
                    texts.push(("cpu.cfs_quota_us", runtime));
                }
            }
        }
        texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both() -> Settings {
        Settings {
            weight: Some(200),
            quota: Some(Quota::of_percent(50.0)),
        }
    }

    #[test]
    fn both_versions_get_the_same_weight_and_quota_in_their_own_units() {
        let text = |version| {
            let texts = both().texts(version);
            texts
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
        let mut make = |settings| groups.make(root.path(), "x", settings, &mut journal);
        assert!(make(Settings::default()).unwrap().is_none());
        let error = make(both()).unwrap_err();
        assert!(error.to_string().contains("leave out weight"), "{error}");
    }

    #[test]
    fn what_groups_need_is_looked_for() {
        let (what, remedy) = find_obstacle(::tests::tree(&[]).path()).unwrap();
        assert!(what.contains("no cgroup controller"), "{what}");
        assert!(remedy.contains("leave out weight"), "{remedy}");
        let controllers = ("sys/fs/cgroup/cgroup.controllers", "cpu io\n");
        let root = ::tests::tree(&[controllers]);
        assert_eq!(find_obstacle(root.path()), None);
        let processes = ("sys/fs/cgroup/cgroup.procs", "1\n7\n");
        assert_eq!(
            find_obstacle(::tests::tree(&[controllers, processes]).path()),
            None
        );
        let kind = ("sys/fs/cgroup/cgroup.type", "domain\n");
        let container = ::tests::tree(&[controllers, processes, kind]);
        let (what, remedy) = find_obstacle(container.path()).unwrap();
        assert!(what.contains("as in a container"), "{what}");
        assert!(remedy.contains("leave out weight"), "{remedy}");
        let down = ("sys/fs/cgroup/cgroup.subtree_control", "cpu\n");
        let handed = ::tests::tree(&[controllers, processes, kind, down]);
        assert_eq!(find_obstacle(handed.path()), None);
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
            let weighing = Settings {
                weight: Some(wanted),
                quota: None,
            };
            let shares = &weighing.texts(Version::V1)[0].1;
            let found = weight(Version::V1, "cpu.shares", shares);
            assert_eq!(found, (Some(wanted), None));
        }
    }

    #[test]
    fn the_quota_of_a_group_is_read_as_it_was_written() {
        for quota in [Quota::of_percent(50.0), Quota::NONE] {
            for version in [Version::V1, Version::V2] {
                let settings = Settings {
                    weight: None,
                    quota: Some(quota),
                };
                let texts = settings.texts(version);
                let mut files: Vec<(&str, &str)> = vec![("cgroup.procs", "42\n")];
                files.extend(texts.iter().map(|(file, text)| (*file, text.as_str())));
                let root = ::tests::tree(&files);
                let path = root.path().to_owned();
                let group = Cgroup { version, path };
                assert_eq!(group.quota_of(root.path(), 42), Some(quota));
                assert_eq!(group.quota_of(root.path(), 4), None);
            }
        }
    }

    #[test]
    fn a_group_is_made_and_removed_on_this_machine() {
        let state = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(state.path()).unwrap();
        let name = format!("schedlab-test-{}", std::process::id());
        let mut groups = Groups::default();
        match groups.make(Path::new("/"), &name, both(), &mut journal) {
            Ok(group) => {
                let group = group.unwrap();
                let path = group.path.clone();
                assert!(path.exists());
                let mut child = std::process::Command::new("sleep")
                    .arg("60")
                    .spawn()
                    .unwrap();
                let pid = Pid::try_from(child.id()).unwrap();
                group.add_process(pid).unwrap();
                let running = group.quota_of(Path::new("/"), pid);
                child.kill().unwrap();
                let outside = group.quota_of(Path::new("/"), 1);
                child.wait().unwrap();
                assert_eq!((running, outside), (both().quota, None));
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
        let wrong = Settings {
            weight: None,
            quota: Some(Quota::of_percent(1e15)),
        };
        match groups.make(Path::new("/"), &name, wrong, &mut journal) {
            Err(CgroupError::Io { step: "write", .. }) => {
                let path = groups.made[0].clone();
                assert!(path.exists());
                assert_eq!(groups.remove_all(), [""; 0]);
                assert!(!path.exists());
            }
            Err(error) => ::tests::skipped(error),
            Ok(_) => panic!("the quota {:?} was taken", wrong.quota),
        }
    }
}
