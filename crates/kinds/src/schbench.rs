//! Real schbench from PATH, under the names that the native wakeup load uses.
//!
//! Latencies come from its JSON (`--json -`, on standard output) where the version
//! has it, else from the text report on standard error; sample counts and the average
//! rate are only in the text. Its microseconds become nanoseconds. What is known of
//! the versions was read in its source,
//! <https://git.kernel.org/pub/scm/linux/kernel/git/mason/schbench.git>.

mod report;

use load::latency as m;
use load::options::{Options, Own};
use load::{
    Chosen, Driver, Job, Keys, KindDef, Launch, LoadForms, Output, Params, Parsed, Run, Usual,
    Window, Work, program,
};
use model::check::check_count;
use model::{
    Calibration, Invalid, KeyDef, Load, Measurement, MetricDef, Problem, Program, Severity, Task,
    Warning,
};
use report::{Report, Section};
use serde::{Deserialize, Serialize};

const KEYS: &[KeyDef] = &[
    KeyDef::new(
        "message-threads",
        "number",
        "1",
        "Message threads of schbench (`--message-threads`).",
    ),
    KeyDef::new("args", "list of words", "", "More arguments for schbench."),
];

/// The kind `schbench`.
pub static KIND: KindDef = KindDef {
    name: "schbench",
    aliases: &[],
    summary: "real schbench from PATH, closed loop: message threads wake workers over futexes",
    loads: LoadForms::Counts,
    load_unit: "workers per message thread",
    window: Window::Own,
    usual: Usual {
        load: Load::PercentOfCpus(100.0),
        duration_ns: 5_000_000_000,
        warmup_ns: 1_000_000_000,
        time_limit_ns: None,
    },
    keys: KEYS,
    work: Work::for_params::<Schbench>(),
    client: false,
    metrics: METRICS,
    deciding: m::DECIDING,
    logs: &[],
    watched: &[],
    tasks: &[Task::Process("schbench")],
    // It has no version to print; that it is there is the fact.
    programs: &[Program {
        name: "schbench",
        version: None,
        package: None,
    }],
    handicap: false,
    turns: false,
};

/// Metrics of the load.
pub const METRICS: &[MetricDef] = &[
    m::WAKEUP_P50,
    m::WAKEUP_P90,
    m::WAKEUP_P99,
    m::WAKEUP_P999,
    m::WAKEUP_MAX,
    m::REQUEST_P50,
    m::REQUEST_P90,
    m::REQUEST_P99,
    m::REQUEST_P999,
    m::REQUEST_MAX,
    m::REQUESTS_PER_SEC,
];

/// The calibrated value: 1 if this version knows `--json`.
const JSON: &str = "json";
/// Below this runtime schbench ignores its warm-up option.
const SHORTEST_WITH_WARMUP_SECS: u64 = 30;
const USAGE_LIMIT_NS: u64 = 10_000_000_000;

/// Real schbench from PATH. The load is the number of workers per message thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schbench {
    /// Number of message threads (`-m`).
    pub message_threads: u32,
    /// Further arguments of the command line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// A name on PATH or a path.
    #[serde(skip, default = "usual_program")]
    pub program: String,
}

/// The options that a cell says, and those without which its report could not be read.
const OPTIONS: Options = Options {
    own: &[
        Own {
            short: 'm',
            long: "message-threads",
            instead: "`message-threads` of the workload",
        },
        Own {
            short: 't',
            long: "threads",
            instead: "`loads` of the workload",
        },
        Own {
            short: 'r',
            long: "runtime",
            instead: "`duration` of the workload",
        },
        Own {
            short: 'w',
            long: "warmuptime",
            instead: "`warmup` of the workload",
        },
        Own {
            short: 'i',
            long: "intervaltime",
            instead: "nothing is printed while it measures",
        },
        Own {
            short: 'j',
            long: "json",
            instead: "its report is read from there",
        },
    ],
    flags: "CLh",
};

fn usual_program() -> String {
    "schbench".to_owned()
}

impl Params for Schbench {
    fn read(keys: &mut Keys) -> Self {
        Schbench {
            message_threads: keys.get("message-threads").unwrap_or(1),
            args: keys.words("args").unwrap_or_default(),
            program: usual_program(),
        }
    }
}

/// Whole seconds, schbench's only unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seconds {
    runtime: u64,
    /// 0: none, since it would be ignored.
    warmup: u64,
}

impl Seconds {
    /// The runtime includes the warm-up.
    fn of(job: &Job) -> Self {
        let secs = |ns: u64| ns.div_ceil(1_000_000_000);
        let (duration, warmup) = (secs(job.workload.duration_ns), secs(job.workload.warmup_ns));
        if duration + warmup >= SHORTEST_WITH_WARMUP_SECS {
            return Seconds {
                runtime: duration + warmup,
                warmup,
            };
        }
        Seconds {
            runtime: duration.max(1),
            warmup: 0,
        }
    }
}

