//! Cost of schedlab itself while a trial runs: the CPU time and the wake-ups of runner, agent
//! and guard while a workload that does nothing is measured.
//!
//! ```text
//! cargo run --release -p presence -- target/schedlab [REPEATS]
//! ```
//! CPU time is the first number of /proc/PID/task/TID/schedstat (nanoseconds on a
//! CPU), wake-ups are `voluntary_ctxt_switches` of /proc/PID/task/TID/status: a
//! thread that slept and ran again.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "what it measured goes to stdout"
)]

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Beyond the start of the trial, and within its ten seconds.
const SETTLE: Duration = Duration::from_secs(2);
const WATCH: Duration = Duration::from_secs(6);

#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    cpu_ns: u64,
    wakeups: u64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let program = args.next().ok_or("usage: presence SCHEDLAB [REPEATS]")?;
    let repeats: usize = args.next().map_or(Ok(5), |n| n.parse())?;
    let mut cpu_percent = Vec::new();
    let mut wakeups_per_sec = Vec::new();
    for _ in 0..repeats {
        let (cost, seconds) = measure(&program)?;
        cpu_percent.push(cost.cpu_ns as f64 / 1e7 / seconds);
        wakeups_per_sec.push(cost.wakeups as f64 / seconds);
    }
    println!("runner, agent and guard inside a window, {repeats} times:");
    print("CPU time, % of one CPU", cpu_percent);
    print("wake-ups a second", wakeups_per_sec);
    Ok(())
}

fn print(what: &str, mut values: Vec<f64>) {
    values.sort_by(f64::total_cmp);
    if let (Some(least), Some(most)) = (values.first(), values.last()) {
        let median = values[values.len() / 2];
        println!("  {what:<24} median {median:.3}, from {least:.3} to {most:.3}");
    }
}

fn measure(program: &str) -> Result<(Cost, f64), Box<dyn std::error::Error>> {
    let dir = std::env::temp_dir().join(format!("schedlab-presence-{}", std::process::id()));
    let mut runner = Command::new(program)
        .args(["run", "-a", "default", "--max-blocks", "1", "-o"])
        .arg(&dir)
        .args(["--", "sleep", "10"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let found = watch(&runner);
    runner.kill()?;
    runner.wait()?;
    // The directory of a killed run; the next repeat makes a new one.
    let _ = fs::remove_dir_all(&dir);
    found
}

fn watch(runner: &Child) -> Result<(Cost, f64), Box<dyn std::error::Error>> {
    sleep(SETTLE);
    let start = Instant::now();
    let before = cost_of_tree(runner.id())?;
    sleep(WATCH);
    let after = cost_of_tree(runner.id())?;
    let cost = Cost {
        cpu_ns: after.cpu_ns.saturating_sub(before.cpu_ns),
        wakeups: after.wakeups.saturating_sub(before.wakeups),
    };
    Ok((cost, start.elapsed().as_secs_f64()))
}

/// The runner and all below it, without the workload.
fn cost_of_tree(pid: u32) -> std::io::Result<Cost> {
    let mut total = Cost::default();
    if fs::read_to_string(format!("/proc/{pid}/comm"))?.trim() == "sleep" {
        return Ok(total);
    }
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let task = task?.path();
        total.cpu_ns += first_number(&fs::read_to_string(task.join("schedstat"))?);
        let status = fs::read_to_string(task.join("status"))?;
        let line = status
            .lines()
            .find_map(|l| l.strip_prefix("voluntary_ctxt_switches:"));
        total.wakeups += first_number(line.unwrap_or_default());
        let children = fs::read_to_string(task.join("children"))?;
        for child in children.split_whitespace().filter_map(|c| c.parse().ok()) {
            let below = cost_of_tree(child)?;
            total.cpu_ns += below.cpu_ns;
            total.wakeups += below.wakeups;
        }
    }
    Ok(total)
}

fn first_number(text: &str) -> u64 {
    let first = text.split_whitespace().next();
    first.and_then(|n| n.parse().ok()).unwrap_or(0)
}
