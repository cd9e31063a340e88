//! A bounded share of what `fuzz/` does: every seed, and as many mutated inputs as take
//! some seconds, the same in every run. `INPUTS=1000000` reads that many of each.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods)]

use inputs::{READERS, Reader};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Seconds for each reader in all, as far as [`Reader::a_second`] is right.
const SECONDS: u32 = 2;
const MOST_CHANGES: usize = 4;

fn seeds(reader: &Reader) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let entries = fs::read_dir(dir.join(reader.name)).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// One of the usual ways to be nearly right.
fn change(input: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut ChaCha8Rng) {
    let at = random.random_range(0..=input.len());
    let end = random.random_range(at..=input.len().min(at + 32));
    match random.random_range(0..7) {
        0 if at < input.len() => input[at] ^= 1 << random.random_range(0..8),
        1 if at < input.len() => input[at] = random.random(),
        2 => drop(input.drain(at..end)),
        3 => {
            let again = input[at..end].to_vec();
            input.splice(at..at, again);
        }
        4 => {
            let often: &[&[u8]] = &[
                b"\0",
                b"\xff\xff\xff\xff",
                b"\x80",
                b"-1",
                b"99999999999999999999",
                b"1e999",
                b"\n",
                b"\"",
                b"[",
                b"]",
                b"{",
                b"}",
                b"=",
                b"..",
                b"/",
                b"\x1b[",
                "\u{202e}".as_bytes(),
                b"%",
                b"\x7f\xff\xff\xff\xff\xff\xff\xff",
            ];
            input.splice(at..at, often.choose(random).unwrap().iter().copied());
        }
        5 => {
            let other = seeds.choose(random).unwrap();
            let from = random.random_range(0..=other.len());
            input.splice(at.., other[from..].iter().copied());
        }
        _ => input.truncate(at),
    }
}

/// A panic with the input that made it, to be put into a test.
fn read(reader: &Reader, input: &[u8]) {
    let read = catch_unwind(AssertUnwindSafe(|| (reader.read)(input)));
    if read.is_err() {
        panic!("{}: {}", reader.name, input.escape_ascii());
    }
}

fn inputs_of(reader: &Reader) -> u32 {
    match std::env::var("INPUTS") {
        Ok(number) => number.parse().expect("INPUTS is a number"),
        Err(_) => SECONDS * reader.a_second,
    }
}

fn is_read_whatever_it_is(name: &str) {
    let reader = READERS.iter().find(|reader| reader.name == name).unwrap();
    let seeds = seeds(reader);
    assert!(!seeds.is_empty(), "{name} has no seeds");
    seeds.iter().for_each(|seed| read(reader, seed));
    let mut random = ChaCha8Rng::seed_from_u64(1);
    for _ in 0..inputs_of(reader) {
        let mut input = seeds.choose(&mut random).unwrap().clone();
        for _ in 0..random.random_range(1..=MOST_CHANGES) {
            change(&mut input, &seeds, &mut random);
        }
        read(reader, &input);
    }
}

macro_rules! readers {
    ($($test:ident: $name:literal,)*) => {
        $(
            #[test]
            fn $test() {
                is_read_whatever_it_is($name);
            }
        )*

        #[test]
        fn every_reader_is_tested_and_has_a_fuzz_target() {
            let tested = [$($name),*];
            let names: Vec<&str> = READERS.iter().map(|reader| reader.name).collect();
            assert_eq!(names, tested);
            let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
            for name in names {
                assert!(fuzz.join(format!("{name}.rs")).exists(), "{name}");
            }
        }
    };
}

readers! {
    any_bytes_of_an_http_server: "http_answer",
    any_bytes_of_memcached: "memcached_answer",
    any_requests: "server_requests",
    any_elf_file: "elf",
    any_kernel_image: "bzimage",
    any_disk_image: "disk_image",
    any_list_of_packages: "debian_packages",
    any_interval_log: "hlog",
    any_results_directory: "results",
    any_capsule: "capsule",
    any_experiment_file: "experiment",
    any_words_of_a_command_line: "arms",
    any_journal: "journal",
    any_file_of_another_tool: "imports",
    any_log_of_requests: "requests",
}
