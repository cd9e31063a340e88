//! Mutated inputs through the program itself: every command that reads what others made, with 1 GiB
//! of address space and ten seconds of CPU time. Each input has a process of its own: the program as
//! a person starts it ([`started`]), or, some times as fast, a fork in which the program's function
//! is called ([`forked`]).
//!
//! ```text
//! cargo run --release -p program-fuzz -- [INPUTS] [SEED]
//! ```

// A broken promise is a panic here.
#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::missing_panics_doc)]

mod change;
mod command;
mod judge;
mod seeds;
mod shape;
mod sys;

pub use judge::{Fault, Run, Start, forked, started};

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
    start: Start,
    inputs: u64,
    /// Inputs by the name of their command and its exit code, which says how far they came; −1 is a
    /// signal.
    pub counts: BTreeMap<&'static str, BTreeMap<i32, u64>>,
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
    pub fn new(seed: u64, start: Start) -> Self {
        // Memory, where it is there: results are many small files.
        let memory = Path::new("/dev/shm");
        let directory = match memory.is_dir() {
            true => tempfile::tempdir_in(memory),
            false => tempfile::tempdir(),
        };
        let directory = directory.expect("a temporary directory");
        let seeds = seeds::Seeds::below(directory.path(), start);
        Campaign {
            directory,
            seeds,
            random: ChaCha8Rng::seed_from_u64(seed),
            start,
            inputs: 0,
            counts: BTreeMap::new(),
        }
    }

    /// Makes one input and has one command read it. `Some` where a promise is broken: the input is
    /// kept in a directory below `keep`.
    pub fn step(&mut self, keep: &Path) -> Option<Found> {
        let command = command::COMMANDS.choose(&mut self.random).expect("some");
        let input = command.input.mutated(&self.seeds, &mut self.random);
        let dir = self.directory.path();
        input.write(&self.seeds, dir);
        let words = command.words(&mut self.random, &input);
        let run = (self.start)(&words, dir);
        self.inputs += 1;
        let codes = self.counts.entry(command.name).or_default();
        *codes.entry(run.code.unwrap_or(-1)).or_default() += 1;
        let found = judge::fault(&run, command).map(|fault| {
            let kept = keep.join(format!("{}-{}", command.name, self.inputs));
            judge::keep(&run, &words, dir, &kept);
            Found { fault, words, kept }
        });
        input.restore(&self.seeds, dir);
        seeds::remove_made(dir);
        found
    }
}
