//! The engine of loads: what a kind of load, a server and an antagonist are, and what all of them are
//! made of. It names none: those that there are come from the catalogue ([`catalogue`]).
//!
//! A workload always runs as a process of its own, started by the agent. A native
//! generator is this same binary (`schedlab load`) and knows phases; an external
//! program is measured from its start to its end.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod catalogue;
mod closed_windows;
pub mod crew;
pub mod figures;
pub mod gate;
pub mod guests;
pub mod keys;
pub mod kind;
pub mod latch;
pub mod late;
pub mod latency;
mod native;
pub mod options;
pub mod overload;
pub mod pacing;
pub mod params;
pub mod phase;
pub mod program;
mod progress;
pub mod recording;
pub mod registry;
mod reread;
pub mod roles;
pub mod stalls;
pub mod steady;
pub mod sys;
pub mod turn_values;
pub mod units;
pub mod work_counts;
pub mod worst;

pub use catalogue::{Catalogue, Entry, check_installed, install};
pub use keys::Keys;
pub use kind::{
    KINDS, KindDef, LoadForms, Usual, Window, all_programs, deciding_metrics, driver, log_of,
    measured_tasks, metric_defs, programs, programs_of, summary, watched_log,
};
pub use native::native_main;
pub use params::{Params, Work};
pub use phase::{NativeError, Phases};
pub use progress::{PROGRESS, read_progress};
pub use reread::{Printed, read_again};
pub use sys::{allowed_cpus, keep_to};
pub use turn_values::TurnFigures;
pub use work_counts::{WORK_COUNTS, kops_in};
pub use worst::Worst;

use model::{Calibration, Invalid, Kind, Load, Problem, TrialFile, Turns, Workload};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// One workload at one load, as the agent asks for it. It is also what the process of a
/// native generator is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Workload with its parameters, whatever its other loads are.
    pub workload: Workload,
    /// Load of this trial.
    pub load: Load,
    /// Values that were found once for all trials of the cell.
    pub calibration: Calibration,
    /// CPUs that the target offers.
    pub cpus: u32,
    /// Seed of all that is random in the load.
    pub seed: u64,
    /// `Arm::handicap_percent`.
    pub handicap_percent: f64,
    /// Address of the workload's own server, once it listens.
    pub server: Option<SocketAddr>,
    /// The log whose worst value is watched, one of [`KindDef::watched`]; `None`: nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<String>,
    /// Bounds of logs, among [`KindDef::watched`], beyond which latencies are events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<late::Bound>,
    /// Turns of arms that change places while the load runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<Turns>,
    /// True where figures of windows that have closed are told while it runs.
    #[serde(default)]
    pub tells: bool,
    /// Place of guests of the hypervisor that the load runs in; `None`: Pool-0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guests: Option<GuestsIn>,
    /// Cgroups that the agent has made for parts of the load ([`Driver::groups`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupAt>,
    /// `Arm::handicap_percent` of each of these arms.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handicaps: Vec<f64>,
}

/// A cgroup that the agent makes for a part of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartGroup {
    /// Name of the part.
    pub part: String,
    /// Its `cpu.weight`.
    pub weight: u32,
    /// CPU time that all of it may use, in percent of one CPU; `None`: as much as there is.
    pub quota_percent: Option<u32>,
}

/// A cgroup that the agent has made for a part of the load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupAt {
    /// Name of the part.
    pub part: String,
    /// Folder of the cgroup.
    pub path: PathBuf,
}

impl Job {
    /// Length of what is measured: the window, or all turns with their washouts.
    pub fn measured_ns(&self) -> u64 {
        let turns = self.turns.as_ref().map(Turns::all_ns);
        turns.unwrap_or(self.workload.duration_ns)
    }

    /// Number of the load; 1 where it is none.
    pub fn load_count(&self) -> u64 {
        self.load.resolve_count(self.cpus).unwrap_or(1)
    }

    /// A problem of its workload.
    pub fn problem(&self, what: String, remedy: &str) -> Problem {
        Problem {
            object: format!("workload {}", self.workload.name),
            what,
            remedy: remedy.to_owned(),
        }
    }

    /// Before anything was calibrated or started.
    pub fn new(workload: &Workload, load: Load, cpus: u32) -> Self {
        Job {
            workload: workload.clone(),
            load,
            calibration: Calibration::default(),
            cpus,
            seed: 0,
            handicap_percent: 0.0,
            server: None,
            watch: None,
            bounds: Vec::new(),
            turns: None,
            tells: false,
            guests: None,
            groups: Vec::new(),
            handicaps: Vec::new(),
        }
    }
}

