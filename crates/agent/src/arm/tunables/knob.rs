//! One tunable as a file of this kernel.

use super::sysctl;
use super::table::Tunable;
use super::value::find_tunable;
use super::{FEATURE, TunableError};
use crate::arm::busy;
use crate::kernel_file;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A kernel that is busy with what has just ended is asked again for so long.
const BUSY_LIMIT: Duration = Duration::from_secs(5);
const DEBUGFS: &str = "sys/kernel/debug";
const FEATURES: &str = "sys/kernel/debug/sched/features";

/// File of a tunable on this kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knob {
    name: String,
    path: PathBuf,
    feature: Option<String>,
}

impl Knob {
    /// Find it below `root`; nothing is opened.
    pub fn find(root: &Path, name: &str) -> Result<Self, TunableError> {
        if let Some(feature) = name.strip_prefix(FEATURE) {
            return Self::find_feature(root, name, feature);
        }
        if sysctl::is_full_name(name) {
            return Self::find_sysctl(root, name);
        }
        let tunable = find_tunable(name).map_err(TunableError::Value)?;
        match place(root, tunable) {
            Some(path) => Ok(Knob {
                name: name.to_owned(),
                path,
                feature: None,
            }),
            None => Err(absent(root, tunable)),
        }
    }

    /// A file of the kernel's that belongs to a tunable.
    pub(super) fn from_path(name: &str, path: PathBuf) -> Self {
        Knob {
            name: name.to_owned(),
            path,
            feature: None,
        }
    }

    fn find_sysctl(root: &Path, name: &str) -> Result<Self, TunableError> {
        let path = sysctl::path(root, name);
        match path.is_file() {
            true => Ok(Knob {
                name: name.to_owned(),
                path,
                feature: None,
            }),
            false => {
                let hidden = name.starts_with(sysctl::DEBUGFS);
                let hidden = hidden.then(|| debugfs_problem(root, name)).flatten();
                Err(hidden.unwrap_or(TunableError::Absent {
                    name: name.to_owned(),
                    nearest: None,
                }))
            }
        }
    }

    fn find_feature(root: &Path, name: &str, feature: &str) -> Result<Self, TunableError> {
        let path = root.join(FEATURES);
        if !path.exists() {
            return Err(debugfs_problem(root, name).unwrap_or(TunableError::Absent {
                name: name.to_owned(),
                nearest: None,
            }));
        }
        let feature = feature.to_uppercase();
        let knob = Knob {
            name: name.to_owned(),
            path,
            feature: Some(feature.clone()),
        };
        let text = knob.text()?;
        let known = || text.split_ascii_whitespace().map(without_no);
        if known().any(|word| word == feature) {
            return Ok(knob);
        }
        Err(TunableError::Absent {
            name: name.to_owned(),
            nearest: model::find_nearest(&feature, known()).map(|n| format!("{FEATURE}{n}")),
        })
    }

    fn io_error(&self, step: &'static str, source: io::Error) -> TunableError {
        if source.raw_os_error() == Some(libc::EPERM) && rustix::process::geteuid().is_root() {
            return TunableError::Unreachable {
                name: self.name.clone(),
                why: format!("{step} {}: {source}", self.path.display()),
                remedy: LOCKED_DOWN.to_owned(),
            };
        }
        TunableError::Io {
            step,
            name: self.name.clone(),
            path: self.path.clone(),
            source,
        }
    }

    fn text(&self) -> Result<String, TunableError> {
        doors::read::kernel_text(&self.path).map_err(|e| self.io_error("read", e))
    }

