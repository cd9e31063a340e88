//! The keys and values of the memcached side, in parts that are locked on their own.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

const PARTS: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub flags: u32,
    pub value: Box<[u8]>,
}

type Part = HashMap<Box<[u8]>, Item>;

/// Map from keys to values, shared by all workers of a server.
#[derive(Debug)]
pub struct Store {
    hasher: RandomState,
    parts: Vec<Mutex<Part>>,
}

impl Default for Store {
    fn default() -> Self {
        Store {
            hasher: RandomState::new(),
            parts: (0..PARTS).map(|_| Mutex::default()).collect(),
        }
    }
}

impl Store {
    /// Stores an item in place of the one that its key had.
    pub fn set(&self, key: &[u8], item: Item) {
        self.part(key).insert(key.into(), item);
    }

    /// Calls `with` if the key is there.
    pub fn get(&self, key: &[u8], with: impl FnOnce(&Item)) {
        if let Some(item) = self.part(key).get(key) {
            with(item);
        }
    }

    fn part(&self, key: &[u8]) -> MutexGuard<'_, Part> {
        #[expect(clippy::cast_possible_truncation, reason = "any bits of a hash do")]
        let part = self.hasher.hash_one(key) as usize % PARTS;
        self.parts[part]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
