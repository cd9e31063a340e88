//! Figures in a text, each with its place for messages.

use super::metric::Source;
use super::part::{self, Part};
use model::Quote;
use model::print::number::{self, Thousands};
use model::print::table;
use model::print::unit::{self, Unit};
use model::printable::last_lines;
use regex::{Captures, Regex};
use serde_json::{Deserializer, Value};
use serde_json_path::JsonPath;

const WHOLE_NUMBER: &str =
    "let the group take the whole number, (?<v>[\\d.,]+), behind what ends before it";
/// Letters of a line that a message quotes.
const QUOTED_LETTERS: usize = 160;

/// The text of a figure, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    text: String,
    /// Unit that stands beside it.
    unit: Option<String>,
    place: String,
    /// The number of which the expression takes a part.
    cut_out_of: Option<String>,
    /// A number of JSON or YAML, whose digits are in no groups.
    is_number: bool,
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
    /// A field or value with its place.
    pub fn from_text(text: &str, place: String) -> Self {
        Found {
            text: text.to_owned(),
            unit: None,
            place,
            cut_out_of: None,
            is_number: false,
        }
    }

    /// A value of JSON or YAML with its place.
    fn value(value: &Value, place: String) -> Self {
        Found {
            is_number: value.is_number(),
            ..Found::from_text(&part::value_text(value), place)
        }
    }

    /// The number that the text is, in the unit that the metric declares or that of its dimension.
    pub fn figure(
        &self,
        from: &Source,
        declared: Option<&str>,
        thousands: Option<Thousands>,
    ) -> Result<Figure, String> {
        if let Some(whole) = &self.cut_out_of {
            return Err(format!(
                "{self} of {from} is a part of `{whole}`; {WHOLE_NUMBER}"
            ));
        }
        let in_place = |why: String| format!("{self} of {from}: {why}");
        let thousands = thousands.filter(|_| !self.is_number);
        let plain = number::normalize_number(&self.text, thousands).map_err(in_place)?;
        let (number, unit) =
            unit::split_number(&plain).ok_or_else(|| format!("{self} of {from} is no number"))?;
        let unit = unit.or(self.unit.as_deref());
        let (value, unit) = match unit.map(|unit| unit::find_conversion(unit, declared)) {
            None => (number, None),
            Some(Ok((factor, unit))) => (factor.convert(number), Some(unit)),
            Some(Err(why)) => return Err(in_place(why)),
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
                unit: unit.filter(|unit| !unit.is_empty()).map(str::to_owned),
                cut_out_of: number::cut_out_of(
                    &line[..figure.start()],
                    figure.as_str(),
                    &line[figure.end()..],
                    [
                        demanded_before(&captures, figure.start()),
                        demanded(line, &captures, figure.end()).len(),
                    ],
                ),
                ..Found::from_text(figure.as_str(), line_place(index, line))
            })
        });
        found.collect::<Vec<_>>()
    };
    text.lines().enumerate().flat_map(of_line).collect()
}

/// The unit in the text right behind a figure. A word that is none and that the expression itself
/// demands there is no unit that could change.
fn unit_behind<'t>(line: &'t str, captures: &Captures, end: usize) -> Option<&'t str> {
    let word = unit::find_unit_behind(&line[end..])?;
    let is_demanded = demanded(line, captures, end).contains(word);
    (!is_demanded || Unit::parse(word).is_some()).then_some(word)
}

/// The number of bytes that the expression itself takes before its figure.
fn demanded_before(captures: &Captures, start: usize) -> usize {
    captures.get(0).map_or(0, |whole| start - whole.start())
}

/// Text that the expression itself takes behind its figure.
fn demanded<'t>(line: &'t str, captures: &Captures, end: usize) -> &'t str {
    let whole = captures.get(0);
    whole.map_or("", |whole| &line[end..whole.end().max(end)])
}

/// Place of a figure in a line, which is counted from 0 here and from 1 in the text.
fn line_place(index: usize, line: &str) -> String {
    format!("line {}, `{}`,", index + 1, quoted(line.trim()))
}

/// The fields of one column, of the rows that say what the part wants.
pub fn by_column(column: &str, part: &Part, text: &str) -> Result<Vec<Found>, String> {
    let found = by_column_of_lines(column, part, text)?.into_iter();
    Ok(found.map(|(_, found)| found).collect())
}

/// The same with the line of each, from 1 on.
pub fn by_column_of_lines(
    column: &str,
    part: &Part,
    text: &str,
) -> Result<Vec<(usize, Found)>, String> {
    let wanted = part.rows.keys().map(String::as_str);
    let names: Vec<&str> = [column].into_iter().chain(wanted).collect();
    let mut found = Vec::new();
    for row in table::read_rows(&names, text)? {
        let Some((field, conditions)) = row.fields.split_first() else {
            continue;
        };
        if conditions.iter().eq(part.rows.values()) {
            let place = line_place(row.line - 1, &row.whole);
            found.push((row.line, Found::from_text(field, place)));
        }
    }
    Ok(found)
}

/// All that the path finds in the JSON values of the text, one after the other. Notes that a program
/// printed before them are passed over.
pub fn by_json_path(path: &JsonPath, part: &Part, text: &str) -> Result<Vec<Found>, String> {
    let notes = notes_before_json(text);
    match in_json(path, part, text) {
        Err(_) if !notes.is_empty() => {
            // Empty lines in their place, so that lines have their numbers.
            let lines = notes.matches('\n').count();
            let rest = "\n".repeat(lines) + &text[notes.len()..];
            in_json(path, part, &rest)
        }
        found => found,
    }
}

fn in_json(path: &JsonPath, part: &Part, text: &str) -> Result<Vec<Found>, String> {
    let mut found = Vec::new();
    for value in Deserializer::from_str(text).into_iter::<Value>() {
        let value = value.map_err(|error| {
            let line = text.lines().nth(error.line().saturating_sub(1));
            let line = quoted(line.unwrap_or_default().trim());
            format!("it is no JSON: {error}, `{line}`")
        })?;
        in_value(path, part, &value, &mut found)?;
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

/// All that the path finds in one value, if it is of the part.
pub fn in_value(
    path: &JsonPath,
    part: &Part,
    value: &Value,
    found: &mut Vec<Found>,
) -> Result<(), String> {
    if part.has_value(value)? {
        let nodes = path.query_located(value);
        let nodes = nodes.iter();
        found.extend(nodes.map(|node| Found::value(node.node(), node.location().to_string())));
    }
    Ok(())
}

/// The end of a text in which a figure is missing.
pub fn text_tail(text: &str) -> String {
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
