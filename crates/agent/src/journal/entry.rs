//! One line of the journal: how it is read, and how it is undone.

use super::Restored;
use crate::cgroup;
use crate::container;
use crate::daemon::threads::Before;
use crate::files;
use crate::kernel_file;
use crate::processes;
use collect::tasks::Pid;
use model::printable::one_line;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// One thing to undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "undo", rename_all = "kebab-case")]
pub enum Undo {
    /// Write the old text back.
    Write {
        /// File of the kernel.
        path: PathBuf,
        /// Text that it had.
        text: String,
    },
    /// Give threads of a daemon the policy and the CPUs that they had.
    PutBackThreads(Before),
    /// Kill every process with this environment variable (`NAME=value`).
    KillMarked {
        /// The variable with its value.
        variable: String,
    },
    /// Kill the session that this process leads. The start time tells it from a later process
    /// with the same ID.
    KillSession {
        /// ID of the process and of its session.
        pid: i32,
        /// Start of the process, in clock ticks since boot.
        start_ticks: u64,
    },
    /// Kill every process in a cgroup, and remove it.
    RemoveCgroup {
        /// Directory of the cgroup.
        path: PathBuf,
    },
    /// Remove a ring buffer of the kernel's events, an instance of tracefs that schedlab made.
    RemoveRing {
        /// Name of the instance.
        name: String,
    },
    /// Remove a folder with all that is in it. Schedlab made it, below its own directory.
    RemoveFolder {
        /// Path of the folder.
        path: PathBuf,
    },
    /// Remove a container that schedlab made, with its processes.
    RemoveContainer {
        /// Command of its engine.
        engine: String,
        /// Name of the container.
        name: String,
    },
    /// Destroy all guests of Xen whose names begin so.
    DestroyGuests {
        /// Beginning of their names.
        prefix: String,
    },
    /// Remove a CPU pool of Xen that schedlab made, or make the one anew that was there before, with its
    /// parameters.
    PutBackPool {
        /// Name of the pool.
        name: String,
        /// Scheduler that it had; `None`: there was no such pool.
        scheduler: Option<String>,
        /// CPUs that it had.
        cpus: Vec<u32>,
        /// Time slice that it had in milliseconds, if its scheduler has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeslice_ms: Option<u32>,
        /// Rate limit that it had in microseconds, if its scheduler has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ratelimit_us: Option<u32>,
        /// CPUs that the pool of schedlab's took.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        taken: Vec<u32>,
    },
    /// Give a CPU pool of Xen, which was used as it is, the parameters that its scheduler had.
    PutBackParameters {
        /// Name of the pool.
        name: String,
        /// Its scheduler.
        scheduler: String,
        /// Time slice that it had in milliseconds, if its scheduler has one.
        timeslice_ms: Option<u32>,
        /// Rate limit that it had in microseconds, if its scheduler has one.
        ratelimit_us: Option<u32>,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Line {
    pub boot: String,
    #[serde(flatten)]
    pub undo: Undo,
}

/// Beginning of every line: `boot` is its first field. Inside a JSON string the quotes would
/// have backslashes, so a line that was appended to a torn one is found.
const BEGINNING: &[u8] = br#"{"boot":""#;
/// Beginning of the names of all guests that schedlab makes.
const OUR_GUESTS: &str = "schedlab-";
/// Length of the part that is shown of a line that cannot be read.
const SHOWN: usize = 200;

/// The meaning of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A change of this boot, still to be undone.
    Current(Undo),
    /// From an earlier boot.
    Stale,
    /// Why it cannot be undone.
    Unreadable(String),
}

/// All lines that are not blank, also one that was appended to a torn one.
pub fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes
        .split(|byte| *byte == b'\n')
        .flat_map(parts)
        .filter(|line| line.iter().any(|byte| !byte.is_ascii_whitespace()))
}

