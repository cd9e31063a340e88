//! Inputs that are right, and what is made of them.

use crate::change::change;
use crate::judge::Start;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Names below the directory of a campaign that commands make; all else stays.
const MADE: [&str; 3] = ["out", "out.tar.gz", "out.html"];
/// Directory of settings.
pub const PROFILES: &str = "profiles";
const PROFILE: &[u8] = b"# of a distribution\nkernel.sched_rr_timeslice_ms = 37\n\
                         base_slice_ns=3000000\n";
/// Name of the results that are not changed.
pub const HONEST: &str = "honest";

/// Blocks of results: as many as a report does something with, and few, so that it is quick.
const BLOCKS: u32 = 4;

/// Files by their path.
type Files = Vec<(PathBuf, Vec<u8>)>;

/// Inputs that are right.
#[derive(Debug)]
pub struct Seeds {
    /// Those of this version, and of the first one.
    results: Vec<Files>,
    /// Archives, not compressed.
    capsules: Vec<Vec<u8>>,
    experiments: Vec<Vec<u8>>,
    benches: Vec<Vec<u8>>,
    /// Each with the name of its tool.
    imports: Vec<(String, Vec<u8>)>,
    profiles: Vec<Vec<u8>>,
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
    /// A directory of settings with one file.
    Profile,
    /// Words of a command line.
    Words,
}

/// An input that is nearly right.
#[derive(Debug)]
pub enum Input {
    /// Results by their index, and files of them by theirs, with other contents.
    Results(usize, Vec<(usize, Vec<u8>)>),
    /// One file, with the name of its tool for an import.
    File(String, Vec<u8>),
    /// Words.
    Words(Vec<String>),
}

