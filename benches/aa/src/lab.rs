//! Runs schedlab and reads what it left.

use results::ResultSet;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The exit code for an unmet requirement; here, that somebody else is measuring.
const UNMET: i32 = 3;
const WAIT: Duration = Duration::from_secs(5);
/// Somebody else's run may be long.
const PATIENCE: Duration = Duration::from_secs(3600);
/// Share of the CPUs that others may have.
const CALM: f64 = 0.15;

/// One experiment at a time: the lock of the machine is free between two of them.
#[derive(Debug)]
pub struct Lab {
    schedlab: PathBuf,
    /// Results, until they are read.
    dir: tempfile::TempDir,
}

impl Lab {
    pub fn new(schedlab: PathBuf) -> Result<Lab, Box<dyn Error>> {
        Ok(Lab {
            schedlab: fs::canonicalize(&schedlab)
                .map_err(|e| format!("{}: {e}", schedlab.display()))?,
            dir: tempfile::tempdir()?,
        })
    }

    /// Run an experiment to its end.
    pub fn run(&self, experiment: &str) -> Result<ResultSet, Box<dyn Error>> {
        let file = self.dir.path().join("experiment.toml");
        let output = self.dir.path().join("results");
        fs::write(&file, experiment)?;
        let end = Instant::now() + PATIENCE;
        loop {
            let _ = fs::remove_dir_all(&output);
            let ran = Command::new(&self.schedlab)
                .args(["run", "--quiet"])
                .arg(&file)
                .arg("-o")
                .arg(&output)
                .stdin(Stdio::null())
                .output()?;
            match ran.status.code() {
                // 4: a trial did not count and was repeated.
                Some(0 | 4) => return Ok(ResultSet::read(&output)?),
                code => {
                    let said = String::from_utf8_lossy(&ran.stderr);
                    if code == Some(UNMET) && Instant::now() < end {
                        sleep(WAIT);
                        continue;
                    }
                    return Err(format!("schedlab ended with {}: {said}", ran.status).into());
                }
            }
        }
    }
}

/// Load average of the last minute.
pub fn load_average() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|n| n.parse().ok()).unwrap_or(0.0)
}

/// Wait until others leave the CPUs alone, for `patience` at most: nobody would
/// measure a small change beside a build.
pub fn wait_for_calm(patience: Duration) {
    let end = Instant::now() + patience;
    while Instant::now() < end && busy_share() > CALM {
        sleep(Duration::from_millis(200));
    }
}

/// Busy share of all CPUs, over a second; 0 where /proc/stat does not tell.
fn busy_share() -> f64 {
    let before = cpu_ticks();
    sleep(Duration::from_secs(1));
    let (Some((busy, all)), Some((busy_before, all_before))) = (cpu_ticks(), before) else {
        return 0.0;
    };
    (busy - busy_before) / (all - all_before).max(1.0)
}

/// Busy and all ticks of all CPUs: the first line of /proc/stat (proc_stat(5)), whose
/// fourth and fifth numbers are idle and waiting for I/O.
fn cpu_ticks() -> Option<(f64, f64)> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let first = text.lines().next()?;
    let ticks: Vec<f64> = first
        .split_whitespace()
        .skip(1)
        .take(8)
        .filter_map(|n| n.parse().ok())
        .collect();
    let all: f64 = ticks.iter().sum();
    Some((all - ticks.get(3)? - ticks.get(4)?, all))
}
