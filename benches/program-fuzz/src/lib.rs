//! Mutated inputs through the program itself: every command that reads what others made, as it is
//! started by a person, with 1 GiB of address space and ten seconds of CPU time.
//!
//! ```text
//! cargo build --release -p schedlab && cargo run --release -p program-fuzz -- [INPUTS] [SEED]
//! ```

// A broken promise is a panic here.
#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::missing_panics_doc)]

mod change;
mod command;
mod judge;
mod seeds;

pub use judge::Fault;

use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Programs that read mutated inputs.
#[derive(Debug)]
pub struct Campaign {
    directory: TempDir,
    seeds: seeds::Seeds,
    random: ChaCha8Rng,
    /// Inputs by the name of their command.
    pub counts: BTreeMap<&'static str, u64>,
    /// Exit codes, and how many inputs ended with each.
    pub codes: BTreeMap<i32, u64>,
}

/// An input that broke a promise.
#[derive(Debug)]
pub struct Found {
    /// The promise, and what was seen.
    pub fault: Fault,
    /// Words of the command.
    pub words: Vec<String>,
    /// Directory with the input.
    pub kept: PathBuf,
}

impl Campaign {
    /// Makes the seeds; the same number gives the same inputs.
    pub fn new(seed: u64) -> Self {
        // Memory, where it is there: results are many small files.
        let memory = Path::new("/dev/shm");
        let directory = match memory.is_dir() {
            true => tempfile::tempdir_in(memory),
            false => tempfile::tempdir(),
        };
        let directory = directory.expect("a temporary directory");
        let seeds = seeds::Seeds::below(directory.path());
        Campaign {
            directory,
            seeds,
            random: ChaCha8Rng::seed_from_u64(seed),
            counts: BTreeMap::new(),
            codes: BTreeMap::new(),
        }
    }

    /// Makes one input and has one command read it. `Some` where a promise is broken: the input is
    /// kept in a directory below `keep`.
    pub fn step(&mut self, keep: &Path) -> Option<Found> {
        let command = command::COMMANDS.choose(&mut self.random).expect("some");
        let input = command.input.mutated(&self.seeds, &mut self.random);
        let place = self.directory.path().join("input");
        input.write(&self.seeds, &place);
        let words = command.words(&mut self.random, &input);
        let run = judge::run(&words, self.directory.path());
        *self.counts.entry(command.name).or_default() += 1;
        *self.codes.entry(run.code.unwrap_or(-1)).or_default() += 1;
        let found = judge::fault(&run, command).map(|fault| {
            let count: u64 = self.counts.values().sum();
            let kept = keep.join(format!("{}-{count}", command.name));
            judge::keep(&run, &words, &place, &kept);
            Found { fault, words, kept }
        });
        input.restore(&self.seeds, &place);
        seeds::remove_made(self.directory.path());
        found
    }
}
