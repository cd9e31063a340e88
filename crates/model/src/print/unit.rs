//! Units as programs print them behind a figure: `950us`, `1.03 ms`, `9.41 Gbits/sec`, `12.3k`.
//!
//! A program that chooses its unit by size would otherwise change a figure by 1000 where the unit
//! changes. Each unit is therefore one size of a dimension, and all figures of a metric become the
//! unit that the metric declares, or that of their dimension. No trial needs to know another for that.

/// Thing that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    Time,
    Byte,
    Bit,
    Count,
    Percent,
}

/// A unit that is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit {
    base: Base,
    per_second: bool,
    /// How many of the dimension's own unit it is: 1000 for `us`, whose own unit is `ns`.
    size: f64,
    /// A prefix without anything that it multiplies: `12.3k`.
    is_bare: bool,
}

/// Words for times, with their size in nanoseconds.
const TIMES: [(f64, &[&str]); 6] = [
    (1.0, &["ns", "nsec", "nsecs", "nanosecond", "nanoseconds"]),
    (
        1e3,
        &[
            "us",
            "µs",
            "μs",
            "usec",
            "usecs",
            "microsecond",
            "microseconds",
        ],
    ),
    (1e6, &["ms", "msec", "msecs", "millisecond", "milliseconds"]),
    (1e9, &["s", "sec", "secs", "second", "seconds"]),
    (60e9, &["min", "mins", "minute", "minutes"]),
    (3600e9, &["h", "hr", "hrs", "hour", "hours"]),
];
const BYTES: [&str; 3] = ["B", "byte", "bytes"];
const BITS: [&str; 3] = ["b", "bit", "bits"];
/// Things that programs count. The word says nothing of the size.
const COUNTED: [&str; 12] = [
    "count", "event", "events", "io", "ios", "iops", "op", "ops", "req", "reqs", "request",
    "requests",
];
/// Prefixes, the longer ones first. A `K` is 1000, as a `k` is; `Ki` is 1024.
const PREFIXES: [(&str, f64); 10] = [
    ("Ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("k", 1e3),
    ("K", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("", 1.0),
];

impl Unit {
    /// The unit that a word is; `None` for a word that is no unit, or not a certain one: `m` may be
    /// minutes or thousandths.
    pub fn parse(text: &str) -> Option<Unit> {
        let (word, per_second) = without_divisor(text.trim())?;
        if word == "%" && !per_second {
            return Some(Unit::of(Base::Percent, 1.0, per_second));
        }
        if let Some(size) = time(word) {
            // A time of each second is a share, and no time.
            return (!per_second).then(|| Unit::of(Base::Time, size, false));
        }
        PREFIXES.iter().find_map(|(prefix, size)| {
            let word = word.strip_prefix(prefix)?;
            let base = base(word, per_second)?;
            let is_bare = word.is_empty() && !per_second;
            let is_unit = !is_bare || !prefix.is_empty();
            is_unit.then(|| Unit {
                is_bare,
                ..Unit::of(base, *size, per_second)
            })
        })
    }

    fn of(base: Base, size: f64, per_second: bool) -> Unit {
        Unit {
            base,
            per_second,
            size,
            is_bare: false,
        }
    }

    /// True for a word that says no more than what is counted, such as `requests`.
    pub fn is_plain_count(self) -> bool {
        self.base == Base::Count && self.size == 1.0 && !self.per_second
    }

    /// True for a prefix alone.
    pub fn is_bare(self) -> bool {
        self.is_bare
    }

    /// The unit in which figures of the dimension are kept where the metric declares none.
    pub fn usual_unit(self) -> &'static str {
        match (self.base, self.per_second) {
            (Base::Time, _) => "ns",
            (Base::Percent, _) => "%",
            (Base::Byte, false) => "B",
            (Base::Byte, true) => "B/s",
            (Base::Bit, false) => "bit",
            (Base::Bit, true) => "bit/s",
            (Base::Count, false) => "count",
            (Base::Count, true) => "1/s",
        }
    }

    /// How many of the other unit it is; `None` where they are no sizes of the same.
    fn in_units_of(self, other: Unit) -> Option<Factor> {
        let sizes = Factor {
            times: self.size,
            by: other.size,
        };
        let is_count = |unit: Unit| unit.base == Base::Count;
        // `12.3k` of whatever is declared, but nobody writes a thousand of a time or of a share so.
        let is_multiple = self.is_bare && !matches!(other.base, Base::Time | Base::Percent);
        if is_multiple || is_count(self) && is_count(other) {
            return Some(sizes);
        }
        match (self.base, other.base) {
            _ if self.per_second != other.per_second => None,
            (Base::Byte, Base::Bit) => Some(Factor {
                times: 8.0 * self.size,
                ..sizes
            }),
            (Base::Bit, Base::Byte) => Some(Factor {
                by: 8.0 * other.size,
                ..sizes
            }),
            (one, another) => (one == another).then_some(sizes),
        }
    }
}

/// Two sizes, so that 955 us are 0.955 ms and not 0.9550000000000001.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factor {
    times: f64,
    by: f64,
}

