//! Guests that are saved under a name and stay: what a snapshot is made of, where it lies, and the proof that
//! a guest which goes on from it is the one that was asked for.

use crate::boot::Guest;
use crate::failure::{io, unmet_error};
use crate::frame::{Frame, FrameKind, Ready};
use crate::qemu::Accel;
use crate::{Options, Saved, Vm, VmError, VmSpec, check, host, image_path, manage};
use doors::written::{self, Part};
use model::printable::write_hexadecimal;
use model::{Build, Calibration, Experiment, Problem};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{Error, ErrorKind, Result as IoResult};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const DESCRIPTION: &str = "snapshot.json";
const MEMORY: &str = "memory";
/// Part of a machine that a snapshot may have and an experiment does not need.
const NETWORK: &str = "network";
const THERE: &str = "there";
/// Variables by which programs that start in the guest are others, or do something else.
const DECISIVE: [&str; 5] = ["JAVA_HOME", "LANG", "LC_ALL", "PATH", "TZ"];
/// Digits of a hash that are shown to people.
const SHOWN_DIGITS: usize = 12;

/// State that guests continue from, as often as wanted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Name of the snapshot: that of its directory.
    pub name: String,
    /// Background guest that it was taken of; empty where a run made it.
    pub guest: String,
    /// Time at which it was saved, in seconds since the epoch.
    pub created_unix_s: u64,
    /// The machine, with nothing in its description that could mean another one later.
    pub spec: VmSpec,
    /// Program, directories and environment of the guest.
    pub options: Options,
    /// Greeting of the guest when it had booted.
    pub ready: Ready,
    /// Facts of the machine when it was saved (`vm.accel`, `vm.qemu`, …).
    pub facts: BTreeMap<String, String>,
    /// Parts of the machine by name, files among them by their hash. A machine that goes on from it has the same.
    pub parts: BTreeMap<String, String>,
    /// Work of the run that made it, whose agent is in it; `None` for one that was made by hand.
    pub done: Option<Done>,
    /// Size of the saved memory.
    pub bytes: u64,
    /// Hash of the saved memory.
    pub sha256: String,
}

/// Name of a snapshot, and why its description cannot be read, if so.
pub type Listed = (String, Result<Snapshot, VmError>);

/// Work of a run before it saved the guest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// Build of schedlab, for people.
    pub build: String,
    /// The workload that was started and answered, and `perf`, the events that are counted.
    pub asked: Map<String, Value>,
    /// Calibrations by cell: the services would not survive others.
    pub calibrations: BTreeMap<String, Calibration>,
}

impl Done {
    /// The work for the first workload of an experiment.
    pub fn new(
        build: &Build,
        experiment: &Experiment,
        calibrations: BTreeMap<String, Calibration>,
    ) -> Self {
        Done {
            build: build.to_string(),
            asked: asked_by(experiment),
            calibrations,
        }
    }
}

fn asked_by(experiment: &Experiment) -> Map<String, Value> {
    let workload = experiment.workloads.first().map(serde_json::to_value);
    let mut asked = match workload {
        Some(Ok(Value::Object(keys))) => keys,
        _ => Map::new(),
    };
    let perf = serde_json::to_value(&experiment.observe.perf);
    asked.insert("perf".to_owned(), perf.unwrap_or_default());
    asked
}

/// Snapshot that the guests of a machine go on from, and the hashes of files that were read for it.
#[derive(Debug, Default)]
pub(crate) struct Named {
    found: Option<Snapshot>,
    /// True if the snapshot has a network, whether or not ports are forwarded to it.
    pub has_network: bool,
    hashes: BTreeMap<PathBuf, (Stamp, String)>,
    /// Files that the guest has as they were when it started.
    started: BTreeMap<PathBuf, Stamp>,
}

/// Device, inode, size, and times of the last changes of contents and of inode: nobody can set the last.
type Stamp = [u64; 7];

impl Named {
    /// Takes note of the files that a guest starts with.
    pub(crate) fn note_start(&mut self, files: impl Iterator<Item = PathBuf>) {
        let stamps = files.filter_map(|path| {
            let found = fs::metadata(&path).ok()?;
            Some((path, stamp(&found)))
        });
        self.started = stamps.collect();
    }

