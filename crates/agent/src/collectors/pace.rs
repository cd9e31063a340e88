//! Figures of a trial that runs, for those who watch it: read where the agent is awake anyway, once a
//! second, said to the runner, and forgotten. Nothing is read in a trial that nobody watches.

use super::def::{At, Collected, Collecting, CollectorDef, nothing_missing};
use super::memory_files;
use collect::pace::Look;
use collect::scheduler_stats::{Conversation, Over};
use collect::tasks::Pid;
use load::sys::thread_cpu_ns;
use model::{Latencies, Pace, Role};
use std::collections::BTreeMap;
use std::fs::File;
use std::time::{Duration, Instant};

/// The next look waits as many times as long as the last one took: a thousandth of one CPU.
const PAUSES: u32 = 1000;
/// Shortest time between two looks.
const SHORTEST: Duration = Duration::from_millis(200);

pub const DEF: CollectorDef = CollectorDef {
    name: "pace",
    text: "latencies, run delay, switches and migrations of a trial that runs, once a second for those who watch",
    usual: true,
    metrics: &[],
    logs: &[],
    limit: Duration::ZERO,
    missing: nothing_missing,
    start: |_| Some(Box::<Watched>::default()),
};

#[derive(Default)]
struct Watched {
    /// The last look, and the time of the next.
    last: Option<Look>,
    /// Files in which the load tells how far it is, by its logs, with what they had at the last look.
    told: BTreeMap<String, (File, Latencies)>,
    /// The scheduler that is in force, if it tells figures.
    scheduler: Option<Conversation>,
    due: Option<Instant>,
    cost_ns: u64,
}

impl Watched {
    /// Looks at the load and its server, and hears the scheduler; those who disturb them are no part of the figures.
    fn look(&mut self, at: &At) -> Option<(Look, BTreeMap<String, f64>)> {
        let began = thread_cpu_ns();
        let scheduler = self.hear_scheduler(at);
        let leaders = at.leaders.iter();
        let ours = leaders.filter(|(role, _)| matches!(role, Role::Load | Role::Server));
        let ours: Vec<Pid> = ours.map(|(_, pid)| *pid).collect();
        let look = Look::read(at.root, &ours);
        self.cost_ns = thread_cpu_ns().saturating_sub(began);
        let pause = Duration::from_nanos(self.cost_ns).saturating_mul(PAUSES);
        self.due = Some(Instant::now() + pause.max(SHORTEST));
        Some((look?, scheduler))
    }
}

/// Latencies of a log until now.
fn read_told(file: &File) -> Latencies {
    // It only shows: a load that just ends tells nothing.
    load::read_progress(file).unwrap_or_default()
}

impl Watched {
    fn find_told(at: &At) -> BTreeMap<String, (File, Latencies)> {
        let loads = at.leaders.iter().filter(|(role, _)| *role == Role::Load);
        let files =
            loads.flat_map(|(_, pid)| memory_files::find_files(at.root, *pid, load::PROGRESS));
        let told = files.map(|(log, file)| {
            let now = read_told(&file);
            (log, (file, now))
        });
        told.collect()
    }

    /// Figures of the scheduler in force. Arms that take turns bring another one.
    fn hear_scheduler(&mut self, at: &At) -> BTreeMap<String, f64> {
        match self.scheduler.as_mut().map(Conversation::take_figures) {
            Some(Ok(figures)) => figures,
            Some(Err(Over)) | None => {
                self.scheduler = Conversation::open(at.root);
                BTreeMap::new()
            }
        }
    }

    fn count_latencies(&mut self) -> BTreeMap<String, Latencies> {
        let told = self.told.iter_mut().map(|(log, (file, last))| {
            let now = read_told(file);
            let since = now.count_since(std::mem::replace(last, now));
            (log.clone(), since)
        });
        told.collect()
    }
}

impl Collecting for Watched {
    fn begin_window(&mut self, at: &At) {
        self.told = Watched::find_told(at);
        self.last = self.look(at).map(|(look, _)| look);
    }

    fn read_pace(&mut self, at: &At) -> Option<Pace> {
        if self.due.is_some_and(|due| Instant::now() < due) {
            return None;
        }
        if self.last.is_none() {
            // Arms that take turns have no window of the collectors.
            self.begin_window(at);
            return None;
        }
        let (look, scheduler) = self.look(at)?;
        let latencies = self.count_latencies();
        let pace = self.last.as_ref().map(|last| Pace {
            cost_ns: self.cost_ns,
            latencies,
            scheduler,
            ..look.count_since(last)
        });
        self.last = Some(look);
        pace
    }

    fn end_window(&mut self, _: &At) {
        self.last = None;
        self.told.clear();
        self.scheduler = None;
    }

    fn collected_results(&self) -> Collected {
        Collected::default()
    }
}
