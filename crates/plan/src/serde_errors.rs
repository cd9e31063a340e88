//! Errors of serde in words of an experiment file.
//!
//! serde has nothing but texts for what it finds, so they are taken apart here, and nowhere
//! else. A text of another form stays as it is: it is of toml or of our own readers, which
//! write sentences.

use crate::reference::{TABLES, TableDef};

/// A name that a table or a key does not have, and those that it has.
#[derive(Debug)]
pub(crate) struct Unknown {
    /// True for a key of a table, false for a word that a key takes.
    is_key: bool,
    pub word: String,
    known: Vec<String>,
}

impl Unknown {
    /// A key that a table does not have.
    pub fn is_key(&self) -> bool {
        self.is_key
    }

    /// More names that would have been right come first.
    pub fn with_names(mut self, names: impl Iterator<Item = &'static str>) -> Self {
        self.known.splice(0..0, names.map(str::to_owned));
        self
    }

    pub fn message(&self) -> String {
        let word = &self.word;
        match self.is_key {
            true => format!("there is no key `{word}` here"),
            false => format!("the word `{word}` has no meaning here"),
        }
    }

    /// Tables that have the key which stands above all tables.
    fn table_of(&self) -> Option<String> {
        let is_above_all = self.is_key && self.known.iter().any(|name| name == "workload");
        let has_it = |table: &&TableDef| table.all_keys().iter().any(|key| key.name == self.word);
        let tables = TABLES.iter().filter(has_it).filter(|_| is_above_all);
        let headers: Vec<&str> = tables.map(|table| table.header).collect();
        (!headers.is_empty()).then(|| headers.join(" or "))
    }

    /// The nearest right name, or all of them.
    pub fn help(&self) -> Option<String> {
        let known = || self.known.iter().map(String::as_str);
        if let Some(table) = self.table_of() {
            return Some(format!("`{}` belongs into {table}", self.word));
        }
        if let Some(near) = model::find_nearest(&self.word, known()) {
            return Some(format!("did you mean `{near}`?"));
        }
        let all = known().collect::<Vec<_>>().join("`, `");
        match (self.known.len(), self.is_key) {
            (0, _) => None,
            (1, false) => Some(format!("write `{all}`")),
            (_, false) => Some(format!("write one of `{all}`")),
            (_, true) => Some(format!("there are `{all}`")),
        }
    }
}

/// The name that a text of serde calls unknown: ``unknown field `x`, expected one of `a`, `b` ``,
/// or the same of a variant.
pub(crate) fn parse_unknown(text: &str) -> Option<Unknown> {
    let field = text.strip_prefix("unknown field ");
    let rest = field.or_else(|| text.strip_prefix("unknown variant "))?;
    let (word, known) = rest
        .split_once("`, expected ")
        .or_else(|| rest.split_once("`, there are no "))?;
    let known = known.split('`').skip(1).step_by(2);
    Some(Unknown {
        is_key: field.is_some(),
        word: word.strip_prefix('`')?.to_owned(),
        known: known.map(str::to_owned).collect(),
    })
}

/// The fault of a value, as a sentence.
pub(crate) fn sentence(text: &str) -> Option<String> {
    if let Some(key) = text.strip_prefix("missing field ") {
        return Some(format!("the key {key} is missing"));
    }
    // toml's own, of a word like `class`.
    if text == "wanted string or table" {
        return Some("a word in quotation marks is expected here".to_owned());
    }
    let rest = text.strip_prefix("invalid type: ");
    let rest = rest.or_else(|| text.strip_prefix("invalid value: "))?;
    let (found, expected) = rest.rsplit_once(", expected ")?;
    Some(format!(
        "{} stands where {} is expected",
        found_in_words(found),
        expected_in_words(expected)
    ))
}

/// ``integer `5` `` is the number 5.
fn found_in_words(found: &str) -> String {
    let (what, value) = found.split_once(' ').unwrap_or((found, ""));
    let value = value.trim_start_matches("point ").trim_matches('`');
    match what {
        "string" => format!("the text {value}"),
        "integer" | "floating" => format!("the number {value}"),
        "boolean" => format!("`{value}`"),
        "sequence" => "a list".to_owned(),
        "map" => "a table".to_owned(),
        _ => found.to_owned(),
    }
}

