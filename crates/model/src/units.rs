//! Numbers with their units, as people write them.

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use std::fmt;
use std::time::Duration;

/// Whole nanoseconds of a time; `u64::MAX` for one of more than 584 years.
pub fn whole_nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The number without its decimals: 0 for what is negative or no number, `u64::MAX` for what
/// is larger.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "a cast of a float saturates, and to lose the decimals is the purpose"
)]
pub fn truncate_to_u64(number: f64) -> u64 {
    number as u64
}

/// `0.3ms`, `2s`, `20m`: the largest unit in which the number is at least 1,
/// with up to three decimals.
pub fn format_duration_ns(ns: u64) -> String {
    const UNITS: [(&str, f64); 4] = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)];
    let value = ns as f64;
    let seconds = truncate_to_u64((value / 1e9).round());
    if seconds >= 60 {
        return format_minutes(seconds);
    }
    let (unit, size) = UNITS
        .into_iter()
        .find(|(_, size)| value >= *size)
        .unwrap_or(("s", 1e9));
    format!("{}{unit}", trim_decimals(value / size))
}

/// `1m50s`, `20m`, `1h30m`: nobody reads decimals of minutes.
fn format_minutes(seconds: u64) -> String {
    let parts = [
        (seconds / 3600, "h"),
        (seconds / 60 % 60, "m"),
        (seconds % 60, "s"),
    ];
    let parts = parts.iter().filter(|(number, _)| *number > 0);
    parts
        .map(|(number, unit)| format!("{number}{unit}"))
        .collect()
}

/// `10k/s`, `250/s`, `1.5M/s`.
pub fn format_rate(per_sec: f64) -> String {
    if per_sec >= 1e6 {
        format!("{}M/s", trim_decimals(per_sec / 1e6))
    } else if per_sec >= 1e3 {
        format!("{}k/s", trim_decimals(per_sec / 1e3))
    } else {
        format!("{}/s", trim_decimals(per_sec))
    }
}

/// Bytes of `64KiB`, `2G` (binary, as QEMU and kernel people mean it), `1500`.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let binary = match text.trim().strip_suffix(['K', 'M', 'G', 'T']) {
        Some(_) => format!("{}iB", text.trim()),
        None => text.to_owned(),
    };
    binary
        .parse::<bytesize::ByteSize>()
        .map(|size| size.as_u64())
        .map_err(|_| format!("`{text}` is not a size; write \"64KiB\", \"2G\" or \"1MB\""))
}

/// Bytes that are written as text with their unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Size(pub u64);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;
        impl Visitor<'_> for Written {
            type Value = Size;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a size with its unit, such as \"64KiB\"")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Size, E> {
                parse_size(text).map(Size).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Written)
    }
}

fn trim_decimals(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_in_the_largest_fitting_unit() {
        assert_eq!(format_duration_ns(300_000), "300us");
        assert_eq!(format_duration_ns(1_500_000), "1.5ms");
        assert_eq!(format_duration_ns(20 * 60 * 1_000_000_000), "20m");
        assert_eq!(format_duration_ns(0), "0s");
    }

    #[test]
    fn minutes_have_seconds_and_no_decimals() {
        let of = |seconds: u64| format_duration_ns(seconds * 1_000_000_000);
        assert_eq!([of(110), of(59), of(60)], ["1m50s", "59s", "1m"]);
        assert_eq!([of(5400), of(7200), of(3601)], ["1h30m", "2h", "1h1s"]);
    }

    #[test]
    fn sizes_with_one_letter_are_binary() {
        assert_eq!(parse_size("2G"), Ok(2 << 30));
        assert_eq!(parse_size("64KiB"), Ok(64 << 10));
        assert!(parse_size("much").is_err());
    }

    #[test]
    fn rates_are_written_with_their_prefix() {
        assert_eq!(format_rate(10_000.0), "10k/s");
        assert_eq!(format_rate(250.0), "250/s");
    }
}
