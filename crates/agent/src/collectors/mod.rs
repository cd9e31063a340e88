//! What explains a trial beside its figures: readings at both ends of its window,
//! as metrics that are never judged, and warnings where they are out of line.
//!
//! Everything is read in two passes and nothing in between, so that a collector
//! costs the window what it costs the kernel, and no wake-ups of the agent.

mod distances;
mod hardware;
mod surroundings;
mod waiting;
mod wanted;

pub use wanted::{Cost, Costs, MOST, costs_file, wanted};

use collect::hardware::Hardware;
use collect::migrations::Migrations;
use collect::tasks::Pid;
use distances::Distances;
use model::{Collector, Measurement, MetricDef, Role, Warning};
use std::path::Path;
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
    ];
    all.into_iter().flatten().copied()
}

/// The collectors of one trial.
#[derive(Debug, Default)]
pub struct Collectors {
    wanted: Vec<Collector>,
    surroundings: Option<Surroundings>,
    waiting: Waiting,
    distances: Option<Distances>,
    instructions: Option<hardware::Instructions>,
}

impl Collectors {
    /// What takes time to set up is set up here, before the load starts. What this
    /// machine does not have is left out.
    pub fn prepare(&mut self, root: &Path, wanted: Vec<Collector>) {
        if wanted.contains(&Collector::Distances) {
            self.distances = Migrations::open(root).ok().map(Distances::new);
        }
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
    pub fn begin(&mut self, root: &Path, leaders: &[(Role, Pid)]) {
        if self.wants(Collector::Delays) {
            self.waiting.begin(root, leaders);
        }
        if let Some(distances) = &mut self.distances {
            distances.begin();
        }
        if let Some(instructions) = &mut self.instructions {
            instructions.begin();
        }
        self.surroundings = Some(Surroundings::begin(root));
    }

    /// The window has closed; the processes are still there.
    pub fn end(&mut self, root: &Path) {
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
    }

    /// What was collected. `counted` holds the CPU time of the load.
    pub fn figures(&self, counted: &[Measurement]) -> (Vec<Measurement>, Vec<Warning>) {
        let mut metrics = self.waiting.figures();
        metrics.extend(self.distances.iter().flat_map(Distances::figures));
        metrics.extend(self.instructions.iter().flat_map(|i| i.figures()));
        let mut warnings = Vec::new();
        if let Some(surroundings) = &self.surroundings {
            let own_ns = load_ns(counted) + self.waiting.run_ns_beside_load();
            metrics.extend(surroundings.figures(own_ns));
            warnings.extend(surroundings.warnings(&metrics));
        }
        (metrics, warnings)
    }
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
    use model::Better;

    #[test]
    fn a_trial_without_a_window_has_no_figures() {
        let (metrics, warnings) = Collectors::default().figures(&[]);
        assert!(metrics.is_empty() && warnings.is_empty());
    }

    #[test]
    fn this_machine_can_be_collected() {
        let root = Path::new("/");
        let own = std::process::id() as Pid;
        let mut collectors = Collectors::default();
        collectors.prepare(root, Collector::ALL.to_vec());
        collectors.begin(root, &[(Role::Load, own)]);
        collectors.end(root);
        let (metrics, _) = collectors.figures(&[]);
        assert!(!metrics.is_empty());
        assert!(metrics.iter().all(|m| m.better == Better::Neither));
    }
}
