//! What perf stat prints for programs: fields between separators (`-x,`), and JSON (`-j`).

use super::{Count, REMEDY, Read, Stat, of_a_part};
use crate::ImportError;
use crate::files::parse_number;
use serde_json::{Map, Value};
use std::path::Path;

/// Separators that people choose; a language may have the comma in its numbers.
const SEPARATORS: [char; 6] = [',', ';', '\t', '|', ':', ' '];
/// Line that each file of `-o` begins with, also where `--append` adds to it.
const BEGIN: &str = "# started on";

/// Reads lines of JSON, each a figure.
pub fn of_json(path: &Path, text: &str) -> Result<Read, ImportError> {
    calls(path, text, |line, at| {
        let Ok(Value::Object(object)) = serde_json::from_str(line) else {
            return Ok(None);
        };
        of_object(path, &object, at)
    })
}

/// Reads lines of fields. The separator is the first one of which a line of the text makes a figure.
pub fn of_lines(path: &Path, text: &str) -> Result<Read, ImportError> {
    let makes_one = |separator: &char| {
        let mut lines = text.lines();
        lines.any(|line| matches!(fields(path, line, *separator, 1), Ok(Some(_)) | Err(_)))
    };
    let Some(separator) = SEPARATORS.into_iter().find(makes_one) else {
        return Ok(Read::default());
    };
    calls(path, text, |line, at| fields(path, line, separator, at))
}

fn calls(
    path: &Path,
    text: &str,
    count: impl Fn(&str, usize) -> Result<Option<Count>, ImportError>,
) -> Result<Read, ImportError> {
    let mut read = Read::default();
    let mut is_open = false;
    for (at, line) in text.lines().enumerate() {
        match line.trim() {
            line if line.starts_with(BEGIN) => is_open = false,
            "" => {}
            line => match count(line, at + 1)? {
                None => read.others.push(at + 1),
                Some(count) => {
                    if !is_open {
                        read.stats.push(Stat {
                            line: at + 1,
                            ..Stat::default()
                        });
                        is_open = true;
                    }
                    read.stats
                        .last_mut()
                        .ok_or_else(|| nothing(path))?
                        .counts
                        .push(count);
                }
            },
        }
    }
    Ok(read)
}

fn nothing(path: &Path) -> ImportError {
    ImportError::in_file(path, "there is no figure in it", REMEDY)
}

fn of_object(
    path: &Path,
    object: &Map<String, Value>,
    at: usize,
) -> Result<Option<Count>, ImportError> {
    if object.contains_key("interval") {
        return Err(of_intervals(path, at));
    }
    let parts = [
        "cpu", "core", "die", "node", "socket", "cluster", "cache", "thread", "cgroup",
    ];
    if let Some(part) = parts.into_iter().find(|part| object.contains_key(*part)) {
        return Err(of_a_part(
            path,
            at,
            &format!("each {part}"),
            "-A and --per-…",
        ));
    }
    let word = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let (said, event) = (word("counter-value"), word("event"));
    if said.is_empty() || event.is_empty() {
        return Ok(None);
    }
    let percent = |key: &str| object.get(key).and_then(Value::as_f64);
    Ok(Some(Count {
        event: event.to_owned(),
        unit: word("unit").to_owned(),
        value: value(path, said, at)?,
        error_percent: percent("variance"),
        counted_percent: percent("pcnt-running").unwrap_or(100.0),
        line: at,
    }))
}

/// `VALUE,UNIT,EVENT,[ERROR%,]RUNNING TIME,RUNNING PERCENT,…`; `None` for a line that is none.
fn fields(
    path: &Path,
    line: &str,
    separator: char,
    at: usize,
) -> Result<Option<Count>, ImportError> {
    let fields: Vec<&str> = line.trim().split(separator).map(str::trim).collect();
    let [said, unit, event, rest @ ..] = fields.as_slice() else {
        return Ok(None);
    };
    if is_time(said) && is_value(unit) && rest.len() > 3 {
        return Err(of_intervals(path, at));
    }
    let is_place = |text: &str| text.starts_with(|c: char| c.is_ascii_uppercase());
    if is_place(said) && (is_value(unit) || is_value(event)) && rest.len() > 3 {
        return Err(of_a_part(
            path,
            at,
            &format!("{said}, a part of the machine"),
            "-A and --per-…",
        ));
    }
    let is_name = event.contains(|c: char| c.is_ascii_alphabetic()) && !is_value(event);
    if !is_value(said) || is_value(unit) && !unit.is_empty() || !is_name || rest.len() < 2 {
        return Ok(None);
    }
    if event.matches('/').count() % 2 == 1 {
        let what =
            format!("the name of the event `{event}…` has the separator `{separator}` in it");
        let remedy = "measure again with another separator: perf stat -x';'";
        return Err(ImportError::in_line(path, at, what, remedy));
    }
    let percent = |text: &str| parse_number(&text.replace(',', "."));
    let error = rest[0].strip_suffix('%').and_then(percent);
    let counted = rest.get(1 + usize::from(error.is_some()));
    let counted = counted.and_then(|text| percent(text));
    Ok(Some(Count {
        event: (*event).to_owned(),
        unit: (*unit).to_owned(),
        value: value(path, said, at)?,
        error_percent: error,
        counted_percent: counted.unwrap_or(100.0),
        line: at,
    }))
}

/// Seconds with nine digits, as `-I` puts them first.
fn is_time(text: &str) -> bool {
    let parts = text.split_once(['.', ',']);
    parts.is_some_and(|(_, digits)| digits.len() == 9 && is_value(text))
}

fn is_value(text: &str) -> bool {
    matches!(text, "<not counted>" | "<not supported>")
        || parse_number(&text.replace(',', ".")).is_some()
}

fn value(path: &Path, text: &str, at: usize) -> Result<Option<f64>, ImportError> {
    if text.starts_with('<') {
        return Ok(None);
    }
    let value = parse_number(&text.replace(',', "."));
    let wrong = || ImportError::in_line(path, at, format!("`{text}` is no number"), REMEDY);
    value.ok_or_else(wrong).map(Some)
}

fn of_intervals(path: &Path, at: usize) -> ImportError {
    of_a_part(path, at, "an interval each", "-I")
}
