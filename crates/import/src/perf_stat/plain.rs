//! The text that perf stat prints for people, with digits in groups as the language has them.

use super::{Count, ELAPSED, REMEDY, Read, Stat, of_a_part};
use crate::ImportError;
use crate::files::parse_number;
use model::print::number::{Thousands, normalize_number};
use std::path::Path;

/// Words that each call of perf stat begins with.
pub const HEAD: &str = "Performance counter stats for ";
const NOT: [&str; 2] = ["<not counted>", "<not supported>"];

/// Reads all calls of a text; each must have the time that passed.
pub fn read(path: &Path, text: &str) -> Result<Read, ImportError> {
    let mut read = Read::default();
    let lines: Vec<&str> = text.lines().collect();
    let is_head = |line: &&str| line.trim_start().starts_with(HEAD);
    let heads: Vec<usize> = (0..lines.len()).filter(|at| is_head(&lines[*at])).collect();
    let first = heads.first().copied().unwrap_or(lines.len());
    let is_own = |line: &str| line.is_empty() || line.starts_with("# started on");
    let before = (0..first).filter(|at| !is_own(lines[*at].trim()));
    read.others.extend(before.map(|at| at + 1));
    for (index, begin) in heads.iter().enumerate() {
        let end = heads.get(index + 1).copied().unwrap_or(lines.len());
        let stat = call(path, &lines, *begin, end, &mut read.others)?;
        read.stats.push(stat);
    }
    Ok(read)
}

fn call(
    path: &Path,
    lines: &[&str],
    begin: usize,
    end: usize,
    others: &mut Vec<usize>,
) -> Result<Stat, ImportError> {
    let mut stat = head(lines[begin].trim());
    stat.line = begin + 1;
    let Some(point) = lines[begin..end]
        .iter()
        .find_map(|line| decimal_point(line))
    else {
        let what = "there is no `seconds time elapsed` behind this line: it is not whole";
        return Err(ImportError::in_line(path, begin + 1, what, REMEDY));
    };
    for (at, line) in lines.iter().enumerate().take(end).skip(begin + 1) {
        if line.starts_with("CPU") || line.starts_with('S') && line[1..].starts_with(is_digit) {
            return Err(of_a_part(
                path,
                at + 1,
                "each CPU or socket",
                "-A and --per-…",
            ));
        }
        let count = count(line, point).map_err(|what| {
            ImportError::in_line(path, at + 1, format!("`{}`: {what}", line.trim()), REMEDY)
        })?;
        let has_ended = stat.counts.iter().any(|count| count.event == ELAPSED);
        let is_of_end = |count: &Count| matches!(count.event.as_str(), "user" | "sys");
        match count {
            Some(count) if !has_ended || is_of_end(&count) => stat.counts.push(Count {
                line: at + 1,
                ..count
            }),
            None if is_of_perf(line) => {}
            _ => others.push(at + 1),
        }
    }
    Ok(stat)
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

fn is_of_perf(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#') || line.starts_with("Some events weren't counted")
}

/// `Performance counter stats for 'COMMAND' (3 runs):`
fn head(line: &str) -> Stat {
    let rest = line.strip_prefix(HEAD).unwrap_or_default();
    let rest = rest.trim_end_matches(':').trim();
    let runs = |words: &str| words.strip_suffix(" runs)")?.parse().ok();
    let (command, runs) = match rest.rsplit_once(" (") {
        Some((command, words)) if runs(words).is_some() => (command, runs(words)),
        _ => (rest, None),
    };
    let quoted = command
        .strip_prefix('\'')
        .and_then(|c| c.strip_suffix('\''));
    Stat {
        command: Some(quoted.unwrap_or(command).trim().to_owned()),
        runs,
        ..Stat::default()
    }
}

/// The sign between the whole seconds and their parts, which the time that passed always has.
fn decimal_point(line: &str) -> Option<char> {
    let number = line.trim().split(' ').next()?;
    let is_elapsed = line.contains(" seconds time elapsed");
    is_elapsed.then(|| number.chars().rfind(|c| matches!(c, '.' | ',')))?
}

/// The figure of a line; `None` where it has none.
fn count(line: &str, point: char) -> Result<Option<Count>, String> {
    let trimmed = line.trim();
    let shown = trimmed.split(" #").next().unwrap_or_default();
    let not = NOT.iter().find_map(|words| shown.strip_prefix(words));
    let (value, rest) = match not {
        Some(rest) => (None, rest),
        None => {
            let (number, rest) = shown.split_once(' ').unwrap_or((shown, ""));
            if !number.starts_with(is_digit) {
                return Ok(None);
            }
            (Some(value(number, point)?), rest)
        }
    };
    let named = name(rest.trim());
    let Some((unit, event)) = named else {
        return Ok(None);
    };
    Ok(Some(Count {
        event,
        unit,
        value,
        error_percent: error_percent(trimmed, point),
        counted_percent: counted_percent(trimmed, point).unwrap_or(100.0),
        line: 0,
    }))
}

/// Unit and name of an event: `msec task-clock`, `context-switches`, `seconds time elapsed`.
fn name(rest: &str) -> Option<(String, String)> {
    let rest = rest.strip_prefix("+-").map_or(rest, |error| {
        error
            .trim_start()
            .split_once(' ')
            .map_or("", |(_, rest)| rest)
    });
    let words = rest.split(" (").next().unwrap_or_default();
    let words: Vec<&str> = words.split(' ').filter(|word| !word.is_empty()).collect();
    let named = |unit: &str, event: &str| Some((unit.to_owned(), event.to_owned()));
    match words.as_slice() {
        ["seconds", "time", "elapsed"] => named("s", ELAPSED),
        ["seconds", event @ ("user" | "sys")] => named("s", event),
        [event] => named("", event),
        [unit, event] => named(unit, event),
        _ => None,
    }
}

fn value(text: &str, point: char) -> Result<f64, String> {
    let is_space = |c: char| matches!(c, '\u{a0}' | '\u{202f}' | '\'' | '’');
    let text: String = text.chars().filter(|c| !is_space(*c)).collect();
    let thousands = match point {
        ',' => Thousands::Point,
        _ => Thousands::Comma,
    };
    let plain = normalize_number(&text, Some(thousands))?;
    parse_number(&plain).ok_or_else(|| "it is no number".to_owned())
}

/// `( +- 17.21% )`, the last one of the line.
fn error_percent(line: &str, point: char) -> Option<f64> {
    let (_, behind) = line.rsplit_once("+-")?;
    let (percent, _) = behind.trim_start().split_once('%')?;
    value(percent, point).ok()
}

/// `(49.92%)` at the end of the line.
fn counted_percent(line: &str, point: char) -> Option<f64> {
    let (_, last) = line.rsplit_once('(')?;
    let percent = last.strip_suffix("%)")?;
    value(percent, point).ok()
}