impl Factor {
    fn times(times: f64) -> Factor {
        Factor { times, by: 1.0 }
    }

    /// A number in the other unit.
    pub fn convert(self, number: f64) -> f64 {
        number * self.times / self.by
    }
}

/// The word before `/s`, and whether it is there. Of other divisors, as in `usecs/op`, nothing
/// depends: they are those of the metric.
fn without_divisor(text: &str) -> Option<(&str, bool)> {
    let words = text.strip_suffix("ps").and_then(|word| {
        let is_rate = matches!(word.chars().last(), Some('b' | 'B'));
        is_rate.then_some((word, "s"))
    });
    let Some((word, divisor)) = words.or_else(|| text.split_once('/')) else {
        return Some((text, false));
    };
    let is_word = !divisor.is_empty() && divisor.chars().all(char::is_alphabetic);
    let is_second = time(divisor) == Some(1e9);
    (is_word && (is_second || !word.is_empty())).then_some((word, is_second))
}

fn time(word: &str) -> Option<f64> {
    let found = TIMES.iter().find(|(_, words)| words.contains(&word));
    found.map(|(size, _)| *size)
}

/// Thing that a word without its prefix counts.
fn base(word: &str, per_second: bool) -> Option<Base> {
    let lower = word.to_lowercase();
    let is_of = |words: &[&str]| {
        words.contains(&word) || lower.len() > 1 && words.contains(&lower.as_str())
    };
    match () {
        () if is_of(&BYTES) => Some(Base::Byte),
        () if is_of(&BITS) => Some(Base::Bit),
        () if word.is_empty() || is_of(&COUNTED) || per_second && word == "1" => Some(Base::Count),
        () => None,
    }
}

/// Factor by which a figure with this unit becomes one of the metric, and the unit of the metric.
///
/// The word is an error where it is no unit and not the one that the metric declares, and where it is
/// the unit of something else.
pub fn find_conversion(written: &str, declared: Option<&str>) -> Result<(Factor, String), String> {
    let Some(declared) = declared else {
        let unit = Unit::parse(written).ok_or_else(|| {
            format!("`{written}` is no unit that is known; unit = \"{written}\" makes it the one of the metric")
        })?;
        return Ok((Factor::times(unit.size), unit.usual_unit().to_owned()));
    };
    let known = Unit::parse(declared);
    let factor = match (Unit::parse(written), known) {
        _ if written == declared => Some(Factor::times(1.0)),
        // Minutes, as no program prints thousandths of a time.
        (None, Some(of)) if written == "m" && of.base == Base::Time => Some(Factor {
            times: 60e9,
            by: of.size,
        }),
        (Some(unit), Some(of)) => unit.in_units_of(of),
        (Some(unit), None) if unit.is_bare || unit.is_plain_count() => {
            Some(Factor::times(unit.size))
        }
        (Some(_), None) => None,
        (None, _) => None,
    };
    match factor {
        Some(factor) => Ok((factor, declared.to_owned())),
        None => Err(format!(
            "its unit is `{written}`, and the metric says unit = \"{declared}\""
        )),
    }
}

/// Unit behind a figure, in the text that follows it. A word without a space between must be a
/// unit; of words after one only those count that are nothing else.
pub fn find_unit_behind(text: &str) -> Option<&str> {
    // The expression may have taken the digits before the point only.
    let text = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let text = match text.strip_prefix('.') {
        Some(decimals) if decimals.starts_with(|c: char| c.is_ascii_digit()) => {
            decimals.trim_start_matches(|c: char| c.is_ascii_digit())
        }
        _ => text,
    };
    let word = word(text);
    if !word.is_empty() {
        return Some(word);
    }
    after_space(text)
}

/// A word of letters, with its divisor.
fn word(text: &str) -> &str {
    let is_in_unit = |c: char| c.is_alphabetic() || matches!(c, '%' | '/');
    let end = text.find(|c| !is_in_unit(c)).unwrap_or(text.len());
    text[..end].trim_end_matches('/')
}

fn after_space(text: &str) -> Option<&str> {
    let after = text.trim_start_matches([' ', '\t']);
    if after.len() == text.len() {
        return None;
    }
    let after = after.strip_prefix(['[', '(']).unwrap_or(after);
    let word = word(after);
    let unit = Unit::parse(word)?;
    let rest = &after[word.len()..];
    let is_name = rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '='));
    // `avg 5 min 3 max 9` has no minutes.
    let is_label = matches!(word, "min" | "h" | "b" | "B")
        && rest
            .trim_start()
            .starts_with(|c: char| c.is_ascii_digit() || c == '-');
    (!unit.is_bare() && !unit.is_plain_count() && !is_name && !is_label).then_some(word)
}

