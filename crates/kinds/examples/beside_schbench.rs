//! The native wakeup load beside real schbench, at the same parameters, in turns.
//!
//! ```text
//! cargo run --release -p schedlab-kinds --example beside_schbench -- ROUNDS [SCHBENCH]...
//! ```
//! Prints median, least and greatest of each figure. `SCHBENCH` is a program, several
//! are compared side by side; the default is `schbench` from PATH.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a program that prints"
)]

use kinds::schbench;
use kinds::schbench::Schbench;
use kinds::wakeup::{self, Wakeup};
use load::{Driver, Job, Launch, Output, Parsed, SELF, native_main, phase};
use model::{Arrivals, Kind, Load, Workload};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::process::{Command, ExitCode, Stdio};

const SHOWN: [&str; 5] = [
    "requests_per_sec",
    "wakeup_p50",
    "wakeup_p99",
    "request_p50",
    "request_p99",
];

/// Setting that both programs get.
struct Setting {
    name: &'static str,
    message_threads: u32,
    /// Workers of each message thread.
    workers: u32,
    operations: u32,
    footprint_kib: u64,
    seconds: u64,
}

const SETTINGS: [Setting; 4] = [
    setting("one worker", 1, 1, 64, 2),
    setting("a worker a CPU of two", 1, 2, 64, 2),
    setting("two workers a CPU of two", 2, 2, 64, 2),
    setting("schbench's own defaults", 1, 2, 256, 3),
];

const fn setting(
    name: &'static str,
    message_threads: u32,
    workers: u32,
    footprint_kib: u64,
    seconds: u64,
) -> Setting {
    Setting {
        name,
        message_threads,
        workers,
        operations: 5,
        footprint_kib,
        seconds,
    }
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let first = args.next().unwrap_or_default();
    if first == "load" {
        load::KINDS.add_entry(&wakeup::KIND);
        return finish(native_main(std::io::stdin(), std::io::stdout()));
    }
    let Ok(rounds) = first.parse() else {
        return finish(Err("usage: beside_schbench ROUNDS [SCHBENCH]...".to_owned()));
    };
    let mut programs: Vec<String> = args.collect();
    if programs.is_empty() {
        programs.push("schbench".to_owned());
    }
    finish(
        SETTINGS
            .iter()
            .try_for_each(|s| compare(s, rounds, &programs)),
    )
}

fn finish(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Figures of all rounds, by metric.
type Figures = BTreeMap<String, Vec<f64>>;

fn compare(setting: &Setting, rounds: usize, programs: &[String]) -> Result<(), String> {
    let mut figures = vec![Figures::new(); programs.len() + 1];
    for round in 0..rounds {
        // Who starts changes, so that no one always runs after the same other.
        for turn in 0..figures.len() {
            let who = (round + turn) % figures.len();
            let parsed = match who.checked_sub(1) {
                None => run_native(setting)?,
                Some(program) => run_schbench(setting, &programs[program])?,
            };
            for measured in parsed.metrics {
                let values = figures[who].entry(measured.metric).or_default();
                values.push(measured.value);
            }
        }
    }
    print(setting, programs, &figures);
    Ok(())
}

fn print(setting: &Setting, programs: &[String], figures: &[Figures]) {
    println!("{}", setting.name);
    let native = "wakeup".to_owned();
    for metric in SHOWN {
        for (who, figures) in std::iter::once(&native).chain(programs).zip(figures) {
            let mut values = figures.get(metric).cloned().unwrap_or_default();
            values.sort_by(f64::total_cmp);
            if let (Some(least), Some(greatest)) = (values.first(), values.last()) {
                let median = values[values.len() / 2];
                println!("  {metric:18}{median:14.1}  [{least:.1} .. {greatest:.1}]  {who}");
            }
        }
    }
}

fn run_native(setting: &Setting) -> Result<Parsed, String> {
    let load = Wakeup {
        message_threads: setting.message_threads,
        workers: None,
        rate_per_sec: None,
        arrivals: Arrivals::Poisson,
        sleep_ns: 100_000,
        operations: setting.operations,
        footprint_bytes: setting.footprint_kib << 10,
        cpu_lock: true,
    };
    let workers = setting.message_threads * setting.workers;
    measure(setting, wakeup::KIND.with_params(&load), &load, workers)
}

fn run_schbench(setting: &Setting, program: &str) -> Result<Parsed, String> {
    let (footprint, operations) = (setting.footprint_kib, setting.operations);
    let load = Schbench {
        message_threads: setting.message_threads,
        args: vec![format!("-F{footprint}"), format!("-n{operations}")],
        program: program.to_owned(),
    };
    measure(
        setting,
        schbench::KIND.with_params(&load),
        &load,
        setting.workers,
    )
}

/// Calibrates, runs and reads, without a warm-up: schbench has none in short runs.
fn measure(
    setting: &Setting,
    kind: Kind,
    driver: &dyn Driver,
    count: u32,
) -> Result<Parsed, String> {
    let workload = Workload {
        duration_ns: setting.seconds * 1_000_000_000,
        ..Workload::new(kind)
    };
    let mut job = Job {
        seed: 1,
        ..Job::new(&workload, Load::Count(u64::from(count)), 1)
    };
    job.calibration = driver.calibrate(&job, &mut |argv, _| {
        run(&Launch::new(argv.to_vec())).map_err(|e| e.to_string())
    })?;
    let output = run(&driver.launch(&job)).map_err(|e| format!("{}: {e}", workload.name))?;
    driver.parse(&job, &output)
}

/// Runs to the end, with `go` at once where the process waits for it.
fn run(launch: &Launch) -> std::io::Result<Output> {
    let program = match launch.argv[0].as_str() {
        SELF => std::env::current_exe()?,
        name => name.into(),
    };
    let mut child = Command::new(program)
        .args(&launch.argv[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    // Kept open to the end: a generator whose input closes thinks that its agent is gone.
    let mut stdin = child.stdin.take();
    if let (true, Some(stdin)) = (launch.phased, &mut stdin) {
        writeln!(stdin, "{}{}\n{}", launch.stdin, phase::GO, phase::SEEN)?;
    }
    let mut stdout = String::new();
    if let Some(mut pipe) = child.stdout.take() {
        pipe.read_to_string(&mut stdout)?;
    }
    let finished = child.wait_with_output()?;
    Ok(Output {
        stdout,
        stderr: String::from_utf8_lossy(&finished.stderr).into_owned(),
        success: finished.status.success(),
        status: finished.status.to_string(),
        ..Output::default()
    })
}
