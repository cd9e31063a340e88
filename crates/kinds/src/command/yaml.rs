//! YAML as the JSON that it means, so that a JSONPath finds figures in it.

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};
use std::collections::BTreeMap;

/// Most values of a text: an alias repeats all that its anchor has, so a short text may mean
/// more than there is memory for.
const MOST_VALUES: usize = 1 << 20;
/// Most lists and maps within each other, as in JSON.
const MOST_DEPTH: usize = 127;

/// The documents of a text, in their order.
pub fn documents(text: &str) -> Result<Vec<Value>, String> {
    let mut reader = Reader::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| format!("it is no YAML: {error}"))?;
        let at_line = |why| {
            format!(
                "it is no YAML that is read: {why} in line {}",
                span.start.line()
            )
        };
        reader.take(event).map_err(at_line)?;
    }
    Ok(reader.documents)
}

/// A list or map that has not ended, with its anchor.
enum Open {
    List(Vec<Value>, usize),
    Map(Map<String, Value>, Option<String>, usize),
}

#[derive(Default)]
struct Reader {
    documents: Vec<Value>,
    open: Vec<Open>,
    /// Values that have a name, with how many values each has in it.
    anchors: BTreeMap<usize, (Value, usize)>,
    values: usize,
}

impl Reader {
    fn take(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_plain = style == ScalarStyle::Plain && tag.is_none();
                let value = match is_plain {
                    true => plain(&text),
                    false => Value::String(text.into_owned()),
                };
                self.put(value, anchor, 1)
            }
            Event::SequenceStart(anchor, _) => self.begin(Open::List(Vec::new(), anchor)),
            Event::MappingStart(anchor, _) => self.begin(Open::Map(Map::new(), None, anchor)),
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => {
                let found = self.anchors.get(&anchor).map(|(_, values)| *values);
                // What would be too many is not copied.
                self.count(found.ok_or("an alias of nothing")?)?;
                match self.anchors.get(&anchor).map(|(value, _)| value.clone()) {
                    Some(value) => self.insert(value),
                    None => Ok(()),
                }
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
        }
    }

    fn begin(&mut self, open: Open) -> Result<(), String> {
        self.open.push(open);
        match self.open.len() > MOST_DEPTH {
            true => Err(format!("more than {MOST_DEPTH} lists within each other")),
            false => Ok(()),
        }
    }

    fn end(&mut self) -> Result<(), String> {
        match self.open.pop() {
            Some(Open::List(list, anchor)) => self.put(Value::Array(list), anchor, 1),
            Some(Open::Map(map, _, anchor)) => self.put(Value::Object(map), anchor, 1),
            None => Err("an end without a beginning".to_owned()),
        }
    }

    /// Puts a value where it belongs, and keeps it for aliases if it has a name.
    fn put(&mut self, value: Value, anchor: usize, values: usize) -> Result<(), String> {
        self.count(values)?;
        if anchor > 0 {
            let values = count_of(&value);
            self.count(values)?;
            self.anchors.insert(anchor, (value.clone(), values));
        }
        self.insert(value)
    }

    fn count(&mut self, values: usize) -> Result<(), String> {
        self.values += values;
        match self.values > MOST_VALUES {
            true => Err(format!("more than {MOST_VALUES} values")),
            false => Ok(()),
        }
    }

    fn insert(&mut self, value: Value) -> Result<(), String> {
        match self.open.last_mut() {
            None => self.documents.push(value),
            Some(Open::List(list, _)) => list.push(value),
            Some(Open::Map(map, key, _)) => match key.take() {
                None => *key = Some(name(value)?),
                Some(key) => {
                    if map.insert(key.clone(), value).is_some() {
                        return Err(format!("the key `{key}` twice"));
                    }
                }
            },
        }
        Ok(())
    }
}

/// Cost of a copy of a value: each value, and each 64 bytes of text.
fn count_of(value: &Value) -> usize {
    let text = |text: &str| text.len() / 64;
    match value {
        Value::Array(list) => 1 + list.iter().map(count_of).sum::<usize>(),
        Value::Object(map) => {
            let members = map.iter().map(|(key, value)| text(key) + count_of(value));
            1 + members.sum::<usize>()
        }
        Value::String(value) => 1 + text(value),
        _ => 1,
    }
}

fn name(key: Value) -> Result<String, String> {
    match key {
        Value::String(text) => Ok(text),
        Value::Array(_) | Value::Object(_) => Err("a key that is no word".to_owned()),
        other => Ok(other.to_string()),
    }
}

/// A word without quotes is a number where JSON would have one, too.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => match text.parse::<Number>() {
            Ok(number) => Value::Number(number),
            Err(_) => Value::String(text.to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_maps_and_words_are_those_of_json() {
        let text = "---\na:\n  - b: 5198.200000\n    c: 0.17.06\n  - &x {d: \"7\", e: ~, 1: true}\n\
                    ...\n---\n- &y 2\n- *y\n";
        let expected = [
            json!({"a": [{"b": 5198.2, "c": "0.17.06"}, {"d": "7", "e": null, "1": true}]}),
            json!([2, 2]),
        ];
        assert_eq!(documents(text).unwrap(), expected);
        assert_eq!(documents("").unwrap(), Vec::<Value>::new());
    }

    #[test]
    fn what_means_too_much_or_contradicts_itself_is_an_error_with_its_line() {
        let twice = documents("a: 1\nb: 2\na: 3\n").unwrap_err();
        assert!(twice.contains("`a` twice in line 3"), "{twice}");
        let mut bomb = "- &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..20 {
            let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
            bomb += &format!("- &a{level} [{aliases}]\n");
        }
        let large = documents(&bomb).unwrap_err();
        assert!(large.contains("values"), "{large}");
        // One long text is copied by each of its aliases.
        let long = format!("- &a {}\n{}", "x".repeat(1 << 20), "- *a\n".repeat(1 << 10));
        let long = documents(&long).unwrap_err();
        assert!(long.contains("values"), "{long}");
        // Lists in brackets have a limit of the parser's own.
        assert!(documents(&"[".repeat(5000)).is_err());
        let deep = (0..200).map(|level| format!("{}a:\n", " ".repeat(level)));
        let deep = documents(&deep.collect::<String>()).unwrap_err();
        assert!(deep.contains("within each other"), "{deep}");
        assert!(documents("a: [1").unwrap_err().contains("no YAML"));
        assert!(documents("{[a]: 1}").is_err());
    }
}
