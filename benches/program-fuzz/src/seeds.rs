//! Inputs that are right, and what is made of them.

use crate::change::change;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names below the directory of a campaign that commands make; all else stays.
const MADE: [&str; 2] = ["out", "out.tar.gz"];
/// Name of the results that are not changed.
pub const HONEST: &str = "honest";

/// Files by their path.
type Files = Vec<(PathBuf, Vec<u8>)>;

/// Inputs that are right.
#[derive(Debug)]
pub struct Seeds {
    results: Files,
    /// Archives, not compressed.
    capsules: Vec<Vec<u8>>,
    experiments: Vec<Vec<u8>>,
    benches: Vec<Vec<u8>>,
    imports: Vec<(String, Vec<u8>)>,
}

/// Kinds of input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A results directory.
    Results,
    /// A results directory in a file.
    Capsule,
    /// An experiment file.
    Experiment,
    /// A file of schedbench that says what is to be measured.
    Bench,
    /// A file of another tool.
    Import,
    /// Words of a command line.
    Words,
}

/// An input that is nearly right.
#[derive(Debug)]
pub enum Input {
    /// Files of the results, by their index, with other contents.
    Results(Vec<(usize, Vec<u8>)>),
    /// One file, with the name of its tool for an import.
    File(String, Vec<u8>),
    /// Words.
    Words(Vec<String>),
}

impl Seeds {
    /// Makes the seeds, and results below `dir` that stay right.
    pub fn below(dir: &Path) -> Self {
        let honest = dir.join(HONEST);
        synthetic::write(&honest, &synthetic::quickstart()).expect("room for results");
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        Seeds {
            results: files_below(&honest, &honest),
            capsules: capsules(dir),
            experiments: contents(&root.join("experiments"), "toml"),
            benches: contents(&root.join("tests/fixtures/schedbench"), "bench"),
            imports: imports(&root.join("fuzz/seeds/imports")),
        }
    }
}

fn files_below(dir: &Path, top: &Path) -> Files {
    let mut files = Files::new();
    for entry in fs::read_dir(dir).expect("a directory").flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => files.extend(files_below(&path, top)),
            false => {
                let bytes = fs::read(&path).expect("a file");
                let name = path.strip_prefix(top).expect("below it");
                files.push((name.to_owned(), bytes));
            }
        }
    }
    files.sort();
    files
}

fn contents(dir: &Path, extension: &str) -> Vec<Vec<u8>> {
    let files = files_below(dir, dir).into_iter();
    let wanted = files.filter(|(path, _)| path.extension().is_some_and(|e| e == extension));
    let found: Vec<Vec<u8>> = wanted.map(|(_, bytes)| bytes).collect();
    assert!(!found.is_empty(), "{} has seeds", dir.display());
    found
}

/// The honest results, packed by the program, and the capsule of an earlier one.
fn capsules(dir: &Path) -> Vec<Vec<u8>> {
    let packed = dir.join("out.tar.gz");
    let status = Command::new(tests::schedlab())
        .args(["pack", HONEST, "-o", "out.tar.gz"])
        .current_dir(dir)
        .env("SCHEDLAB_STATE_DIR", dir.join("state"))
        .stdout(std::process::Stdio::null())
        .status()
        .expect("schedlab starts");
    assert!(status.success(), "the seeds can be packed");
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    let files = [packed, fixtures.join("results-1.1.capsule")];
    files.map(|file| inflated(&file)).to_vec()
}

fn inflated(file: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut gzip = GzDecoder::new(fs::File::open(file).expect("a capsule"));
    gzip.read_to_end(&mut bytes).expect("a whole capsule");
    bytes
}

/// The seeds of the fuzz target: the first byte chooses the reader.
fn imports(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let tools = [
        "schedtests",
        "phoronix",
        "mmtests",
        "schedbench",
        "schbench",
    ];
    let files = files_below(dir, dir);
    let seeds = files.into_iter().filter_map(|(path, bytes)| {
        let name = path.to_string_lossy().into_owned();
        let tool = tools.into_iter().find(|tool| name.starts_with(tool))?;
        Some((tool.to_owned(), bytes.get(1..)?.to_vec()))
    });
    seeds.collect()
}

/// Words of arms and workloads.
const WORDS: [&str; 8] = [
    "batch",
    "fifo:50",
    "slice=3ms+nice=5",
    "profile:server",
    "tunables=base_slice=3ms",
    "default@cpus=0-1",
    "wakeup:200%",
    "hackbench:groups=2",
];

