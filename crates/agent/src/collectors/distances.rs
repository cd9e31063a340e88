//! Migrations of the whole machine within the window, by distance.

use super::def::{At, Collected, Collecting, CollectorDef, nothing_missing};
use collect::distance::Distance;
use collect::migrations::Migrations;
use model::{Measurement, MetricDef};
use std::time::Duration;

const CORE: MetricDef = MetricDef::explaining(
    "migrations_core",
    "count",
    "Tasks of the machine that were moved to another thread of the same core.",
);
const CACHE: MetricDef = MetricDef::explaining(
    "migrations_cache",
    "count",
    "Tasks of the machine that were moved to another core with the same last-level cache.",
);
const NODE: MetricDef = MetricDef::explaining(
    "migrations_node",
    "count",
    "Tasks of the machine that were moved to another cache of the same node.",
);
const FAR: MetricDef = MetricDef::explaining(
    "migrations_far",
    "count",
    "Tasks of the machine that were moved further than any of these: to another node, or \
     between CPUs that share nothing.",
);

pub const DEF: CollectorDef = CollectorDef {
    name: "distances",
    text: "migrations of the whole machine by distance (tracepoint)",
    usual: true,
    metrics: &[CORE, CACHE, NODE, FAR],
    logs: &[],
    limit: Duration::ZERO,
    missing: nothing_missing,
    start: |at| Some(Box::new(Distances::new(Migrations::open(at.root).ok()?))),
};

fn metric(distance: Distance) -> MetricDef {
    match distance {
        Distance::Core => CORE,
        Distance::Cache => CACHE,
        Distance::Node => NODE,
        Distance::Far => FAR,
    }
}

type Counts = Vec<(Distance, u64)>;

#[derive(Debug)]
struct Distances {
    counters: Migrations,
    first: Counts,
    last: Counts,
}

impl Distances {
    fn new(counters: Migrations) -> Self {
        Distances {
            counters,
            first: Counts::new(),
            last: Counts::new(),
        }
    }
}

impl Collecting for Distances {
    fn begin_window(&mut self, _: &At) {
        self.first = self.counters.read().unwrap_or_default();
    }

    fn end_window(&mut self, _: &At) {
        self.last = self.counters.read().unwrap_or_default();
    }

    fn collected_results(&self) -> Collected {
        difference(&self.first, &self.last).into()
    }
}

fn difference(first: &Counts, last: &Counts) -> Vec<Measurement> {
    let ends = last.iter().zip(first);
    ends.map(|((distance, now), (_, before))| {
        metric(*distance).to_measurement(now.saturating_sub(*before) as f64)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_distance_of_the_machine_has_a_count_of_its_own() {
        let first = vec![(Distance::Core, 5), (Distance::Far, 1)];
        let last = vec![(Distance::Core, 9), (Distance::Far, 1)];
        let figures = difference(&first, &last);
        let found: Vec<(&str, f64)> = figures
            .iter()
            .map(|m| (m.metric.as_str(), m.value))
            .collect();
        assert_eq!(found, [("migrations_core", 4.0), ("migrations_far", 0.0)]);
    }

    #[test]
    fn without_a_reading_there_are_no_figures() {
        assert!(difference(&Counts::new(), &Counts::new()).is_empty());
    }
}
