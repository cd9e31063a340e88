//! Changes that leave a file what it is: one number, one word, one line or one part of it is another.

use rand::Rng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use std::ops::Range;

/// Numbers at which something changes.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "7",
    "10",
    "63",
    "64",
    "65",
    "100",
    "101",
    "255",
    "256",
    "1000",
    "1024",
    "4095",
    "65535",
    "65536",
    "100000",
    "1000000",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "18446744073709551615",
    "0.0",
    "0.5",
    "1e-300",
    "1e300",
    "-1",
    "-0.0",
];

/// Parts of JSON that are looked at for one of the same kind as another.
const TRIES: usize = 8;

/// Changes one thing.
pub fn change(bytes: &mut Vec<u8>, random: &mut ChaCha8Rng) {
    match random.random_range(0..10) {
        0..=6 => number(bytes, random),
        7 => word(bytes, random),
        8 if bytes.first() == Some(&b'{') => part(bytes, random),
        _ => line(bytes, random),
    }
}

/// Ranges of bytes that follow each other and are of one kind.
fn runs(bytes: &[u8], is_of_it: impl Fn(u8) -> bool) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, byte) in bytes.iter().enumerate() {
        match runs.last_mut() {
            _ if !is_of_it(*byte) => {}
            Some(last) if last.end == at => last.end += 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}

fn number(bytes: &mut Vec<u8>, random: &mut ChaCha8Rng) {
    let runs = runs(bytes, |byte| byte.is_ascii_digit());
    if let Some(run) = runs.choose(random) {
        let other = NUMBERS.choose(random).unwrap();
        bytes.splice(run.clone(), other.bytes());
    }
}

/// A word of the same file in place of another.
fn word(bytes: &mut Vec<u8>, random: &mut ChaCha8Rng) {
    let runs = runs(bytes, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
    });
    if let (Some(run), Some(other)) = (runs.choose(random), runs.choose(random)) {
        let other = bytes[other.clone()].to_vec();
        bytes.splice(run.clone(), other);
    }
}

/// A line is gone, twice there, or elsewhere.
fn line(bytes: &mut Vec<u8>, random: &mut ChaCha8Rng) {
    let mut lines: Vec<Vec<u8>> = bytes
        .split_inclusive(|b| *b == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    if lines.is_empty() {
        return;
    }
    let at = random.random_range(0..lines.len());
    let to = random.random_range(0..lines.len());
    match random.random_range(0..3) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(to, lines[at].clone()),
        _ => lines.swap(at, to),
    }
    *bytes = lines.concat();
}

/// A part of JSON is gone, twice there, elsewhere, or another one.
fn part(bytes: &mut Vec<u8>, random: &mut ChaCha8Rng) {
    let Ok(mut value) = serde_json::from_slice::<Value>(bytes) else {
        return line(bytes, random);
    };
    let all = count(&value);
    let at = random.random_range(0..all);
    let kind = find(&mut value, at).map(|part| std::mem::discriminant(part));
    // Another of its kind, where one is found soon.
    let others = (0..TRIES).filter_map(|_| find(&mut value, random.random_range(0..all)).cloned());
    let others: Vec<Value> = others.collect();
    let is_alike = |other: &&Value| Some(std::mem::discriminant(*other)) == kind;
    let other = others.iter().find(is_alike).or(others.first());
    if let Some(found) = find(&mut value, at) {
        change_part(found, other.cloned().unwrap_or_default(), random);
    }
    *bytes = serde_json::to_vec(&value).expect("it was JSON");
}

fn change_part(part: &mut Value, other: Value, random: &mut ChaCha8Rng) {
    let choice = random.random_range(0..4);
    match part {
        Value::Array(list) if !list.is_empty() && choice > 0 => {
            let at = random.random_range(0..list.len());
            match choice {
                1 => drop(list.remove(at)),
                2 => list.insert(at, list[at].clone()),
                _ => list.shuffle(random),
            }
        }
        Value::Object(map) if !map.is_empty() && choice > 0 => {
            let names: Vec<String> = map.keys().cloned().collect();
            let (name, to) = (names.choose(random).unwrap(), names.choose(random).unwrap());
            match choice {
                1 => drop(map.remove(name)),
                2 => drop(map.insert(to.clone(), map[name].clone())),
                _ => drop(map.insert(name.clone(), other)),
            }
        }
        part => *part = other,
    }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(count).sum(),
        Value::Object(map) => map.values().map(count).sum(),
        _ => 0,
    }
}

/// The part of this number, counted as they are written.
fn find(value: &mut Value, number: usize) -> Option<&mut Value> {
    if number == 0 {
        return Some(value);
    }
    let mut left = number - 1;
    let parts: Vec<&mut Value> = match value {
        Value::Array(list) => list.iter_mut().collect(),
        Value::Object(map) => map.values_mut().collect(),
        _ => Vec::new(),
    };
    for part in parts {
        let size = count(part);
        if left < size {
            return find(part, left);
        }
        left -= size;
    }
    None
}
