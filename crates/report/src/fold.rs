//! Texts that differ in their numbers only, as one text with ranges: `the generator was
//! late by 5 to 647 ms`.

use crate::quantity::{round_digits, with_unit};

/// Equal but for their numbers.
pub fn is_alike(a: &str, b: &str) -> bool {
    let (a, b) = (pieces(a), pieces(b));
    a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a.is_like(b))
}

/// Texts that are [`is_alike`] as one, with the least and the greatest of each number.
pub fn in_ranges(texts: &[&str]) -> String {
    let texts: Vec<Vec<Piece>> = texts.iter().map(|text| pieces(text)).collect();
    let Some(first) = texts.first() else {
        return String::new();
    };
    let ranges = first.iter().enumerate().map(|(index, piece)| match piece {
        Piece::Words(words) => (*words).to_owned(),
        Piece::Number(_) | Piece::Time(_) => {
            range(texts.iter().filter_map(|pieces| pieces.get(index)))
        }
    });
    ranges.collect()
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Piece<'a> {
    Words(&'a str),
    /// A number as the text has it; versions such as 6.12.57 are numbers too.
    Number(&'a str),
    /// Nanoseconds of a number with a unit, such as `115.606ms`.
    Time(f64),
}

impl Piece<'_> {
    fn is_like(&self, other: &Piece) -> bool {
        match (self, other) {
            (Piece::Words(a), Piece::Words(b)) => a == b,
            (Piece::Number(_), Piece::Number(_)) | (Piece::Time(_), Piece::Time(_)) => true,
            _ => false,
        }
    }

    fn size(&self) -> f64 {
        match self {
            Piece::Number(written) => written.parse().unwrap_or(f64::NAN),
            Piece::Time(ns) => *ns,
            Piece::Words(_) => f64::NAN,
        }
    }

    fn written(&self) -> String {
        match self {
            Piece::Words(words) => (*words).to_owned(),
            Piece::Number(written) => match written.parse() {
                Ok(number) if written.contains('.') => round_digits(number, written),
                _ => (*written).to_owned(),
            },
            Piece::Time(ns) => with_unit(*ns, "ns"),
        }
    }
}

/// `7 to 93.1`, `5 to 647 ms`, or the number that all are.
fn range<'a>(pieces: impl Iterator<Item = &'a Piece<'a>>) -> String {
    let mut pieces: Vec<&Piece> = pieces.collect();
    pieces.sort_by(|a, b| a.size().total_cmp(&b.size()));
    let (Some(low), Some(high)) = (pieces.first(), pieces.last()) else {
        return String::new();
    };
    let (low, high) = (low.written(), high.written());
    if low == high {
        return low;
    }
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => format!("{number} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut words = 0;
    let mut at = 0;
    let mut in_name = false;
    while let Some(c) = text[at..].chars().next() {
        if !c.is_ascii_digit() || in_name {
            in_name = c.is_alphanumeric() || c == '_';
            at += c.len_utf8();
            continue;
        }
        let (piece, length) = number(&text[at..]);
        pieces.extend((words < at).then(|| Piece::Words(&text[words..at])));
        pieces.push(piece);
        at += length;
        words = at;
        in_name = false;
    }
    pieces.extend((words < at).then(|| Piece::Words(&text[words..])));
    pieces
}

/// The number that `text` begins with, and its length. A full stop behind it is none of it.
fn number(text: &str) -> (Piece<'_>, usize) {
    const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let is_digit = |c: char| c.is_ascii_digit() || c == '.';
    let end = text.find(|c| !is_digit(c)).unwrap_or(text.len());
    let digits = text[..end].trim_end_matches('.');
    let rest = &text[digits.len()..];
    let letters = rest.find(|c: char| !c.is_alphanumeric());
    let letters = &rest[..letters.unwrap_or(rest.len())];
    let unit = UNITS.iter().find(|(name, _)| *name == letters);
    match (unit, digits.parse::<f64>()) {
        (Some((name, ns)), Ok(number)) => (Piece::Time(number * ns), digits.len() + name.len()),
        _ => (Piece::Number(digits), digits.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_differ_in_their_numbers_only_are_alike() {
        assert!(is_alike("late by 5.1ms, twice", "late by 647us, twice"));
        assert!(is_alike("7 % of 9", "93.1 % of 10"));
        assert!(!is_alike("7 % were late", "7 % were early"));
        assert!(!is_alike("wakeup_p99 is late", "wakeup_p50 is late"));
    }

    #[test]
    fn times_are_a_range_in_the_unit_that_fits() {
        let late = ["late by 5.123ms", "late by 647.25ms", "late by 115.606ms"];
        assert_eq!(in_ranges(&late), "late by 5.12 to 647 ms");
        assert_eq!(in_ranges(&["81.535us", "1.2ms"]), "81.5 us to 1.20 ms");
        assert_eq!(in_ranges(&["it took 115.606ms."]), "it took 116 ms.");
    }

    #[test]
    fn a_number_at_the_end_of_a_sentence_keeps_its_full_stop() {
        assert_eq!(
            in_ranges(&["1 of 9 was 3.", "1 of 7 was 12."]),
            "1 of 7 to 9 was 3 to 12."
        );
    }

    #[test]
    fn names_versions_and_whole_numbers_stay_as_they_are() {
        let text = "wakeup_p99 on Linux 6.12.57 made 12345 of 99.5 %, 8.12345 of them 1m30s";
        let said = "wakeup_p99 on Linux 6.12.57 made 12345 of 99.5 %, 8.12 of them 1m30s";
        assert_eq!(in_ranges(&[text]), said);
        assert_eq!(in_ranges(&[]), "");
    }
}