/// Place of guests of a hypervisor, as the arm has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestsIn {
    /// Pool whose CPUs they run on.
    pub pool: String,
    /// Budget and period of each, in microseconds, under rtds.
    #[serde(default)]
    pub reservation: Option<(u64, u64)>,
    /// Right of each to more than its budget where nobody else wants it. `None` is as the toolstack
    /// has it: yes.
    #[serde(default)]
    pub extratime: Option<bool>,
    /// Choice of a NUMA node for each by the toolstack. `None` is as the toolstack has it: yes.
    #[serde(default)]
    pub numa_placement: Option<bool>,
    /// Weight of each whose set has none of its own.
    #[serde(default)]
    pub weight: Option<u32>,
    /// Most that each gets, in percent of one CPU, beside what its set says.
    #[serde(default)]
    pub cap: Option<u32>,
}

impl GuestsIn {
    /// Guests of a pool with nothing else asked for.
    pub fn pool(name: &str) -> Self {
        GuestsIn {
            pool: name.to_owned(),
            reservation: None,
            extratime: None,
            numa_placement: None,
            weight: None,
            cap: None,
        }
    }

    /// Weight of a guest whose set has this one.
    pub fn weight(&self, of_set: Option<u32>) -> Option<u32> {
        of_set.or(self.weight)
    }

    /// Cap of a guest whose set has this one, where 0 is no limit: the lower of the two.
    pub fn cap(&self, of_set: Option<u32>) -> Option<u32> {
        match (of_set.filter(|cap| *cap > 0), self.cap) {
            (Some(of_set), Some(of_arm)) => Some(of_set.min(of_arm)),
            (limit, of_arm) => limit.or(of_arm).or(of_set),
        }
    }

    /// The reservation of each; `None` is as the toolstack has it.
    pub fn reservation(&self) -> Option<xen::Reservation> {
        let (budget_us, period_us) = self.reservation?;
        Some(xen::Reservation {
            budget_us,
            period_us,
            extratime: self.extratime.unwrap_or(true),
        })
    }

    /// Most that each gets of one CPU, whatever it wants: a budget is a limit only without extratime.
    pub fn cpu_limit(&self) -> f64 {
        let most = self.cap.map_or(1.0, |cap| f64::from(cap) / 100.0);
        match (self.reservation, self.extratime) {
            (Some((budget, period)), Some(false)) => most.min(budget as f64 / period as f64),
            _ => most,
        }
    }
}

/// Command that starts the process of a job.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Launch {
    /// `argv[0]` is a program name or path. The native generators name
    /// [`SELF`], which the agent replaces by its own executable.
    pub argv: Vec<String>,
    /// Working directory; `None` is that of the agent.
    pub directory: Option<PathBuf>,
    /// Variables beside those that the agent has.
    pub environment: BTreeMap<String, String>,
    /// Written to standard input, which is then closed unless `phased`.
    pub stdin: String,
    /// The process speaks [`phase`] lines; otherwise its whole life is the window.
    pub phased: bool,
    /// Run before the trial, outside the figures; must succeed.
    pub prepare: Vec<String>,
    /// Paths of files that are read when the process has ended. A relative one counts from the
    /// working directory.
    pub files: BTreeSet<String>,
}

impl Launch {
    /// A program with these words, which is measured from its start to its end.
    pub fn new(argv: Vec<String>) -> Self {
        Launch {
            argv,
            ..Launch::default()
        }
    }
}

/// Stands for the running schedlab binary in [`Launch::argv`].
pub const SELF: &str = "\0schedlab";

/// Output of a finished process.
#[derive(Debug, Clone, Default)]
pub struct Output {
    /// Whole standard output, as text.
    pub stdout: String,
    /// Whole standard error, as text.
    pub stderr: String,
    /// Exit status 0.
    pub success: bool,
    /// Exit status; `None` where a signal ended it.
    pub code: Option<i32>,
    /// `exit status 1`, `signal 9`, for messages.
    pub status: String,
    /// From exec to the end of the process.
    pub wall_ns: u64,
    /// User and system time of the process and all its waited-for children.
    pub user_ns: u64,
    /// System time, otherwise as `user_ns`.
    pub system_ns: u64,
    /// Texts of the files that the launch named, or why they cannot be had.
    pub files: BTreeMap<String, Result<String, String>>,
}

/// Runs a program to its end for a calibration. One that has not ended after so many
/// nanoseconds is killed with all that it started, and that is an error.
pub type Run<'a> = dyn FnMut(&[String], u64) -> Result<Output, String> + 'a;

/// The figures of one trial.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Parsed {
    /// Values of the metrics, each with its unit.
    pub metrics: Vec<model::Measurement>,
    /// Histograms and logs that the trial keeps.
    pub files: Vec<TrialFile>,
    /// Warnings about this trial.
    pub warnings: Vec<model::Warning>,
    /// Why the trial must not count, though the work was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub void: Option<String>,
    /// The worst value of the log that was watched; `None` where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<Worst>,
    /// Latencies beyond the bounds of the job, by log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late: Vec<late::LateLog>,
    /// Figures of each turn, where arms took turns; the values of `metrics` mean nothing then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<TurnFigures>,
}