    /// Refuses files that are others than those that the guest started with, whose memory knows the old ones.
    fn refuse_changed(&self, name: &str) -> Result<(), VmError> {
        let mut changed = self.started.iter().filter(|(path, known)| {
            fs::metadata(path).map_or(true, |found| stamp(&found) != **known)
        });
        match changed.next() {
            None => Ok(()),
            Some((path, _)) => Err(unmet_error(
                &format!("snapshot {name}"),
                &format!("{} was changed since the guest started", path.display()),
                "start the guest again, and save that one",
            )),
        }
    }

    /// Hash of a file. One that has not changed since is not read again.
    fn hash_file(&mut self, path: &Path) -> Result<String, VmError> {
        let failed = |e| io("read", path)(e);
        let mut file = doors::read::open_file(path).map_err(failed)?;
        let stamp = stamp(&file.metadata().map_err(failed)?);
        if let Some((known, hash)) = self.hashes.get(path)
            && *known == stamp
        {
            return Ok(hash.clone());
        }
        let hash = hash(&mut file).map_err(failed)?;
        self.hashes.insert(path.to_owned(), (stamp, hash.clone()));
        Ok(hash)
    }
}

fn stamp(found: &fs::Metadata) -> Stamp {
    let times = [
        found.mtime(),
        found.mtime_nsec(),
        found.ctime(),
        found.ctime_nsec(),
    ];
    let [m, m_ns, c, c_ns] = times.map(i64::cast_unsigned);
    [found.dev(), found.ino(), found.len(), m, m_ns, c, c_ns]
}

fn hash(file: &mut File) -> IoResult<String> {
    let mut hash = Sha256::new();
    doors::read::copy_within(file, &mut hash, u64::MAX)?;
    Ok(write_hexadecimal(&hash.finalize()))
}

impl Snapshot {
    /// The snapshot of this name; `None` where there is none.
    pub fn find(directory: &Path, name: &str) -> Result<Option<Self>, VmError> {
        manage::check_name("snapshot", name)?;
        let path = directory.join(name).join(DESCRIPTION);
        let read = match doors::read::small_file_bytes(&path) {
            // A directory without one is the rest of a snapshot.
            Err(e) if e.kind() == ErrorKind::NotFound && !directory.join(name).is_dir() => {
                return Ok(None);
            }
            read => read,
        };
        let parsed = read.and_then(|text| Ok(serde_json::from_slice::<Snapshot>(&text)?));
        let name = name.to_owned();
        match parsed {
            Ok(snapshot) => Ok(Some(Snapshot { name, ..snapshot })),
            Err(e) => Err(unmet_error(
                &format!("snapshot {name}"),
                &format!("its description cannot be read: {e}"),
                &format!("`schedlab vm snapshot delete {name}`, and make it anew"),
            )),
        }
    }

