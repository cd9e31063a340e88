//! Numbers whose digits are in groups of three: `12,345,678`.
//!
//! One group, `12,345`, is a number of thousands in one country and a decimal in another, so it is
//! read only where the metric says which.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The sign between groups of three digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Thousands {
    /// `12,345.6`
    Comma,
    /// `12.345,6`
    Point,
    /// `12'345.6`
    Apostrophe,
    /// `12 345.6`, also with a space that breaks no line.
    Space,
    /// `12_345.6`
    Underscore,
}

const SIGNS: [(Thousands, &str); 5] = [
    (Thousands::Comma, ","),
    (Thousands::Point, "."),
    (Thousands::Apostrophe, "'"),
    (Thousands::Space, " "),
    (Thousands::Underscore, "_"),
];

impl TryFrom<String> for Thousands {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let found = SIGNS.iter().find(|(_, sign)| *sign == text);
        let signs = || SIGNS.map(|(_, sign)| format!("`{sign}`")).join(", ");
        found
            .map(|(thousands, _)| *thousands)
            .ok_or_else(|| format!("`{text}` separates no thousands; it is one of {}", signs()))
    }
}

impl From<Thousands> for String {
    fn from(thousands: Thousands) -> Self {
        let found = SIGNS.iter().find(|(other, _)| *other == thousands);
        found.map_or("", |(_, sign)| sign).to_owned()
    }
}

impl Thousands {
    fn is_sign(self, c: char) -> bool {
        match self {
            Thousands::Comma => c == ',',
            Thousands::Point => c == '.',
            Thousands::Apostrophe => matches!(c, '\'' | '’'),
            Thousands::Space => matches!(c, ' ' | '\u{a0}' | '\u{202f}'),
            Thousands::Underscore => c == '_',
        }
    }

    fn decimal(self) -> char {
        match self {
            Thousands::Point => ',',
            _ => '.',
        }
    }
}

/// The text with its number as Rust reads it; an error for one that could be two numbers.
pub fn normalize_number(text: &str, thousands: Option<Thousands>) -> Result<Cow<'_, str>, String> {
    let text = text.trim();
    if let Some(thousands) = thousands {
        let no_number = || {
            let sign = String::from(thousands);
            format!("it is no number with thousands = \"{sign}\"")
        };
        return Ok(Cow::Owned(joined(text, thousands).ok_or_else(no_number)?));
    }
    match (joined(text, Thousands::Comma), groups(text)) {
        (Some(joined), 2..) => Ok(Cow::Owned(joined)),
        (Some(joined), 1) if joined.contains('.') => Ok(Cow::Owned(joined)),
        (Some(joined), 1) => {
            let decimal = text.replacen(',', ".", 1);
            Err(format!(
                "it may be {joined} or {decimal}; thousands = \",\" means the first, \".\" the second"
            ))
        }
        _ => Ok(Cow::Borrowed(text)),
    }
}

fn groups(text: &str) -> usize {
    text.matches(',').count()
}

/// The text without the signs; `None` where what is between them are no groups of three digits.
fn joined(text: &str, thousands: Thousands) -> Option<String> {
    let unsigned = text.trim_start_matches(['+', '-']);
    let sign = &text[..text.len() - unsigned.len()];
    let end = end_of_whole(unsigned, thousands);
    let (whole, rest) = unsigned.split_at(end);
    let mut groups = whole.split(|c| thousands.is_sign(c));
    let first = groups.next()?;
    let later: Vec<&str> = groups.collect();
    let is_grouped = !later.is_empty();
    let fits = !is_grouped || (1..=3).contains(&first.len()) && !first.starts_with('0');
    if whole.is_empty() || !fits || later.iter().any(|group| group.len() != 3) {
        return None;
    }
    let rest = match rest.strip_prefix(thousands.decimal()) {
        Some(decimals) => format!(".{decimals}"),
        None if rest.starts_with([',', '.', '\'', '_']) => return None,
        None => rest.to_owned(),
    };
    Some(format!("{sign}{first}{}{rest}", later.concat()))
}

/// Where the digits and their signs end. A sign counts between two digits only.
fn end_of_whole(text: &str, thousands: Thousands) -> usize {
    let mut end = 0;
    let mut letters = text.char_indices().peekable();
    while let Some((at, c)) = letters.next() {
        let is_before_digit = letters
            .peek()
            .is_some_and(|(_, next)| next.is_ascii_digit());
        match c.is_ascii_digit() || thousands.is_sign(c) && end > 0 && is_before_digit {
            true => end = at + c.len_utf8(),
            false => break,
        }
    }
    end
}

