//! fio (Debian package `fio`): jobs that read and write a file, as fast as the storage answers.
//!
//! The file is made in the folder of the load before the trial, and removed with it. fio is asked
//! for one figure of reads and writes together (`--unified_rw_reporting`) over all jobs
//! (`--group_reporting`), as JSON; the behaviour described here is that of fio 3.33.

use load::latency as m;
use load::recording::samples_needed;
use load::{
    Chosen, Driver, Job, Keys, KindDef, Launch, LoadForms, Output, Params, Parsed, Usual, Window,
    Work, program,
};
use model::stack::FOLDER;
use model::{
    Better, Invalid, KeyDef, Load, Measurement, MetricDef, Place, Problem, Program, Severity, Task,
    Warning,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const KEYS: &[KeyDef] = &[
    KeyDef::new(
        "access",
        "`read`, `write`, `randread`, `randwrite`, `rw` or `randrw`",
        "`randread`",
        "Reads or writes, one after the other or at random places, or half of each (fio's `rw`).",
    ),
    KeyDef::new(
        "file-size",
        "size",
        "`256MiB`",
        "Size of the file, which is made in the folder of the load before each trial, and removed after \
         it: below `$SCHEDLAB_STATE_DIR`, which is `/var/lib/schedlab` for root.",
    ),
    KeyDef::new("block-size", "size", "`4KiB`", "Size of each request."),
    KeyDef::new(
        "direct",
        "`true` or `false`",
        "`true`",
        "Goes past the page cache (O_DIRECT); `false` measures memory as much as storage.",
    ),
    KeyDef::new(
        "engine",
        "`psync`, `libaio` or `io_uring`",
        "`psync`",
        "System calls of the requests: one at a time, or `depth` of them under way.",
    ),
    KeyDef::new(
        "depth",
        "number",
        "`1`",
        "Requests of a job that are under way at once.",
    ),
];

/// The kind `fio`.
pub static KIND: KindDef = KindDef {
    name: "fio",
    aliases: &[],
    summary: "real fio from PATH, closed loop: jobs that read and write a file of a stated size",
    loads: LoadForms::Counts,
    load_unit: "jobs",
    window: Window::Own,
    usual: Usual {
        load: Load::Count(1),
        duration_ns: 5_000_000_000,
        warmup_ns: 1_000_000_000,
        time_limit_ns: None,
    },
    keys: KEYS,
    work: Work::for_params::<Fio>(),
    client: false,
    metrics: METRICS,
    deciding: &["iops", "completion_p99"],
    logs: &[],
    watched: &[],
    tasks: &[Task::Process("fio")],
    programs: &[PROGRAM],
    handicap: false,
    turns: false,
};

const PROGRAM: Program = Program {
    name: "fio",
    version: Some("--version"),
    package: Some("fio"),
};

const IOPS: MetricDef = MetricDef {
    name: "iops",
    unit: "1/s",
    better: Better::Higher,
    text: "Requests to the file that were completed, reads and writes together.",
};
const BANDWIDTH: MetricDef = MetricDef {
    name: "bandwidth",
    unit: "MB/s",
    better: Better::Higher,
    text: "Data of these requests, in millions of bytes per second.",
};
const COMPLETION_MEAN: MetricDef = m::latency(
    "completion_mean",
    "Mean completion latency of a request: from its submission until it is done (fio's clat).",
);
const COMPLETION_P50: MetricDef = m::latency("completion_p50", "Median completion latency.");
const COMPLETION_P90: MetricDef =
    m::latency("completion_p90", "90th percentile of completion latency.");
const COMPLETION_P99: MetricDef =
    m::latency("completion_p99", "99th percentile of completion latency.");
const COMPLETION_P999: MetricDef = m::latency(
    "completion_p999",
    "99.9th percentile of completion latency.",
);
const COMPLETION_MAX: MetricDef = m::latency("completion_max", "Longest completion latency.");

/// Percentiles with the thousandths of each.
const PERCENTILES: [(MetricDef, u32); 4] = [
    (COMPLETION_P50, 500),
    (COMPLETION_P90, 900),
    (COMPLETION_P99, 990),
    (COMPLETION_P999, 999),
];
/// List of them that fio is asked for.
const PERCENTILE_LIST: &str = "50:90:99:99.9";

/// Metrics of the load.
const METRICS: &[MetricDef] = &[
    IOPS,
    BANDWIDTH,
    COMPLETION_MEAN,
    COMPLETION_P50,
    COMPLETION_P90,
    COMPLETION_P99,
    COMPLETION_P999,
    COMPLETION_MAX,
];

/// Requests past the page cache are whole sectors.
const SECTOR_BYTES: u64 = 512;
/// fio counts bytes of a request in 32 bits.
const MOST_BLOCK_BYTES: u64 = 1 << 30;
const MOST_DEPTH: u32 = 4096;

/// fio on a file of its own. The load is the number of jobs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fio {
    /// Kind of the requests.
    pub access: Access,
    /// Size of the file.
    pub file_bytes: u64,
    /// Size of each request.
    pub block_bytes: u64,
    /// Past the page cache?
    pub direct: bool,
    /// System calls of the requests.
    pub engine: Engine,
    /// Requests of a job that are under way at once.
    pub depth: u32,
    /// Folder of the file, which the agent fills in.
    pub folder: String,
    /// A name on PATH or a path.
    #[serde(skip, default = "usual_program")]
    pub program: String,
}

