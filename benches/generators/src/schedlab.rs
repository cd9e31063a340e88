//! The native generators: `schedlab load`, spoken to as the agent does.

use crate::side::{Load, Run, SETTLE, Side, cpu_percent, pinned};
use crate::tables;
use load::{Job, Parsed, phase};
use model::{Arrivals, Kind, OpenLoopParams, Workload};
use services::http::{self, HttpLoad};
use services::memcached::{self, Memcached, Sizes};
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Stdio};

/// Beyond the reach of any server on one CPU.
const BEYOND_REACH_PER_SEC: f64 = 1e6;
pub const KEYS: u64 = 1000;
pub const KEY_BYTES: u64 = 30;
pub const VALUE_BYTES: u64 = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    Http,
    Memcached,
}

pub struct Schedlab {
    pub program: PathBuf,
    pub speaks: Speaks,
}

impl Side for Schedlab {
    fn name(&self) -> &str {
        tables::OWN
    }

    fn run(&self, load: &Load) -> Result<Run, Box<dyn Error>> {
        let mut child = pinned(&self.program, load.cpu, load.realtime)
            .arg("load")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let run = talk(&mut child, &self.job(load), load);
        // It has ended by itself unless the talk failed.
        let _ = child.kill();
        child.wait()?;
        run
    }
}

impl Schedlab {
    fn kind(&self) -> Kind {
        match self.speaks {
            Speaks::Http => http::KIND.with_params(&HttpLoad {
                url: "/".to_owned(),
                method: "GET".to_owned(),
                headers: Default::default(),
                body: String::new(),
                requests: Vec::new(),
                setup: Vec::new(),
                ramps: None,
            }),
            Speaks::Memcached => memcached::KIND.with_params(&Memcached {
                address: None,
                gets_percent: 100.0,
                keys: KEYS,
                key_size: Sizes::Fixed { bytes: KEY_BYTES },
                value_size: Sizes::Fixed { bytes: VALUE_BYTES },
                preload: true,
            }),
        }
    }

    /// Arrivals as the peer of the protocol has them.
    fn job(&self, load: &Load) -> Job {
        let client = OpenLoopParams {
            connections: load.connections,
            threads: 1,
            arrivals: match self.speaks {
                Speaks::Http => Arrivals::Constant,
                Speaks::Memcached => Arrivals::Poisson,
            },
            timeout_ns: 1_000_000_000,
            load_cpus: None,
            busy_poll: false,
            allow_remote: false,
        };
        let workload = Workload {
            client: Some(client),
            warmup_ns: model::whole_nanos(SETTLE),
            duration_ns: model::whole_nanos(load.window),
            ..Workload::new(self.kind())
        };
        let rate = load.rate_per_sec.unwrap_or(BEYOND_REACH_PER_SEC);
        Job {
            server: Some(load.address),
            seed: 1,
            ..Job::new(&workload, model::Load::RatePerSec(rate), 1)
        }
    }
}

fn talk(child: &mut Child, job: &Job, load: &Load) -> Result<Run, Box<dyn Error>> {
    let mut input = child.stdin.take().ok_or("no standard input")?;
    let output = child.stdout.take().ok_or("no standard output")?;
    let mut lines = BufReader::new(output).lines();
    writeln!(input, "{}", serde_json::to_string(job)?)?;
    if lines.next().transpose()?.as_deref() != Some(phase::READY) {
        return Err("schedlab load did not get ready".into());
    }
    writeln!(input, "{}\n{}", phase::GO, phase::SEEN)?;
    let cpu_percent = cpu_percent(child, SETTLE, load.window)?;
    for line in lines {
        if let Some(result) = line?.strip_prefix(phase::RESULT) {
            return Ok(run(&serde_json::from_str(result)?, cpu_percent));
        }
    }
    Err("schedlab load left no result".into())
}

fn run(parsed: &Parsed, cpu_percent: f64) -> Run {
    let value = |name: &str| {
        let found = parsed.metrics.iter().find(|m| m.metric == name);
        found.map_or(f64::NAN, |m| m.value)
    };
    Run {
        rate_per_sec: value("requests_per_sec"),
        p50_us: value("request_p50") / 1e3,
        p99_us: value("request_p99") / 1e3,
        cpu_percent,
    }
}
