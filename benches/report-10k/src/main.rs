//! Time and peak memory of a report over ten thousand synthetic trials, of one run or merged from
//! those of many machines.
//!
//! ```text
//! cargo run --release -p report-10k [-- TRIALS [MACHINES]]
//! ```
//! Each format is made in a process of its own, from reading the directory to the
//! finished text, five times: the peak memory of a process is that of one report.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "what it measured goes to stdout"
)]

use report::{FORMATS, Format, Options, Table};
use results::merge::{Part, merge_runs};
use results::{Manifest, ResultSet};
use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const TRIALS: u32 = 10_000;
const REPEATS: usize = 5;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.as_slice() {
        [once, dir, format] if once == "--once" => once_in_this_process(Path::new(dir), format),
        [] => measure(TRIALS, 1),
        [trials] => measure(trials.parse()?, 1),
        [trials, machines] => measure(trials.parse()?, machines.parse::<u32>()?.max(1)),
        _ => Err("usage: report-10k [TRIALS [MACHINES]]".into()),
    }
}

fn measure(trials: u32, machines: u32) -> Outcome<()> {
    let dir = tempfile::tempdir()?;
    eprintln!("writing {trials} trials ...");
    let results = dir.path().join("results");
    let written = match machines {
        1 => one_run(&results, trials)?,
        machines => merged(dir.path(), &results, trials, machines)?,
    };
    println!("{written} trials, median of {REPEATS} runs (lowest to highest)");
    println!(
        "{:<10} {:>24} {:>12} {:>12} {:>12}",
        "format", "seconds", "CPU seconds", "peak MiB", "output KiB"
    );
    for format in FORMATS {
        println!("{}", line(&results, format)?);
    }
    Ok(())
}

fn one_run(dir: &Path, trials: u32) -> Outcome<usize> {
    let scenario = synthetic::many(trials);
    synthetic::write(dir, &scenario)?;
    Ok(scenario.plan.trials.len())
}

/// Runs of so many machines, each with an order of its own, and what they are together.
fn merged(all: &Path, dir: &Path, trials: u32, machines: u32) -> Outcome<usize> {
    let mut scenario = synthetic::many(trials.div_ceil(machines));
    let runs = (1..=machines).map(|number| {
        let run = all.join(number.to_string());
        scenario.experiment.seed = u64::from(number);
        scenario.plan.seed = u64::from(number);
        scenario.system.hostname = format!("lab{number}");
        synthetic::write(&run, &scenario)?;
        Ok(ResultSet::read(&run)?)
    });
    let runs = runs.collect::<Outcome<Vec<ResultSet>>>()?;
    let parts = runs.iter().map(|results| Part {
        machine: results.system.hostname.clone(),
        results,
    });
    let parts: Vec<Part> = parts.collect();
    let manifest = runs.first().map(|run| Manifest {
        name: "merged".to_owned(),
        ..run.manifest.clone()
    });
    let started = Instant::now();
    merge_runs(&parts, dir, manifest.ok_or("no machines")?)?;
    let seconds = started.elapsed().as_secs_f64();
    println!("merged from {machines} machines in {seconds:.1} s");
    Ok(runs.iter().map(|run| run.trials.len()).sum())
}

fn line(dir: &Path, format: &Format) -> Outcome<String> {
    let mut runs = (0..REPEATS)
        .map(|_| child(dir, format))
        .collect::<Outcome<Vec<Run>>>()?;
    runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let (lowest, highest) = (runs[0].seconds, runs[REPEATS - 1].seconds);
    let middle = &runs[REPEATS / 2];
    let seconds = format!("{:.2} ({lowest:.2} to {highest:.2})", middle.seconds);
    Ok(format!(
        "{:<10} {seconds:>24} {:>12.2} {:>12} {:>12}",
        format.name,
        middle.cpu_seconds,
        middle.peak_kib / 1024,
        middle.output_bytes / 1024
    ))
}

struct Run {
    seconds: f64,
    cpu_seconds: f64,
    peak_kib: u64,
    output_bytes: u64,
}

fn child(dir: &Path, format: &Format) -> Outcome<Run> {
    let output = Command::new(std::env::current_exe()?)
        .arg("--once")
        .arg(dir)
        .arg(format.name)
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    let mut words = text.split_whitespace();
    let error = String::from_utf8_lossy(&output.stderr);
    let mut next = || {
        let failed = || format!("the measuring process failed: {error}");
        words.next().ok_or_else(failed)
    };
    Ok(Run {
        seconds: next()?.parse()?,
        cpu_seconds: next()?.parse()?,
        peak_kib: next()?.parse()?,
        output_bytes: next()?.parse()?,
    })
}

fn once_in_this_process(dir: &Path, format: &str) -> Outcome<()> {
    let format = Format::find_by_name(format);
    let started = Instant::now();
    let results = ResultSet::read(dir)?;
    let read = started.elapsed();
    let format = format.ok_or("no such format")?;
    let table = Table::for_format(&results, format);
    let judged = started.elapsed();
    let report = format
        .render_report(&table, &results, &Options::default())?
        .into_string();
    let seconds = started.elapsed().as_secs_f64();
    eprintln!("read {read:?}, judged after {judged:?}");
    println!(
        "{seconds} {} {} {}",
        cpu_seconds()?,
        peak_kib()?,
        report.len()
    );
    Ok(())
}

/// User and system time of this process, proc_pid_stat(5), fields 14 and 15.
fn cpu_seconds() -> Outcome<f64> {
    const TICKS_PER_SEC: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').ok_or("no name in /proc/self/stat")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<u64>().ok());
    let (user, system) = ticks(11)
        .zip(ticks(12))
        .ok_or("no times in /proc/self/stat")?;
    Ok((user + system) as f64 / TICKS_PER_SEC)
}

/// `VmHWM` of proc_pid_status(5).
fn peak_kib() -> Outcome<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.ok_or("no VmHWM in /proc/self/status")?.parse()?)
}
