//! mcperf of memcache-perf, the successor of mutilate. Without `--blocking` it polls
//! all the time. Its latencies begin when a request is sent, not when it was due.

use crate::schedlab::{KEY_BYTES, KEYS, VALUE_BYTES};
use crate::side::{Load, Run, SETTLE, Side, pinned, watched};
use std::error::Error;
use std::path::PathBuf;

pub struct Mcperf {
    pub program: PathBuf,
    pub blocking: bool,
}

impl Side for Mcperf {
    fn name(&self) -> &str {
        if self.blocking { "mcperf -B" } else { "mcperf" }
    }

    fn run(&self, load: &Load) -> Result<Run, Box<dyn Error>> {
        let mut command = pinned(&self.program, load.cpu, load.realtime);
        let number = |n: u64| n.to_string();
        let rate = load.rate_per_sec.unwrap_or(0.0).round();
        command.args(["-s", &load.address.to_string()]);
        command.args(["-q", &rate.to_string()]);
        command.args(["-c", &load.connections.to_string()]);
        command.args(["-r", &number(KEYS), "-K", &number(KEY_BYTES)]);
        command.args(["-V", &number(VALUE_BYTES)]);
        command.args(["-w", &number(SETTLE.as_secs())]);
        command.args(["-t", &number(load.window.as_secs())]);
        if self.blocking {
            command.arg("--blocking");
        }
        let (output, cpu_percent) = watched(command, SETTLE, load.window)?;
        Ok(Run {
            rate_per_sec: rate_of(&output).ok_or("mcperf said no rate")?,
            p50_us: column(&output, "p50").ok_or("mcperf said no median")?,
            p99_us: column(&output, "p99").ok_or("mcperf said no 99th percentile")?,
            cpu_percent,
        })
    }
}

/// `Total QPS = 951.0 (1902 / 2.0s)`
fn rate_of(output: &str) -> Option<f64> {
    let line = output
        .lines()
        .find_map(|l| l.strip_prefix("Total QPS = "))?;
    line.split(' ').next()?.parse().ok()
}

/// A column of the row `read`, by its name in the header line.
fn column(output: &str, name: &str) -> Option<f64> {
    let row = |first: &str| {
        let line = output.lines().find(|line| line.starts_with(first))?;
        Some(line.split_whitespace())
    };
    let place = row("#type")?.position(|word| word == name)?;
    row("read")?.nth(place)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read_by_the_names_of_its_columns() {
        let output = "#type  avg  p50  p99\nread  8.5  3156.6  40019.0\nupdate 0.0 0.0 0.0\n\n\
                      Total QPS = 951.0 (1902 / 2.0s)\n";
        assert_eq!(column(output, "p99"), Some(40019.0));
        assert_eq!(column(output, "p5"), None);
        assert_eq!(rate_of(output), Some(951.0));
    }
}
