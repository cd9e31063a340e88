//! The keys and values of the memcached side, in parts that are locked on their own.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

const PARTS: usize = 64;
/// The most that one part keeps, and all of them 4 GiB: loopback is open to everybody.
const MOST_OF_A_PART: usize = 64 << 20;
/// Memory that an item takes besides its key and its value.
const OF_AN_ITEM: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub flags: u32,
    pub value: Box<[u8]>,
}

#[derive(Debug, Default)]
struct Part {
    items: HashMap<Box<[u8]>, Item>,
    /// Memory that they take.
    bytes: usize,
}

impl Part {
    /// False where there is no room for the item; the one that its key had stays.
    fn set(&mut self, key: &[u8], item: Item) -> bool {
        let size = |item: &Item| key.len() + item.value.len() + OF_AN_ITEM;
        let before = self.items.get(key).map_or(0, size);
        let bytes = self.bytes - before + size(&item);
        if bytes > MOST_OF_A_PART {
            return false;
        }
        self.bytes = bytes;
        self.items.insert(key.into(), item);
        true
    }
}

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
    /// Stores an item in place of the one that its key had; false where there is no room for it.
    #[must_use]
    pub fn set(&self, key: &[u8], item: Item) -> bool {
        self.part(key).set(key, item)
    }

    /// Calls `with` if the key is there.
    pub fn get(&self, key: &[u8], with: impl FnOnce(&Item)) {
        if let Some(item) = self.part(key).items.get(key) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_is_full_keeps_what_it_has_and_takes_what_fits() {
        let mut part = Part::default();
        let item = |size: usize| Item {
            flags: 0,
            value: vec![0; size].into(),
        };
        let half = MOST_OF_A_PART / 2 - OF_AN_ITEM - 1;
        assert!(part.set(b"a", item(half)));
        assert!(part.set(b"b", item(half)));
        assert!(!part.set(b"c", item(1)));
        assert!(part.set(b"b", item(1)), "a smaller one fits in its place");
        assert!(part.set(b"c", item(1)));
        assert_eq!(part.items.len(), 3);
    }
}
