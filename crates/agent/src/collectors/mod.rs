//! Readings that explain a trial beside its figures: taken at both ends of its window, as
//! metrics that are never judged, and warnings where they are out of line.
//!
//! Everything is read in two passes and nothing in between, so that a collector
//! costs the window what it costs the kernel, and no wake-ups of the agent.

mod attendants;
pub mod def;
mod delays;
mod distances;
mod energy;
pub mod events;
mod hardware;
mod memory_files;
mod pace;
pub mod rare;
mod record;
mod runqueue;
mod schedstat;
mod selection;
mod surroundings;
pub mod switches;
pub mod table;
pub mod trace;
mod work;

pub use selection::{Cost, Costs, MOST, costs_file, wanted_collectors};

use crate::kept_files;
use attendants::{AttendantTimes, Attendants};
use collect::tasks::Pid;
use def::{At, Collected, Collecting, CollectorDef, Start};
use load::{Parsed, Worst, recording};
use model::{Happened, Measurement, MetricDef, Pace, RareEvent, Role, Warning};
use std::path::Path;
use std::time::Duration;
use surroundings::Surroundings;
use table::COLLECTORS;

pub use surroundings::METRICS as SURROUNDINGS;

/// Every metric of the collectors. Those of tasks are given for each role; for
/// others than the load, the name of the role comes first (`server_run_delay`).
pub fn metrics() -> impl Iterator<Item = MetricDef> {
    let of_collectors = COLLECTORS.iter().flat_map(|def| def.metrics);
    surroundings::METRICS.iter().chain(of_collectors).copied()
}

/// The log that a figure of a collector comes from.
pub fn log_of(metric: &str) -> Option<&'static str> {
    let mut all = COLLECTORS.iter();
    all.find_map(|def| recording::log_among(def.logs, metric))
}

/// Time that starting and reading all of them may take.
pub fn limit(wanted: &[&CollectorDef]) -> Duration {
    wanted.iter().map(|def| def.limit).sum()
}

/// The collectors of one trial.
#[derive(Default)]
pub struct Collectors {
    wanted: Vec<&'static str>,
    running: Vec<Box<dyn Collecting>>,
    attendants: Attendants,
    attended: AttendantTimes,
    surroundings: Option<Surroundings>,
    rare: rare::RareEvents,
}

impl Collectors {
    /// Sets up, before the load starts, what takes time to set up. A collector that this
    /// machine does not have is left out. `scheduler` is the process of the arm's.
    pub fn prepare(&mut self, wanted: &[&CollectorDef], scheduler: Option<Pid>, at: Start) {
        for def in wanted {
            self.wanted.push(def.name);
            self.running.extend((def.start)(Start {
                root: at.root,
                origin: at.origin,
                journal: at.journal,
                interrupt: at.interrupt,
                folders: at.folders,
                mark: at.mark,
            }));
        }
        self.attendants = Attendants::find(at.root, scheduler);
    }

    /// Counts these events, too.
    pub fn count_events(&mut self, events: &[RareEvent]) {
        self.rare = rare::RareEvents::new(events);
    }

    /// The window was cut short; what comes is of no window.
    pub fn end_events(&mut self, root: &Path) {
        self.rare.end_window(root);
    }

    /// The events of a window, and a warning where some may be missing.
    pub fn find_happened(
        &self,
        parsed: &Parsed,
        times: &rare::Times,
    ) -> (Vec<Happened>, Option<Warning>) {
        (self.rare.find_happened(parsed, times), self.rare.warning())
    }

    pub fn is_wanted(&self, collector: &CollectorDef) -> bool {
        self.wanted.contains(&collector.name)
    }

    /// The process of the load is there and has not run its program yet.
    pub fn before_exec(&mut self, load: Pid) {
        let mut running = self.running.iter_mut();
        running.by_ref().for_each(|c| c.before_exec(load));
    }

