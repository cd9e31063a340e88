//! A table of entries that is fixed when schedlab is built, and what a test adds to it.

use std::sync::{PoisonError, RwLock};

/// Entries of one sort, in order.
#[derive(Debug)]
pub struct Registry<T: ?Sized + 'static> {
    own: &'static [&'static T],
    added: RwLock<Vec<&'static T>>,
}

impl<T: ?Sized> Registry<T> {
    /// The table with these entries.
    pub const fn new(own: &'static [&'static T]) -> Self {
        Registry {
            own,
            added: RwLock::new(Vec::new()),
        }
    }

    /// One more entry in this process: how a test shows that an entry is all that is needed.
    pub fn add_entry(&self, entry: &'static T) {
        let mut added = self.added.write().unwrap_or_else(PoisonError::into_inner);
        added.push(entry);
    }

    /// The entries of the table, then what was added.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &'static T> + use<T> {
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner);
        self.own.iter().copied().chain(added.clone())
    }
}
