//! Time that the tasks of each role ran and waited for a CPU within the window.

use super::def::{At, Collected, Collecting, CollectorDef, nothing_missing};
use super::prefix;
use collect::delays::{Delays, TreeDelays};
use collect::tasks::Pid;
use model::{Measurement, MetricDef, Role};
use std::time::Duration;

const CPU_TIME: MetricDef = MetricDef::explaining(
    "cpu_time",
    "s",
    "CPU time of the role (of the load: see user_time and system_time).",
);
const RUN_DELAY: MetricDef = MetricDef::explaining(
    "run_delay",
    "s",
    "Time that tasks were runnable but waited for a CPU, all tasks together.",
);
const TIMESLICES: MetricDef =
    MetricDef::explaining("timeslices", "count", "How often a task was given a CPU.");
const DELAY_MEAN: MetricDef = MetricDef::explaining(
    "run_delay_mean",
    "ns",
    "Mean wait of a runnable task until it was given a CPU.",
);
const SLICE_MEAN: MetricDef = MetricDef::explaining(
    "slice_mean",
    "ns",
    "Mean time that a task ran from being given a CPU to giving it up.",
);

pub const DEF: CollectorDef = CollectorDef {
    name: "delays",
    text: "run delay and slices of every role (schedstat of each thread)",
    usual: true,
    metrics: &[CPU_TIME, RUN_DELAY, TIMESLICES, DELAY_MEAN, SLICE_MEAN],
    logs: &[],
    limit: Duration::ZERO,
    missing: nothing_missing,
    start: |_| Some(Box::<TaskDelays>::default()),
};

/// One role: a process tree at both ends of the window.
#[derive(Debug)]
struct Watched {
    role: Role,
    leader: Pid,
    first: TreeDelays,
    within: Option<Delays>,
    cpu_ns: u64,
}

#[derive(Debug, Default)]
struct TaskDelays {
    watched: Vec<Watched>,
}

impl Collecting for TaskDelays {
    fn begin_window(&mut self, at: &At) {
        let watch = |(role, leader): &(Role, Pid)| Watched {
            role: role.clone(),
            leader: *leader,
            first: TreeDelays::read(at.root, *leader),
            within: None,
            cpu_ns: 0,
        };
        self.watched = at.leaders.iter().map(watch).collect();
    }

    fn end_window(&mut self, at: &At) {
        for watched in &mut self.watched {
            let last = TreeDelays::read(at.root, watched.leader);
            watched.within = last.delays_since(&watched.first);
            watched.cpu_ns = last.cpu_ns_since(&watched.first);
        }
    }

    fn collected_results(&self) -> Collected {
        self.figures().into()
    }

    fn run_ns_beside_load(&self) -> u64 {
        let beside = self.watched.iter().filter(|w| w.role != Role::Load);
        beside.map(|w| w.cpu_ns).sum()
    }
}

impl TaskDelays {
    /// By role; two antagonists are one role.
    fn figures(&self) -> Vec<Measurement> {
        let roles = Role::ALL.iter();
        roles.flat_map(|role| self.figures_of(role)).collect()
    }

    fn figures_of(&self, role: &Role) -> Vec<Measurement> {
        let of_role = self.watched.iter().filter(|w| w.role == *role);
        let sums: Vec<Delays> = of_role.filter_map(|w| w.within).collect();
        if sums.is_empty() {
            return Vec::new();
        }
        let sum: Delays = sums.into_iter().sum();
        let mut figures = vec![
            RUN_DELAY.to_measurement(sum.wait_ns as f64 / 1e9),
            TIMESLICES.to_measurement(sum.timeslices as f64),
        ];
        if sum.timeslices > 0 {
            let mean = |ns: u64| ns as f64 / sum.timeslices as f64;
            figures.push(DELAY_MEAN.to_measurement(mean(sum.wait_ns)));
            figures.push(SLICE_MEAN.to_measurement(mean(sum.run_ns)));
        }
        let Some(prefix) = prefix(role) else {
            return figures;
        };
        figures.insert(0, CPU_TIME.to_measurement(sum.run_ns as f64 / 1e9));
        for figure in &mut figures {
            figure.metric.insert_str(0, prefix);
        }
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(role: Role, run_ns: u64) -> Watched {
        Watched {
            role,
            leader: 7,
            first: TreeDelays::default(),
            within: Some(Delays {
                run_ns,
                wait_ns: 500,
                timeslices: 10,
            }),
            cpu_ns: run_ns,
        }
    }

    fn value(figures: &[Measurement], name: &str) -> Option<f64> {
        figures.iter().find(|m| m.metric == name).map(|m| m.value)
    }

    #[test]
    fn means_are_those_of_one_timeslice() {
        let delays = TaskDelays {
            watched: vec![watched(Role::Load, 2_000)],
        };
        let figures = delays.figures();
        assert_eq!(value(&figures, "slice_mean"), Some(200.0));
        assert_eq!(value(&figures, "run_delay_mean"), Some(50.0));
        assert_eq!(value(&figures, "cpu_time"), None);
    }

    #[test]
    fn roles_are_told_apart_and_antagonists_added_up() {
        let delays = TaskDelays {
            watched: vec![
                watched(Role::Load, 1_000),
                watched(Role::Antagonist, 2_000_000_000),
                watched(Role::Antagonist, 1_000_000_000),
            ],
        };
        let figures = delays.figures();
        assert_eq!(value(&figures, "timeslices"), Some(10.0));
        assert_eq!(value(&figures, "antagonist_timeslices"), Some(20.0));
        assert_eq!(value(&figures, "antagonist_cpu_time"), Some(3.0));
        assert_eq!(value(&figures, "server_timeslices"), None);
        assert_eq!(delays.run_ns_beside_load(), 3_000_000_000);
    }

    #[test]
    fn threads_that_took_figures_along_leave_the_cpu_time_of_their_process() {
        let mut shrunk = watched(Role::Server, 2_000);
        shrunk.within = None;
        let delays = TaskDelays {
            watched: vec![shrunk],
        };
        assert!(delays.figures().is_empty());
        assert_eq!(delays.run_ns_beside_load(), 2_000);
    }

    #[test]
    fn a_role_that_never_got_a_cpu_has_no_means() {
        let mut starved = watched(Role::Server, 0);
        starved.within = Some(Delays::default());
        let delays = TaskDelays {
            watched: vec![starved],
        };
        let figures = delays.figures();
        assert_eq!(value(&figures, "server_timeslices"), Some(0.0));
        assert_eq!(value(&figures, "server_slice_mean"), None);
    }
}