    /// All snapshots by name, with those that cannot be read.
    pub fn list(directory: &Path) -> Vec<Listed> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let names: BTreeSet<String> = names.collect();
        let found = |name: String| match Snapshot::find(directory, &name) {
            Ok(None) => None,
            Ok(Some(snapshot)) => Some((name, Ok(snapshot))),
            Err(e) => Some((name, Err(e))),
        };
        // What is being made has a name that no snapshot can have.
        let names = names.into_iter().filter(|name| !name.starts_with('.'));
        names.filter_map(found).collect()
    }

    /// Stores it with the memory that is written into a file. It is there when it is whole.
    pub(crate) fn store(
        self,
        directory: &Path,
        write: impl FnOnce(File) -> IoResult<()>,
    ) -> Result<(), VmError> {
        let place = directory.join(&self.name);
        let failed = |e: Error| match e.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => unmet_error(
                &format!("snapshot {}", self.name),
                &format!("its memory does not fit: {}: {e}", directory.display()),
                "free some space there, or set SCHEDLAB_CACHE_DIR to another place",
            ),
            ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists => exists_error(&self.name),
            _ => io("save", &place)(e),
        };
        let part = Part::create_in(directory).map_err(failed)?;
        // The memory of a guest is for nobody else.
        written::make_private_directory(&part.path()).map_err(failed)?;
        let memory = part.path().join(MEMORY);
        let file = written::create_new_file(&memory).map_err(failed)?;
        write(file).map_err(failed)?;
        let mut file = doors::read::open_file(&memory).map_err(failed)?;
        // A power cut must not leave a description of nothing.
        file.sync_all().map_err(failed)?;
        let whole = Snapshot {
            bytes: file.metadata().map_err(failed)?.len(),
            sha256: hash(&mut file).map_err(failed)?,
            ..self.clone()
        };
        let json = serde_json::to_vec_pretty(&whole).map_err(|e| failed(e.into()))?;
        written::write_file_durably(&part.path().join(DESCRIPTION), json).map_err(failed)?;
        part.put_at(&place).map_err(failed)
    }

    /// `snapshot warm (90 MiB, sha256 0123456789ab…)`.
    pub fn in_words(&self) -> String {
        let (mib, hash) = (self.bytes.div_ceil(1 << 20), short(&self.sha256));
        format!("snapshot {} ({mib} MiB, sha256 {hash})", self.name)
    }

    /// Refuses a machine that has other parts, or memory that is not what was saved.
    fn prove(&self, parts: &BTreeMap<String, String>, sha256: &str) -> Result<(), VmError> {
        let mut differences = differences(&self.parts, parts);
        if sha256 != self.sha256 {
            let (was, is) = (short(&self.sha256), short(sha256));
            differences.push(format!("its memory was saved as {was} and is {is}"));
        }
        self.refuse(&differences)
    }

    fn refuse(&self, differences: &[String]) -> Result<(), VmError> {
        let Snapshot { name, .. } = self;
        if differences.is_empty() {
            return Ok(());
        }
        Err(unmet_error(
            &format!("snapshot {name}"),
            &format!("it is not what is asked for: {}", differences.join("; ")),
            &format!(
                "`schedlab vm snapshot delete {name}`, and make it anew (a run does); or ask for what it is of"
            ),
        ))
    }

    /// Refuses an experiment whose workload is another than the one that the run had which made it.
    fn refuse_other_work(&self, experiment: &Experiment) -> Result<(), VmError> {
        let Some(done) = &self.done else {
            return Ok(());
        };
        let asked = asked_by(experiment);
        let keys: BTreeSet<&String> = done.asked.keys().chain(asked.keys()).collect();
        let others = keys
            .into_iter()
            .filter(|key| done.asked.get(*key) != asked.get(*key));
        let others: Vec<&str> = others.map(String::as_str).collect();
        match others.is_empty() {
            true => Ok(()),
            false => self.refuse(&[format!(
                "its services answered a workload with another {}",
                others.join(", ")
            )]),
        }
    }
}

/// Error for a name that is taken.
pub(crate) fn exists_error(name: &str) -> VmError {
    unmet_error(
        &format!("snapshot {name}"),
        "it exists",
        &format!("choose another name, or `schedlab vm snapshot delete {name}`"),
    )
}

fn differences(saved: &BTreeMap<String, String>, wanted: &BTreeMap<String, String>) -> Vec<String> {
    let names: BTreeSet<&String> = saved.keys().chain(wanted.keys()).collect();
    let value = |parts: &BTreeMap<String, String>, name: &String| {
        let value = parts.get(name).map_or("none", String::as_str);
        value.split(' ').map(short).collect::<Vec<_>>().join(" ")
    };
    let others = names
        .into_iter()
        .filter(|name| saved.get(*name) != wanted.get(*name));
    let told = others.map(|name| {
        let (is, asked) = (value(saved, name), value(wanted, name));
        format!("its {name} is {is}, not {asked}")
    });
    told.collect()
}

/// The beginning of a hash; other words as they are.
fn short(word: &str) -> String {
    let is_hash = word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    match word.get(..SHOWN_DIGITS) {
        Some(beginning) if is_hash => format!("{beginning}…"),
        _ => word.to_owned(),
    }
}

