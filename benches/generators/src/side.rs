//! The common interface of all generators: they are asked for a rate against an address, run on
//! one CPU, and leave a rate, latencies and CPU time.

use crate::cpu;
use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Connections are open and the load is steady.
pub const SETTLE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy)]
pub struct Load {
    pub address: SocketAddr,
    /// `None`: as fast as it goes, each answer followed by a request.
    pub rate_per_sec: Option<f64>,
    pub connections: u32,
    pub window: Duration,
    /// CPU of the generator.
    pub cpu: u32,
    pub realtime: bool,
}

/// Result of one run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Run {
    pub rate_per_sec: f64,
    /// Quantile as the generator itself reports it.
    pub p50_us: f64,
    pub p99_us: f64,
    /// CPU time of the generator's process, in percent of a CPU.
    pub cpu_percent: f64,
}

impl Run {
    pub fn cpu_us_per_request(&self) -> f64 {
        self.cpu_percent / 100.0 * 1e6 / self.rate_per_sec
    }
}

pub trait Side {
    fn name(&self) -> &str;
    fn run(&self, load: &Load) -> Result<Run, Box<dyn Error>>;
}

/// Runs on one CPU only; where asked for, before all that is not real-time.
pub fn pinned(program: &Path, cpu: u32, realtime: bool) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", &cpu.to_string()]);
    if realtime {
        command.args(["chrt", "-f", PRIORITY]);
    }
    command.arg(program);
    command
}

const PRIORITY: &str = "10";

/// The output of a program, and the CPU time that it used in the `window` after
/// `settle`, in percent.
pub fn watched(
    mut command: Command,
    settle: Duration,
    window: Duration,
) -> Result<(String, f64), Box<dyn Error>> {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let cpu_percent = cpu_percent(&child, settle, window)?;
    let output = child.wait_with_output()?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("{command:?}: {}: {why}", output.status).into());
    }
    Ok((String::from_utf8(output.stdout)?, cpu_percent))
}

pub fn cpu_percent(
    child: &Child,
    settle: Duration,
    window: Duration,
) -> Result<f64, Box<dyn Error>> {
    std::thread::sleep(settle);
    // Not the whole window: a process that has ended has no CPU time to read.
    cpu::percent_of(child.id(), window.mul_f64(0.8)).map_err(|e| format!("CPU time: {e}").into())
}