fn parts(line: &[u8]) -> Vec<&[u8]> {
    let mut cuts = vec![0];
    cuts.extend((1..line.len()).filter(|at| line[*at..].starts_with(BEGINNING)));
    cuts.push(line.len());
    cuts.windows(2).map(|cut| &line[cut[0]..cut[1]]).collect()
}

impl Entry {
    /// The meaning of one line under the boot with the ID `boot`.
    pub fn read(line: &[u8], boot: &str) -> Self {
        match serde_json::from_slice::<Line>(line) {
            Ok(line) if line.boot == boot => Entry::Current(line.undo),
            Ok(_) => Entry::Stale,
            Err(_) if is_of_another_boot(line, boot) => Entry::Stale,
            Err(error) => Entry::Unreadable(unreadable(line, &error)),
        }
    }

    /// True if nobody knows what the line would undo.
    pub fn is_unreadable(&self) -> bool {
        matches!(self, Entry::Unreadable(_))
    }

    /// The processes that it names, where they run.
    pub(crate) fn processes(&self) -> Vec<Pid> {
        let Entry::Current(undo) = self else {
            return Vec::new();
        };
        match undo {
            Undo::Write { .. }
            | Undo::PutBackThreads(_)
            | Undo::RemoveFolder { .. }
            | Undo::RemoveRing { .. }
            | Undo::RemoveContainer { .. }
            | Undo::DestroyGuests { .. }
            | Undo::PutBackPool { .. }
            | Undo::PutBackParameters { .. } => Vec::new(),
            Undo::KillMarked { variable } => processes::find_marked(variable),
            Undo::KillSession { pid, start_ticks } => processes::session(*pid, *start_ticks),
            Undo::RemoveCgroup { path } => cgroup::members(path),
        }
    }

    /// Its processes were killed before.
    pub(crate) fn undo(&self, restored: &mut Restored) -> Result<(), String> {
        let undo = match self {
            Entry::Current(undo) => undo,
            Entry::Stale => {
                restored.stale += 1;
                return Ok(());
            }
            Entry::Unreadable(why) => return Err(why.clone()),
        };
        processes::are_gone(&self.processes())?;
        match undo {
            Undo::Write { path, text } => {
                write_back(path, text)?;
                restored.written.push((path.clone(), text.clone()));
                Ok(())
            }
            Undo::PutBackThreads(before) => {
                let (changed, errors) = before.put_back(Path::new("/"));
                let words = (changed > 0).then(|| before.in_words(changed));
                restored.removed.extend(words);
                match errors.is_empty() {
                    true => Ok(()),
                    false => Err(errors.join("; ")),
                }
            }
            Undo::KillMarked { .. } | Undo::KillSession { .. } => Ok(()),
            Undo::RemoveCgroup { path } => cgroup::remove(path),
            Undo::RemoveFolder { path } => {
                let was_there = path.exists();
                files::remove_folder(path)?;
                let folder = was_there.then(|| format!("folder {}", path.display()));
                restored.removed.extend(folder);
                Ok(())
            }
            Undo::RemoveRing { name } => remove_ring(name),
            Undo::RemoveContainer { engine, name } => {
                let was_there = container::remove_container(engine, name)?;
                let removed = was_there.then(|| format!("container {name}"));
                restored.removed.extend(removed);
                Ok(())
            }
            Undo::DestroyGuests { prefix } => {
                let names = destroy_guests(prefix)?.into_iter();
                let guests = names.map(|name| format!("guest {name} of Xen"));
                restored.removed.extend(guests);
                Ok(())
            }
            pool => {
                let changed = put_back(pool)?.map(|name| format!("CPU pool {name} of Xen"));
                restored.removed.extend(changed);
                Ok(())
            }
        }
    }

    /// May it be taken by the kernel once others have their old values?
    pub(crate) fn is_write(&self) -> bool {
        matches!(self, Entry::Current(Undo::Write { .. }))
    }

    /// Do both write the same file?
    pub(crate) fn writes_what(&self, other: &Entry) -> bool {
        let path = |entry| match entry {
            &Entry::Current(Undo::Write { ref path, .. }) => Some(path),
            _ => None,
        };
        path(self).is_some() && path(self) == path(other)
    }
}