    /// The value in force, in the form of [`normalise`](super::value::normalise).
    pub fn read(&self) -> Result<String, TunableError> {
        let text = self.text()?;
        Ok(match sysctl::is_full_name(&self.name) {
            true if self.name.starts_with(sysctl::DEBUGFS) => {
                sysctl::one_space(&value_in(text.trim(), None))
            }
            true => sysctl::one_space(&text),
            false => value_in(text.trim(), self.feature.as_deref()),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Text that is written for `value`: features have a word of their own.
    pub(super) fn to_write(&self, value: &str) -> String {
        match &self.feature {
            Some(feature) if value == "off" => format!("NO_{feature}"),
            Some(feature) => feature.clone(),
            None => value.to_owned(),
        }
    }

    /// Opening for writing is the only sure way to learn about the rights to it.
    pub(super) fn try_open_for_writing(&self) -> Result<(), TunableError> {
        fs::File::options()
            .write(true)
            .open(&self.path)
            .map(drop)
            .map_err(|e| self.io_error("open for writing", e))
    }

    fn write(&self, value: &str) -> Result<(), TunableError> {
        kernel_file::write(&self.path, &self.to_write(value)).map_err(|e| self.io_error("write", e))
    }

    /// Writes the value that was there before the arm.
    pub(super) fn put_back(&self, before: &str) -> Result<(), TunableError> {
        let step = || self.write_and_read_back(before);
        busy::waited_for(BUSY_LIMIT, TunableError::is_busy, step)
    }

    pub(super) fn write_and_read_back(&self, value: &str) -> Result<(), TunableError> {
        self.write(value)?;
        let found = self.read()?;
        if found == value {
            return Ok(());
        }
        Err(TunableError::NotTaken {
            name: self.name.clone(),
            wanted: value.to_owned(),
            found,
        })
    }
}

fn place(root: &Path, tunable: &Tunable) -> Option<PathBuf> {
    let mut paths = tunable.candidates.iter().map(|path| root.join(path));
    paths.find(|path| path.exists())
}

fn without_no(word: &str) -> &str {
    word.strip_prefix("NO_").unwrap_or(word)
}

/// One feature of a list, the chosen `(word)` of a list, or the text itself.
fn value_in(text: &str, feature: Option<&str>) -> String {
    if let Some(feature) = feature {
        let on = text.split_ascii_whitespace().any(|word| word == feature);
        return if on { "on" } else { "off" }.to_owned();
    }
    let chosen = text
        .split_ascii_whitespace()
        .find_map(|word| word.strip_prefix('(')?.strip_suffix(')'));
    chosen.unwrap_or(text).to_owned()
}

const LOCKED_DOWN: &str = "the kernel is locked down (kernel_lockdown(7)), and debugfs with it: \
                           use a VM with its own kernel (--vm debian:sid)";

fn absent(root: &Path, tunable: &Tunable) -> TunableError {
    let in_debugfs = tunable.candidates.iter().any(|c| c.starts_with(DEBUGFS));
    let instead = tunable
        .nearest
        .filter(|name| find_tunable(name).is_ok_and(|other| place(root, other).is_some()));
    let hidden = in_debugfs && instead.is_none();
    if let Some(problem) = debugfs_problem(root, tunable.name).filter(|_| hidden) {
        return problem;
    }
    TunableError::Absent {
        name: tunable.name.to_owned(),
        nearest: instead.map(str::to_owned),
    }
}

/// Why nothing of debugfs can be seen, if that is so.
fn debugfs_problem(root: &Path, name: &str) -> Option<TunableError> {
    let directory = root.join(DEBUGFS);
    let has_entries = fs::read_dir(&directory).map(|mut entries| entries.next().is_some());
    let (why, remedy) = match has_entries {
        Ok(true) => return None,
        Ok(false) => (
            format!(
                "it is in debugfs, and none is mounted on {}",
                directory.display()
            ),
            "as root: mount -t debugfs none /sys/kernel/debug".to_owned(),
        ),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => (
            format!("it is in debugfs: open {}: {e}", directory.display()),
            "run as root".to_owned(),
        ),
        Err(_) => (
            "it is in debugfs, which this kernel does not offer".to_owned(),
            "use a kernel with CONFIG_DEBUG_FS that is not locked down, or a VM with its own \
             kernel (--vm debian:sid)"
                .to_owned(),
        ),
    };
    Some(TunableError::Unreachable {
        name: name.to_owned(),
        why,
        remedy,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tests::tree;

    fn error(files: &[(&str, &str)], name: &str) -> String {
        let root = tree(files);
        let error = Knob::find(root.path(), name).unwrap_err();
        format!("{error}; {}", error.remedy())
    }

    #[test]
    fn a_file_of_debugfs_has_a_name_of_its_own_and_is_read_back() {
        let root = tree(&[
            ("sys/kernel/debug/sched/verbose", "N\n"),
            (
                "sys/kernel/debug/sched/fair_server/cpu0/runtime",
                "50000000\n",
            ),
            ("sys/kernel/debug/sched/preempt", "none voluntary (full)\n"),
        ]);
        let read = |name: &str| Knob::find(root.path(), name).unwrap().read().unwrap();
        assert_eq!(read("debugfs.sched.verbose"), "N");
        assert_eq!(read("debugfs.sched.fair_server.cpu0.runtime"), "50000000");
        assert_eq!(read("debugfs.sched.preempt"), "full");
        let knob = Knob::find(root.path(), "debugfs.sched.verbose").unwrap();
        knob.write_and_read_back("Y").unwrap();
        assert_eq!(read("debugfs.sched.verbose"), "Y");
        let other = Knob::find(root.path(), "debugfs.sched.verbos").unwrap_err();
        assert!(
            other.to_string().contains("this kernel has none"),
            "{other}"
        );
        let hidden = error(&[("sys/kernel/debug/.empty", "")], "debugfs.sched.verbose");
        assert!(hidden.contains("this kernel has none"), "{hidden}");
        let hidden = error(&[], "debugfs.sched.verbose");
        assert!(
            hidden.contains("which this kernel does not offer"),
            "{hidden}"
        );
    }

    #[test]
    fn the_place_depends_on_the_kernel() {
        let old = tree(&[("proc/sys/kernel/sched_latency_ns", "6000000\n")]);
        let knob = Knob::find(old.path(), "latency").unwrap();
        assert!(knob.path().ends_with("proc/sys/kernel/sched_latency_ns"));
        let newer = tree(&[("sys/kernel/debug/sched/latency_ns", "6000000\n")]);
        let knob = Knob::find(newer.path(), "latency").unwrap();
        assert!(knob.path().ends_with("sys/kernel/debug/sched/latency_ns"));
        assert_eq!(knob.read().unwrap(), "6000000");
    }

    #[test]
    fn a_knob_of_cfs_names_its_successor_on_eevdf() {
        let files = [("sys/kernel/debug/sched/base_slice_ns", "2800000\n")];
        assert_eq!(
            error(&files, "wakeup_granularity"),
            "tunable wakeup_granularity: this kernel has none; its nearest on this kernel is base_slice"
        );
    }

    #[test]
    fn debugfs_that_is_not_mounted_is_told_from_a_kernel_without_the_knob() {
        let root = tree(&[]);
        fs::create_dir_all(root.path().join(DEBUGFS)).unwrap();
        let error = Knob::find(root.path(), "base_slice").unwrap_err();
        assert!(error.remedy().contains("mount -t debugfs"), "{error}");
        assert!(self::error(&[], "base_slice").contains("CONFIG_DEBUG_FS"));
    }

    #[test]
    fn the_word_in_brackets_is_the_value_of_a_list() {
        let root = tree(&[(
            "sys/kernel/debug/sched/preempt",
            "none voluntary (full) lazy\n",
        )]);
        let knob = Knob::find(root.path(), "preempt").unwrap();
        assert_eq!(knob.read().unwrap(), "full");
    }

    #[test]
    fn features_are_read_and_written_by_their_name() {
        let root = tree(&[(FEATURES, "PLACE_LAG NO_RUN_TO_PARITY\n")]);
        let on = Knob::find(root.path(), "feature.place_lag").unwrap();
        let off = Knob::find(root.path(), "feature.RUN_TO_PARITY").unwrap();
        assert_eq!(
            (on.read().unwrap(), off.read().unwrap()),
            ("on".into(), "off".into())
        );
        assert_eq!(on.to_write("off"), "NO_PLACE_LAG");
        assert_eq!(off.to_write("on"), "RUN_TO_PARITY");
    }

    #[test]
    fn an_unknown_feature_names_the_nearest() {
        let files = [(FEATURES, "PLACE_LAG NO_RUN_TO_PARITY\n")];
        assert!(error(&files, "feature.PLACE_LAGS").ends_with("feature.PLACE_LAG"));
    }
}