/// Kind of the requests (`--rw`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Reads, one place after the other.
    Read,
    /// Writes, one place after the other.
    Write,
    /// Reads at random places.
    RandRead,
    /// Writes at random places.
    RandWrite,
    /// Reads and writes, one place after the other.
    Rw,
    /// Reads and writes at random places.
    RandRw,
}

/// System calls of the requests (`--ioengine`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// `pread` and `pwrite`.
    Psync,
    /// `io_submit`.
    Libaio,
    /// `io_uring_enter`.
    #[serde(rename = "io_uring")]
    IoUring,
}

fn usual_program() -> String {
    PROGRAM.name.to_owned()
}

/// The word of a value, as files and fio write it.
fn word(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

impl Params for Fio {
    fn read(keys: &mut Keys) -> Self {
        Fio {
            access: keys.get("access").unwrap_or(Access::RandRead),
            file_bytes: keys.size("file-size").unwrap_or(256 << 20),
            block_bytes: keys.size("block-size").unwrap_or(4 << 10),
            direct: keys.get("direct").unwrap_or(true),
            engine: keys.get("engine").unwrap_or(Engine::Psync),
            depth: keys.get("depth").unwrap_or(1),
            folder: format!("{{{FOLDER}}}"),
            program: usual_program(),
        }
    }
}

impl Fio {
    /// Words that name the file, for making it and for the trial.
    fn file(&self) -> Vec<String> {
        let file = format!("{}/fio.data", self.folder);
        // In a name that is given to fio, a colon parts two files.
        let file = file.replace(':', "\\:");
        vec![
            self.program.clone(),
            "--name=schedlab".to_owned(),
            format!("--filename={file}"),
            format!("--size={}", self.file_bytes),
        ]
    }
}

impl Driver for Fio {
    fn check(&self) -> Result<(), Invalid> {
        let (block, file) = (self.block_bytes, self.file_bytes);
        if block == 0 || block > MOST_BLOCK_BYTES {
            let what = format!("a request of {block} bytes is none that fio makes");
            return Err(Invalid::new("block-size", what).with_remedy("block-size = \"4KiB\""));
        }
        if self.direct && !block.is_multiple_of(SECTOR_BYTES) {
            let what = format!(
                "requests past the page cache are whole sectors of {SECTOR_BYTES} bytes, not {block} bytes"
            );
            let remedy = "block-size = \"4KiB\", or direct = false";
            return Err(Invalid::new("block-size", what).with_remedy(remedy));
        }
        if file < block {
            let what = format!("a file of {file} bytes has no room for a request of {block} bytes");
            return Err(Invalid::new("file-size", what).with_remedy("file-size = \"256MiB\""));
        }
        if !(1..=MOST_DEPTH).contains(&self.depth) {
            let what = format!(
                "from 1 to {MOST_DEPTH} requests can be under way, not {}",
                self.depth
            );
            return Err(Invalid::new("depth", what));
        }
        if self.depth > 1 && self.engine == Engine::Psync {
            let what = "psync makes one request at a time";
            return Err(Invalid::new("depth", what).with_remedy("engine = \"io_uring\""));
        }
        Ok(())
    }

    fn needs_folder(&self) -> bool {
        true
    }

    fn chosen_programs(&self) -> Vec<Chosen> {
        Vec::new()
    }

    fn require(&self, job: &Job) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut problem = |what: String, remedy: &str| {
            problems.push(job.problem(what, remedy));
        };
        if which::which(&self.program).is_err() {
            let what = format!("{} is not installed", self.program);
            problem(what, "install it: apt-get install fio");
        }
        if job.load.resolve_count(job.cpus).is_none() {
            let what = format!(
                "fio is not paced here, so a load of {} has no meaning",
                job.load
            );
            problem(what, "give the load as a number of jobs");
        }
        if job.workload.load_on == Place::Controller {
            let what = "fio reads and writes a file of the machine that is measured";
            problem(what.to_owned(), "leave out `load-on`");
        }
        problems
    }

    fn launch(&self, job: &Job) -> Launch {
        let mut argv = self.file();
        let us = |ns: u64| format!("{}us", ns.div_ceil(1000));
        argv.extend([
            format!("--rw={}", word(&self.access)),
            format!("--bs={}", self.block_bytes),
            format!("--direct={}", u8::from(self.direct)),
            format!("--ioengine={}", word(&self.engine)),
            format!("--iodepth={}", self.depth),
            format!("--numjobs={}", job.load_count()),
            // A number of 63 bits.
            format!("--randseed={}", job.seed >> 1),
            "--time_based".to_owned(),
            format!("--runtime={}", us(job.workload.duration_ns)),
            format!("--ramp_time={}", us(job.workload.warmup_ns)),
            "--group_reporting".to_owned(),
            "--unified_rw_reporting=mixed".to_owned(),
            format!("--percentile_list={PERCENTILE_LIST}"),
            "--output-format=json".to_owned(),
        ]);
        let mut prepare = self.file();
        // Of reads fio writes the whole file beforehand, with what cannot be compressed.
        prepare.extend(["--rw=read", "--create_only=1"].map(str::to_owned));
        Launch {
            prepare,
            ..Launch::new(argv)
        }
    }

    fn parse(&self, _: &Job, output: &Output) -> Result<Parsed, String> {
        program::check_success(PROGRAM.name, output)?;
        let said = Said::read(&output.stdout);
        let figures = said.and_then(|said| said.figures());
        let expected = "JSON of one group with requests that were completed";
        figures.ok_or_else(|| program::garbage(PROGRAM.name, expected, output))
    }

    fn read_again(&self, job: &Job, output: &Output) -> Option<Result<Vec<Measurement>, String>> {
        Some(self.parse(job, output).map(|parsed| parsed.metrics))
    }
}

