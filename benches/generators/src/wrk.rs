//! wrk, a closed loop, and wrk2, the same with an intended rate.

use crate::side::{Load, Run, SETTLE, Side, pinned, watched};
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

/// wrk2 throws away what it measures while it calibrates itself (`CALIBRATE_DELAY_MS`
/// in its wrk.h), and connects 5 ms apart.
const CALIBRATION: Duration = Duration::from_millis(10_500);
/// For wrk2, which needs a rate.
const BEYOND_REACH_PER_SEC: f64 = 1e6;

pub struct Wrk {
    pub program: PathBuf,
}

impl Side for Wrk {
    fn name(&self) -> &str {
        "wrk"
    }

    /// Whatever rate is asked for, it sends as fast as it gets answers.
    fn run(&self, load: &Load) -> Result<Run, Box<dyn Error>> {
        let mut command = pinned(&self.program, load.cpu, load.realtime);
        arguments(&mut command, load, SETTLE + load.window);
        let (output, cpu_percent) = watched(command, SETTLE, load.window)?;
        parse(&output, cpu_percent)
    }
}

pub struct Wrk2 {
    pub program: PathBuf,
}

impl Side for Wrk2 {
    fn name(&self) -> &str {
        "wrk2"
    }

    fn run(&self, load: &Load) -> Result<Run, Box<dyn Error>> {
        let mut command = pinned(&self.program, load.cpu, load.realtime);
        let rate = load.rate_per_sec.unwrap_or(BEYOND_REACH_PER_SEC);
        command.args(["-R", &rate.round().to_string()]);
        arguments(&mut command, load, CALIBRATION + load.window);
        let (output, cpu_percent) = watched(command, CALIBRATION, load.window)?;
        parse(&output, cpu_percent)
    }
}

fn arguments(command: &mut std::process::Command, load: &Load, time: Duration) {
    let seconds = time.as_secs_f64().ceil();
    command.args(["-t1", "--latency"]);
    command.args(["-c", &load.connections.to_string()]);
    command.args(["-d", &format!("{seconds}s")]);
    command.arg(format!("http://{}/", load.address));
}

fn parse(output: &str, cpu_percent: f64) -> Result<Run, Box<dyn Error>> {
    if output.contains("Non-2xx") || output.contains("Socket errors") {
        return Err(format!("requests failed:\n{output}").into());
    }
    let rate = after(output, "Requests/sec:").and_then(|word| word.parse().ok());
    Ok(Run {
        rate_per_sec: rate.ok_or("wrk said no rate")?,
        p50_us: percentile(output, "50").ok_or("wrk said no median")?,
        p99_us: percentile(output, "99").ok_or("wrk said no 99th percentile")?,
        cpu_percent,
    })
}

/// `50%  1.02ms` of wrk, `50.000%  1.02ms` of wrk2.
fn percentile(output: &str, percent: &str) -> Option<f64> {
    let long = format!("{percent}.000%");
    let time = after(output, &long).or_else(|| after(output, &format!(" {percent}%")))?;
    microseconds(time)
}

fn after<'a>(output: &'a str, label: &str) -> Option<&'a str> {
    let line = output.lines().find(|line| line.contains(label))?;
    line.split_whitespace().next_back()
}

fn microseconds(text: &str) -> Option<f64> {
    let units = [("us", 1.0), ("ms", 1e3), ("s", 1e6), ("m", 60e6)];
    units.iter().find_map(|(unit, factor)| {
        let number: f64 = text.strip_suffix(unit)?.parse().ok()?;
        Some(number * factor)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_both_is_read() {
        let wrk = "  Latency Distribution\n     50%  300.50us\n     75%  400.00us\n     99%    1.25ms\n\
                   Requests/sec:  28012.20\nTransfer/sec:      4.28MB\n";
        let wrk2 = "  Latency Distribution (HdrHistogram - Recorded Latency)\n 50.000%    1.02ms\n\
                    \x2099.000%    2.21s \n 99.900%   2.60s\nRequests/sec:   1000.01\n";
        let run = parse(wrk, 99.0).unwrap();
        assert_eq!(
            (run.rate_per_sec, run.p50_us, run.p99_us),
            (28012.2, 300.5, 1250.0)
        );
        let run = parse(wrk2, 99.0).unwrap();
        assert_eq!(
            (run.rate_per_sec, run.p50_us, run.p99_us),
            (1000.01, 1020.0, 2_210_000.0)
        );
    }

    #[test]
    fn failed_requests_are_an_error() {
        assert!(parse("  Non-2xx or 3xx responses: 7\n", 0.0).is_err());
    }
}
