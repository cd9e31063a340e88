//! Places of values in the text of a file.

use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(crate) type Value<'i> = Spanned<DeValue<'i>>;

/// Places of the values of a table in the text, also those of the tables in it, by their keys
/// joined with dots; in a list the index is the key: `antagonist.0.cpus`.
#[derive(Debug, Default)]
pub(crate) struct Places {
    values: BTreeMap<String, Range<usize>>,
    /// Where the keys themselves are.
    names: BTreeMap<String, Range<usize>>,
}

impl Places {
    pub fn from_value(value: &Value) -> Self {
        let mut places = Places::default();
        places.add("", value);
        places
    }

    pub fn of_table(table: &DeTable) -> Self {
        let mut places = Places::default();
        places.add_all("", table);
        places
    }

    pub fn get(&self, key: &str) -> Option<Range<usize>> {
        self.values.get(key).cloned()
    }

    pub fn name(&self, key: &str) -> Option<Range<usize>> {
        self.names.get(key).cloned()
    }

    fn add_all(&mut self, key: &str, table: &DeTable) {
        for (name, value) in table {
            let inner = within(key, name.get_ref());
            self.names.insert(inner.clone(), name.span());
            self.add(&inner, value);
        }
    }

    fn add(&mut self, key: &str, value: &Value) {
        match value.get_ref() {
            DeValue::Table(table) => self.add_all(key, table),
            DeValue::Array(values) => {
                for (index, value) in values.iter().enumerate() {
                    self.add(&within(key, &index.to_string()), value);
                }
            }
            _ => {}
        }
        self.values.insert(key.to_owned(), value.span());
    }
}

fn within(key: &str, name: &str) -> String {
    match key {
        "" => name.to_owned(),
        key => format!("{key}.{name}"),
    }
}