impl Seeds {
    /// Makes the seeds, and results below `dir` that stay right.
    pub fn below(dir: &Path, start: Start) -> Self {
        let honest = dir.join(HONEST);
        synthetic::write(&honest, &synthetic::few_blocks(BLOCKS)).expect("room for results");
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let first = root.join("tests/fixtures/results-1.0");
        let results = [honest, first].map(|results| files_below(&results, &results));
        fs::create_dir(dir.join(PROFILES)).expect("room for a directory");
        Seeds {
            results: results.into(),
            capsules: capsules(dir, start),
            experiments: contents(&root.join("experiments"), "toml"),
            benches: contents(&root.join("tests/fixtures/schedbench"), "bench"),
            imports: imports(&root),
            profiles: vec![PROFILE.to_vec()],
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

/// The honest results, packed by the program.
fn capsules(dir: &Path, start: Start) -> Vec<Vec<u8>> {
    let words = ["pack", HONEST, "-o", "out.tar.gz"].map(str::to_owned);
    let packed = start(&words, dir);
    assert_eq!(packed.code, Some(0), "the seeds can be packed: {packed:?}");
    vec![inflated(&dir.join("out.tar.gz"))]
}

fn inflated(file: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut gzip = GzDecoder::new(fs::File::open(file).expect("a capsule"));
    gzip.read_to_end(&mut bytes).expect("a whole capsule");
    bytes
}

/// Seeds of the fuzz target, whose first byte chooses the reader, and files of a whole run.
fn imports(root: &Path) -> Vec<(String, Vec<u8>)> {
    let tools = [
        ("schedtests", "schedtests"),
        ("hackbench", "schedtests"),
        ("phoronix", "phoronix"),
        ("mmtests", "mmtests"),
        ("schedbench", "schedbench"),
        ("schbench", "schbench-json"),
        ("perf-stat", "perf-stat"),
        ("ltp", "ltp"),
        ("mangohud", "mangohud"),
        ("presentmon", "presentmon"),
        ("capframex", "capframex"),
    ];
    let dir = root.join("fuzz/seeds/imports");
    let files = files_below(&dir, &dir);
    let seeds = files.into_iter().filter_map(|(path, bytes)| {
        let name = path.to_string_lossy().into_owned();
        let (_, tool) = tools.into_iter().find(|(file, _)| name.starts_with(file))?;
        Some((tool.to_owned(), bytes.get(1..)?.to_vec()))
    });
    let runs = contents(&root.join("tests/fixtures/schedbench"), "bench");
    let runs = runs.into_iter().map(|run| ("schedbench".to_owned(), run));
    seeds.chain(runs).collect()
}

/// Words of arms.
const ARMS: [&str; 8] = [
    "batch",
    "fifo:50",
    "slice=3ms+nice=5",
    "server:=nice=2+cpus=0-1",
    "base_slice=3ms+rr_timeslice=37",
    "a:=idle+cpus=1",
    "deadline=1ms/10ms",
    "env.SIZE=3+nice=-5",
];
/// Words of workloads.
const WORKLOADS: [&str; 6] = [
    "wakeup:200%",
    "wakeup:1,2,50%",
    "hackbench:1,4",
    "http:500/s",
    "memcached:1k/s",
    "schbench:2",
];

impl Kind {
    /// An input of this kind that is nearly right.
    pub fn mutated(self, seeds: &Seeds, random: &mut ChaCha8Rng) -> Input {
        match self {
            Kind::Results => {
                let index = random.random_range(0..seeds.results.len());
                Input::Results(index, results(&seeds.results[index], random))
            }
            Kind::Capsule => Input::File(String::new(), capsule(seeds, random)),
            Kind::Experiment => of_file(&seeds.experiments, random),
            Kind::Bench => of_file(&seeds.benches, random),
            Kind::Profile => of_file(&seeds.profiles, random),
            Kind::Import => {
                let (tool, bytes) = seeds.imports.choose(random).unwrap();
                let mut bytes = bytes.clone();
                change(&mut bytes, random);
                Input::File(tool.clone(), bytes)
            }
            Kind::Words => Input::Words(vec![word(&ARMS, random), word(&WORKLOADS, random)]),
        }
    }
}

fn of_file(seeds: &[Vec<u8>], random: &mut ChaCha8Rng) -> Input {
    let mut bytes = seeds.choose(random).unwrap().clone();
    change(&mut bytes, random);
    Input::File(String::new(), bytes)
}

/// Files of a directory are not chosen evenly: those that there is one of matter most.
fn results(files: &Files, random: &mut ChaCha8Rng) -> Vec<(usize, Vec<u8>)> {
    let tops: Vec<usize> = (0..files.len())
        .filter(|index| files[*index].0.components().count() == 1)
        .collect();
    let mut changed = Vec::new();
    for _ in 0..if random.random_bool(0.8) { 1 } else { 2 } {
        let index = match random.random_bool(0.5) {
            true => *tops.choose(random).unwrap(),
            false => random.random_range(0..files.len()),
        };
        let mut bytes = files[index].1.clone();
        change(&mut bytes, random);
        changed.push((index, bytes));
    }
    changed
}

/// Mostly a changed archive that is compressed, since hardly any change of compressed bytes is a
/// change of the archive.
fn capsule(seeds: &Seeds, random: &mut ChaCha8Rng) -> Vec<u8> {
    let mut archive = seeds.capsules.choose(random).unwrap().clone();
    if random.random_bool(0.6) {
        archive = with_another_file(&archive, random);
    } else {
        change(&mut archive, random);
        if random.random_bool(0.5) {
            mend_sums(&mut archive);
        }
    }
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&archive).expect("memory takes all");
    let mut packed = gzip.finish().expect("memory takes all");
    if random.random_bool(0.1) {
        change(&mut packed, random);
    }
    packed
}

/// The same archive, in which one file has other contents.
fn with_another_file(archive: &[u8], random: &mut ChaCha8Rng) -> Vec<u8> {
    let mut read = tar::Archive::new(archive);
    let mut files: Vec<(tar::Header, Vec<u8>)> = Vec::new();
    for entry in read.entries().expect("a seed is whole") {
        let mut entry = entry.expect("a seed is whole");
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("a seed is whole");
        files.push((entry.header().clone(), bytes));
    }
    let at = random.random_range(0..files.len());
    let (header, bytes) = &mut files[at];
    change(bytes, random);
    header.set_size(bytes.len() as u64);
    header.set_cksum();
    let mut written = tar::Builder::new(Vec::new());
    for (header, bytes) in &files {
        written
            .append(header, bytes.as_slice())
            .expect("memory takes all");
    }
    written.into_inner().expect("memory takes all")
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

fn word(words: &[&str], random: &mut ChaCha8Rng) -> String {
    let mut bytes = words.choose(random).unwrap().as_bytes().to_vec();
    change(&mut bytes, random);
    // A word of a command line has no zero byte, and has at most 128 KiB.
    bytes.retain(|byte| *byte != 0);
    bytes.truncate(100_000);
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Input {
    /// Puts the input in its place below the directory of a campaign.
    pub fn write(&self, seeds: &Seeds, dir: &Path) {
        match self {
            Input::Results(index, changed) => {
                let (place, files) = (dir.join(results_name(*index)), &seeds.results[*index]);
                if !place.is_dir() {
                    write_all(files, &place);
                }
                for (file, bytes) in changed {
                    fs::write(place.join(&files[*file].0), bytes).expect("room for an input");
                }
            }
            Input::File(_, bytes) => {
                for place in [FILE, BENCH_FILE, PROFILE_FILE] {
                    fs::write(dir.join(place), bytes).expect("room for an input");
                }
            }
            Input::Words(_) => {}
        }
    }

    /// Makes the results right again.
    pub fn restore(&self, seeds: &Seeds, dir: &Path) {
        let Input::Results(index, changed) = self else {
            return;
        };
        for (file, _) in changed {
            let (name, bytes) = &seeds.results[*index][*file];
            let path = dir.join(results_name(*index)).join(name);
            fs::write(path, bytes).expect("room for an input");
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

/// Name of the directory of an input that is results.
pub fn results_name(index: usize) -> String {
    format!("input-{index}")
}

/// Names of an input that is one file.
const FILE: &str = "input-file";
const BENCH_FILE: &str = "input-file.bench";
const PROFILE_FILE: &str = "profiles/input";

/// Everything that an input may be in.
pub fn places(dir: &Path) -> Vec<PathBuf> {
    let files = [FILE, BENCH_FILE].map(str::to_owned);
    let results = (0..2).map(results_name);
    let places = results.chain(files).map(|name| dir.join(name));
    places.filter(|place| place.exists()).collect()
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