/// The number at the beginning of a text, and the unit right behind it.
pub fn split_number(text: &str) -> Option<(f64, Option<&str>)> {
    let text = text.trim();
    if let Ok(number) = text.parse::<f64>() {
        return number.is_finite().then_some((number, None));
    }
    let is_in_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-');
    let end = text.find(|c| !is_in_number(c))?;
    let exponent = text[end..].strip_prefix(['e', 'E']).map_or(0, |rest| {
        1 + rest.find(|c| !is_in_number(c)).unwrap_or(rest.len())
    });
    let ends = [end + exponent, end];
    let (number, end) = ends
        .into_iter()
        .find_map(|end| text[..end].parse::<f64>().ok().map(|number| (number, end)))?;
    let unit = text[end..].trim();
    let is_unit = !unit.is_empty() && word(unit) == unit;
    (number.is_finite() && is_unit).then_some((number, Some(unit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factor(written: &str, declared: &str) -> Option<f64> {
        find_conversion(written, Some(declared))
            .ok()
            .map(|(factor, _)| factor.convert(1.0))
    }

    #[test]
    fn units_of_one_dimension_become_one_unit() {
        for (written, expected) in [
            ("us", (1e3, "ns")),
            ("µs", (1e3, "ns")),
            ("min", (60e9, "ns")),
            ("usecs/op", (1e3, "ns")),
            ("k", (1e3, "count")),
            ("Mi", (1_048_576.0, "count")),
            ("Gbits/sec", (1e9, "bit/s")),
            ("Mbps", (1e6, "bit/s")),
            ("KiB/s", (1024.0, "B/s")),
            ("MBytes", (1e6, "B")),
            ("kops/s", (1e3, "1/s")),
            ("/s", (1.0, "1/s")),
            ("%", (1.0, "%")),
        ] {
            let found = find_conversion(written, None).unwrap();
            assert_eq!(
                (found.0.convert(1.0), found.1.as_str()),
                expected,
                "{written}"
            );
        }
        for unknown in ["m", "x", "ms/s", "e", "Mx", "furlongs", "th"] {
            assert!(find_conversion(unknown, None).is_err(), "{unknown}");
        }
    }

    #[test]
    fn a_declared_unit_is_the_one_that_figures_become() {
        assert_eq!(factor("us", "ms"), Some(1e-3));
        assert_eq!(factor("m", "s"), Some(60.0));
        assert_eq!(factor("Gbits/sec", "Mbit/s"), Some(1e3));
        assert_eq!(factor("MB/s", "Mbit/s"), Some(8.0));
        assert_eq!(factor("k", "1/s"), Some(1e3));
        assert_eq!(factor("G", "MB/s"), Some(1e3));
        assert_eq!(factor("k", "turns"), Some(1e3));
        assert_eq!(factor("turns", "turns"), Some(1.0));
        assert_eq!(factor("ops/s", "ops"), Some(1.0));
    }

    #[test]
    fn a_unit_of_something_else_contradicts_the_declared_one() {
        for (written, declared) in [
            ("ms", "MB/s"),
            ("MB", "MB/s"),
            ("k", "ms"),
            ("x", "ms"),
            ("ms", "turns"),
            ("ms", "count"),
        ] {
            let error = find_conversion(written, Some(declared)).unwrap_err();
            assert!(
                error.contains(written) && error.contains(declared),
                "{error}"
            );
        }
    }

    #[test]
    fn the_word_behind_a_figure_is_its_unit_and_labels_are_not() {
        for (text, unit) in [
            ("us", Some("us")),
            (".00us", Some("us")),
            ("ms, 3", Some("ms")),
            (" ms", Some("ms")),
            (" [sec]", Some("sec")),
            ("\tGbits/sec  0", Some("Gbits/sec")),
            (" KB/s", Some("KB/s")),
            ("th of all", Some("th")),
            (" requests in", None),
            (" min 3 max 9", None),
            (" min: 3", None),
            (" s_max", None),
            (" k", None),
            (" 12 ms", None),
            ("", None),
            ("-core", None),
        ] {
            assert_eq!(find_unit_behind(text), unit, "{text}");
        }
    }

    #[test]
    fn a_figure_may_have_its_unit_in_it() {
        assert_eq!(split_number("1.03ms"), Some((1.03, Some("ms"))));
        assert_eq!(split_number(" -2e3 us "), Some((-2000.0, Some("us"))));
        assert_eq!(split_number("1e3"), Some((1000.0, None)));
        for none in ["", "-", "soon", "nan", "inf", "1,5", "1.2.3", "ms"] {
            assert_eq!(split_number(none), None, "{none}");
        }
    }
}
