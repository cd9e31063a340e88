//! A simulation of Gatling: the command runs it, and this process watches when its injection
//! begins, and reads what it wrote of each request.
//!
//! Figures come from a log of the requests. The simulation of `demo/` writes one of its own
//! (`requests.csv`); they are judged then as those of our own generators are: from the intended
//! start, with the generator's lateness and CPU time beside them. Any other simulation leaves
//! Gatling's own log (`simulation.log`), which has whole milliseconds and no time at which a
//! request was due.

mod figures;
mod requests;
mod run;
mod simulation_log;
#[cfg(test)]
mod tests;
mod text_log;

pub use requests::{Request, parse};

use crate::command::Command;
use load::latency as m;
use load::{
    Chosen, Driver, Job, Keys, KindDef, Launch, LoadForms, NativeError, Output, Params, Parsed,
    Phases, Usual, Window, Work, phase, stalls, steady, sys,
};
use model::stack::{FOLDER, fill_placeholders};
use model::{Invalid, KeyDef, Load, MetricDef, Problem};
use serde::{Deserialize, Serialize};
use services::openloop::{driver, metrics};
use std::path::PathBuf;

const KEYS: &[KeyDef] = &[
    KeyDef::new(
        "command",
        "list of words",
        "needed",
        "The program that runs the simulation, and its arguments. `{rate}`, `{warmup}`, \
         `{duration}` and `{seed}` stand for those of the trial (requests/s, seconds), `{total}` \
         for the seconds of warm-up and duration together, `{SERVICE.port}` for a port of a \
         service, `{folder}` for the folder of the load.",
    ),
    KeyDef::new(
        "directory",
        "path",
        "the current directory",
        "Working directory of the program.",
    ),
    KeyDef::new(
        "log",
        "path",
        "`{folder}`",
        "Log of the requests, a file or a folder: `requests.csv` as the simulation of `demo/` \
         writes it, or else the one `simulation.log` of Gatling below the folder.",
    ),
    KeyDef::new(
        "load-cpus",
        "CPUs",
        "",
        "CPUs that the program is kept to, such as `0%-50%`.",
    ),
];

/// The kind `gatling`.
pub static KIND: KindDef = KindDef {
    name: "gatling",
    aliases: &[],
    summary: "a simulation of Gatling: requests of users who arrive as planned, read from its log \
              (open loop)",
    loads: LoadForms::RatesOfTrials,
    load_unit: "requests/s",
    window: Window::Phased,
    usual: Usual {
        load: Load::RatePerSec(20.0),
        duration_ns: 60_000_000_000,
        warmup_ns: 30_000_000_000,
        time_limit_ns: Some(600_000_000_000),
    },
    keys: KEYS,
    work: Work::for_params::<Gatling>(),
    client: false,
    metrics: METRICS,
    deciding: &["request_p95"],
    logs: metrics::LOGS,
    watched: &[],
    tasks: &[],
    programs: &[],
    handicap: false,
    turns: false,
};

/// Metrics of the load; `requests_per_sec` is its goodput.
const METRICS: &[MetricDef] = &[
    m::REQUEST_P50,
    m::REQUEST_P75,
    m::REQUEST_P90,
    m::REQUEST_P95,
    m::REQUEST_P99,
    m::REQUEST_P999,
    m::REQUEST_MAX,
    metrics::REQUEST_MEAN,
    m::SERVICE_P50,
    m::SERVICE_P99,
    m::REQUESTS_PER_SEC,
    m::OFFERED_PER_SEC,
    m::ACHIEVED_PERCENT,
    m::OVERLOADED,
    metrics::ERROR_PERCENT,
    metrics::LATENESS_P50,
    metrics::LATENESS_P99,
    metrics::GENERATOR_CPU,
    stalls::REQUEST_STALLS,
    steady::LATENCY_DRIFT,
];

/// A command that runs a simulation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gatling {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Working directory of the program; `None` is that of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// File with the requests, once the program has ended, or a folder of it.
    pub log: String,
    /// CPUs that the program is kept to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_cpus: Option<String>,
}