impl Kind {
    /// An input of this kind that is nearly right.
    pub fn mutated(self, seeds: &Seeds, random: &mut ChaCha8Rng) -> Input {
        match self {
            Kind::Results => Input::Results(results(seeds, random)),
            Kind::Capsule => Input::File(String::new(), capsule(seeds, random)),
            Kind::Experiment => of_file(&seeds.experiments, random),
            Kind::Bench => of_file(&seeds.benches, random),
            Kind::Import => {
                let (tool, bytes) = seeds.imports.choose(random).unwrap();
                let mut bytes = bytes.clone();
                change(&mut bytes, random);
                Input::File(tool.clone(), bytes)
            }
            Kind::Words => Input::Words((0..2).map(|_| word(random)).collect()),
        }
    }
}

fn of_file(seeds: &[Vec<u8>], random: &mut ChaCha8Rng) -> Input {
    let mut bytes = seeds.choose(random).unwrap().clone();
    change(&mut bytes, random);
    Input::File(String::new(), bytes)
}

/// Files of a directory are not chosen evenly: those that there is one of matter most.
fn results(seeds: &Seeds, random: &mut ChaCha8Rng) -> Vec<(usize, Vec<u8>)> {
    let tops: Vec<usize> = (0..seeds.results.len())
        .filter(|index| seeds.results[*index].0.components().count() == 1)
        .collect();
    let mut changed = Vec::new();
    for _ in 0..random.random_range(1..=2) {
        let index = match random.random_bool(0.5) {
            true => *tops.choose(random).unwrap(),
            false => random.random_range(0..seeds.results.len()),
        };
        let mut bytes = seeds.results[index].1.clone();
        change(&mut bytes, random);
        changed.push((index, bytes));
    }
    changed
}

/// Mostly a changed archive that is compressed, since hardly any change of compressed bytes is a
/// change of the archive.
fn capsule(seeds: &Seeds, random: &mut ChaCha8Rng) -> Vec<u8> {
    let mut archive = seeds.capsules.choose(random).unwrap().clone();
    change(&mut archive, random);
    if random.random_bool(0.5) {
        mend_sums(&mut archive);
    }
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&archive).expect("memory takes all");
    let mut packed = gzip.finish().expect("memory takes all");
    if random.random_bool(0.1) {
        change(&mut packed, random);
    }
    packed
}

/// Sums of headers that were changed: what reads them looks at a wrong sum first.
fn mend_sums(archive: &mut [u8]) {
    let mut at = 0;
    while let Some(block) = archive.get_mut(at..at + 512) {
        let mut header = tar::Header::new_old();
        header.as_mut_bytes().copy_from_slice(block);
        let Ok(size) = header.entry_size() else {
            return;
        };
        header.set_cksum();
        block.copy_from_slice(header.as_bytes());
        let Ok(size) = usize::try_from(size) else {
            return;
        };
        at = at
            .saturating_add(512)
            .saturating_add(size.div_ceil(512).saturating_mul(512));
    }
}

fn word(random: &mut ChaCha8Rng) -> String {
    let mut bytes = WORDS.choose(random).unwrap().as_bytes().to_vec();
    change(&mut bytes, random);
    // A word of a command line has no zero byte, and has at most 128 KiB.
    bytes.retain(|byte| *byte != 0);
    bytes.truncate(100_000);
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Input {
    /// Puts the input in its place: a directory, or a file beside it.
    pub fn write(&self, seeds: &Seeds, place: &Path) {
        match self {
            Input::Results(changed) => {
                if !place.is_dir() {
                    write_all(&seeds.results, place);
                }
                for (index, bytes) in changed {
                    let path = place.join(&seeds.results[*index].0);
                    fs::write(path, bytes).expect("room for an input");
                }
            }
            Input::File(_, bytes) => {
                fs::write(file_beside(place), bytes).expect("room for an input");
            }
            Input::Words(_) => {}
        }
    }

    /// Makes the results right again.
    pub fn restore(&self, seeds: &Seeds, place: &Path) {
        let Input::Results(changed) = self else {
            return;
        };
        for (index, _) in changed {
            let (name, bytes) = &seeds.results[*index];
            fs::write(place.join(name), bytes).expect("room for an input");
        }
    }
}

fn write_all(files: &Files, place: &Path) {
    for (name, bytes) in files {
        let path = place.join(name);
        fs::create_dir_all(path.parent().expect("below it")).expect("a directory");
        fs::write(path, bytes).expect("room for it");
    }
}

/// The file of an input that is one, with an ending for each kind of reader.
pub fn file_beside(place: &Path) -> PathBuf {
    place.with_file_name("input-file")
}

/// Removes what a command made.
pub fn remove_made(dir: &Path) {
    for name in MADE {
        let path = dir.join(name);
        // Mostly it is not there.
        let _ = fs::remove_dir_all(&path);
        let _ = fs::remove_file(&path);
    }
}
