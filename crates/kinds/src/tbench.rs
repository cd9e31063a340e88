//! tbench (Debian package `dbench`): clients that replay a file server's traffic over TCP, each
//! with a process of tbench_srv that answers it.
//!
//! The behaviour of tbench 4.0 described here was seen in its output. It starts to count when all clients
//! are connected, looks at its counters once a second, and its last look before the time limit
//! is its result: `-t 3` measures two seconds. Clients that could not connect leave a throughput
//! of 0 and exit status 0.

use load::latency as m;
use load::{
    Asks, Chosen, Driver, Job, Keys, KindDef, Launch, LoadForms, Output, Params, Parsed, Usual,
    Window, Work, program,
};
use model::{Better, KeyDef, Load, Measurement, MetricDef, Place, Problem, Program, Task};
use serde::{Deserialize, Serialize};
use services::programs::tbench as server;
use std::path::{Path, PathBuf};

const KEYS: &[KeyDef] = &[KeyDef::new(
    "loadfile",
    "path",
    "that of the package",
    "File with the operations of a client (`-c`).",
)];

/// The kind `tbench`.
pub static KIND: KindDef = KindDef {
    name: "tbench",
    aliases: &[],
    summary: "real tbench from PATH, closed loop: clients of a file server's traffic over loopback, \
              in a network namespace of their own",
    loads: LoadForms::Counts,
    load_unit: "clients",
    window: Window::Own,
    usual: Usual {
        load: Load::PercentOfCpus(100.0),
        duration_ns: 5_000_000_000,
        warmup_ns: 0,
        time_limit_ns: None,
    },
    keys: KEYS,
    work: Work::for_params::<Tbench>(),
    client: false,
    metrics: METRICS,
    deciding: &["throughput"],
    logs: &[],
    watched: &[],
    tasks: &[Task::Process("tbench"), Task::Process("tbench_srv")],
    programs: &[PROGRAM, server::PROGRAM],
    handicap: false,
    turns: false,
};

const PROGRAM: Program = Program {
    name: "tbench",
    // There is no option for the version alone.
    version: Some("--help"),
    package: Some("dbench"),
};

const OPERATION_MEAN: MetricDef = MetricDef {
    name: "operation_mean",
    unit: "ns",
    better: Better::Lower,
    text: "Mean latency of all operations: the mean of each kind that tbench prints, weighted by its \
           number.",
};

/// Metrics of the load.
const METRICS: &[MetricDef] = &[m::THROUGHPUT, OPERATION_MEAN, m::REQUEST_MAX];

const NS_PER_MS: f64 = 1e6;

/// tbench with tbench_srv. The load is the number of clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tbench {
    /// Operations of a client; `None`: the file of the package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loadfile: Option<String>,
    /// A name on PATH or a path.
    #[serde(skip, default = "usual_program")]
    pub program: String,
}

fn usual_program() -> String {
    PROGRAM.name.to_owned()
}

impl Params for Tbench {
    fn read(keys: &mut Keys) -> Self {
        Tbench {
            loadfile: keys.get("loadfile"),
            program: usual_program(),
        }
    }
}

impl Tbench {
    /// The file of the operations: the one that is named, or that of the package, which may be
    /// unpacked anywhere.
    fn loadfile(&self) -> Option<PathBuf> {
        if let Some(named) = &self.loadfile {
            return Some(PathBuf::from(named)).filter(|file| file.is_file());
        }
        let program = which::which(&self.program).ok()?.canonicalize().ok()?;
        let root = program.parent()?.parent()?;
        let below = ["share/dbench/client.txt", "usr/share/dbench/client.txt"];
        let near = below.map(|path| root.join(path));
        let all = near.into_iter().chain([Path::new("/usr").join(below[0])]);
        all.into_iter().find(|file| file.is_file())
    }
}

/// Time limit of tbench in whole seconds, its only unit. Its result leaves the last one out.
fn seconds(job: &Job) -> u64 {
    job.workload.duration_ns.div_ceil(1_000_000_000).max(1) + 1
}

impl Driver for Tbench {
    fn request_receiver(&self) -> Asks {
        Asks::Server(server::SERVER.with_params(&server::TbenchServer {}))
    }

    fn chosen_programs(&self) -> Vec<Chosen> {
        self.loadfile.iter().cloned().map(Chosen::File).collect()
    }