/// Whom a workload sends requests to.
#[derive(Debug, Clone, PartialEq)]
pub enum Asks {
    /// Nobody: the load has no server.
    Nobody,
    /// An address that the file names.
    Elsewhere,
    /// The server of the workload; this one where the file names none.
    Server(Kind),
}

/// Programs and addresses that the author of an experiment chose. Somebody who repeats the
/// experiment of a stranger is shown them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chosen {
    /// Run before each trial.
    Before(Vec<String>),
    /// Program and arguments of the load itself.
    Program(Vec<String>),
    /// Directory that a program works in.
    Directory(String),
    /// File that figures are read from.
    File(String),
    /// Address that requests are sent to.
    Address(String),
}

/// The work of one workload: what a target needs for it, how it is started, and what its
/// process left. What holds for all workloads of a kind is data: [`KindDef`].
pub trait Driver {
    /// The name of the workload unless the file says; `None`: that of its kind.
    fn name(&self) -> Option<String> {
        None
    }
    /// Parameters that cannot be, on whatever target, by the key in the file.
    fn check(&self) -> Result<(), Invalid> {
        Ok(())
    }
    /// Names of the metrics that the experiment defines, beside those of the kind. They
    /// decide in place of those of the kind.
    fn own_metrics(&self) -> Vec<&str> {
        Vec::new()
    }
    /// Names of metrics of the kind that decide in place of the usual ones, where the parameters
    /// change what is measured.
    fn deciding_metrics(&self) -> &[&'static str] {
        &[]
    }
    /// Receiver of the requests of this workload.
    fn request_receiver(&self) -> Asks {
        Asks::Nobody
    }
    /// All that is started or asked by the word of the file alone.
    fn chosen_programs(&self) -> Vec<Chosen>;
    /// True if its workers are guests of the hypervisor, and not processes.
    fn in_guests(&self) -> bool {
        false
    }
    /// True if it needs the folder of the load, whatever the workload has of its own.
    fn needs_folder(&self) -> bool {
        false
    }
    /// False where it cannot say within the window that a latency was the worst so far, although
    /// its kind can.
    fn tells_worst(&self) -> bool {
        true
    }
    /// True if it may have its work done by processes that are not its own, so that what is read of
    /// its own says little.
    fn may_work_elsewhere(&self) -> bool {
        false
    }
    /// The processes that run on the target already and that it measures. Arms that say nothing else
    /// are for them.
    fn measured_daemon(&self) -> Option<&model::Daemon> {
        None
    }
    /// Each part of the workload alone, by its name, where that is to be measured too.
    fn baselines(&self) -> Vec<(String, Kind)> {
        Vec::new()
    }
    /// Cgroups that the agent makes for parts of the load, which puts its processes there itself.
    fn groups(&self) -> Vec<PartGroup> {
        Vec::new()
    }
    /// Why arms cannot take turns under it, although its kind records window by window.
    fn never_in_turns(&self) -> Option<String> {
        None
    }
    /// Why it can be measured only where arms take turns.
    fn only_in_turns(&self) -> Option<String> {
        None
    }
    /// Problems of this target with the job; nothing is started.
    fn require(&self, job: &Job) -> Vec<Problem>;
    /// Longest time that it takes to be ready for a trial, beyond that of programs that start at once.
    fn starts_within(&self, _load: Load) -> Duration {
        Duration::ZERO
    }
    /// Longest time of its calibration, beside that of the programs that it runs.
    fn calibrates_within(&self) -> Duration {
        Duration::ZERO
    }
    /// Found once for a cell, then the same for all arms.
    fn calibrate(&self, _job: &Job, _run: &mut Run) -> Result<Calibration, String> {
        Ok(Calibration::default())
    }
    /// Command that starts the process of the job.
    fn launch(&self, job: &Job) -> Launch;
    /// The work of a native generator, in the process that its launch starts.
    fn generate(&self, job: &Job, _phases: &mut Phases) -> Result<Parsed, NativeError> {
        let kind = job.workload.kind.name();
        Err(NativeError::Generator(format!("{kind} is not native")))
    }
    /// Figures from what the process left; an error is a failed trial.
    fn parse(&self, job: &Job, output: &Output) -> Result<Parsed, String>;
    /// Those of the figures that stand in what the process printed, from that alone; `None` where
    /// none do.
    fn read_again(
        &self,
        _job: &Job,
        _output: &Output,
    ) -> Option<Result<Vec<model::Measurement>, String>> {
        None
    }
}
