//! Keys of experiment files, as the tables of the crates that read them describe them.
//! `docs/reference.md` is made from these descriptions.

use serde::de::value::Error;
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};

/// A key of an experiment file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyDef {
    /// Name of the key, as in the experiment file.
    pub name: &'static str,
    /// Form of its value: `duration`, `size`, `number`, `one of ...`.
    pub form: &'static str,
    /// Value where the file says nothing; empty where nothing is done then.
    pub usual: &'static str,
    /// Meaning, in one or two sentences.
    pub text: &'static str,
}

impl KeyDef {
    /// Description of a key: its name, the form of its value, the usual value, and its meaning.
    pub const fn new(
        name: &'static str,
        form: &'static str,
        usual: &'static str,
        text: &'static str,
    ) -> Self {
        KeyDef {
            name,
            form,
            usual,
            text,
        }
    }
}

/// Names of the keys that a struct is read from, as serde knows them: a test holds a table
/// of [`KeyDef`]s against them. Empty for a type that is no struct.
pub fn accepted_keys<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    let mut fields: &'static [&'static str] = &[];
    // It ends with an error by design: only the names are wanted.
    let _ = T::deserialize(Fields(&mut fields));
    fields
}

/// Keeps the names of the fields that are asked for, and has no values.
struct Fields<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Fields<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("no struct"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        Err(Error::custom("only the names of the fields were asked for"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_a_struct_are_named_as_in_a_file() {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        struct Keys {
            #[serde(rename = "where")]
            _place: Option<String>,
            _time_limit: Option<u64>,
        }
        assert_eq!(accepted_keys::<Keys>(), ["where", "-time-limit"]);
        assert!(accepted_keys::<u32>().is_empty());
    }
}
