//! Cycles, instructions and cache misses of the load within the window.

use super::def::{At, Collected, Collecting, CollectorDef, nothing_missing};
use collect::hardware::{Counts, Hardware};
use collect::tasks::Pid;
use model::{Measurement, MetricDef};
use std::time::Duration;

const CYCLES: MetricDef = MetricDef::explaining("cycles", "count", "CPU cycles of the load.");
const INSTRUCTIONS: MetricDef = MetricDef::explaining(
    "instructions",
    "count",
    "Instructions that the load retired.",
);
const IPC: MetricDef = MetricDef::explaining(
    "instructions_per_cycle",
    "1",
    "Instructions per cycle: falls when tasks wait for memory, as after a migration.",
);
const CACHE_MISSES: MetricDef = MetricDef::explaining(
    "cache_misses",
    "count",
    "Accesses of the load that missed the last-level cache.",
);
const CACHE_MISS_PERCENT: MetricDef = MetricDef::explaining(
    "cache_miss_percent",
    "%",
    "Share of the accesses to the last-level cache that missed it.",
);

pub const DEF: CollectorDef = CollectorDef {
    name: "hardware",
    text: "cycles, instructions and cache misses of the load (perf; on demand)",
    usual: false,
    metrics: &[CYCLES, INSTRUCTIONS, IPC, CACHE_MISSES, CACHE_MISS_PERCENT],
    logs: &[],
    limit: Duration::ZERO,
    missing: nothing_missing,
    start: |_| Some(Box::<Instructions>::default()),
};

#[derive(Debug, Default)]
struct Instructions {
    /// The counters of the load; `None` where this machine has no such.
    counters: Option<Hardware>,
    first: Option<Counts>,
    last: Option<Counts>,
}

impl Instructions {
    fn read(&mut self) -> Option<Counts> {
        self.counters.as_mut()?.read().ok()
    }
}

impl Collecting for Instructions {
    fn before_exec(&mut self, load: Pid) {
        self.counters = Hardware::on_exec(load).ok();
        self.first = Some(Counts::default());
    }

    /// A window that is the life of the process has begun before it is there.
    fn begin_window(&mut self, _: &At) {
        self.first = self.read();
    }

    fn end_window(&mut self, _: &At) {
        self.last = self.read();
    }

    fn collected_results(&self) -> Collected {
        let figures = match (self.first, self.last) {
            (Some(first), Some(last)) => figures(last.counts_since(first)),
            _ => Vec::new(),
        };
        figures.into()
    }
}

fn figures(counts: Counts) -> Vec<Measurement> {
    let mut figures = vec![
        CYCLES.to_measurement(counts.cycles),
        INSTRUCTIONS.to_measurement(counts.instructions),
        CACHE_MISSES.to_measurement(counts.cache_misses),
    ];
    if counts.cycles > 0.0 {
        figures.push(IPC.to_measurement(counts.instructions / counts.cycles));
    }
    if counts.cache_references > 0.0 {
        let percent = 100.0 * counts.cache_misses / counts.cache_references;
        figures.push(CACHE_MISS_PERCENT.to_measurement(percent));
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_given_beside_the_counts() {
        let figures = figures(Counts {
            cycles: 1_000.0,
            instructions: 2_500.0,
            cache_references: 40.0,
            cache_misses: 10.0,
        });
        let value = |def: MetricDef| {
            figures
                .iter()
                .find(|m| m.metric == def.name)
                .map(|m| m.value)
        };
        assert_eq!(value(IPC), Some(2.5));
        assert_eq!(value(CACHE_MISS_PERCENT), Some(25.0));
    }

    #[test]
    fn a_process_that_never_ran_has_no_shares() {
        assert_eq!(figures(Counts::default()).len(), 3);
    }
}