    fn require(&self, job: &Job) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut problem = |what: String, remedy: &str| {
            problems.push(job.problem(what, remedy));
        };
        if which::which(&self.program).is_err() {
            let what = format!("{} is not installed", self.program);
            problem(
                what,
                "`schedlab tool install tbench`, or install Debian's package dbench",
            );
        } else if self.loadfile().is_none() {
            let what = match &self.loadfile {
                Some(named) => format!("`loadfile`: there is no file {named}"),
                None => "the file client.txt with tbench's operations is not there".to_owned(),
            };
            problem(what, "name it: loadfile = \"/usr/share/dbench/client.txt\"");
        }
        if job.load.resolve_count(job.cpus).is_none() {
            let what = format!(
                "tbench is not paced here, so a load of {} has no meaning",
                job.load
            );
            problem(
                what,
                "give the load as a number of clients, or in percent of the CPUs",
            );
        }
        if job.workload.warmup_ns > 0 {
            let what = "tbench measures from its first operation, so a warm-up has no meaning";
            problem(what.to_owned(), "leave out `warmup`");
        }
        if job.workload.load_on == Place::Controller {
            let what = "tbench runs in one network namespace with its server";
            problem(what.to_owned(), "leave out `load-on`");
        }
        problems
    }

    fn launch(&self, job: &Job) -> Launch {
        let mut argv = vec![self.program.clone()];
        if let Some(file) = self.loadfile() {
            argv.extend(["-c".to_owned(), file.display().to_string()]);
        }
        argv.extend(["-t".to_owned(), seconds(job).to_string()]);
        argv.push(job.load_count().to_string());
        argv.extend(job.server.map(|server| server.ip().to_string()));
        Launch::new(argv)
    }

    fn parse(&self, job: &Job, output: &Output) -> Result<Parsed, String> {
        program::check_success(PROGRAM.name, output)?;
        let wanted = job.load_count();
        let results = output
            .stdout
            .lines()
            .filter(|l| l.starts_with("Throughput"));
        let results: Vec<Option<Totals>> = results.map(Totals::read).collect();
        let mean_ms = mean_ms(&output.stdout);
        match (results.as_slice(), mean_ms) {
            ([Some(result)], Some(mean_ms)) if result.clients == wanted => Ok(Parsed {
                metrics: vec![
                    m::THROUGHPUT.to_measurement(result.mb_per_sec),
                    OPERATION_MEAN.to_measurement(mean_ms * NS_PER_MS),
                    m::REQUEST_MAX.to_measurement(result.longest_ms * NS_PER_MS),
                ],
                ..Parsed::default()
            }),
            _ => {
                let expected = format!(
                    "its table of operations and once `Throughput X MB/sec  {wanted} clients  N procs  \
                     max_latency=Y ms` with X above 0"
                );
                Err(program::garbage(PROGRAM.name, &expected, output))
            }
        }
    }

    fn read_again(&self, job: &Job, output: &Output) -> Option<Result<Vec<Measurement>, String>> {
        Some(self.parse(job, output).map(|parsed| parsed.metrics))
    }
}

/// The last line of tbench.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Totals {
    mb_per_sec: f64,
    clients: u64,
    longest_ms: f64,
}

impl Totals {
    /// `None` for a line that tbench 4.0 does not print, and where nothing was done.
    fn read(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [
            "Throughput",
            rate,
            "MB/sec",
            clients,
            "clients",
            _,
            "procs",
            latency,
            "ms",
        ] = words[..]
        else {
            return None;
        };
        let positive = |text: &str| {
            text.parse()
                .ok()
                .filter(|v: &f64| v.is_finite() && *v > 0.0)
        };
        Some(Totals {
            mb_per_sec: positive(rate)?,
            clients: clients.parse().ok()?,
            longest_ms: positive(latency.strip_prefix("max_latency=")?)?,
        })
    }
}

/// Mean latency of the table `Operation Count AvgLat MaxLat`.
fn mean_ms(stdout: &str) -> Option<f64> {
    let is_head = |line: &&str| {
        let words = line.split_whitespace();
        !words.eq(["Operation", "Count", "AvgLat", "MaxLat"])
    };
    let rows = stdout.lines().skip_while(is_head).skip(2);
    let (mut number, mut sum_ms) = (0.0, 0.0);
    for row in rows.take_while(|row| !row.trim().is_empty()) {
        let words: Vec<&str> = row.split_whitespace().collect();
        let [_, count, mean, _] = words[..] else {
            return None;
        };
        let (count, mean): (f64, f64) = (count.parse().ok()?, mean.parse().ok()?);
        number += count;
        sum_ms += count * mean;
    }
    let mean = sum_ms / number;
    mean.is_finite().then_some(mean)
}

#[cfg(test)]
mod tests;