    /// The window opens.
    pub fn begin_window(&mut self, at: &At) {
        self.running
            .iter_mut()
            .rev()
            .for_each(|c| c.begin_window(at));
        self.attendants.begin_window(at.root);
        self.rare.begin_window(at.root);
        self.surroundings = Some(Surroundings::begin_window(at.root));
    }

    /// The window has closed; the processes are still there.
    pub fn end_window(&mut self, at: &At) {
        if let Some(surroundings) = &mut self.surroundings {
            surroundings.end_window(at.root);
        }
        self.rare.end_window(at.root);
        self.running.iter_mut().for_each(|c| c.end_window(at));
        // It reads most, so it comes last.
        self.attended = self.attendants.end_window(at.root);
    }

    /// The processes of collectors.
    pub fn processes(&self) -> impl Iterator<Item = Pid> {
        self.running.iter().filter_map(|c| c.process())
    }

    /// Ends their processes, which a trial that ended early may have left, and takes away what
    /// they made; gives what could not be.
    pub fn stop(&mut self) -> Vec<String> {
        let running = self.running.iter_mut();
        running.filter_map(|c| c.stop().err()).collect()
    }

    /// Figures of the trial that runs, where somebody counts them and their time has come.
    pub fn read_pace(&mut self, at: &At) -> Option<Pace> {
        let mut running = self.running.iter_mut();
        running.find_map(|c| c.read_pace(at))
    }

    /// A line of the load within the window.
    pub fn hear_line(&mut self, line: &str) {
        self.running.iter_mut().for_each(|c| c.hear_line(line));
    }

    /// Keeps the files that they wrote, and removes the folders of these; gives what could not be removed.
    pub fn keep_files(&mut self, kept: &mut kept_files::Kept) -> Vec<String> {
        let running = self.running.iter_mut();
        running.filter_map(|c| c.keep_files(kept).err()).collect()
    }

    /// A trace of the worst latency, which is one of the log `of`.
    pub fn keep_trace(
        &mut self,
        worst: Option<&Worst>,
        label: &str,
        of: &str,
    ) -> Option<trace::Kept> {
        let mut running = self.running.iter_mut();
        running.find_map(|c| c.keep_trace(worst, label, of))
    }

    /// Findings that need figures of the load.
    pub fn with_load(&self, load: &[Measurement]) -> Vec<Measurement> {
        self.running
            .iter()
            .flat_map(|c| c.with_load(load))
            .collect()
    }

    /// The mark of a command whose work others did, with its warning, among the findings. The work of
    /// the processes that the arm has `reached` is the command's.
    pub fn mark_work_elsewhere(&self, root: &Path, reached: &[Pid], found: &mut Collected) {
        let strangers = || self.attendants.busiest_strangers(root, reached);
        let spent = surroundings::Spent {
            all_ns: self.surroundings.as_ref().map_or(0, Surroundings::all_ns),
            reached_ns: self.attendants.spent_by(root, reached),
        };
        let marked = surroundings::work_elsewhere(&found.metrics, spent, strangers);
        if let Some((mark, warning)) = marked {
            found.metrics.push(mark);
            found.warnings.extend(warning);
        }
    }

    /// Findings of all collectors. `counted` holds the CPU time of the load. What others used of this
    /// machine's CPUs does not matter to a load that is `elsewhere`, in guests of the hypervisor.
    pub fn collected_results(&self, counted: &[Measurement], elsewhere: bool) -> Collected {
        let mut all = Collected::default();
        for found in self.running.iter().map(|c| c.collected_results()) {
            all.metrics.extend(found.metrics);
            all.files.extend(found.files);
            all.warnings.extend(found.warnings);
        }
        if let Some(surroundings) = &self.surroundings {
            let beside = self.running.iter().map(|c| c.run_ns_beside_load());
            let own_ns = load_ns(counted) + beside.sum::<u64>();
            let around = surroundings.figures(own_ns, self.attended);
            all.metrics.extend(around);
            let warnings = surroundings.warnings(&all.metrics, elsewhere);
            all.warnings.extend(warnings);
        }
        all
    }
}

