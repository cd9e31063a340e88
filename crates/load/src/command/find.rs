//! Figures in a text, each with its place for messages.

use super::metric::Source;
use model::printable::last_lines;
use regex::Regex;
use serde_json::{Deserializer, Value};
use serde_json_path::JsonPath;

/// Letters of a line that a message quotes.
const QUOTED_LETTERS: usize = 160;

/// The text of a figure, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    text: String,
    place: String,
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` in {}", quoted(&self.text), self.place)
    }
}

impl Found {
    /// The number that the text is.
    pub fn number(&self, from: &Source) -> Result<f64, String> {
        let number = self.text.trim().parse::<f64>().ok();
        let number = number.filter(|number| number.is_finite());
        number.ok_or_else(|| format!("{self} of {from} is no number"))
    }
}

/// All that the only named group of the expression finds, line by line.
pub fn by_regex(regex: &Regex, text: &str) -> Vec<Found> {
    let Some(group) = regex.capture_names().flatten().next() else {
        return Vec::new();
    };
    let of_line = |(index, line): (usize, &str)| {
        let found = regex.captures_iter(line).filter_map(|c| c.name(group));
        let found = found.map(|figure| Found {
            text: figure.as_str().to_owned(),
            place: line_place(index, line),
        });
        found.collect::<Vec<_>>()
    };
    text.lines().enumerate().flat_map(of_line).collect()
}

fn line_place(index: usize, line: &str) -> String {
    format!("line {}, `{}`,", index + 1, quoted(line.trim()))
}

/// All that the path finds in the JSON values of the text, one after the other.
pub fn by_json_path(path: &JsonPath, text: &str) -> Result<Vec<Found>, String> {
    let mut found = Vec::new();
    for value in Deserializer::from_str(text).into_iter::<Value>() {
        let value = value.map_err(|error| format!("it is no JSON: {error}"))?;
        found.extend(path.query_located(&value).iter().map(|node| Found {
            text: match node.node() {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            },
            place: node.location().to_string(),
        }));
    }
    Ok(found)
}

/// The fields of one column, below the line with the names of the columns.
pub fn by_column(column: &str, text: &str) -> Result<Vec<Found>, String> {
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let head = reader.headers().map_err(|error| error.to_string())?;
    let mut columns = head.iter().enumerate().filter(|(_, name)| *name == column);
    let at = match (columns.next(), columns.next()) {
        (Some((at, _)), None) => at,
        (Some(_), Some(_)) => return Err(format!("two columns are called `{column}`")),
        (None, _) => {
            let names: Vec<&str> = head.iter().collect();
            return Err(format!(
                "no column is called `{column}`; its first line is `{}`",
                quoted(&names.join(","))
            ));
        }
    };
    let mut found = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        let line = record.position().map_or(0, csv::Position::line);
        let row: Vec<&str> = record.iter().collect();
        found.push(Found {
            text: record.get(at).unwrap_or_default().to_owned(),
            place: format!("line {line}, `{}`,", quoted(&row.join(","))),
        });
    }
    Ok(found)
}

/// The end of a text in which a figure is missing.
pub fn end(text: &str) -> String {
    match last_lines(text, 3, " | ") {
        lines if lines.is_empty() => "which is empty".to_owned(),
        lines => format!("which ends with: {}", tail(&lines)),
    }
}

fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_LETTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The last letters of a text.
fn tail(text: &str) -> String {
    let letters = text.chars().count();
    match letters.checked_sub(3 * QUOTED_LETTERS) {
        Some(left) if left > 0 => format!("…{}", text.chars().skip(left).collect::<String>()),
        _ => text.to_owned(),
    }
}
