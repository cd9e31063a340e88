//! Places of values in the text of a file.

use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(crate) type Value<'i> = Spanned<DeValue<'i>>;

/// Where the values of a table are in the text, also those of the tables in it, by their
/// keys joined with dots; in a list the index is the key: `antagonist.0.cpus`.
#[derive(Debug, Default)]
pub(crate) struct Places(BTreeMap<String, Range<usize>>);

impl Places {
    pub fn of(value: &Value) -> Self {
        let mut places = Places::default();
        places.add("", value);
        places
    }

    pub fn of_table(table: &DeTable) -> Self {
        let mut places = Places::default();
        for (key, value) in table {
            places.add(key.get_ref(), value);
        }
        places
    }

    pub fn get(&self, key: &str) -> Option<Range<usize>> {
        self.0.get(key).cloned()
    }

    fn add(&mut self, key: &str, value: &Value) {
        let within = |name: &str| match key {
            "" => name.to_owned(),
            key => format!("{key}.{name}"),
        };
        match value.get_ref() {
            DeValue::Table(table) => {
                for (name, value) in table {
                    self.add(&within(name.get_ref()), value);
                }
            }
            DeValue::Array(values) => {
                for (index, value) in values.iter().enumerate() {
                    self.add(&within(&index.to_string()), value);
                }
            }
            _ => {}
        }
        self.0.insert(key.to_owned(), value.span());
    }
}
