//! The text of an experiment file, key by key, and the word of a command line that each place of it
//! is of: its user has seen the words, and not the text.

use crate::error::PlanError;
use serde_json::{Map, Value};
use std::ops::Range;

/// A key of an experiment file, and the word of a command line that it is of.
#[derive(Debug, Clone)]
pub struct Key {
    /// Name of the key, behind that of its table if it is in one: `stop.budget`.
    pub name: String,
    /// Value of the key.
    pub value: Value,
    /// Option with its value, as they were typed.
    pub word: String,
}

impl Key {
    /// The key that an option means by its own value.
    pub fn new(option: &str, name: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        let shown = match &value {
            Value::Bool(_) => String::new(),
            Value::String(text) => format!(" {text}"),
            Value::Array(values) => {
                let words = values.iter().filter_map(Value::as_str);
                format!(" {}", words.collect::<Vec<_>>().join(","))
            }
            other => format!(" {other}"),
        };
        Key {
            word: format!("{option}{shown}"),
            ..Key::of_word("", name, value)
        }
    }

    /// The key that a word means.
    pub fn of_word(word: &str, name: &str, value: impl Into<Value>) -> Self {
        Key {
            name: name.to_owned(),
            value: value.into(),
            word: word.to_owned(),
        }
    }

    /// Adds the values of a list that another word has.
    pub(crate) fn append(&mut self, other: &mut Key) {
        if let (Value::Array(values), Value::Array(more)) = (&mut self.value, &mut other.value) {
            values.append(more);
        }
        self.word = format!("{} {}", self.word, other.word);
    }

    /// The key as it is in the table of a workload, if it is one of workloads.
    pub(crate) fn of_workloads(&self) -> Option<Key> {
        let name = self.name.strip_prefix("workload.")?;
        Some(Key::of_word(&self.word, name, self.value.clone()))
    }
}

/// A table of the file, and those within it.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    header: &'static str,
    word: String,
    pub keys: Vec<Key>,
    pub inner: Vec<Section>,
}

impl Section {
    /// The table below a header: `[[arm]]`.
    pub fn new(header: &'static str, word: &str) -> Self {
        Section {
            header,
            word: word.to_owned(),
            keys: Vec::new(),
            inner: Vec::new(),
        }
    }

    /// The table with this key, which is of the same word.
    pub fn with_key(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.keys.push(Key::of_word(&self.word, name, value));
        self
    }

    /// The table with these keys, which are of the same word.
    pub fn with_all(self, mut keys: Map<String, Value>) -> Self {
        let name = keys.remove_entry("name");
        let keys = name.into_iter().chain(keys);
        keys.fold(self, |table, (name, value)| table.with_key(&name, value))
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        let key = self.keys.iter().find(|key| key.name == name);
        key.map(|key| &key.value)
    }

    /// The loads of a workload, where they are given.
    pub fn loads_mut(&mut self) -> Option<&mut Key> {
        self.keys.iter_mut().find(|key| key.name == "loads")
    }
}

/// A text that grows, and the words that its parts are of.
#[derive(Debug, Default)]
pub(crate) struct Text {
    pub text: String,
    /// A part within another comes before it.
    words: Vec<(Range<usize>, String)>,
}

impl Text {
    /// The text of these keys and tables below a comment.
    pub fn from_keys(comment: &str, keys: &[Key], tables: &[Section]) -> Result<Self, PlanError> {
        let mut text = Text {
            text: comment.to_owned(),
            words: Vec::new(),
        };
        text.add_keys(keys)?;
        tables.iter().try_for_each(|table| text.add(table))?;
        Ok(text)
    }

    fn add_keys(&mut self, keys: &[Key]) -> Result<(), PlanError> {
        for Key { name, value, word } in keys {
            let start = self.text.len();
            let value = toml::Value::try_from(value).map_err(|_| {
                let most = format!("a whole number of a file is at most {}", i64::MAX);
                let error = PlanError::new("the number is too large").with_help(most);
                error.of_word(Some(word))
            })?;
            self.text += &format!("{name} = {value}\n");
            self.words.push((start..self.text.len(), word.clone()));
        }
        Ok(())
    }

    fn add(&mut self, section: &Section) -> Result<(), PlanError> {
        let start = self.text.len();
        self.text += &format!("\n{}\n", section.header);
        self.add_keys(&section.keys)?;
        section.inner.iter().try_for_each(|inner| self.add(inner))?;
        self.words
            .push((start..self.text.len(), section.word.clone()));
        Ok(())
    }

    /// Error of the text, as it is said of the words.
    pub fn in_words(&self, error: PlanError) -> PlanError {
        let place = error.place();
        let mut words = self.words.iter();
        let found = words.find(|(part, _)| place.is_some_and(|at| part.contains(&at)));
        error.of_word(found.map(|(_, word)| word.as_str()))
    }
}
