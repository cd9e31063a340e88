//! Units as they are written in experiment files: `"5s"`, `"0.3ms"`, `"64KiB"`, `"10k/s"`,
//! `"50%"`.

use model::Load;
pub use model::{Size, parse_size};
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// Nanoseconds of `5s`, `0.3ms`, `1m 30s`.
pub fn parse_duration(text: &str) -> Result<u64, String> {
    let hint = || {
        format!(
            "`{text}` is not a duration; write a number with its unit: \"5s\", \"0.3ms\", \"40us\""
        )
    };
    if text.trim().parse::<f64>().is_ok() {
        return Err(format!(
            "`{text}` has no unit; write \"{0}s\", \"{0}ms\" or \"{0}us\"",
            text.trim()
        ));
    }
    let duration: jiff::SignedDuration = text.parse().map_err(|_| hint())?;
    u64::try_from(duration.as_nanos()).map_err(|_| hint())
}

/// A duration as it is written in a file, without rounding: `2m`, `300us`, `1500ns`.
pub fn written_duration(ns: u64) -> String {
    const UNITS: [(u64, &str); 5] = [
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
        (1, "ns"),
    ];
    let whole = UNITS
        .iter()
        .find(|(unit, _)| ns > 0 && ns.is_multiple_of(*unit));
    let (unit, name) = whole.copied().unwrap_or((1, "ns"));
    format!("{}{name}", ns / unit)
}

/// Events per second of `10k/s`, `250/s`, `1.5M/s`.
pub fn parse_rate(text: &str) -> Result<f64, String> {
    let error = || format!("`{text}` is not a rate; write \"250/s\" or \"10k/s\"");
    let number = text.trim().strip_suffix("/s").ok_or_else(error)?;
    let (digits, factor) = match number.strip_suffix(['k', 'M']) {
        Some(digits) if number.ends_with('k') => (digits, 1e3),
        Some(digits) => (digits, 1e6),
        None => (number, 1.0),
    };
    let rate = digits.parse::<f64>().map_err(|_| error())? * factor;
    if rate.is_finite() && rate > 0.0 {
        Ok(rate)
    } else {
        Err(format!("the rate `{text}` must be above 0"))
    }
}

/// The number before the sign of `50%`.
pub fn parse_percent(text: &str) -> Result<f64, String> {
    text.trim()
        .strip_suffix('%')
        .and_then(|digits| digits.trim().parse::<f64>().ok())
        .filter(|p| p.is_finite())
        .ok_or_else(|| format!("`{text}` is not a percentage; write \"50%\""))
}

/// `95%` or `0.95`, both 0.95. A bare number of 1 or more is an error, since a percent sign was
/// most likely forgotten.
pub fn parse_fraction(text: &str) -> Result<f64, String> {
    let Ok(number) = text.trim().parse::<f64>() else {
        return Ok(parse_percent(text)? / 100.0);
    };
    match number.abs() < 1.0 {
        true => Ok(number),
        false => Err(format!(
            "`{text}` is no fraction of 1; write \"{0}%\" or {1}",
            text.trim(),
            number / 100.0
        )),
    }
}

/// `4`, `50%` of the target's CPUs, or `10k/s`.
pub fn parse_load(text: &str) -> Result<Load, String> {
    let load = if text.trim().ends_with('%') {
        Load::PercentOfCpus(parse_percent(text)?)
    } else if text.trim().ends_with("/s") {
        Load::RatePerSec(parse_rate(text)?)
    } else {
        Load::Count(text.trim().parse().map_err(|_| {
            format!("`{text}` is not a load; write a number, \"50%\" (of the CPUs) or \"10k/s\"")
        })?)
    };
    match load {
        Load::Count(0) => Err("a load of 0 measures nothing; the least is 1".to_owned()),
        Load::PercentOfCpus(p) if p <= 0.0 => Err(format!("the load `{text}` must be above 0%")),
        load => Ok(load),
    }
}

/// A type whose values are written as text with their unit in an experiment file.
#[macro_export]
macro_rules! written {
    ($name:ident, $inner:ty, $parse:path, $expecting:literal) => {
        /// A value of an experiment file that is written as text with its unit.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct $name(pub $inner);

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Written;
                impl serde::de::Visitor<'_> for Written {
                    type Value = $name;
                    fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        $parse(text).map($name).map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Written)
            }
        }
    };
}

