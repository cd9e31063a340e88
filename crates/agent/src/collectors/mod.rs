//! What explains a trial beside its figures: readings at both ends of its window,
//! as metrics that are never judged, and warnings where they are out of line.
//!
//! Everything is read in two passes and nothing in between, so that a collector
//! costs the window what it costs the kernel, and no wake-ups of the agent.

mod attendants;
mod distances;
mod hardware;
mod runqueue;
mod surroundings;
mod waiting;
mod wanted;

pub use runqueue::log_of;
pub use wanted::{Cost, Costs, MOST, costs_file, wanted};

use crate::interrupt::Interrupt;
use crate::journal::Journal;
use crate::workload::Origin;
use attendants::{AttendantTimes, Attendants};
use collect::hardware::Hardware;
use collect::migrations::Migrations;
use collect::tasks::Pid;
use distances::Distances;
use model::{Collector, Measurement, MetricDef, Role, Severity, TrialFile, Warning};
use runqueue::RunQueue;
use std::path::{Path, PathBuf};
use std::time::Duration;
use surroundings::Surroundings;
use waiting::Waiting;

/// Every metric of the collectors. Those of tasks are given for each role; for
/// others than the load, the name of the role comes first (`server_run_delay`).
pub fn metrics() -> impl Iterator<Item = MetricDef> {
    let all = [
        surroundings::METRICS,
        waiting::METRICS,
        distances::METRICS,
        hardware::METRICS,
        runqueue::METRICS,
    ];
    all.into_iter().flatten().copied()
}

/// The collectors of one trial.
#[derive(Debug, Default)]
pub struct Collectors {
    wanted: Vec<Collector>,
    attendants: Attendants,
    attended: AttendantTimes,
    surroundings: Option<Surroundings>,
    waiting: Waiting,
    distances: Option<Distances>,
    instructions: Option<hardware::Instructions>,
    run_queue: Option<RunQueue>,
}

impl Collectors {
    /// What takes time to set up is set up here, before the load starts. What this
    /// machine does not have is left out. `scheduler` is the process of the arm's.
    pub fn prepare(
        &mut self,
        root: &Path,
        wanted: Vec<Collector>,
        scheduler: Option<Pid>,
        origin: Origin,
        journal: &mut Journal,
        interrupt: &Interrupt,
    ) {
        if wanted.contains(&Collector::Distances) {
            self.distances = Migrations::open(root).ok().map(Distances::new);
        }
        if wanted.contains(&Collector::RunQueue) {
            self.run_queue = Some(RunQueue::start(origin, journal, interrupt));
        }
        self.attendants = Attendants::find(root, scheduler);
        self.wanted = wanted;
    }

    pub fn wants(&self, collector: Collector) -> bool {
        self.wanted.contains(&collector)
    }

    /// The process of the load, with counters that were opened before it ran.
    pub fn count(&mut self, hardware: Option<Hardware>) {
        self.instructions = hardware.map(hardware::Instructions::new);
    }

    /// The window opens. `leaders` are the processes that lead the roles; the load is
    /// not among them if its process is the window.
    pub fn begin(&mut self, root: &Path, leaders: &[(Role, Pid)], interrupt: &Interrupt) {
        if let Some(run_queue) = &mut self.run_queue {
            run_queue.begin(root, leaders, interrupt);
        }
        if self.wants(Collector::Delays) {
            self.waiting.begin(root, leaders);
        }
        if let Some(distances) = &mut self.distances {
            distances.begin();
        }
        if let Some(instructions) = &mut self.instructions {
            instructions.begin();
        }
        self.attendants.begin(root);
        self.surroundings = Some(Surroundings::begin(root));
    }

    /// The window has closed; the processes are still there.
    pub fn end(&mut self, root: &Path, interrupt: &Interrupt) {
        if let Some(instructions) = &mut self.instructions {
            instructions.end();
        }
        if let Some(distances) = &mut self.distances {
            distances.end();
        }
        if let Some(surroundings) = &mut self.surroundings {
            surroundings.end(root);
        }
        self.waiting.end(root);
        if let Some(run_queue) = &mut self.run_queue {
            run_queue.end(interrupt);
        }
        // It reads most, so it comes last.
        self.attended = self.attendants.end(root);
    }

    /// The processes of collectors.
    pub fn processes(&self) -> Option<Pid> {
        self.run_queue.as_ref().and_then(RunQueue::pid)
    }

    /// Ends their processes, which a trial that ended early may have left.
    pub fn stop(&mut self) {
        if let Some(run_queue) = &mut self.run_queue {
            run_queue.stop();
        }
    }

    /// How long [`Collectors::prepare`] and [`Collectors::end`] may take.
    pub fn limit(wanted: &[Collector]) -> Duration {
        match wanted.contains(&Collector::RunQueue) {
            true => runqueue::LOAD_LIMIT + 2 * runqueue::ANSWER_LIMIT,
            false => Duration::ZERO,
        }
    }

    /// Distributions, for the trial's directory.
    pub fn files(&self) -> Vec<TrialFile> {
        self.run_queue.iter().flat_map(RunQueue::files).collect()
    }

