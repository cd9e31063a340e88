//! The figures of a trial: latencies from a log-normal body with a heavier tail,
//! their quantiles, a throughput, and the counters that go with them.

use crate::scenario::{Effect, Scenario};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;
use model::{Better, Load, Measurement, PlannedTrial, TrialFile, Warning};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use std::time::{Duration, SystemTime};

/// Figures that a load generator would have left.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// Metrics of the load, and the counters that explain them.
    pub metrics: Vec<Measurement>,
    /// Interval logs of the latencies.
    pub files: Vec<TrialFile>,
    /// Warnings about the trial.
    pub warnings: Vec<Warning>,
}

/// Two seeded sources: what all arms of a block share, and what they do not.
#[derive(Debug)]
pub(crate) struct Noise {
    pub block: ChaCha8Rng,
    pub trial: ChaCha8Rng,
}

pub(crate) fn measure(scenario: &Scenario, planned: &PlannedTrial, noise: Noise) -> Figures {
    let cell = &scenario.plan.cells[planned.cell];
    let arm = &scenario.experiment.arms[planned.arm].name;
    let effect = effect(scenario, arm, &cell.name);
    let mut maker = Maker {
        noise,
        effect,
        figures: Figures::default(),
    };
    match scenario.experiment.workloads[cell.workload].kind.name() {
        "wakeup" => maker.wakeup(scenario, level(cell.load)),
        _ => maker.wall(),
    }
    maker.counters();
    maker.figures
}

fn effect(scenario: &Scenario, arm: &str, cell: &str) -> Effect {
    let known = scenario.effects.iter();
    let mut fitting = known.filter(|e| e.arm == arm && cell.starts_with(e.cell));
    fitting.next().cloned().unwrap_or(Effect {
        arm: "",
        cell: "",
        throughput: 1.0,
        latency: 1.0,
        tail: 1.0,
    })
}

fn level(load: Load) -> f64 {
    match load {
        Load::PercentOfCpus(percent) => percent / 100.0,
        _ => 1.0,
    }
}

struct Maker {
    noise: Noise,
    effect: Effect,
    figures: Figures,
}

impl Maker {
    fn wakeup(&mut self, scenario: &Scenario, level: f64) {
        let spread = self.jitter(0.08, 0.03);
        let body = 9_000.0 * (1.0 + level) * self.effect.latency * spread;
        let tail = self.effect.tail * self.jitter(0.05, 0.05) * (1.0 + 3.0 * level);
        self.latencies("wakeup", scenario, body, tail);
        self.latencies("request", scenario, 40.0 * body, 0.4 * tail);
        let rate = 4_200.0 * level.min(1.3) * self.effect.throughput * self.jitter(0.03, 0.006);
        self.figure("requests_per_sec", "1/s", Better::Higher, rate);
    }

    fn wall(&mut self) {
        let wall = 2.1 / self.effect.throughput * self.jitter(0.04, 0.012);
        self.figure("hackbench_time", "s", Better::Lower, wall);
        self.figure("cpu_time", "s", Better::Neither, wall * 1.93);
    }

    fn latencies(&mut self, what: &str, scenario: &Scenario, body: f64, tail: f64) {
        let logs: Vec<Histogram<u32>> = (0..scenario.intervals)
            .map(|_| self.histogram(scenario.samples / scenario.intervals, body, tail))
            .collect();
        let mut all = logs[0].clone();
        for log in &logs[1..] {
            all += log;
        }
        for (name, quantile) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)] {
            let value = all.value_at_quantile(quantile) as f64;
            self.figure(&format!("{what}_{name}"), "ns", Better::Lower, value);
        }
        self.figure(
            &format!("{what}_max"),
            "ns",
            Better::Lower,
            all.max() as f64,
        );
        self.figures.files.push(TrialFile {
            name: format!("{what}.hlog"),
            text: interval_log(what, &logs),
        });
    }

    fn histogram(&mut self, samples: u32, body: f64, tail: f64) -> Histogram<u32> {
        // The bounds are constants that the histogram accepts.
        #[allow(clippy::unwrap_used)]
        let mut histogram = Histogram::new_with_bounds(1, 60_000_000_000, 3).unwrap();
        for _ in 0..samples {
            let middle = body * (0.35 * normal(&mut self.noise.trial)).exp();
            let slow = self.noise.trial.random::<f64>() < 0.03;
            let factor = match slow {
                true => tail * self.noise.trial.random::<f64>().powf(-0.45),
                false => 1.0,
            };
            histogram.saturating_record(model::truncate_to_u64(middle * factor) + 1);
        }
        histogram
    }

    fn counters(&mut self) {
        let switches = 61_000.0 / self.effect.latency * self.jitter(0.05, 0.02);
        for (name, value) in [
            ("voluntary_switches", switches),
            (
                "involuntary_switches",
                0.06 * switches * self.effect.latency,
            ),
            ("migrations", 2_400.0 * self.jitter(0.1, 0.05)),
            ("page_faults", 310.0),
        ] {
            self.figure(name, "count", Better::Neither, value.round());
        }
        let steal = 1.2e7 * self.jitter(0.4, 0.3);
        self.figure("steal_time", "ns", Better::Neither, steal.round());
    }

    fn figure(&mut self, metric: &str, unit: &str, better: Better, value: f64) {
        self.figures.metrics.push(Measurement {
            metric: metric.to_owned(),
            unit: unit.to_owned(),
            better,
            value,
            own: None,
        });
    }

    /// A factor around 1: part of it is common to the block.
    fn jitter(&mut self, block: f64, trial: f64) -> f64 {
        let common = block * normal(&mut self.noise.block);
        let own = trial * normal(&mut self.noise.trial);
        (common + own).exp()
    }
}

/// Box and Muller's transform.
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

/// Writing to memory cannot fail.
#[allow(clippy::unwrap_used)]
fn interval_log(what: &str, intervals: &[Histogram<u32>]) -> String {
    let mut text = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let opened = SystemTime::UNIX_EPOCH + Duration::from_nanos(crate::STARTED_UNIX_NS);
    let mut builder = IntervalLogWriterBuilder::new();
    builder
        .add_comment(&format!("{what} latency, values in nanoseconds"))
        .with_start_time(opened)
        .with_base_time(opened);
    let mut log = builder.begin_log_with(&mut text, &mut serializer).unwrap();
    for (second, histogram) in intervals.iter().enumerate() {
        let start = Duration::from_secs(second as u64);
        log.write_histogram(histogram, start, Duration::from_secs(1), None)
            .unwrap();
    }
    String::from_utf8(text).unwrap()
}
