//! Time and peak memory of a history of ten thousand runs: a run that is added, and a check of all series.
//!
//! ```text
//! cargo run --release -p history-10k [-- RUNS]
//! ```
//! All runs are one synthetic run at other times, with noise of their own and a step in the middle. The index is
//! written line by line, as a store has it; what is measured goes through the store.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "what it measured goes to stdout"
)]

use history::{Run, Settings, Store, find_alarms};
use jiff::{SignedDuration, Timestamp};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use results::ResultSet;
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

const RUNS: u32 = 10_000;
const REPEATS: usize = 5;
/// A run so often.
const HOURS: i64 = 3;
const NOISE: f64 = 0.01;
const STEP: f64 = 0.05;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let runs = match std::env::args().nth(1) {
        Some(runs) => runs.parse()?,
        None => RUNS,
    };
    let dir = tempfile::tempdir()?;
    let scenario = synthetic::quickstart();
    synthetic::write(&dir.path().join("results"), &scenario)?;
    let results = ResultSet::read(&dir.path().join("results"))?;
    let now = Timestamp::now();
    let first = Run::from_results(&results, now)?;
    let store = Store::make(&dir.path().join("history"))?;
    let bytes = write_index(&store.dir().join("index.jsonl"), &first, runs)?;
    println!(
        "{runs} runs of {} figures, an index of {} MiB",
        first.figures.len(),
        bytes >> 20
    );
    for repeat in 0..REPEATS {
        let started = Instant::now();
        let added = numbered(&first, runs + u32::try_from(repeat)?, 0.0);
        store.add_run(&added, &results.experiment)?;
        println!("add    {:.2} s", started.elapsed().as_secs_f64());
    }
    let settings = Settings {
        effect: 0.02,
        false_alarms_per_year: 1.0,
    };
    for _ in 0..REPEATS {
        let started = Instant::now();
        let contents = store.read_contents()?;
        let read = started.elapsed().as_secs_f64();
        let found = find_alarms(&contents, settings, now);
        let whole = started.elapsed().as_secs_f64();
        let (alarms, series) = (found.alarms.len(), found.series);
        println!(
            "check  {whole:.2} s, of which {read:.2} s to read: {alarms} alarms in {series} series"
        );
    }
    println!("peak   {} MiB", peak_kib()? >> 10);
    Ok(())
}

fn write_index(path: &Path, first: &Run, runs: u32) -> Outcome<u64> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut index = BufWriter::new(File::create(path)?);
    for number in 0..runs {
        let step = if number < runs / 2 { 0.0 } else { STEP };
        let mut run = numbered(first, number, step);
        for figure in &mut run.figures {
            // The sum of twelve uniform values is nearly normal.
            let sum: f64 = (0..12).map(|_| rng.random::<f64>()).sum();
            figure.log_ratio += NOISE * (sum - 6.0);
        }
        serde_json::to_writer(&mut index, &serde_json::json!({ "run": run }))?;
        index.write_all(b"\n")?;
    }
    index.flush()?;
    Ok(path.metadata()?.len())
}

/// The run at another time, and moved by as much.
fn numbered(first: &Run, number: u32, moved: f64) -> Run {
    let mut run = first.clone();
    run.id = format!("{number:032x}");
    run.parts = vec![run.id.clone()];
    run.created = first.created + SignedDuration::from_hours(HOURS * i64::from(number));
    for figure in &mut run.figures {
        figure.log_ratio += moved;
    }
    run
}

/// `VmHWM` of proc_pid_status(5).
fn peak_kib() -> Outcome<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.ok_or("no VmHWM in /proc/self/status")?.parse()?)
}