/// The load is what a trial is about and needs no name.
pub(crate) fn prefix(role: &Role) -> Option<&'static str> {
    match role {
        // No collector looks at a daemon.
        Role::Load | Role::Daemon => None,
        Role::Server => Some("server_"),
        Role::Antagonist => Some("antagonist_"),
    }
}

/// User and system time of the load, from its counters.
fn load_ns(counted: &[Measurement]) -> u64 {
    let times = counted
        .iter()
        .filter(|m| matches!(m.metric.as_str(), "user_time" | "system_time"));
    times.map(|m| model::truncate_to_u64(m.value * 1e9)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fence::Fence;
    use crate::interrupt::Interrupt;
    use crate::journal::Journal;
    use crate::process::Origin;
    use def::nothing_missing;
    use model::Better;

    #[test]
    fn a_trial_without_a_window_has_no_figures() {
        let collected = Collectors::default().collected_results(&[], false);
        assert!(collected.metrics.is_empty() && collected.warnings.is_empty());
    }

    #[test]
    fn names_are_unique() {
        for (index, def) in COLLECTORS.iter().enumerate() {
            assert!(
                COLLECTORS[..index]
                    .iter()
                    .all(|other| other.name != def.name)
            );
        }
    }

    /// A window over this process, with these collectors.
    fn collected(wanted: &[&CollectorDef]) -> Collected {
        let root = Path::new("/");
        let own = std::process::id() as Pid;
        let mut collectors = Collectors::default();
        let interrupt = Interrupt::new().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(directory.path()).unwrap();
        // Tests may run side by side.
        let mark = format!("collected-{own}-{}", wanted.len());
        let fence = Fence::set_up(root, mark, &mut journal).unwrap();
        let origin = Origin {
            executable: Path::new("/proc/self/exe"),
            fence: &fence,
        };
        let start = Start {
            root,
            origin,
            journal: &mut journal,
            interrupt: &interrupt,
            folders: directory.path(),
            mark: "collected",
        };
        collectors.prepare(wanted, Some(own), start);
        let at = At {
            root,
            leaders: &[(Role::Load, own)],
            interrupt: &interrupt,
        };
        collectors.begin_window(&at);
        collectors.end_window(&at);
        fence.remove().unwrap();
        collectors.collected_results(&[], false)
    }

    #[test]
    fn this_machine_can_be_collected() {
        let metrics = collected(COLLECTORS).metrics;
        assert!(!metrics.is_empty());
        assert!(metrics.iter().all(|m| m.better == Better::Neither));
    }

    /// A collector as somebody would write it: all that it needs is here.
    #[derive(Default)]
    struct Toy {
        seen: Vec<&'static str>,
    }

    const SEEN: MetricDef = MetricDef::explaining("toy_ends", "count", "Ends of the window.");

    const TOY: CollectorDef = CollectorDef {
        name: "toy",
        text: "how often it was asked",
        usual: false,
        metrics: &[SEEN],
        logs: &[],
        limit: Duration::ZERO,
        missing: nothing_missing,
        start: |_| Some(Box::<Toy>::default()),
    };

    impl Collecting for Toy {
        fn begin_window(&mut self, at: &At) {
            let leads = at.leaders.iter().any(|(role, _)| *role == Role::Load);
            self.seen.extend(leads.then_some("begin"));
        }

        fn end_window(&mut self, _: &At) {
            self.seen.push("end");
        }

        fn collected_results(&self) -> Collected {
            assert_eq!(self.seen, ["begin", "end"]);
            vec![SEEN.to_measurement(self.seen.len() as f64)].into()
        }
    }

    #[test]
    fn a_collector_is_its_file_and_a_line_in_the_table() {
        let metrics = collected(&[&TOY]).metrics;
        let found = metrics.iter().find(|m| m.metric == SEEN.name);
        assert_eq!(found.map(|m| m.value), Some(2.0), "{metrics:?}");
    }
}