/// The part of fio's JSON that is read.
#[derive(Debug, Deserialize)]
struct Said {
    jobs: Vec<Group>,
}

/// All jobs together.
#[derive(Debug, Deserialize)]
struct Group {
    mixed: Requests,
}

#[derive(Debug, Deserialize)]
struct Requests {
    bw_bytes: f64,
    iops: f64,
    clat_ns: Latency,
}

#[derive(Debug, Deserialize)]
struct Latency {
    max: f64,
    mean: f64,
    #[serde(rename = "N")]
    count: u64,
    /// By its number with six decimals; missing without requests.
    #[serde(default)]
    percentile: BTreeMap<String, f64>,
}

impl Said {
    /// Lines of fio's own come before the JSON.
    fn read(stdout: &str) -> Option<Self> {
        let json = &stdout[stdout.find('{')?..];
        serde_json::from_str(json).ok()
    }

    /// `None` where this is not what was asked for.
    fn figures(&self) -> Option<Parsed> {
        let [Group { mixed }] = self.jobs.as_slice() else {
            return None;
        };
        let latency = &mixed.clat_ns;
        if latency.count == 0 || mixed.iops <= 0.0 {
            return None;
        }
        let mut metrics = vec![
            IOPS.to_measurement(mixed.iops),
            BANDWIDTH.to_measurement(mixed.bw_bytes / 1e6),
            COMPLETION_MEAN.to_measurement(latency.mean),
        ];
        let mut missing = Vec::new();
        for (def, permille) in PERCENTILES {
            let name = format!("{:.6}", f64::from(permille) / 10.0);
            let value = latency.percentile.get(&name)?;
            match latency.count >= samples_needed(permille) {
                true => metrics.push(def.to_measurement(*value)),
                false => missing.push(def.name),
            }
        }
        metrics.push(COMPLETION_MAX.to_measurement(latency.max));
        Some(Parsed {
            metrics,
            warnings: too_few(&missing).into_iter().collect(),
            ..Parsed::default()
        })
    }
}

fn too_few(missing: &[&str]) -> Option<Warning> {
    (!missing.is_empty()).then(|| Warning {
        severity: Severity::Note,
        what: format!("too few requests for {}: left out", missing.join(", ")),
        remedy: "a longer duration (`--duration`)".to_owned(),
    })
}

#[cfg(test)]
mod tests;
