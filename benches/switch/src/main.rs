//! Cost of a change of schedulers between two trials beyond the scheduler's own time to load
//! and to end, in a guest.
//!
//! ```text
//! cargo run --release -p switch -- target/schedlab scx_rusty [BLOCKS]
//! ```
//! The gap between two trials is the time from the end of one measuring window to the
//! start of the next one, by the guest's clock, and both are in each trial's record.
//! Into a trial with the scheduler it holds the program's own load time, out of one its
//! own end. Those are measured in a guest of the same kind by starting and ending the
//! program by hand. Disk use of the cache and of one trial is printed as well.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "what it measured goes to stdout"
)]

use results::{ResultSet, StoredTrial};
use std::path::Path;
use std::process::Command;

type Failure = Box<dyn std::error::Error>;

/// Starts and ends the program, and prints how many milliseconds each took. The first
/// start reads the program from the host and is left out.
const BY_HAND: &str = r#"
now() { read up rest < /proc/uptime; echo "${up%.*}${up#*.}0"; }
for round in warm 1 2 3 4 5; do
  start=$(now); "$0" > /dev/null 2>&1 & pid=$!
  until [ -s /sys/kernel/sched_ext/root/ops ]; do sleep 0.02; done
  up=$(now); kill -INT $pid; wait $pid
  until grep -q disabled /sys/kernel/sched_ext/state; do sleep 0.02; done
  [ $round = warm ] || echo $((up - start)) $(($(now) - up))
done
"#;

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let usage = "usage: switch SCHEDLAB SCHEDULER [BLOCKS]";
    let program = args.next().ok_or(usage)?;
    let scheduler = args.next().ok_or(usage)?;
    let blocks = args.next().unwrap_or_else(|| "8".to_owned());

    let (load, end) = by_hand(&program, &scheduler)?;
    println!("{scheduler} by hand: load {load:.2} s, end {end:.2} s (medians of 5)");
    let dir = tempfile::tempdir()?;
    let results = measure(&program, &scheduler, &blocks, &dir.path().join("out"))?;
    let (into, out) = gaps(&results.trials);
    print("gap into a trial with it", &into, load);
    print("gap out of one", &out, end);
    let trials = dir.path().join("out/trials");
    let per_trial = bytes_below(&trials) / results.trials.len().max(1) as u64;
    println!("disk: {per_trial} bytes a trial");
    Ok(())
}

fn print(what: &str, gaps: &[f64], own: f64) {
    let least = gaps.iter().copied().fold(f64::INFINITY, f64::min);
    let most = gaps.iter().copied().fold(0.0, f64::max);
    let median = median(gaps);
    println!(
        "{what}: median {median:.2} s, from {least:.2} to {most:.2} ({} gaps); beyond its own {:.2} s",
        gaps.len(),
        median - own
    );
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Seconds that the program takes to be in force, and to be gone.
fn by_hand(program: &str, scheduler: &str) -> Result<(f64, f64), Failure> {
    let name = format!("switch-{}", std::process::id());
    let vm = |args: &[&str]| -> Result<String, Failure> {
        let output = Command::new(program).arg("vm").args(args).output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        Ok(String::from_utf8(output.stdout)?)
    };
    vm(&["start", "--name", &name])?;
    let installed = r#"PATH="$PATH:$SCHEDLAB_SCHEDULERS"; command -v "$0""#;
    let told = vm(&["exec", "--name", &name, "sh", "-c", installed, scheduler])
        .and_then(|path| vm(&["exec", "--name", &name, "sh", "-c", BY_HAND, path.trim()]));
    vm(&["stop", "--name", &name])?;
    let told = told?;
    let column = |index: usize| -> Vec<f64> {
        let numbers = told.lines().filter_map(|l| l.split(' ').nth(index));
        let parsed = numbers.filter_map(|n| n.parse::<f64>().ok());
        parsed.map(|ms| ms / 1000.0).collect()
    };
    Ok((median(&column(0)), median(&column(1))))
}

fn measure(program: &str, scheduler: &str, blocks: &str, dir: &Path) -> Result<ResultSet, Failure> {
    let status = Command::new(program)
        .args([
            "run",
            "--vm",
            "debian:sid",
            "-a",
            "default",
            "-a",
            scheduler,
        ])
        .args(["--max-blocks", blocks, "-o"])
        .arg(dir)
        .args(["--", "sleep", "1"])
        .status()?;
    println!("the run ended with {status}");
    Ok(ResultSet::read(dir)?)
}

/// Seconds between the windows of neighbours: into a trial with a scheduler, and out
/// of one.
fn gaps(trials: &[StoredTrial]) -> (Vec<f64>, Vec<f64>) {
    let mut order: Vec<&StoredTrial> = trials.iter().filter(|t| t.trial.is_ok()).collect();
    order.sort_by_key(|t| t.trial.result.started_unix_ns);
    let (mut into, mut out) = (Vec::new(), Vec::new());
    for pair in order.windows(2) {
        let (first, second) = (&pair[0].trial.result, &pair[1].trial.result);
        let from = first.started_unix_ns + first.window_end_ns;
        let to = second.started_unix_ns + second.window_start_ns;
        let gap = to.saturating_sub(from) as f64 / 1e9;
        let attached = |t: &StoredTrial| t.trial.result.evidence.scheduler_binary.is_some();
        match (attached(pair[0]), attached(pair[1])) {
            (false, true) => into.push(gap),
            (true, false) => out.push(gap),
            _ => {}
        }
    }
    (into, out)
}

fn bytes_below(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(m) if m.is_dir() => bytes_below(&entry.path()),
            Ok(m) => m.len(),
            Err(_) => 0,
        })
        .sum()
}
