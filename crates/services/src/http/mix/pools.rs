//! Pools of values that were taken from answers, for the requests after them.
//!
//! The values that one answer gives (an id and its token) stay together: a request that names
//! both draws them from the same answer. A pool only grows, so what a request has drawn stays
//! where it is. Those of the set-up are shared by all threads; what is taken under load is the
//! thread's own, without locks.

use super::params::Request;
use model::Invalid;
use std::sync::Arc;

/// Sets of values that may be taken in one workload.
pub const MOST_POOLS: usize = 4;
/// Rows that one thread adds to a pool under load; further ones are not kept.
const MOST_ROWS: usize = 100_000;

/// Values that were taken from one answer, in the order of their names.
pub type Row = Box<[Box<str>]>;

/// A value by its place: the pool, and its place in the rows of that pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub pool: usize,
    pub column: usize,
}

/// Names of the values of each pool, sorted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Names(Vec<Vec<String>>);

impl Names {
    /// The pools that these requests fill; an error has the place of a request among them.
    pub fn from_requests<'a>(
        requests: impl Iterator<Item = &'a Request>,
    ) -> Result<Self, (usize, Invalid)> {
        let mut pools: Vec<Vec<String>> = Vec::new();
        for (index, request) in requests.enumerate() {
            let names: Vec<String> = request.take.keys().cloned().collect();
            if names.is_empty() || pools.contains(&names) {
                continue;
            }
            let refuse = |what: String, remedy: &str| {
                Err((index, Invalid::new("take", what).with_remedy(remedy)))
            };
            if let Some(wrong) = names.iter().find(|name| !is_name(name)) {
                let what = format!("`{wrong}` is no name for a value");
                return refuse(
                    what,
                    "take = { account = \"$.id\" }: lower-case letters, digits and -_",
                );
            }
            let taken = |name: &&String| pools.iter().flatten().any(|known| known == *name);
            if let Some(twice) = names.iter().find(taken) {
                let what = format!("`{twice}` is taken together with other values elsewhere");
                return refuse(
                    what,
                    "take the same names in both, or give one another name",
                );
            }
            if pools.len() == MOST_POOLS {
                let what =
                    format!("there are more than {MOST_POOLS} different sets of taken values");
                return refuse(what, "take fewer values");
            }
            pools.push(names);
        }
        Ok(Names(pools))
    }

    /// The place of the value of this name.
    pub fn place(&self, name: &str) -> Option<Place> {
        let place = |(pool, names): (usize, &Vec<String>)| {
            let column = names.iter().position(|known| known == name)?;
            Some(Place { pool, column })
        };
        self.0.iter().enumerate().find_map(place)
    }

    /// The pool with exactly the values that a request takes.
    pub fn filled_by(&self, request: &Request) -> Option<usize> {
        self.0
            .iter()
            .position(|names| names.iter().eq(request.take.keys()))
    }

    /// All names.
    pub fn all_names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flatten().map(String::as_str)
    }

    /// One name of a pool, for people.
    pub fn first_of(&self, pool: usize) -> &str {
        let names = self.0.get(pool).and_then(|names| names.first());
        names.map_or("", String::as_str)
    }

    /// Pools without a value.
    pub fn empty_pools(&self) -> Pools {
        Pools {
            shared: Arc::new(vec![Vec::new(); self.0.len()]),
            own: vec![Vec::new(); self.0.len()],
        }
    }
}

fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(fits)
        && !["int", "decimal", "pick", "folder"].contains(&name)
}

/// The values of all pools, as one thread has them.
#[derive(Debug, Clone)]
pub struct Pools {
    shared: Arc<Vec<Vec<Row>>>,
    own: Vec<Vec<Row>>,
}

impl Pools {
    /// Rows of each pool so far.
    pub fn lengths(&self) -> [u32; MOST_POOLS] {
        let mut lengths = [0; MOST_POOLS];
        for (pool, length) in lengths.iter_mut().enumerate().take(self.own.len()) {
            let rows = self.shared[pool].len() + self.own[pool].len();
            *length = u32::try_from(rows).unwrap_or(u32::MAX);
        }
        lengths
    }

    /// Adds what an answer gave.
    pub fn add_row(&mut self, pool: usize, row: Row) {
        if self.own[pool].len() < MOST_ROWS {
            self.own[pool].push(row);
        }
    }

    /// A value of a row that is there.
    pub fn value(&self, place: Place, row: usize) -> &str {
        let shared = &self.shared[place.pool];
        let row = match row.checked_sub(shared.len()) {
            Some(own) => self.own[place.pool].get(own),
            None => shared.get(row),
        };
        row.map_or("", |row| &row[place.column])
    }

    /// Makes the values that are there those of all threads.
    pub fn into_shared(self) -> Self {
        let own = vec![Vec::new(); self.own.len()];
        let mut shared = Arc::unwrap_or_clone(self.shared);
        for (pool, rows) in shared.iter_mut().zip(self.own) {
            pool.extend(rows);
        }
        Pools {
            shared: Arc::new(shared),
            own,
        }
    }
}