fn destroy_guests(prefix: &str) -> Result<Vec<String>, String> {
    // A line that somebody wrote must not lead to the guests of others.
    if !prefix.starts_with(OUR_GUESTS) {
        return Err(format!(
            "destroy the guests of Xen called {prefix}…: they are not schedlab's"
        ));
    }
    let destroyed = xen::destroy_all(prefix);
    destroyed.map_err(|e| format!("destroy the guests of Xen called {prefix}…: {e}"))
}

/// Puts back a CPU pool of Xen or its parameters; gives its name if there was anything to be done.
pub fn put_back(undo: &Undo) -> Result<Option<&str>, String> {
    let (name, done) = match undo {
        Undo::PutBackPool {
            name,
            scheduler,
            cpus,
            timeslice_ms,
            ratelimit_us,
            taken,
        } => {
            let before = scheduler.as_ref().map(|scheduler| xen::Pool {
                name: name.clone(),
                scheduler: scheduler.clone(),
                cpus: cpus.clone(),
                domains: 0,
            });
            let parameters = parameters(*timeslice_ms, *ratelimit_us);
            let before = before.as_ref().map(|pool| (pool, parameters));
            (name, xen::PoolWanted::put_back(name, before, taken))
        }
        Undo::PutBackParameters {
            name,
            scheduler,
            timeslice_ms,
            ratelimit_us,
        } => {
            let parameters = parameters(*timeslice_ms, *ratelimit_us);
            (name, xen::put_back_parameters(name, scheduler, parameters))
        }
        _ => return Ok(None),
    };
    match done {
        Ok(changed) => Ok(changed.then_some(name)),
        Err(e) => Err(format!("put back the CPU pool {name} of Xen: {e}")),
    }
}

fn parameters(timeslice_ms: Option<u32>, ratelimit_us: Option<u32>) -> xen::Parameters {
    xen::Parameters {
        timeslice_ms,
        ratelimit_us,
    }
}

fn remove_ring(name: &str) -> Result<(), String> {
    // A line that somebody wrote must not lead elsewhere.
    if name.contains('/') || name.starts_with('.') {
        return Err(format!("remove the ring {name:?}: that is no name of one"));
    }
    collect::sched_trace::remove_ring(Path::new("/"), name)
        .map_err(|e| format!("remove the ring {name} of tracefs: {e}"))
}

/// True if the line names another boot, as far as that can be read: of a torn line the end is
/// missing.
fn is_of_another_boot(line: &[u8], boot: &str) -> bool {
    let rest = line.strip_prefix(BEGINNING).unwrap_or_default();
    let id = rest.split(|byte| *byte == b'"').next();
    rest.contains(&b'"') && id != Some(boot.as_bytes())
}

fn unreadable(line: &[u8], error: &serde_json::Error) -> String {
    #[derive(Deserialize)]
    struct Kind {
        undo: String,
    }
    let shown: String = String::from_utf8_lossy(line).chars().take(SHOWN).collect();
    match serde_json::from_slice::<Kind>(line) {
        Ok(Kind { undo }) => format!(
            "this version does not know how to undo `{}` ({shown:?}): run `schedlab restore` of \
             the version that recorded it, or reboot",
            one_line(&undo)
        ),
        Err(_) => format!(
            "an entry of the journal cannot be read ({}): {shown:?}; reboot, or undo by hand \
             what it names and delete its line",
            one_line(&error.to_string())
        ),
    }
}

/// Write to a kernel file, which is never created. A change that was recorded but
/// then not permitted left the old text in place: nothing to undo.
fn write_back(path: &Path, text: &str) -> Result<(), String> {
    match kernel_file::write(path, text) {
        Err(_) if collect::read_trimmed(path).as_deref() == Some(text) => Ok(()),
        Err(e) => Err(format!("write {text:?} back to {}: {e}", path.display())),
        Ok(()) => Ok(()),
    }
}