    /// What was collected. `counted` holds the CPU time of the load.
    pub fn figures(&self, counted: &[Measurement]) -> (Vec<Measurement>, Vec<Warning>) {
        let mut metrics = self.waiting.figures();
        metrics.extend(self.distances.iter().flat_map(Distances::figures));
        metrics.extend(self.instructions.iter().flat_map(|i| i.figures()));
        let mut warnings = Vec::new();
        if let Some(run_queue) = &self.run_queue {
            metrics.extend(run_queue.figures());
            warnings.extend(run_queue.problem().map(|what| {
                Warning {
                    severity: Severity::Caution,
                    what,
                    remedy: "leave \"runqueue\" out of `collect`, or see what the kernel lacks: \
                         BTF, BPF and its tracepoints"
                        .to_owned(),
                }
            }));
        }
        if let Some(surroundings) = &self.surroundings {
            let own_ns = load_ns(counted) + self.waiting.run_ns_beside_load();
            metrics.extend(surroundings.figures(own_ns, self.attended));
            warnings.extend(surroundings.warnings(&metrics));
        }
        (metrics, warnings)
    }
}

/// The load is what a trial is about and needs no name.
fn prefix(role: &Role) -> Option<&'static str> {
    match role {
        Role::Load => None,
        Role::Server => Some("server_"),
        Role::Antagonist => Some("antagonist_"),
    }
}

/// PROC_PID_INIT_INO of include/uapi/linux/nsfs.h.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Can this collector be had here? `None`, or what is missing and what to do. Programs
/// are on PATH or in `installed`.
pub fn missing(
    root: &Path,
    collector: Collector,
    installed: Vec<PathBuf>,
) -> Option<(String, String)> {
    if collector != Collector::RunQueue {
        return None;
    }
    let install = format!("run: schedlab scheduler install {}", runqueue::PROGRAM);
    let missing = |what: &str, remedy: &str| Some((what.to_owned(), remedy.to_owned()));
    if crate::arm::scheduler::find_with(runqueue::PROGRAM, installed).is_none() {
        return missing("its program is not installed", &install);
    }
    if !root.join("sys/kernel/btf/vmlinux").exists() {
        return missing(
            "this kernel has no BTF (CONFIG_DEBUG_INFO_BTF)",
            "use a kernel that has it, or a VM: --vm debian:sid",
        );
    }
    let namespace = std::fs::read_link(root.join("proc/self/ns/pid"));
    if namespace.is_ok_and(|name| name.as_os_str() != FIRST_PID_NAMESPACE) {
        return missing(
            "BPF knows processes by their numbers outside of this PID namespace",
            "run outside of the container, or in a VM: --vm debian:sid",
        );
    }
    if !rustix::process::geteuid().is_root() {
        return missing("it needs root", "run as root, or in a VM: --vm debian:sid");
    }
    None
}

/// User and system time of the load, from its counters.
fn load_ns(counted: &[Measurement]) -> u64 {
    let times = counted
        .iter()
        .filter(|m| matches!(m.metric.as_str(), "user_time" | "system_time"));
    times.map(|m| (m.value * 1e9) as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fence::Fence;
    use model::Better;

    #[test]
    fn a_trial_without_a_window_has_no_figures() {
        let (metrics, warnings) = Collectors::default().figures(&[]);
        assert!(metrics.is_empty() && warnings.is_empty());
    }

    #[test]
    fn a_program_in_the_directory_of_installed_ones_is_not_missing() {
        use std::os::unix::fs::OpenOptionsExt;
        let root = tempfile::tempdir().unwrap();
        let what = |installed: &Path| {
            missing(root.path(), Collector::RunQueue, vec![installed.to_owned()])
                .unwrap()
                .0
        };
        let mut program = std::fs::OpenOptions::new();
        program.write(true).create(true).mode(0o755);
        program.open(root.path().join(runqueue::PROGRAM)).unwrap();
        // The root has no /sys, so that is what is said next.
        assert!(what(root.path()).contains("no BTF"));
        if crate::arm::scheduler::find(runqueue::PROGRAM).is_none() {
            assert!(what(Path::new("/nowhere")).contains("not installed"));
        }
    }

    #[test]
    fn this_machine_can_be_collected() {
        let root = Path::new("/");
        let own = std::process::id() as Pid;
        let mut collectors = Collectors::default();
        let interrupt = Interrupt::new().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(directory.path()).unwrap();
        let mark = format!("collected-{own}");
        let fence = Fence::set_up(root, mark, &mut journal).unwrap();
        let origin = Origin {
            executable: Path::new("/proc/self/exe"),
            fence: &fence,
        };
        let all = Collector::ALL.to_vec();
        collectors.prepare(root, all, Some(own), origin, &mut journal, &interrupt);
        collectors.begin(root, &[(Role::Load, own)], &interrupt);
        collectors.end(root, &interrupt);
        fence.remove().unwrap();
        let (metrics, _) = collectors.figures(&[]);
        assert!(!metrics.is_empty());
        assert!(metrics.iter().all(|m| m.better == Better::Neither));
    }
}