impl Params for Gatling {
    fn read(keys: &mut Keys) -> Self {
        let argv = keys.words("command").unwrap_or_default();
        if argv.is_empty() {
            let missing = Invalid::new("command", "the workload `gatling` needs its command");
            keys.refuse(missing.with_remedy(
                "command = [\"java\", …, \"io.gatling.app.Gatling\", \"-s\", \"my.Simulation\"], as \
                 in experiments/banking-local.toml",
            ));
        }
        Gatling {
            argv,
            directory: keys.get("directory"),
            log: keys.get("log").unwrap_or_else(|| format!("{{{FOLDER}}}")),
            load_cpus: keys.get("load-cpus"),
        }
    }
}

impl Gatling {
    fn command(&self) -> Command {
        Command {
            argv: self.argv.clone(),
            directory: self.directory.clone(),
            prepare: Vec::new(),
            metrics: Vec::new(),
        }
    }

    fn log(&self) -> PathBuf {
        let directory = PathBuf::from(self.directory.as_deref().unwrap_or_default());
        directory.join(&self.log)
    }

    /// CPUs of the program, for whatever may be run on here.
    fn cpus(&self) -> Result<Vec<u32>, String> {
        let allowed = sys::allowed_cpus();
        match &self.load_cpus {
            Some(list) => model::choose_cpus(list, &allowed),
            None => Ok(allowed),
        }
    }

    /// The words of the command with the values of the trial.
    fn argv_of(&self, job: &Job) -> Vec<String> {
        let seconds = |ns: u64| (ns as f64 / 1e9).to_string();
        let value = |name: &str| match name {
            "rate" => Some(rate_of(job).to_string()),
            "warmup" => Some(seconds(job.workload.warmup_ns)),
            "duration" => Some(seconds(job.workload.duration_ns)),
            "total" => Some(seconds(job.workload.warmup_ns + job.workload.duration_ns)),
            // Programs read seeds as signed numbers.
            "seed" => Some((job.seed >> 1).to_string()),
            _ => None,
        };
        self.argv
            .iter()
            .map(|word| fill_placeholders(word, value))
            .collect()
    }
}

/// Requests per second that are asked for; kinds with this form of load have no other.
fn rate_of(job: &Job) -> f64 {
    match job.load {
        Load::RatePerSec(rate) => rate,
        _ => 0.0,
    }
}

impl Driver for Gatling {
    fn check(&self) -> Result<(), Invalid> {
        self.command().check()?;
        let cpus = self.load_cpus.as_ref().map(|l| model::choose_cpus(l, &[0]));
        match cpus {
            Some(Err(what)) => Err(Invalid::new("load-cpus", what)),
            _ => Ok(()),
        }
    }

    fn chosen_programs(&self) -> Vec<Chosen> {
        let mut chosen = self.command().chosen_programs();
        chosen.push(Chosen::File(self.log.clone()));
        chosen
    }

    fn require(&self, job: &Job) -> Vec<Problem> {
        let problem = |what: String, remedy: &str| job.problem(what, remedy);
        let mut problems = self.command().require(job);
        let cpus = self.cpus().unwrap_or_default();
        let list = self.load_cpus.as_deref();
        problems.extend(driver::absent_cpu(job, &cpus, list));
        let too_short = driver::find_undecidable(job, 1.0);
        problems.extend(too_short.map(|(what, remedy)| problem(what, &remedy)));
        problems
    }

    fn launch(&self, job: &Job) -> Launch {
        phase::launch(job)
    }

    fn generate(&self, job: &Job, phases: &mut Phases) -> Result<Parsed, NativeError> {
        let cpus = self.cpus().map_err(NativeError::Generator)?;
        let window = run::run(self, job, &cpus, phases)?;
        let requests =
            requests::read(&self.log(), window.opened).map_err(NativeError::Generator)?;
        figures::compute_figures(job, &requests, &window, cpus.len())
            .map_err(NativeError::Generator)
    }

    fn parse(&self, job: &Job, output: &Output) -> Result<Parsed, String> {
        phase::parse(job, output)
    }
}
