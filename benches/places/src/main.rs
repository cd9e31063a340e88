//! Time that a block costs beyond its trials, and time to start a run, on this machine, over ssh and by
//! Slurm, in turns. An sshd and a cluster of its own stand in for other machines, so the network costs
//! nothing.
//!
//! ```text
//! cargo build --release -p schedlab && cargo run --release -p places [-- ROUNDS]
//! ```
//! It needs root, for Slurm. Each place runs the same experiment with few and with many blocks; the
//! difference is what the blocks take, the rest is the start and the end of a run.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "what it measured goes to stdout"
)]

use std::process::Command;
use std::time::Instant;
use tests::{Bench, Cluster, Sshd};

type Failure = Box<dyn std::error::Error>;

const ROUNDS: u32 = 5;
const FEW: u32 = 2;
const MANY: u32 = 12;
/// Two arms, each trial a tenth of a second of waiting.
const ARMS: &str = "[[arm]]\nname = \"default\"\n\
                    [[arm]]\nname = \"batch\"\npolicy = { class = \"batch\" }\n\
                    [[workload]]\nkind = \"command\"\ncommand = [\"sleep\", \"0.1\"]\n";
const TRIALS_SECONDS: f64 = 0.2;

/// The command `schedlab ARGS…` in that place.
type Run<'a> = Box<dyn Fn(&[&str]) -> Command + 'a>;

/// A place, and the seconds of its rounds.
struct Series<'a> {
    what: &'static str,
    command: Run<'a>,
    /// Files with few and with many blocks.
    files: [String; 2],
    blocks: Vec<f64>,
    starts: Vec<f64>,
}

impl<'a> Series<'a> {
    fn new(
        what: &'static str,
        files: [String; 2],
        command: impl Fn(&[&str]) -> Command + 'a,
    ) -> Self {
        Series {
            what,
            command: Box::new(command),
            files,
            blocks: Vec::new(),
            starts: Vec::new(),
        }
    }

    /// Seconds of a run by one of the files.
    fn run(&self, round: u32, file: usize) -> Result<f64, Failure> {
        let out = format!("{}-{round}-{file}", self.what.replace(' ', "-"));
        let args = ["run", &self.files[file], "-o", &out, "--wait"];
        let started = Instant::now();
        let output = (self.command)(&args).output()?;
        match output.status.success() {
            true => Ok(started.elapsed().as_secs_f64()),
            false => Err(format!("{}: {}", self.what, tests::stderr(&output)).into()),
        }
    }

    fn round(&mut self, round: u32) -> Result<(), Failure> {
        let (few, many) = (self.run(round, 0)?, self.run(round, 1)?);
        let block = (many - few) / f64::from(MANY - FEW);
        self.blocks.push((block - TRIALS_SECONDS) * 1e3);
        self.starts.push(few - block * f64::from(FEW));
        Ok(())
    }

    fn print(&self) {
        println!(
            "{:<14} {:>26} ms {:>26} s",
            self.what,
            spread(&self.blocks, 0),
            spread(&self.starts, 2)
        );
    }
}

/// The median and the range.
fn spread(figures: &[f64], digits: usize) -> String {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.first(), sorted.get(sorted.len() / 2), sorted.last()) {
        (Some(least), Some(middle), Some(most)) => {
            format!("{middle:.digits$} ({least:.digits$} to {most:.digits$})")
        }
        _ => "none".to_owned(),
    }
}

fn main() -> Result<(), Failure> {
    let rounds = std::env::args().nth(1).map_or(Ok(ROUNDS), |n| n.parse())?;
    let bench = Bench::default();
    let sshd = Sshd::start().ok_or("no sshd")?;
    let cluster = Cluster::start().ok_or("no Slurm")?;
    let slurm = "[target]\nkind = \"slurm\"\npartition = \"lab\"\n";
    let text = |target: &str, blocks: u32| {
        format!("{target}{ARMS}[stop]\nmin-blocks = {blocks}\nmax-blocks = {blocks}\n")
    };
    let files = |name: &str, target: &str| {
        [FEW, MANY]
            .map(|blocks| bench.file(&format!("{name}-{blocks}.toml"), &text(target, blocks)))
    };
    let of_slurm = [FEW, MANY]
        .map(|blocks| cluster.file(&format!("slurm-{blocks}.toml"), &text(slurm, blocks)));
    let here = |args: &[&str]| bench.command(args);
    let mut all = [
        Series::new("this machine", files("local", ""), here),
        Series::new("over ssh", files("ssh", &sshd.target()), here),
        Series::new("by Slurm", of_slurm, |args| cluster.schedlab(args)),
    ];
    for round in 0..rounds {
        // Who is first changes.
        let first = round as usize % all.len();
        all.rotate_left(first);
        for series in &mut all {
            series.round(round)?;
        }
        all.rotate_right(first);
        println!("round {} of {rounds}", round + 1);
    }
    println!(
        "{:<14} {:>29} {:>28}",
        "", "a block of 2 trials costs", "a run's start and end"
    );
    for series in &all {
        series.print();
    }
    Ok(())
}