impl Schbench {
    fn argv(&self, job: &Job, json: bool) -> Vec<String> {
        let seconds = Seconds::of(job);
        let workers = job.load_count();
        let mut argv = vec![self.program.clone()];
        let options = [
            ("-m", u64::from(self.message_threads)),
            ("-t", workers),
            ("-r", seconds.runtime),
            ("-w", seconds.warmup),
            // Later than the end, so that it prints nothing while it measures.
            ("-i", seconds.runtime + 3600),
        ];
        for (name, value) in options {
            argv.extend([name.to_owned(), value.to_string()]);
        }
        if json {
            argv.extend(["--json".to_owned(), "-".to_owned()]);
        }
        argv.extend(self.args.iter().cloned());
        argv
    }
}

impl Driver for Schbench {
    fn check(&self) -> Result<(), Invalid> {
        check_count("message-threads", self.message_threads.into())?;
        OPTIONS.check("args", "schbench", &self.args)
    }

    fn chosen_programs(&self) -> Vec<Chosen> {
        let argv = [vec![self.program.clone()], self.args.clone()].concat();
        vec![Chosen::Program(argv)]
    }

    fn require(&self, job: &Job) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut problem = |what: String, remedy: &str| {
            problems.push(job.problem(what, remedy));
        };
        if which::which(&self.program).is_err() {
            problem(
                format!("{} is not installed", self.program),
                "`schedlab tool install schbench` builds it, which no package of Debian does; \
                 or use the native `wakeup` workload",
            );
        }
        if job.load.resolve_count(job.cpus).is_none() {
            problem(
                format!(
                    "schbench starts the requests of a second in one burst, so a load of {} would not be one",
                    job.load
                ),
                "use the native `wakeup` workload for a rate",
            );
        }
        problems
    }

    /// Finds out what this version of schbench can do.
    fn calibrate(&self, _job: &Job, run: &mut Run) -> Result<Calibration, String> {
        let argv = [self.program.clone(), "--help".to_owned()];
        let usage = run(&argv, USAGE_LIMIT_NS)?;
        let json = usage.stderr.contains("--json") || usage.stdout.contains("--json");
        Ok(Calibration {
            values: [(JSON.to_owned(), u64::from(json))].into(),
            ..Calibration::default()
        })
    }

    fn launch(&self, job: &Job) -> Launch {
        let json = job.calibration.values.get(JSON) == Some(&1);
        Launch::new(self.argv(job, json))
    }

    fn parse(&self, job: &Job, output: &Output) -> Result<Parsed, String> {
        program::check_success("schbench", output)?;
        let report = Report::read(output)
            .ok_or_else(|| program::garbage("schbench", "a report of latencies", output))?;
        let mut parsed = figures(&report);
        if Seconds::of(job).warmup == 0 && job.workload.warmup_ns > 0 {
            parsed.warnings.push(no_warmup());
        }
        Ok(parsed)
    }

    fn read_again(&self, job: &Job, output: &Output) -> Option<Result<Vec<Measurement>, String>> {
        Some(self.parse(job, output).map(|parsed| parsed.metrics))
    }
}

fn no_warmup() -> Warning {
    Warning {
        severity: Severity::Note,
        what: format!(
            "schbench ignores its warm-up in runs below {SHORTEST_WITH_WARMUP_SECS} s: \
             the start of the run is in the figures"
        ),
        remedy: "use a longer duration, or the native `wakeup` workload".to_owned(),
    }
}

fn figures(report: &Report) -> Parsed {
    let mut parsed = Parsed::default();
    let mut missing = Vec::new();
    latency(&mut parsed, &mut missing, m::WAKEUP, &report.wakeup);
    if let Some(request) = &report.request {
        latency(&mut parsed, &mut missing, m::REQUEST, request);
    }
    let rate = report.requests_per_sec;
    parsed
        .metrics
        .extend(rate.map(|rate| m::REQUESTS_PER_SEC.to_measurement(rate)));
    if !missing.is_empty() {
        parsed.warnings.push(Warning {
            severity: Severity::Note,
            what: format!(
                "too few samples for {}, which are left out",
                missing.join(", ")
            ),
            remedy: "use a longer duration".to_owned(),
        });
    }
    parsed
}

fn latency(
    parsed: &mut Parsed,
    missing: &mut Vec<&'static str>,
    quantiles: &[m::Quantile],
    section: &Section,
) {
    let is_printed = |def: &MetricDef| METRICS.iter().any(|metric| metric.name == def.name);
    for (def, permille) in quantiles.iter().filter(|(def, _)| is_printed(def)) {
        match section.value_us(*permille) {
            Some(us) => parsed.metrics.push(def.to_measurement(us as f64 * 1000.0)),
            None => missing.push(def.name),
        }
    }
}

#[cfg(test)]
mod tests;
