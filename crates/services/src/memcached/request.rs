//! The requests of the memcached load: which key, and its bytes.
//!
//! Sizes belong to a key, not to a request, and depend on its number alone: every
//! trial of every arm meets the same keys and values.

use super::sizes::{self, Sizes};
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::io::Write;
use std::sync::Arc;

/// Command of the text protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `get` of one key.
    Get,
    /// `set` of one key.
    Set,
}

/// A request, from which its bytes follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Command of the request.
    pub operation: Operation,
    /// Number of the key, below the number of keys.
    pub key: u32,
}

/// All keys with the sizes of their values; shared by the threads.
#[derive(Debug)]
pub struct Keys {
    sizes: Vec<KeySizes>,
    /// Values are cut from this.
    payload: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct KeySizes {
    key_bytes: u8,
    value_bytes: u32,
}

/// Seed of the sizes; any number does, but always the same one.
const SIZES_SEED: u64 = 0x5e7_5e7;

impl Keys {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a key has at most 250 bytes, its number 20 digits, and a value a million bytes"
    )]
    pub fn new(count: u64, key_size: Sizes, value_size: Sizes) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(SIZES_SEED);
        let shortest = count.saturating_sub(1).max(1).ilog10() as u64 + 1;
        let sizes: Vec<KeySizes> = (0..count)
            .map(|_| KeySizes {
                // The number of the key must fit.
                key_bytes: sizes::key_bytes(key_size, &mut random).max(shortest) as u8,
                value_bytes: sizes::value_bytes(value_size, &mut random) as u32,
            })
            .collect();
        let largest = sizes.iter().map(|s| s.value_bytes).max().unwrap_or(0);
        Keys {
            sizes,
            payload: payload(largest as usize, &mut random),
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "a load has at most MOST_KEYS keys, and each is numbered by a u32"
    )]
    pub fn count(&self) -> u32 {
        self.sizes.len() as u32
    }

    /// Room for any request.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the longest key has 250 bytes"
    )]
    pub fn longest_request(&self) -> usize {
        self.payload.len() + sizes::LONGEST_KEY as usize + 64
    }

    /// Puts the bytes of a request into `text`.
    pub fn write(&self, request: Request, text: &mut Vec<u8>) {
        text.clear();
        let Some(sizes) = self.sizes.get(request.key as usize) else {
            return;
        };
        let (key, width) = (request.key, usize::from(sizes.key_bytes));
        // Writing to memory does not fail.
        match request.operation {
            Operation::Get => {
                let _ = write!(text, "get {key:0width$}\r\n");
            }
            Operation::Set => {
                let _ = write!(text, "set {key:0width$} 0 0 {}\r\n", sizes.value_bytes);
                text.extend_from_slice(&self.payload[..sizes.value_bytes as usize]);
                text.extend_from_slice(b"\r\n");
            }
        }
    }
}

/// Letters, so that what goes over the wire can be read.
fn payload(bytes: usize, random: &mut impl RngCore) -> Vec<u8> {
    (0..bytes)
        .map(|_| random.random_range(b'a'..=b'z'))
        .collect()
}

/// The requests of one thread.
#[derive(Debug)]
pub struct Requests {
    keys: Arc<Keys>,
    random: ChaCha8Rng,
    /// Share of gets, in 2^32nds.
    gets: u64,
    text: Vec<u8>,
}

impl Requests {
    pub fn new(keys: Arc<Keys>, gets_percent: f64, seed: u64, thread: u32) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        // Beside the streams of the arrivals.
        random.set_stream((1 << 32) + u64::from(thread));
        Requests {
            text: Vec::with_capacity(keys.longest_request()),
            keys,
            random,
            gets: model::truncate_to_u64(gets_percent / 100.0 * 2f64.powi(32)),
        }
    }

    pub fn draw(&mut self) -> Request {
        let operation = if u64::from(self.random.next_u32()) < self.gets {
            Operation::Get
        } else {
            Operation::Set
        };
        // A product instead of a remainder: no key is preferred, and no division.
        let key = (u64::from(self.random.next_u32()) * u64::from(self.keys.count())) >> 32;
        Request {
            operation,
            key: key as u32,
        }
    }

    pub fn request_text(&mut self, request: Request) -> &[u8] {
        self.keys.write(request, &mut self.text);
        &self.text
    }
}
