//! The rounds: equal arms, known slowdowns, and the sequential protocol, in turns.

use crate::lab::{Lab, load_average, wait_for_calm};
use crate::record::{self, Interleaved, Record, Side};
use report::Table;
use results::ResultSet;
use std::error::Error;
use std::path::Path;
use std::time::Duration;

/// Extra work in percent.
pub const INJECTED: [f64; 3] = [1.0, 3.0, 10.0];
pub const METRIC: &str = "requests_per_sec";
/// In this order each side is a neighbour of the unchanged arm, before and after it.
const SERIES: [f64; 8] = [0.0, 0.0, 1.0, 0.0, 3.0, 0.0, 10.0, 0.0];
/// Runs of one side.
pub const LONG_RUNS: u32 = 10;

#[derive(Debug, Clone, clap::Args)]
pub struct Amount {
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
    /// A/A comparisons of a round
    #[arg(long, default_value_t = 67)]
    pub equal: u32,
    /// Comparisons of a round with each slowdown
    #[arg(long, default_value_t = 3)]
    pub slowed: u32,
    /// Measured window of a trial
    #[arg(long, default_value = "200ms")]
    pub trial: String,
    /// Measured window of a run of the sequential protocol
    #[arg(long, default_value = "3s")]
    pub run: String,
    /// Most blocks of an A/A comparison
    #[arg(long, default_value_t = 12)]
    pub equal_blocks: u32,
    /// Most blocks of a comparison with a slowdown
    #[arg(long, default_value_t = 40)]
    pub slowed_blocks: u32,
    /// Seconds to wait at most for others to leave the CPUs alone, before a comparison
    /// with a slowdown and before a side of the sequential protocol
    #[arg(long, default_value_t = 60)]
    pub patience: u64,
    /// Let the arms take turns in windows of this length inside one process; a trial is then as
    /// long for each arm
    #[arg(long)]
    pub turn: Option<String>,
    /// Time that is thrown away before each of these windows
    #[arg(long, requires = "turn")]
    pub washout: Option<String>,
    /// Fewest blocks of a comparison
    #[arg(long, default_value_t = 3)]
    pub min_blocks: u32,
    /// Leave out the sequential protocol
    #[arg(long)]
    pub no_sides: bool,
    /// Seed of the first comparison; each has another one
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

pub fn rounds(lab: &Lab, amount: &Amount, file: &Path) -> Result<(), Box<dyn Error>> {
    let mut seed = amount.seed;
    let patience = Duration::from_secs(amount.patience);
    for round in 1..=amount.rounds {
        for n in 1..=amount.equal {
            say(&format!("round {round}, A/A {n} of {}", amount.equal));
            seed += 1;
            let text = equal(amount, seed);
            record::append(file, &interleaved(&lab.run(&text)?, 0.0))?;
        }
        for injected in INJECTED {
            for n in 1..=amount.slowed {
                say(&format!("round {round}, {injected} % slower, {n}"));
                seed += 1;
                let text = slowed(amount, injected, seed);
                wait_for_calm(patience);
                record::append(file, &interleaved(&lab.run(&text)?, injected))?;
            }
        }
        let sides = SERIES.into_iter().enumerate();
        for (index, injected) in sides.filter(|_| !amount.no_sides) {
            say(&format!(
                "round {round}, runs of one arm, {injected} % slower"
            ));
            seed += 1;
            wait_for_calm(patience);
            let results = lab.run(&alone(amount, injected, seed))?;
            record::append(file, &[side(&results, injected, index == 0)])?;
        }
    }
    Ok(())
}

fn say(what: &str) {
    let now = jiff::Timestamp::now().strftime("%H:%M:%S");
    eprintln!("{now} {what}; load average {:.1}", load_average());
}

fn equal(amount: &Amount, seed: u64) -> String {
    let blocks = (amount.min_blocks, amount.equal_blocks);
    let stop = format!("min-blocks = {}\nmax-blocks = {}", blocks.0, blocks.1);
    experiment(&in_turns(amount), seed, "aa = true", &arm(0.0), &stop)
}

fn slowed(amount: &Amount, injected: f64, seed: u64) -> String {
    let stop = format!(
        "min-blocks = {}\nmax-blocks = {}\nsmallest-effect = \"0.5%\"",
        amount.min_blocks, amount.slowed_blocks
    );
    let arms = arm(0.0) + &arm(injected);
    experiment(&in_turns(amount), seed, "", &arms, &stop)
}

fn alone(amount: &Amount, injected: f64, seed: u64) -> String {
    let stop = format!("min-blocks = {LONG_RUNS}\nmax-blocks = {LONG_RUNS}");
    experiment(&duration(&amount.run), seed, "", &arm(injected), &stop)
}

fn duration(text: &str) -> String {
    format!("duration = \"{text}\"\n")
}

/// Keys of the length of a trial, with turns where they are asked for.
fn in_turns(amount: &Amount) -> String {
    let turns = amount.turn.as_ref();
    let turns = turns.map(|turn| format!("in-place = \"always\"\nturn = \"{turn}\"\n"));
    let washout = amount.washout.as_ref();
    let washout = washout.map(|washout| format!("washout = \"{washout}\"\n"));
    duration(&amount.trial) + &turns.unwrap_or_default() + &washout.unwrap_or_default()
}

fn arm(injected: f64) -> String {
    match injected {
        0.0 => "[[arm]]\nname = \"default\"\n".to_owned(),
        percent => format!("[[arm]]\nname = \"slower\"\nhandicap = \"{percent}%\"\n"),
    }
}

/// Twice as many workers as CPUs: what a request takes longer is missing in the rate.
/// Without the lock of each CPU: who is interrupted while holding it is a lottery, with
/// a standard deviation of a window of 200 ms of 17 to 28 % in place of 5 %.
fn experiment(length: &str, seed: u64, head: &str, arms: &str, stop: &str) -> String {
    format!(
        "name = \"aa\"\nseed = {seed}\n{head}\n{arms}
[[workload]]
kind = \"wakeup\"
loads = [\"200%\"]
{length}warmup = \"50ms\"
footprint = \"64KiB\"
cpu-lock = false
metrics = [\"{METRIC}\"]
[stop]
{stop}
"
    )
}

/// Every judged metric of the run: all were looked at after the same blocks. None where nothing counted, as beside
/// others who take the CPUs.
fn interleaved(results: &ResultSet, injected: f64) -> Vec<Record> {
    let table = Table::from_results(results);
    let machine_ns = machine_ns(results);
    let load_average = load_average();
    let records: Vec<Record> = table
        .all_comparisons()
        .map(|c| {
            Record::Interleaved(Interleaved {
                injected_percent: injected,
                metric: c.metric.clone(),
                deciding: c.deciding,
                verdict: c.verdict.as_str().to_owned(),
                ratio: c.ratio,
                e_value: c.e_value,
                blocks: c.blocks,
                machine_ns,
                load_average,
            })
        })
        .collect();
    if records.is_empty() {
        say("no trial of this comparison counted");
    }
    records
}

fn machine_ns(results: &ResultSet) -> u64 {
    let results = results.trials.iter().map(|t| &t.trial.result);
    let starts = results.clone().map(|r| r.started_unix_ns);
    let ends = results.map(|r| r.started_unix_ns + r.elapsed_ns);
    let (first, last) = (starts.min().unwrap_or(0), ends.max().unwrap_or(0));
    last.saturating_sub(first)
}

fn side(results: &ResultSet, injected_percent: f64, begins_series: bool) -> Record {
    let trials = results.trials.iter().map(|t| &t.trial);
    let ok = || trials.clone().filter(|t| t.is_ok());
    Record::Side(Side {
        begins_series,
        injected_percent,
        values: ok().filter_map(|t| Some(t.metric(METRIC)?.value)).collect(),
        run_ns: ok().map(|t| t.result.elapsed_ns).collect(),
        load_average: load_average(),
    })
}
