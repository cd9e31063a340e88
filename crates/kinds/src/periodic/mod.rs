//! Periodic workers with a deadline (native): each is released at set times, runs a set amount
//! of work, and has to be done by its deadline.
//!
//! cyclictest measures the first half of this, how late a thread runs after its release;
//! rt-app adds the work and the deadline. Releases are times, not gaps: a worker that is late
//! starts its next job at once, and is as late as it is.

mod figures;
mod overrun;
mod worker;

use crate::calibrate::{self, ROWS_PER_SEC};
use load::latency::{self as m, Quantile};
use load::{
    Chosen, Driver, Job, Keys, KindDef, Launch, LoadForms, NativeError, Output, Params, Parsed,
    Phases, Run, Usual, Window, Work, crew, phase,
};
use model::check::check_size;
use model::{Better, Calibration, Invalid, KeyDef, Load, MetricDef, Problem, Task};
use serde::{Deserialize, Serialize};

const KEYS: &[KeyDef] = &[
    KeyDef::new(
        "period",
        "duration",
        "`10ms`",
        "Time between two releases of a worker.",
    ),
    KeyDef::new(
        "runtime",
        "duration",
        "`1ms`",
        "Median CPU time of a job. Its work is calibrated once for each cell, so that every arm \
         has the same. `0s`: a job only wakes up.",
    ),
    KeyDef::new(
        "deadline",
        "duration",
        "the period",
        "Time from the release until a job has to be done.",
    ),
    KeyDef::new(
        "offset",
        "duration",
        "`0s`",
        "Time between the first releases of one worker and the next. Without one, all are \
         released together.",
    ),
    KeyDef::new(
        "footprint",
        "size",
        "`32KiB`",
        "Memory that the work of one worker goes through.",
    ),
];

/// The kind `periodic`.
pub static KIND: KindDef = KindDef {
    name: "periodic",
    aliases: &[],
    summary: "workers that are released at set times, run for a set time and have a deadline \
              (native; what cyclictest and rt-app measure)",
    loads: LoadForms::Counts,
    load_unit: "workers",
    window: Window::Phased,
    usual: Usual {
        load: Load::PercentOfCpus(100.0),
        duration_ns: 5_000_000_000,
        warmup_ns: 500_000_000,
        time_limit_ns: None,
    },
    keys: KEYS,
    work: Work::for_params::<Periodic>(),
    client: false,
    metrics: METRICS,
    deciding: &["lateness_p99", "request_p99"],
    logs: &["lateness", "request", "jitter", "job-cpu"],
    watched: &["lateness", "request"],
    tasks: &[Task::Thread("periodic")],
    programs: &[],
    handicap: false,
    turns: true,
};

const fn time(name: &'static str, text: &'static str) -> MetricDef {
    MetricDef {
        name,
        unit: "ns",
        better: Better::Lower,
        text,
    }
}

const LATENESS_P50: MetricDef = time(
    "lateness_p50",
    "Median lateness: from the release of a job until its worker runs, which is cyclictest's latency.",
);
const LATENESS_P90: MetricDef = time("lateness_p90", "90th percentile of lateness.");
const LATENESS_P99: MetricDef = time("lateness_p99", "99th percentile of lateness.");
const LATENESS_P999: MetricDef = time("lateness_p999", "99.9th percentile of lateness.");
const LATENESS_MEAN: MetricDef = time(
    "lateness_mean",
    "Mean lateness, which a few long ones rule: cyclictest's `Avg`.",
);
const LATENESS_MAX: MetricDef = time("lateness_max", "Longest lateness in the window.");
const JITTER_P50: MetricDef = time(
    "jitter_p50",
    "Median jitter: what the time between two starts of a worker differs from the period.",
);
const JITTER_P99: MetricDef = time("jitter_p99", "99th percentile of jitter.");
const JITTER_MAX: MetricDef = time("jitter_max", "Largest jitter in the window.");
const JOB_CPU_P50: MetricDef = MetricDef::explaining(
    "job_cpu_p50",
    "ns",
    "Median CPU time of a job, to be compared with `runtime`.",
);
const JOB_CPU_P99: MetricDef = MetricDef::explaining(
    "job_cpu_p99",
    "ns",
    "99th percentile of the CPU time of a job.",
);
const MISS_PERCENT: MetricDef = MetricDef {
    name: "miss_percent",
    unit: "%",
    better: Better::Lower,
    text: "Jobs with a deadline in the window that were not done by then, in percent.",
};
const DEADLINE_MISSES: MetricDef = MetricDef {
    name: "deadline_misses",
    unit: "count",
    better: Better::Lower,
    text: "Jobs with a deadline in the window that were not done by then.",
};
const DEADLINE_OVERRUNS: MetricDef = MetricDef {
    name: "deadline_overruns",
    unit: "count",
    better: Better::Lower,
    text: "Times that a worker under `SCHED_DEADLINE` had used up its runtime and was throttled \
           until its next period, as the kernel tells by SIGXCPU (`SCHED_FLAG_DL_OVERRUN`). The \
           kernel looks once a tick, so those that fall into one tick are counted once.",
};