impl Vm {
    /// The snapshot that guests of this machine go on from, as far as that was looked for.
    pub fn recall_snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.found.as_ref()
    }

    /// The snapshot that guests of this machine go on from: what it was when it was saved, and of a machine
    /// like this one. `None` where there is none of the name yet, or no name.
    pub fn find_snapshot(&mut self) -> Result<Option<Snapshot>, VmError> {
        let Some(name) = self.spec.snapshot.clone() else {
            return Ok(None);
        };
        let directory = self.snapshots();
        let found = Snapshot::find(&directory, &name)?;
        if let Some(earlier) = &self.snapshot.found
            && found.as_ref().map(|found| &found.sha256) != Some(&earlier.sha256)
        {
            return Err(unmet_error(
                &format!("snapshot {name}"),
                "it was removed or made anew since the first look at it",
                "start a new run",
            ));
        }
        if let Some(snapshot) = &found {
            self.snapshot.has_network = snapshot.parts.get(NETWORK).is_some_and(|is| is == THERE);
            let parts = self.parts()?;
            let memory = self
                .snapshot
                .hash_file(&directory.join(&name).join(MEMORY))?;
            snapshot.prove(&parts, &memory)?;
        }
        self.snapshot.found.clone_from(&found);
        Ok(found)
    }

    /// A guest that goes on from the snapshot, where there is one; with an agent, if that is wanted.
    pub fn go_on_from_name(&mut self, agent: bool) -> Result<Option<Guest>, VmError> {
        let Some(snapshot) = self.find_snapshot()? else {
            return Ok(None);
        };
        let memory = self.snapshots().join(&snapshot.name).join(MEMORY);
        let guest = self.resume(None, memory, snapshot.ready.clone())?;
        if agent && snapshot.done.is_none() {
            Frame::json(FrameKind::Agent, 0, &self.options.agent)
                .and_then(|frame| guest.link.send(&frame))
                .map_err(io("start an agent in", Path::new("the guest")))?;
        }
        let bootable = self.prepare(&self.kernel_name(None))?;
        self.note(&bootable, &guest);
        let words = snapshot.in_words();
        self.facts.insert("vm.snapshot".to_owned(), words);
        Ok(Some(guest))
    }

    /// Stores a saved guest under the name that this machine has for it; false where it has none.
    pub fn keep_saved(&mut self, saved: &Saved, done: Done) -> Result<bool, VmError> {
        let Some(name) = self.spec.snapshot.clone() else {
            return Ok(false);
        };
        let snapshot = self.describe_guest(&name, "", &saved.ready, Some(done))?;
        let memory = saved.path();
        snapshot.store(&self.snapshots(), |mut file| {
            let from = doors::read::open_file(&memory)?;
            doors::read::copy_within(from, &mut file, u64::MAX).map(drop)
        })?;
        self.find_snapshot().map(|_| true)
    }

    /// Description of a guest of this machine that is saved now.
    pub(crate) fn describe_guest(
        &mut self,
        name: &str,
        guest: &str,
        ready: &Ready,
        done: Option<Done>,
    ) -> Result<Snapshot, VmError> {
        self.snapshot.refuse_changed(name)?;
        let since_epoch = SystemTime::UNIX_EPOCH.elapsed();
        Ok(Snapshot {
            name: name.to_owned(),
            guest: guest.to_owned(),
            created_unix_s: since_epoch.map_or(0, |time| time.as_secs()),
            parts: self.parts()?,
            spec: self.exact_spec(),
            options: self.options.clone(),
            ready: ready.clone(),
            facts: self.facts(),
            done,
            bytes: 0,
            sha256: String::new(),
        })
    }

    /// The description with everything in it that could mean something else later: a suite has another
    /// kernel, and a path is read from another directory.
    fn exact_spec(&self) -> VmSpec {
        let mut spec = self.spec.clone();
        spec.snapshot = None;
        spec.accel = self.facts.get("vm.accel").cloned();
        if let Some(origin) = self.facts.get("vm.kernel_origin") {
            spec.kernel = match origin.split_once('_') {
                Some((package, _)) if spec.kernel.starts_with("debian:") => {
                    format!("debian:{package}")
                }
                _ => origin.clone(),
            };
        }
        let image = image_path(&spec.root).and_then(|image| fs::canonicalize(image).ok());
        if let Some(image) = image {
            spec.root = format!("image:{}", image.display());
        }
        spec
    }

    /// Parts of this machine that a saved guest cannot do without.
    fn parts(&mut self) -> Result<BTreeMap<String, String>, VmError> {
        let bootable = self.prepare(&self.kernel_name(None))?;
        let accel = self.accel(&bootable)?.accel;
        let kernel = self.snapshot.hash_file(&bootable.kernel.vmlinuz)?;
        let image = image_path(&self.spec.root);
        let image = image
            .map(|image| self.snapshot.hash_file(&image))
            .transpose()?;
        // Its name ends with a hash of the program and of the kernel's configuration.
        let program = bootable.initramfs.file_stem().unwrap_or_default();
        let program = program.to_string_lossy();
        let (spec, architecture) = (&self.spec, self.spec.architecture());
        let network = match self.snapshot.has_network || !self.host_ports().is_empty() {
            true => THERE,
            false => "none",
        };
        let machine = format!("{} {}", architecture.name, architecture.board);
        let words = |value: Value| value.to_string();
        // What starts in the guest has those of who saved it.
        let environment = self.options.environment.iter();
        let environment = environment.filter(|(name, _)| DECISIVE.contains(&name.as_str()));
        let environment: Vec<String> = environment
            .map(|(n, value)| format!("{n}={value}"))
            .collect();
        let parts = [
            ("kernel", format!("{} {kernel}", bootable.kernel.release)),
            ("image", image.unwrap_or_default()),
            (
                "build of schedlab",
                program.rsplit('-').next().unwrap_or_default().to_owned(),
            ),
            ("number of CPUs", spec.cpus.to_string()),
            ("memory size", format!("{} bytes", spec.memory_bytes)),
            (
                "kernel command line",
                words(serde_json::json!(spec.append.clone().unwrap_or_default())),
            ),
            ("topology", words(serde_json::json!(spec.topology))),
            ("environment", environment.join(" ")),
            (
                "directory",
                self.options.directory.to_string_lossy().into_owned(),
            ),
            ("capacities", words(serde_json::json!(spec.capacities))),
            (NETWORK, network.to_owned()),
            ("machine", machine),
            ("accelerator", accel.as_str().to_owned()),
            (
                "QEMU",
                self.facts.get("vm.qemu").cloned().unwrap_or_default(),
            ),
            (
                "CPU",
                match accel {
                    Accel::Kvm => host::cpu_model().unwrap_or_default(),
                    Accel::Tcg => architecture.emulated_cpu.to_owned(),
                },
            ),
        ];
        let parts = parts.map(|(name, value)| (name.to_owned(), value));
        Ok(parts.into())
    }

    /// Problems of the snapshot with the experiment.
    pub(crate) fn check_snapshot(&mut self, experiment: &Experiment) -> Vec<Problem> {
        let Some(name) = self.spec.snapshot.clone() else {
            return Vec::new();
        };
        let object = format!("snapshot {name}");
        let found = match self.find_snapshot() {
            Ok(found) => found,
            Err(e) => return vec![check::as_problem(&object, e)],
        };
        let problem = |what: String, remedy: &str| Problem {
            object: object.clone(),
            what,
            remedy: remedy.to_owned(),
        };
        let mut problems = Vec::new();
        let other = experiment.arms.iter().find(|arm| arm.kernel.is_some());
        problems.extend(other.map(|arm| {
            let what = format!(
                "it is of one kernel, and the arm {} names its own",
                arm.name
            );
            problem(
                what,
                "name the kernel in [target] alone, or reset = \"snapshot\"",
            )
        }));
        let is_by_hand = found.as_ref().is_some_and(|found| found.done.is_none());
        if experiment.workloads.len() > 1 && !is_by_hand {
            let what = "a run makes it for one workload, and the experiment has several".to_owned();
            problems.push(problem(what, "--only one of them, or reset = \"snapshot\""));
        } else if let Some(Err(e)) = found.map(|found| found.refuse_other_work(experiment)) {
            problems.push(check::as_problem(&object, e));
        }
        problems
    }
}

#[cfg(test)]
mod tests;