/// The number of which an expression takes a part; `None` where it takes the whole. `before` and
/// `after` are what stands on its sides in the line, and `demanded` how much of each of them the
/// expression demands itself.
pub fn cut_out_of(before: &str, figure: &str, after: &str, demanded: [usize; 2]) -> Option<String> {
    let is_in_number = |c: char| c.is_ascii_digit() || matches!(c, ',' | '.');
    let starts = figure.starts_with(|c: char| c.is_ascii_digit());
    let ends = figure.ends_with(|c: char| c.is_ascii_digit());
    let [demanded_before, demanded_after] = demanded;
    let is_tail = demanded_before == 0 && is_tail_of_number(before, figure);
    let is_cut_before = starts && (before.ends_with(|c: char| c.is_ascii_digit()) || is_tail);
    let group = |text: &str| {
        let digits = text.strip_prefix(',').unwrap_or_default();
        let end = digits.find(|c: char| !c.is_ascii_digit());
        end.unwrap_or(digits.len()) == 3
    };
    let is_cut_after = ends && demanded_after == 0 && group(after);
    if !is_cut_before && !is_cut_after {
        return None;
    }
    let head = before.trim_end_matches(is_in_number).len();
    let tail = after.find(|c| !is_in_number(c)).unwrap_or(after.len());
    let whole = format!("{}{figure}{}", &before[head..], &after[..tail]);
    Some(whole.trim_matches([',', '.']).to_owned())
}

/// Whether the digits are the last group of a number, or what is behind its point.
fn is_tail_of_number(before: &str, digits: &str) -> bool {
    let ends_with_digit = |text: &str| text.ends_with(|c: char| c.is_ascii_digit());
    let length = digits.find(|c: char| !c.is_ascii_digit());
    let is_group = length.unwrap_or(digits.len()) == 3;
    let group = before.strip_suffix(',').filter(|_| is_group);
    group
        .or_else(|| before.strip_suffix('.'))
        .is_some_and(ends_with_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, sign: &str) -> Option<String> {
        let thousands = Thousands::try_from(sign.to_owned()).unwrap();
        normalize_number(text, Some(thousands))
            .ok()
            .map(Cow::into_owned)
    }

    #[test]
    fn groups_of_three_are_joined_as_the_metric_says() {
        for (text, sign, expected) in [
            ("12,345,678", ",", Some("12345678")),
            ("12,345", ",", Some("12345")),
            ("-1,234.5 ms", ",", Some("-1234.5 ms")),
            ("987", ",", Some("987")),
            ("1.5e3", ",", Some("1.5e3")),
            ("12.345.678", ".", Some("12345678")),
            ("1.234,5ms", ".", Some("1234.5ms")),
            ("12 345 ms", " ", Some("12345 ms")),
            ("12\u{202f}345", " ", Some("12345")),
            ("12'345", "'", Some("12345")),
            ("12_345", "_", Some("12345")),
            ("1,5", ",", None),
            ("1.5", ".", None),
            ("0,123", ",", None),
            ("1234,567", ",", None),
            ("1,23,456", ",", None),
            ("1,234,56", ",", None),
            ("1.234,5.6", ".", Some("1234.5.6")),
        ] {
            assert_eq!(read(text, sign).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn without_a_sign_only_what_is_certain_is_joined() {
        for (text, expected) in [
            ("12,345,678", "12345678"),
            ("1,234.5", "1234.5"),
            ("1,5", "1,5"),
            ("12.345", "12.345"),
            ("12345", "12345"),
            ("soon", "soon"),
        ] {
            assert_eq!(normalize_number(text, None).unwrap(), expected, "{text}");
        }
        let error = normalize_number("234,567", None).unwrap_err();
        assert!(error.contains("234567 or 234.567"), "{error}");
        assert!(error.contains("thousands = \",\""), "{error}");
    }

    #[test]
    fn a_part_of_a_number_is_known_as_one() {
        for (before, figure, after, demanded, expected) in [
            ("cycles: ", "12", ",345,678 x", 0, Some("12,345,678")),
            ("took 12", "3", " ms", 3, Some("123")),
            ("took ", "12", ",345", 1, None),
            ("a,", "12", ",3", 0, None),
            ("took ", "12", ".5", 0, None),
            ("p99=", "7", "", 0, None),
            ("v2", "x", "", 0, None),
        ] {
            let found = cut_out_of(before, figure, after, [0, demanded]);
            assert_eq!(found.as_deref(), expected, "{before}{figure}{after}");
        }
        for (before, figure, demanded, expected) in [
            ("took 12,", "345", 0, Some("12,345")),
            ("took 1.", "5", 0, Some("1.5")),
            ("a,12,", "34", 0, None),
            ("took 0.", "5", 2, None),
            ("row,", "345", 0, None),
        ] {
            let found = cut_out_of(before, figure, " ms", [demanded, 3]);
            assert_eq!(found.as_deref(), expected, "{before}{figure}");
        }
    }
}