written!(
    Duration,
    u64,
    parse_duration,
    "a duration with its unit, such as \"5s\""
);
written!(Rate, f64, parse_rate, "a rate, such as \"10k/s\"");
written!(Percent, f64, parse_percent, "a percentage, such as \"2%\"");
written!(Fraction, f64, parse_fraction, "a percentage, as \"2%\"");

/// A load is written as a bare number or as text with its unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WrittenLoad(pub Load);

impl<'de> Deserialize<'de> for WrittenLoad {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;
        impl Visitor<'_> for Written {
            type Value = WrittenLoad;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("a load: a whole number, \"50%\" (of the CPUs) or \"10k/s\"")
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<WrittenLoad, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<WrittenLoad, E> {
                parse_load(text).map(WrittenLoad).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Written)
    }
}

/// `p99 < 1ms`: a quantile in thousandths and what it must stay below.
pub fn parse_slo(text: &str) -> Result<(u32, u64), String> {
    let wrong = || format!("`{text}` is not a service level; write \"p99 < 1ms\"");
    let (quantile, limit) = text.split_once('<').ok_or_else(wrong)?;
    let percent = quantile.trim().strip_prefix('p').ok_or_else(wrong)?;
    let percent: f64 = percent.parse().map_err(|_| wrong())?;
    let permille = (10.0 * percent).round();
    if (permille - 10.0 * percent).abs() > 1e-9 || !(1.0..=999.0).contains(&permille) {
        return Err(format!(
            "`{}` is not a quantile from p0.1 to p99.9 in steps of a thousandth",
            quantile.trim()
        ));
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "from 1 to 999, which is checked before"
    )]
    let permille = permille as u32;
    match parse_duration(limit.trim())? {
        0 => Err(format!("nothing is below 0: `{text}`")),
        below_ns => Ok((permille, below_ns)),
    }
}

written!(
    WrittenSlo,
    (u32, u64),
    parse_slo,
    "a service level, such as \"p99 < 1ms\""
);

#[cfg(test)]
mod tests {
    #[test]
    fn fractions_are_numbers_below_1_or_percentages() {
        assert_eq!(parse_fraction("95%"), Ok(0.95));
        assert_eq!(parse_fraction("0.95"), Ok(0.95));
        let wrong = parse_fraction("2").unwrap_err();
        assert!(wrong.contains("\"2%\" or 0.02"), "{wrong}");
        assert!(parse_fraction("high").unwrap_err().contains("percentage"));
    }

    use super::*;

    #[test]
    fn durations_have_units_and_may_have_decimals() {
        assert_eq!(parse_duration("0.3ms"), Ok(300_000));
        assert_eq!(parse_duration("5s"), Ok(5_000_000_000));
        assert_eq!(parse_duration("20m"), Ok(1_200_000_000_000));
        assert_eq!(parse_duration("40us"), Ok(40_000));
        assert_eq!(parse_duration("1500ns"), Ok(1_500));
        assert!(parse_duration("5").is_err_and(|e| e.contains("no unit")));
        assert!(parse_duration("5 parsecs").is_err());
        assert!(parse_duration("-5s").is_err());
    }

    #[test]
    fn a_written_duration_is_read_as_what_it_was() {
        for (ns, text) in [
            (0, "0ns"),
            (1_500, "1500ns"),
            (300_000, "300us"),
            (90_000_000_000, "90s"),
            (7_200_000_000_000, "120m"),
            (u64::from(u32::MAX), "4294967295ns"),
        ] {
            assert_eq!(written_duration(ns), text);
            assert_eq!(parse_duration(text), Ok(ns));
        }
    }

    #[test]
    fn a_service_level_is_a_quantile_and_a_limit() {
        assert_eq!(parse_slo("p99 < 1ms"), Ok((990, 1_000_000)));
        assert_eq!(parse_slo("p99.9<500us"), Ok((999, 500_000)));
        for wrong in [
            "99 < 1ms",
            "p99 > 1ms",
            "p99.99 < 1ms",
            "p99 < 1",
            "p100 < 1s",
        ] {
            assert!(parse_slo(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn loads_are_counts_percentages_or_rates_and_never_zero() {
        assert_eq!(parse_load("4"), Ok(Load::Count(4)));
        assert_eq!(parse_load("50%"), Ok(Load::PercentOfCpus(50.0)));
        assert_eq!(parse_load("10k/s"), Ok(Load::RatePerSec(10_000.0)));
        for wrong in ["0", "0%", "-5%", "0/s", "many", "-1"] {
            assert!(parse_load(wrong).is_err(), "{wrong}");
        }
    }
}