/// Rust's words for what a key takes, as they are said of a file; our own readers say it
/// themselves.
fn expected_in_words(expected: &str) -> String {
    let words = match expected {
        "a string" | "string" | "str" => "a text in quotation marks",
        "a boolean" => "`true` or `false`",
        "a sequence" => "a list",
        "a map" => "a table",
        "f32" | "f64" => "a number",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number from 0 on",
        "string or map" => "a word in quotation marks",
        other if other.starts_with("struct ") => "a table",
        other => other,
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde::de::DeserializeOwned;
    use serde_json::json;
    use std::collections::BTreeMap;

    /// The text that serde itself has, so that another version of it with other words is
    /// noticed here.
    fn error<T: DeserializeOwned>(value: serde_json::Value) -> String {
        serde_json::from_value::<T>(value)
            .err()
            .unwrap()
            .to_string()
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Table {
        #[allow(dead_code)]
        name: String,
        #[allow(dead_code)]
        nice: Option<i32>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Empty {}

    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Word {
        Poisson,
        Regular,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Only {
        Max,
    }

    fn said(text: &str) -> (String, Option<String>) {
        let unknown = parse_unknown(text).unwrap();
        (unknown.message(), unknown.help())
    }

    #[test]
    fn a_key_that_stands_above_its_table_is_answered_with_the_table() {
        let above = "unknown field `budget`, expected one of `arm`, `workload`, `stop`";
        assert_eq!(
            said(above).1.as_deref(),
            Some("`budget` belongs into [stop]")
        );
        let elsewhere = "unknown field `budget`, expected one of `name`, `nice`";
        assert!(!said(elsewhere).1.unwrap().contains("[stop]"));
    }

    #[test]
    fn a_name_that_is_not_there_is_answered_with_the_nearest_or_with_all() {
        let help = |text: &str| Some(text.to_owned());
        let (message, near) = said(&error::<Table>(json!({"nmae": "x"})));
        assert_eq!(message, "there is no key `nmae` here");
        assert_eq!(near, help("did you mean `name`?"));
        let (_, all) = said(&error::<Table>(json!({"zzz": 1})));
        assert_eq!(all, help("there are `name`, `nice`"));
        assert_eq!(said(&error::<Empty>(json!({"zzz": 1}))).1, None);
        let (message, near) = said(&error::<Word>(json!("poison")));
        assert_eq!(message, "the word `poison` has no meaning here");
        assert_eq!(near, help("did you mean `poisson`?"));
        let (_, all) = said(&error::<Word>(json!("zzz")));
        assert_eq!(all, help("write one of `poisson`, `regular`"));
        let (_, only) = said(&error::<Only>(json!("zzz")));
        assert_eq!(only, help("write `max`"));
        assert!(matches!(Word::Poisson, Word::Poisson | Word::Regular));
        assert!(matches!(Only::Max, Only::Max));
    }

    #[test]
    fn a_value_of_another_form_is_said_in_words_of_the_file() {
        for (text, expected) in [
            (
                error::<u32>(json!("x")),
                "the text \"x\" stands where a whole number from 0 to 4294967295 is expected",
            ),
            (
                error::<u32>(json!(-1)),
                "the number -1 stands where a whole number from 0 to 4294967295 is expected",
            ),
            (
                error::<i32>(json!(1.5)),
                "the number 1.5 stands where a whole number is expected",
            ),
            (
                error::<String>(json!(true)),
                "`true` stands where a text in quotation marks is expected",
            ),
            (
                error::<Vec<String>>(json!({})),
                "a table stands where a list is expected",
            ),
            (
                error::<BTreeMap<String, String>>(json!([])),
                "a list stands where a table is expected",
            ),
            (
                error::<Word>(json!(5)),
                "the number 5 stands where a word in quotation marks is expected",
            ),
            (
                error::<bool>(json!("yes, expected x")),
                "the text \"yes, expected x\" stands where `true` or `false` is expected",
            ),
            (error::<Table>(json!({})), "the key `name` is missing"),
        ] {
            assert_eq!(sentence(&text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(sentence("`5 parsecs` has no unit"), None);
        let toml = toml::from_str::<BTreeMap<String, Word>>("a = 5")
            .err()
            .unwrap();
        let expected = "a word in quotation marks is expected here";
        assert_eq!(sentence(toml.message()).as_deref(), Some(expected));
    }
}