/// Metrics of the load.
const METRICS: &[MetricDef] = &[
    LATENESS_P50,
    LATENESS_P90,
    LATENESS_P99,
    LATENESS_P999,
    LATENESS_MEAN,
    LATENESS_MAX,
    m::REQUEST_P50,
    m::REQUEST_P90,
    m::REQUEST_P95,
    m::REQUEST_P99,
    m::REQUEST_P999,
    m::REQUEST_MAX,
    MISS_PERCENT,
    DEADLINE_MISSES,
    DEADLINE_OVERRUNS,
    JITTER_P50,
    JITTER_P99,
    JITTER_MAX,
    JOB_CPU_P50,
    JOB_CPU_P99,
    m::OFFERED_PER_SEC,
    m::ACHIEVED_PERCENT,
    m::OVERLOADED,
];
const LATENESS: &[Quantile] = &[
    (LATENESS_P50, Some(500)),
    (LATENESS_P90, Some(900)),
    (LATENESS_P99, Some(990)),
    (LATENESS_P999, Some(999)),
    (LATENESS_MAX, None),
];
const JITTER: &[Quantile] = &[
    (JITTER_P50, Some(500)),
    (JITTER_P99, Some(990)),
    (JITTER_MAX, None),
];
const JOB_CPU: &[Quantile] = &[(JOB_CPU_P50, Some(500)), (JOB_CPU_P99, Some(990))];

/// Shorter periods are mostly the clock and the sleep.
const SHORTEST_PERIOD_NS: u64 = 20_000;

/// Periodic workers. The load is their number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Periodic {
    /// Time between two releases.
    pub period_ns: u64,
    /// CPU time of a job; 0: a job only wakes up.
    pub runtime_ns: u64,
    /// Time until a job has to be done; `None`: the period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<u64>,
    /// Time between the first releases of one worker and the next.
    pub offset_ns: u64,
    /// Bytes that the work of one worker goes through.
    pub footprint_bytes: u64,
}

impl Params for Periodic {
    fn read(keys: &mut Keys) -> Self {
        Periodic {
            period_ns: keys.duration("period").unwrap_or(10_000_000),
            runtime_ns: keys.duration("runtime").unwrap_or(1_000_000),
            deadline_ns: keys.duration("deadline"),
            offset_ns: keys.duration("offset").unwrap_or(0),
            footprint_bytes: keys.size("footprint").unwrap_or(32 << 10),
        }
    }
}

impl Periodic {
    fn rows_per_sec(&self) -> u64 {
        calibrate::rows_per_sec(self.footprint_bytes, self.runtime_ns, self.period_ns)
    }

    fn deadline_ns(&self) -> u64 {
        self.deadline_ns.unwrap_or(self.period_ns)
    }
}

impl Driver for Periodic {
    fn check(&self) -> Result<(), Invalid> {
        check_size("footprint", self.footprint_bytes)?;
        let time = model::format_duration_ns;
        if self.period_ns < SHORTEST_PERIOD_NS {
            let least = time(SHORTEST_PERIOD_NS);
            let what = format!("`period` is at least {least}, not {}", time(self.period_ns));
            return Err(Invalid::new("period", what));
        }
        let deadline = self.deadline_ns();
        if deadline == 0 {
            return Err(Invalid::new("deadline", "`deadline` must be above 0"));
        }
        if self.runtime_ns > deadline {
            let what = format!(
                "a job of {} cannot be done within its deadline of {}",
                time(self.runtime_ns),
                time(deadline)
            );
            return Err(Invalid::new("runtime", what));
        }
        Ok(())
    }

    fn chosen_programs(&self) -> Vec<Chosen> {
        Vec::new()
    }

    fn require(&self, _job: &Job) -> Vec<Problem> {
        Vec::new()
    }

    fn calibrate(&self, _job: &Job, _run: &mut Run) -> Result<Calibration, String> {
        let mut calibration = Calibration::default();
        if self.runtime_ns > 0 {
            let rows = self.rows_per_sec();
            calibration.values.insert(ROWS_PER_SEC.to_owned(), rows);
        }
        Ok(calibration)
    }

    fn launch(&self, job: &Job) -> Launch {
        phase::launch(job)
    }

    fn generate(&self, job: &Job, phases: &mut Phases) -> Result<Parsed, NativeError> {
        let workers = job.load_count();
        let works = (0..workers).map(|index| worker::make_work(self, job, index));
        let (opened, records) = crew::run(worker::THREAD, works.collect(), job, phases)?;
        figures::compute_figures(job, records, opened).map_err(NativeError::Generator)
    }

    fn parse(&self, job: &Job, output: &Output) -> Result<Parsed, String> {
        phase::parse(job, output)
    }
}

#[cfg(test)]
mod tests;
