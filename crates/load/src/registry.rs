//! A table of entries: those that it is made with, and those that are put in later, by the catalogue and by tests.

use crate::Entry;
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
        self.add_entries(&[entry]);
    }

    /// More entries in this process, in this order.
    pub fn add_entries(&self, entries: &[&'static T]) {
        let mut added = self.added.write().unwrap_or_else(PoisonError::into_inner);
        added.extend(entries);
    }

    /// The entries of the table, then what was added.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &'static T> + use<T> {
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner);
        self.own.iter().copied().chain(added.clone())
    }
}

impl<T: Entry + ?Sized> Registry<T> {
    /// The entry with this name or alias.
    pub fn find(&self, name: &str) -> Option<&'static T> {
        let mut all = self.iter();
        all.find(|entry| entry.name() == name || entry.aliases().contains(&name))
    }

    /// Names and aliases of all entries.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<T> {
        let of_entry = |entry: &'static T| {
            [entry.name()]
                .into_iter()
                .chain(entry.aliases().iter().copied())
        };
        self.iter().flat_map(of_entry)
    }
}
