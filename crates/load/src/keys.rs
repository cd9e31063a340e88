//! Keys of a `[[workload]]` as they are written in an experiment file.
//!
//! A kind asks for its keys one after the other, each with what holds where the file says
//! nothing. What is wrong is kept until all were asked for, so that the names of all keys
//! are known when one of them is misspelt.

use crate::units::{Duration, Percent, Rate, Size};
use model::Invalid;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Keys of one table, and what was wrong with those that were asked for.
#[derive(Debug, Default)]
pub struct Keys {
    written: Map<String, Value>,
    known: Vec<&'static str>,
    fault: Option<Invalid>,
}

impl Keys {
    /// Keys of one table of the file, with their values.
    pub fn new(written: Map<String, Value>) -> Self {
        Keys {
            written,
            ..Keys::default()
        }
    }

    /// The value of a key; `None` if it is not there or of another form.
    pub fn get<T: DeserializeOwned>(&mut self, key: &'static str) -> Option<T> {
        self.known.push(key);
        let value = serde_json::from_value(self.written.remove(key)?);
        value
            .map_err(|error| self.refuse(Invalid::new(key, error.to_string())))
            .ok()
    }

    /// A list of words, of which a wrong one has a place of its own.
    pub fn words(&mut self, key: &'static str) -> Option<Vec<String>> {
        let words: Vec<Value> = self.get(key)?;
        let mut texts = Vec::new();
        for (index, word) in words.into_iter().enumerate() {
            match serde_json::from_value(word) {
                Ok(text) => texts.push(text),
                Err(error) => {
                    self.refuse(Invalid::new(format!("{key}.{index}"), error.to_string()));
                }
            }
        }
        Some(texts)
    }

    /// Nanoseconds of `"5s"`.
    pub fn duration(&mut self, key: &'static str) -> Option<u64> {
        self.get::<Duration>(key).map(|duration| duration.0)
    }

    /// Bytes of `"64KiB"`.
    pub fn size(&mut self, key: &'static str) -> Option<u64> {
        self.get::<Size>(key).map(|size| size.0)
    }

    /// Events per second of `"10k/s"`.
    pub fn rate(&mut self, key: &'static str) -> Option<f64> {
        self.get::<Rate>(key).map(|rate| rate.0)
    }

    /// The number before the sign of `"50%"`.
    pub fn percent(&mut self, key: &'static str) -> Option<f64> {
        self.get::<Percent>(key).map(|percent| percent.0)
    }

    /// The keys of the table under a key. Those that `read` does not ask for are refused.
    pub fn table<T>(&mut self, key: &'static str, read: impl FnOnce(&mut Keys) -> T) -> Option<T> {
        let mut keys = Keys::new(self.get(key)?);
        let value = read(&mut keys);
        if let Some(fault) = keys.fault_or_unknown() {
            self.refuse(fault.in_table(key));
        }
        Some(value)
    }

    /// The text under a key, or what `read` makes of the table there.
    pub fn text_or_table(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut Keys) -> String,
    ) -> Option<String> {
        match self.written.get(key) {
            Some(Value::Object(_)) => self.table(key, read),
            _ => self.get(key),
        }
    }

    /// The tables of a list under a key, each read as in [`Keys::table`]. A fault without a
    /// key of its own is one of the whole table.
    pub fn tables<T>(&mut self, key: &'static str, read: fn(&mut Keys) -> T) -> Option<Vec<T>> {
        let written: Vec<Map<String, Value>> = self.get(key)?;
        let mut values = Vec::new();
        for (index, written) in written.into_iter().enumerate() {
            let mut keys = Keys::new(written);
            values.push(read(&mut keys));
            let fault = keys.fault_or_unknown();
            if let Some(fault) = fault {
                let place = format!("{key}.{index}");
                self.refuse(match fault.key.is_empty() {
                    true => Invalid {
                        key: place,
                        ..fault
                    },
                    false => fault.in_table(&place),
                });
            }
        }
        Some(values)
    }

    /// An unknown key is said as serde says it, so that readers treat both alike.
    fn fault_or_unknown(self) -> Option<Invalid> {
        let unknown = |key: &String| {
            let what = format!(
                "unknown field `{key}`, expected one of `{}`",
                self.known.join("`, `")
            );
            Invalid::new(key.as_str(), what)
        };
        let left = self.written.keys().next().map(unknown);
        left.or(self.fault)
    }

    /// Refuses what was written; the first fault counts.
    pub fn refuse(&mut self, fault: Invalid) {
        self.fault.get_or_insert(fault);
    }

    /// Names of the keys that were asked for.
    pub fn asked_keys(&self) -> &[&'static str] {
        &self.known
    }

    /// Error of the first key that was wrong; `None` where all were right.
    pub fn into_fault(self) -> Option<Invalid> {
        self.fault
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn keys(written: Value) -> Keys {
        Keys::new(written.as_object().cloned().unwrap())
    }

    #[test]
    fn a_key_has_its_value_or_none() {
        let mut keys = keys(json!({"sleep": "1ms", "args": ["-a", "b"]}));
        assert_eq!(keys.duration("sleep"), Some(1_000_000));
        assert_eq!(keys.words("args").unwrap(), ["-a", "b"]);
        assert_eq!(keys.get::<u32>("threads"), None);
        assert_eq!(keys.asked_keys(), ["sleep", "args", "threads"]);
        assert_eq!(keys.into_fault(), None);
    }

    #[test]
    fn a_table_has_keys_of_its_own() {
        let mut keys = keys(json!({"policy": {"nice": 5, "slcie": "1ms"}}));
        let nice = keys.table("policy", |keys| {
            keys.duration("slice");
            keys.get::<i32>("nice")
        });
        assert_eq!((nice, keys.asked_keys()), (Some(Some(5)), &["policy"][..]));
        let fault = keys.into_fault().unwrap();
        assert_eq!(fault.key, "policy.slcie");
        let expected = "unknown field `slcie`, expected one of `slice`, `nice`";
        assert_eq!(fault.what, expected);
    }

    #[test]
    fn the_first_wrong_value_is_refused_under_its_key() {
        let mut keys = keys(json!({"args": ["-a", 5], "threads": -1}));
        keys.words("args");
        assert_eq!(keys.get::<u32>("threads"), None);
        let fault = keys.into_fault().unwrap();
        assert_eq!(fault.key, "args.1");
        assert!(fault.what.contains("expected a string"), "{fault}");
    }
}
