//! Figures in a text, each with its place for messages.

use super::metric::Source;
use super::unit::{self, Unit};
use model::Quote;
use model::printable::last_lines;
use regex::{Captures, Regex};
use serde_json::{Deserializer, Value};
use serde_json_path::JsonPath;

/// Letters of a line that a message quotes.
const QUOTED_LETTERS: usize = 160;

/// The text of a figure, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    text: String,
    /// Unit that stands beside it.
    unit: Option<String>,
    place: String,
}

/// A figure that was read, in the unit of its metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Value in `unit`.
    pub value: f64,
    /// Unit that the text has become; `None` where no unit stands beside the figure.
    pub unit: Option<String>,
    /// The text and its place, for messages.
    pub said: String,
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` in {}", quoted(&self.text), self.place)
    }
}

impl Found {
    /// The number that the text is, in the unit that the metric declares or that of its dimension.
    pub fn figure(&self, from: &Source, declared: Option<&str>) -> Result<Figure, String> {
        let (number, unit) =
            unit::split(&self.text).ok_or_else(|| format!("{self} of {from} is no number"))?;
        let unit = unit.or(self.unit.as_deref());
        let (value, unit) = match unit.map(|unit| unit::conversion(unit, declared)) {
            None => (number, None),
            Some(Ok((factor, unit))) => (factor.of(number), Some(unit)),
            Some(Err(why)) => return Err(format!("{self} of {from}: {why}")),
        };
        Ok(Figure {
            value,
            unit,
            said: self.to_string(),
        })
    }
}

impl Figure {
    /// False for a 0 without a unit, which is 0 of any.
    pub fn has_certain_unit(&self) -> bool {
        self.unit.is_some() || self.value != 0.0
    }

    /// What is compared with the other figures of the metric, here and in the other trials.
    pub fn quote(&self) -> Quote {
        Quote {
            unit: self.unit.clone(),
            line: self.said.clone(),
        }
    }
}

/// Name of the group around the unit of a figure.
pub const UNIT_GROUP: &str = "u";

/// All that the named group of the expression finds, line by line, each with its unit.
pub fn by_regex(regex: &Regex, text: &str) -> Vec<Found> {
    let names: Vec<&str> = regex.capture_names().flatten().collect();
    let has_unit = names.len() > 1 && names.contains(&UNIT_GROUP);
    let mut names = names.into_iter();
    let Some(group) = names.find(|name| !has_unit || *name != UNIT_GROUP) else {
        return Vec::new();
    };
    let of_line = |(index, line): (usize, &str)| {
        let found = regex.captures_iter(line).filter_map(|captures| {
            let figure = captures.name(group)?;
            let unit = match has_unit {
                true => captures.name(UNIT_GROUP).map(|unit| unit.as_str().trim()),
                false => unit_behind(line, &captures, figure.end()),
            };
            Some(Found {
                text: figure.as_str().to_owned(),
                unit: unit.filter(|unit| !unit.is_empty()).map(str::to_owned),
                place: line_place(index, line),
            })
        });
        found.collect::<Vec<_>>()
    };
    text.lines().enumerate().flat_map(of_line).collect()
}

/// The unit in the text right behind a figure. A word that is none and that the expression itself
/// demands there is no unit that could change.
fn unit_behind<'t>(line: &'t str, captures: &Captures, end: usize) -> Option<&'t str> {
    let word = unit::behind(&line[end..])?;
    let demanded = captures
        .get(0)
        .map_or("", |whole| &line[end..whole.end().max(end)]);
    let is_demanded = demanded.contains(word);
    (!is_demanded || Unit::parse(word).is_some()).then_some(word)
}

fn line_place(index: usize, line: &str) -> String {
    format!("line {}, `{}`,", index + 1, quoted(line.trim()))
}

/// All that the path finds in the JSON values of the text, one after the other. Notes that a program
/// printed before them are passed over.
pub fn by_json_path(path: &JsonPath, text: &str) -> Result<Vec<Found>, String> {
    let notes = notes_before_json(text);
    match in_json(path, text) {
        Err(_) if !notes.is_empty() => {
            // Empty lines in their place, so that lines have their numbers.
            let lines = notes.matches('\n').count();
            let rest = "\n".repeat(lines) + &text[notes.len()..];
            in_json(path, &rest)
        }
        found => found,
    }
}

fn in_json(path: &JsonPath, text: &str) -> Result<Vec<Found>, String> {
    let mut found = Vec::new();
    for value in Deserializer::from_str(text).into_iter::<Value>() {
        let value = value.map_err(|error| {
            let line = text.lines().nth(error.line().saturating_sub(1));
            let line = quoted(line.unwrap_or_default().trim());
            format!("it is no JSON: {error}, `{line}`")
        })?;
        found.extend(path.query_located(&value).iter().map(|node| Found {
            text: match node.node() {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            },
            unit: None,
            place: node.location().to_string(),
        }));
    }
    Ok(found)
}

/// The lines before the first one that begins JSON, as fio has them: `fio: sprandom sets …`. Empty
/// where there is no such line.
pub fn notes_before_json(text: &str) -> &str {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if begins_json(line.trim()) {
            return &text[..at];
        }
        at += line.len();
    }
    ""
}

/// A bracket with words behind its end is a note: `[info] starting`.
fn begins_json(line: &str) -> bool {
    if !line.starts_with('[') {
        return line.starts_with('{');
    }
    let behind = line.split_once(']').map_or("", |(_, behind)| behind.trim());
    behind.is_empty() || behind.starts_with([',', ']', '}'])
}

/// The first line of a text that has more than spaces.
pub fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    quoted(line.unwrap_or_default())
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
            unit: None,
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
