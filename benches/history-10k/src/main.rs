//! Time and peak memory of a history of ten thousand runs: a run that is added, a check of all series, the page, a run
//! that is judged by it, and old runs that go.
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

use history::{Run, Settings, Store, find_alarms, judge_by_history, plan_pruning, render_page};
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
/// Good runs by which a run is judged.
const LAST_GOOD: usize = 10;
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
    store.look_for_alarms(settings, now)?;
    time_uses(&store, &first, &results)?;
    println!("peak   {} MiB, with all of these", peak_kib()? >> 10);
    Ok(())
}

/// What is done with a history whose alarms are told. Pruning is the last, since it takes half of the runs.
fn time_uses(store: &Store, first: &Run, results: &ResultSet) -> Outcome<()> {
    for _ in 0..REPEATS {
        let started = Instant::now();
        let page = render_page(&store.read_contents()?)?;
        let kib = page.len() >> 10;
        println!("page   {:.2} s, {kib} KiB", started.elapsed().as_secs_f64());
    }
    for _ in 0..REPEATS {
        let started = Instant::now();
        let contents = store.read_contents()?;
        let new = numbered(first, u32::try_from(contents.runs.len())?, STEP);
        let gate = judge_by_history(&contents, (&new, results), LAST_GOOD);
        let checks = gate.ok_or("nothing to judge by")?.checks.len();
        let seconds = started.elapsed().as_secs_f64();
        println!("gate   {seconds:.2} s, {checks} figures");
    }
    let started = Instant::now();
    let contents = store.read_contents()?;
    let middle = contents.runs[contents.runs.len() / 2].created;
    let (gone, _) = store.prune(&plan_pruning(&contents, middle), middle)?;
    let (seconds, gone, kept) = (
        started.elapsed().as_secs_f64(),
        gone.runs.len(),
        gone.kept_for_alarms,
    );
    println!("prune  {seconds:.2} s: {gone} runs are gone, {kept} old ones are of open alarms");
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
