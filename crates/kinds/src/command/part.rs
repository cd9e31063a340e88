//! The part of a text in which a figure is looked for: a section between lines, and rows or values
//! that say what they are about.

use super::find;
use super::place::{json_path, line_regex};
use load::Keys;
use model::Invalid;
use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// The part of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Part {
    /// Expression of the lines behind which a section begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Expression of the lines at which a section ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Texts that a row of a table or a value of JSON or YAML must have, by column, key or JSONPath.
    #[serde(rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub rows: BTreeMap<String, String>,
}

impl Part {
    /// From the keys of one metric. Faults stay in the keys.
    pub fn read(keys: &mut Keys) -> Self {
        let (after, until) = (keys.get("after"), keys.get("until"));
        let said: BTreeMap<String, Value> = keys.get("where").unwrap_or_default();
        let is_scalar = |value: &Value| !matches!(value, Value::Array(_) | Value::Object(_));
        if let Some((key, _)) = said.iter().find(|(_, value)| !is_scalar(value)) {
            let what = format!("what `{key}` must say is a text or a number");
            keys.refuse(Invalid::new("where", what).with_remedy(WHERE));
        }
        let rows = said
            .iter()
            .map(|(key, value)| (key.clone(), value_text(value)));
        Part {
            after,
            until,
            rows: rows.collect(),
        }
    }

    /// True for the whole text.
    pub fn is_whole(&self) -> bool {
        *self == Part::default()
    }

    /// The first key that nothing could fit.
    pub fn check(&self) -> Result<(), Invalid> {
        let expressions = [("after", &self.after), ("until", &self.until)];
        for (key, text) in expressions {
            let text = text.as_deref().unwrap_or_default();
            line_regex(text).map_err(|what| {
                Invalid::new(key, what).with_remedy("after = \"^Request latencies\"")
            })?;
        }
        for key in self.rows.keys() {
            let is_path = key.starts_with('$');
            let checked = is_path.then(|| json_path(key)).transpose();
            checked.map_err(|what| Invalid::new("where", what).with_remedy(WHERE))?;
        }
        Ok(())
    }

    /// The text with the lines outside of the section left empty, so that lines keep their numbers.
    pub fn cut_section<'t>(&self, text: &'t str) -> Result<Cow<'t, str>, String> {
        if self.after.is_none() && self.until.is_none() {
            return Ok(Cow::Borrowed(text));
        }
        let regex = |text: &Option<String>| text.as_deref().map(line_regex).transpose();
        let (after, until) = (regex(&self.after)?, regex(&self.until)?);
        let (mut begun, mut ended) = (after.is_none(), until.is_none());
        let mut is_in = begun;
        let mut section = String::with_capacity(text.len());
        for line in text.lines() {
            let is = |regex: &Option<Regex>| regex.as_ref().is_some_and(|r| r.is_match(line));
            if is(&after) {
                (is_in, begun) = (true, true);
            } else if is_in && is(&until) {
                (is_in, ended) = (false, true);
            } else if is_in {
                section.push_str(line);
            }
            section.push('\n');
        }
        let missing = [("after", begun, &self.after), ("until", ended, &self.until)];
        match missing.into_iter().find(|(_, found, _)| !found) {
            None => Ok(Cow::Owned(section)),
            Some((key, _, expression)) => Err(format!(
                "no line matches {key} = \"{}\" in it, {}",
                expression.as_deref().unwrap_or_default(),
                find::text_tail(text)
            )),
        }
    }

    /// True for a value of which the part says so.
    pub fn has_value(&self, value: &Value) -> Result<bool, String> {
        for (key, wanted) in &self.rows {
            let is_wanted = |found: &Value| value_text(found) == *wanted;
            let is_there = match key.starts_with('$') {
                true => json_path(key)?.query(value).iter().any(|v| is_wanted(v)),
                false => value.get(key).is_some_and(is_wanted),
            };
            if !is_there {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

const WHERE: &str =
    "where = { stressor = \"cpu\" }, by a column of CSV, a key of JSON or a JSONPath";

/// The text of a value as a file would have it.
pub fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (key, wanted) in &self.rows {
            write!(f, " where {key} = {wanted}")?;
        }
        if let Some(after) = &self.after {
            write!(f, " after /{after}/")?;
        }
        match &self.until {
            Some(until) => write!(f, " until /{until}/"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(after: Option<&str>, until: Option<&str>, text: &str) -> Result<String, String> {
        let part = Part {
            after: after.map(str::to_owned),
            until: until.map(str::to_owned),
            ..Part::default()
        };
        part.cut_section(text).map(Cow::into_owned)
    }

    #[test]
    fn a_section_has_its_lines_where_they_were() {
        let text = "a\nBEGIN\nb\nc\nEND\nd\nBEGIN\ne";
        let found = |after, until| section(after, until, text);
        assert_eq!(found(None, None).unwrap(), text);
        let both = found(Some("^BEGIN"), Some("^END"));
        assert_eq!(both.unwrap(), "\n\nb\nc\n\n\n\ne\n");
        let after = found(Some("END"), None);
        assert_eq!(after.unwrap(), "\n\n\n\n\nd\nBEGIN\ne\n");
        let until = found(None, Some("BEGIN"));
        assert_eq!(until.unwrap(), "a\n\n\n\n\n\n\n\n");
    }

    #[test]
    fn a_section_that_is_not_there_is_an_error_with_its_expression() {
        let error = section(Some("^Latencies"), None, "a\nb\n").unwrap_err();
        assert!(
            error.contains("after = \"^Latencies\"") && error.contains("a | b"),
            "{error}"
        );
        let error = section(Some("a"), Some("^END"), "a\nb\n").unwrap_err();
        assert!(error.contains("until = \"^END\""), "{error}");
    }
}
