//! Ways to be nearly right.

use crate::shape;
use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

/// Bytes that mean something to somebody: a terminal, a shell, a page, a spreadsheet, a parser.
const OFTEN: &[&[u8]] = &[
    b"\0",
    b"\xff\xfe",
    b"\x1b]52;c;eA==\x07",
    b"\x1b[2J",
    "\u{202e}".as_bytes(),
    "\u{9b}31m".as_bytes(),
    b"\r",
    b"\n\n",
    b"-1",
    b"0",
    b"1e999",
    b"nan",
    b"18446744073709551616",
    b"99999999999999999999999999999999",
    b"\"",
    b"'",
    b"\\",
    b"\\u001b",
    b"{",
    b"}",
    b"[",
    b"]",
    b"<script>",
    b"=cmd()",
    b"../../",
    b"--yes",
    b"%",
    b",",
];
/// Texts that may stand in place of a value of JSON.
const VALUES: &[&[u8]] = &[
    b"null",
    b"true",
    b"-1",
    b"0",
    b"1e308",
    b"4294967296",
    b"18446744073709551615",
    b"\"\"",
    b"\"\\u001b]0;x\\u0007\\u202e\"",
    b"[]",
    b"{}",
    b"[[[[[[[[[[[[]]]]]]]]]]]]",
];
/// Often enough to be much, and of little size when it is packed.
const MANY: usize = 3000;

/// Changes a file in one way, or now and then in up to four. Mostly it stays what it is, so that
/// what reads its values has something to do.
pub fn change(bytes: &mut Vec<u8>, random: &mut ChaCha8Rng) {
    let changes = match random.random_bool(0.85) {
        true => 1,
        false => random.random_range(2..=4),
    };
    for _ in 0..changes {
        match random.random_range(0..10) {
            0..=7 => shape::change(bytes, random),
            8 => value(bytes, random),
            _ => piece(bytes, random),
        }
    }
}

fn piece(bytes: &mut Vec<u8>, random: &mut ChaCha8Rng) {
    let at = random.random_range(0..=bytes.len());
    let end = random.random_range(at..=bytes.len().min(at + 64));
    match random.random_range(0..8) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.random_range(0..8),
        1 if at < bytes.len() => bytes[at] = random.random(),
        2 => drop(bytes.drain(at..end)),
        3 => {
            let again = bytes[at..end].to_vec();
            bytes.splice(at..at, again);
        }
        4 => {
            let again = OFTEN.choose(random).unwrap().repeat(MANY);
            bytes.splice(at..at, again);
        }
        5 => bytes.truncate(at),
        _ => drop(bytes.splice(at..at, OFTEN.choose(random).unwrap().iter().copied())),
    }
}

/// Another value in place of what stands behind a colon or an equals sign.
fn value(bytes: &mut Vec<u8>, random: &mut ChaCha8Rng) {
    let begins = |byte: &u8| matches!(byte, b':' | b'=');
    let places: Vec<usize> = (0..bytes.len()).filter(|at| begins(&bytes[*at])).collect();
    let Some(at) = places.choose(random) else {
        return piece(bytes, random);
    };
    let from = at + 1;
    let ends = |byte: &u8| matches!(byte, b',' | b'\n' | b'}' | b']');
    let length = bytes[from..].iter().position(ends);
    let end = length.map_or(bytes.len(), |length| from + length);
    let other = VALUES.choose(random).unwrap();
    bytes.splice(from..end, other.iter().copied());
}
