//! What explains a trial beside its figures: readings at both ends of its window,
//! as metrics that are never judged, and warnings where they are out of line.
//!
//! Everything is read in two passes and nothing in between, so that a collector
//! costs the window what it costs the kernel, and no wake-ups of the agent.

mod surroundings;
mod waiting;

use collect::tasks::Pid;
use model::{Better, Measurement, MetricDef, Role, Warning};
use std::path::Path;
use surroundings::Surroundings;
use waiting::Waiting;

const fn explains(name: &'static str, unit: &'static str, text: &'static str) -> MetricDef {
    MetricDef {
        name,
        unit,
        better: Better::Neither,
        text,
    }
}

/// Every metric of the collectors. Those of tasks are given for each role; for
/// others than the load, the name of the role comes first (`server_run_delay`).
pub fn metrics() -> impl Iterator<Item = MetricDef> {
    surroundings::METRICS
        .iter()
        .chain(waiting::METRICS)
        .copied()
}

/// The collectors of one trial.
#[derive(Debug, Default)]
pub struct Collectors {
    surroundings: Option<Surroundings>,
    waiting: Waiting,
}

impl Collectors {
    /// The window opens. `leaders` are the processes that lead the roles; the load is
    /// not among them if its process is the window.
    pub fn begin(&mut self, root: &Path, leaders: &[(Role, Pid)]) {
        self.waiting.begin(root, leaders);
        self.surroundings = Some(Surroundings::begin(root));
    }

    /// The window has closed; the processes are still there.
    pub fn end(&mut self, root: &Path) {
        if let Some(surroundings) = &mut self.surroundings {
            surroundings.end(root);
        }
        self.waiting.end(root);
    }

    /// What was collected. `counted` holds the CPU time of the load.
    pub fn figures(&self, counted: &[Measurement]) -> (Vec<Measurement>, Vec<Warning>) {
        let mut metrics = self.waiting.figures();
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
        collectors.begin(root, &[(Role::Load, own)]);
        collectors.end(root);
        let (metrics, _) = collectors.figures(&[]);
        assert!(!metrics.is_empty());
        assert!(metrics.iter().all(|m| m.better == Better::Neither));
    }
}
