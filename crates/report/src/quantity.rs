//! Numbers as people read them: three significant digits and a fitting unit.

/// `1.21 ms`, `12.3k/s`, `4.00 KiB`: a value of a metric with its unit.
pub fn with_unit(value: f64, unit: &str) -> String {
    match unit {
        "ns" | "us" | "ms" | "s" | "bytes" | "B" | "MHz" | "bit" | "bit/s" | "B/s"
            if value == 0.0 =>
        {
            "0".to_owned()
        }
        "ns" => duration(value),
        "us" => duration(value * 1e3),
        "ms" => duration(value * 1e6),
        "s" => duration(value * 1e9),
        "bytes" | "B" => bytes(value),
        "bit" | "bit/s" | "B/s" => prefixed(value, unit),
        "MHz" => scaled(
            value * 1e6,
            &[("GHz", 1e9), ("MHz", 1e6), ("kHz", 1e3)],
            "Hz",
        ),
        "%" => format!("{}%", significant(value)),
        "count" | "" => format_thousands(value),
        unit if unit.starts_with('/') => format!("{}{unit}", format_thousands(value)),
        unit => match unit.strip_prefix("1/") {
            Some(per) => format!("{}/{per}", format_thousands(value)),
            None => format!("{} {unit}", format_thousands(value)),
        },
    }
}

fn duration(ns: f64) -> String {
    const UNITS: [(&str, f64); 3] = [("s", 1e9), ("ms", 1e6), ("us", 1e3)];
    if ns >= 6e10 {
        return model::format_duration_ns(model::truncate_to_u64(ns));
    }
    scaled(ns, &UNITS, "ns")
}

fn bytes(value: f64) -> String {
    const UNITS: [(&str, f64); 4] = [
        ("TiB", 1_099_511_627_776.0),
        ("GiB", 1_073_741_824.0),
        ("MiB", 1_048_576.0),
        ("KiB", 1024.0),
    ];
    scaled(value, &UNITS, "B")
}

/// In the largest unit in which the number is at least 1.
fn scaled(value: f64, units: &[(&str, f64)], smallest: &str) -> String {
    let fits = |(_, size): &&(&str, f64)| value.abs() >= *size;
    match units.iter().find(fits) {
        Some((unit, size)) => format!("{} {unit}", significant(value / size)),
        None => format!("{} {smallest}", significant(value)),
    }
}

const PREFIXES: [(&str, f64); 3] = [("G", 1e9), ("M", 1e6), ("k", 1e3)];

/// `9.41 Gbit/s`, as networks and disks are told of.
fn prefixed(value: f64, unit: &str) -> String {
    let fits = |(_, size): &&(&str, f64)| value.abs() >= *size;
    match PREFIXES.iter().find(fits) {
        Some((prefix, size)) => format!("{} {prefix}{unit}", significant(value / size)),
        None => format!("{} {unit}", significant(value)),
    }
}

/// `950`, `12.3k`, `4.56M`.
pub fn format_thousands(value: f64) -> String {
    let fits = |(_, size): &&(&str, f64)| value.abs() >= *size;
    match PREFIXES.iter().find(fits) {
        Some((prefix, size)) => format!("{}{prefix}", significant(value / size)),
        None => significant(value),
    }
}

/// Three significant digits; whole numbers below 1000 stay whole.
fn significant(value: f64) -> String {
    let size = value.abs();
    if value == value.trunc() && size < 1000.0 || size >= 100.0 {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else if size >= 0.01 {
        format!("{value:.2}")
    } else if size >= 0.0001 {
        format!("{value:.4}").trim_end_matches('0').to_owned()
    } else {
        format!("{value:.1e}")
    }
}

/// `number` in three digits if `written`, as which it was found, has more.
pub fn round_digits(number: f64, written: &str) -> String {
    let digits = written.chars().filter(char::is_ascii_digit).count();
    match digits > 3 {
        true => significant(number),
        false => written.to_owned(),
    }
}

/// A ratio as a change: `+3.2%`, `-0.04%`, `x2.35` from a doubling on.
pub fn format_change(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    if ratio >= 1e6 {
        format!("x{ratio:.0e}")
    } else if ratio >= 2.0 {
        format!("x{}", significant(ratio))
    } else if percent.abs() < 1.0 {
        format!("{}%", signed(percent, 2))
    } else {
        format!("{}%", signed(percent, 1))
    }
}

/// A difference in the unit of its metric: `+3`, `-200 us`, `0`.
pub fn signed_with_unit(value: f64, unit: &str) -> String {
    let text = with_unit(value, unit);
    match value > 0.0 {
        true => format!("+{text}"),
        false => text,
    }
}

/// A difference in words: `200 us lower`, `3 higher`.
pub fn difference_in_unit(value: f64, unit: &str) -> String {
    match () {
        () if value > 0.0 => format!("{} higher", with_unit(value, unit)),
        () if value < 0.0 => format!("{} lower", with_unit(-value, unit)),
        () => "no difference".to_owned(),
    }
}

/// A ratio as a factor, where all of a table have one form: `x0.58`, `x15.4`.
pub fn format_factor(ratio: f64) -> String {
    match ratio >= 1e6 {
        true => format!("x{ratio:.0e}"),
        false => format!("x{}", significant(ratio)),
    }
}

/// Ratio from which on a sentence does not say how large it is: one of the two is next to nothing.
const MOST_TIMES: f64 = 1000.0;

/// A ratio in words: `44 % lower`, `72 % higher`, `3.9 times as high`.
pub fn describe_difference(ratio: f64) -> String {
    match () {
        () if ratio >= 2.0 => format!("{} times as high", times(ratio)),
        () if ratio > 1.0 => format!("{} % higher", off(ratio)),
        () if ratio < 1.0 => format!("{} % lower", off(ratio)),
        () => "no difference".to_owned(),
    }
}

/// The interval of a [`describe_difference`]: `30 to 56 %`, `3.5 to 4.4 times`, and with its
/// directions where the ends differ in them: `4 % lower to 33 % higher`.
pub fn describe_differences(low: f64, high: f64) -> String {
    if high < 1.0 {
        format!("{} to {} %", off(high), off(low))
    } else if low > 1.0 && high < 2.0 {
        format!("{} to {} %", off(low), off(high))
    } else if low > MOST_TIMES {
        format!("{} times", times(low))
    } else if low >= 2.0 {
        format!("{} to {} times", times(low), times(high))
    } else {
        format!(
            "{} to {}",
            describe_difference(low),
            describe_difference(high)
        )
    }
}

/// A distance from 1 in percent, in two digits.
fn off(ratio: f64) -> String {
    match (ratio - 1.0).abs() * 100.0 {
        percent if percent >= 9.95 => format!("{percent:.0}"),
        percent if percent >= 0.995 => format!("{percent:.1}"),
        percent => format!("{percent:.2}"),
    }
}

fn times(ratio: f64) -> String {
    match ratio {
        ratio if ratio > MOST_TIMES => format!("more than {MOST_TIMES}"),
        ratio if ratio >= 9.95 => format!("{ratio:.0}"),
        ratio => format!("{ratio:.1}"),
    }
}

/// A time as people plan with it: `40 seconds`, `4 minutes`, `3 hours`, `5 days`, `3 years`.
pub fn format_rough_time(ns: f64) -> String {
    let (number, unit) = planned(ns);
    format_count(number, unit)
}

/// The time of [`format_rough_time`] where there is little room: `40 s`, `4 min`, `3 h`, `5 d`.
pub fn in_short(ns: f64) -> String {
    let (number, unit) = planned(ns);
    let unit = match unit {
        "minute" => "min",
        unit => &unit[..1],
    };
    format!("{number} {unit}")
}

/// Rounded up, in the unit that people would use.
#[expect(
    clippy::cast_possible_truncation,
    reason = "days of one measurement; a cast of a float saturates"
)]
fn planned(ns: f64) -> (usize, &'static str) {
    const MINUTE: f64 = 60.0;
    const HOUR: f64 = 60.0 * MINUTE;
    const DAY: f64 = 24.0 * HOUR;
    const YEAR: f64 = 365.25 * DAY;
    let seconds = ns / 1e9;
    let (size, unit) = match seconds {
        seconds if seconds < 1.5 * MINUTE => (1.0, "second"),
        seconds if seconds < 1.5 * HOUR => (MINUTE, "minute"),
        seconds if seconds < 48.0 * HOUR => (HOUR, "hour"),
        seconds if seconds < 2.0 * YEAR => (DAY, "day"),
        _ => (YEAR, "year"),
    };
    ((seconds / size).ceil().max(1.0) as usize, unit)
}

/// `1 block`, `3 blocks`.
pub fn format_count(of: usize, what: &str) -> String {
    match of {
        1 => format!("1 {what}"),
        _ => format!("{of} {what}s"),
    }
}

/// No zero has a sign.
fn signed(value: f64, decimals: usize) -> String {
    let text = format!("{value:+.decimals$}");
    let is_zero = text.chars().all(|c| matches!(c, '+' | '-' | '0' | '.'));
    if is_zero {
        text.trim_start_matches(['+', '-']).to_owned()
    } else {
        text
    }
}

/// `[-20.1%, -9.0%]`.
pub fn format_interval(low: f64, high: f64) -> String {
    format!("[{}, {}]", format_change(low), format_change(high))
}

/// The strength of an e-value in words, on Jeffreys' scale of evidence: its classes
/// end at powers of the square root of 10 (Jeffreys, "Theory of Probability", appendix
/// B; for e-values Vovk and Wang, "E-values: calibration, combination and
/// applications", 2021).
pub fn describe_strength(e_value: f64) -> &'static str {
    match e_value {
        e if e < 1.0 => "none",
        e if e < 10f64.powf(0.5) => "slight",
        e if e < 10.0 => "some",
        e if e < 10f64.powf(1.5) => "strong",
        e if e < 100.0 => "very strong",
        _ => "extreme",
    }
}

/// An e-value, which matters by its order of magnitude only.
pub fn format_e_value(e_value: f64) -> String {
    if e_value >= 10_000.0 {
        format!("{e_value:.0e}")
    } else if e_value >= 10.0 {
        // Not rounded up: 19.9 is not yet the 20 that decides.
        format!("{:.0}", e_value.floor())
    } else if e_value >= 0.01 {
        significant(e_value)
    } else {
        "<0.01".to_owned()
    }
}

/// A fraction in percent, without needless decimals: `95`, `99.9`.
pub fn format_percent(fraction: f64) -> String {
    let text = format!("{:.3}", fraction * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_in_the_unit_that_fits() {
        assert_eq!(with_unit(1_214_000.0, "ns"), "1.21 ms");
        assert_eq!(with_unit(0.0, "ns"), "0");
        assert_eq!(with_unit(2600.0, "MHz"), "2.60 GHz");
        assert_eq!(with_unit(800.0, "MHz"), "800 MHz");
        assert_eq!(with_unit(0.004, "%"), "0.004%");
        assert_eq!(with_unit(2.5, "s"), "2.50 s");
        assert_eq!(with_unit(90.0, "s"), "1m30s");
        assert_eq!(with_unit(12_345.0, "1/s"), "12.3k/s");
        assert_eq!(with_unit(4096.0, "bytes"), "4 KiB");
        assert_eq!(with_unit(37.0, "count"), "37");
        assert_eq!(with_unit(99.5, "%"), "99.5%");
        assert_eq!(with_unit(3.0, "MOps"), "3 MOps");
        assert_eq!(with_unit(9.41e9, "bit/s"), "9.41 Gbit/s");
        assert_eq!(with_unit(0.0, "B/s"), "0");
    }

    #[test]
    fn differences_are_written_in_their_unit_with_a_sign() {
        let signed = |value| signed_with_unit(value, "us");
        assert_eq!([signed(200.0), signed(-1500.0)], ["+200 us", "-1.50 ms"]);
        assert_eq!(signed_with_unit(0.0, "count"), "0");
        assert_eq!(difference_in_unit(-200.0, "us"), "200 us lower");
        assert_eq!(difference_in_unit(3.0, "count"), "3 higher");
    }

    #[test]
    fn ratios_are_written_as_changes_and_as_factors_from_a_doubling_on() {
        assert_eq!(format_change(1.032), "+3.2%");
        assert_eq!(format_change(0.9996), "-0.04%");
        assert_eq!(format_change(0.4), "-60.0%");
        assert_eq!(format_change(2.35), "x2.35");
        assert_eq!(
            [format_factor(0.58), format_factor(15.42)],
            ["x0.58", "x15.4"]
        );
        assert_eq!(format_change(1.0), "0.00%");
        assert_eq!(format_change(0.999_999), "0.00%");
    }

    #[test]
    fn differences_are_said_in_words_with_their_direction() {
        assert_eq!(describe_difference(0.56), "44 % lower");
        assert_eq!(describe_difference(1.0126), "1.3 % higher");
        assert_eq!(describe_difference(3.9), "3.9 times as high");
        assert_eq!(describe_difference(1.0), "no difference");
        assert_eq!(describe_differences(0.44, 0.70), "30 to 56 %");
        assert_eq!(describe_differences(1.48, 1.9), "48 to 90 %");
        assert_eq!(describe_differences(3.45, 14.41), "3.5 to 14 times");
        assert_eq!(describe_difference(5000.0), "more than 1000 times as high");
        assert_eq!(
            describe_differences(90.0, 5e6),
            "90 to more than 1000 times"
        );
        assert_eq!(describe_differences(5000.0, 5e6), "more than 1000 times");
        assert_eq!(
            describe_differences(0.96, 1.33),
            "4.0 % lower to 33 % higher"
        );
        assert_eq!(
            describe_differences(1.5, 2.5),
            "50 % higher to 2.5 times as high"
        );
    }

    #[test]
    fn times_are_said_as_people_plan_with_them() {
        let minutes = |n: f64| format_rough_time(n * 60e9);
        assert_eq!(format_rough_time(1.0), "1 second");
        assert_eq!([minutes(0.5), minutes(3.2)], ["30 seconds", "4 minutes"]);
        assert_eq!([minutes(170.0), minutes(5e3)], ["3 hours", "4 days"]);
        assert_eq!(minutes(2_367_059.0), "5 years");
        let short = [20.0, 240.0, 9e3, 4e5].map(|seconds| in_short(seconds * 1e9));
        assert_eq!(short, ["20 s", "4 min", "3 h", "5 d"]);
    }

    #[test]
    fn evidence_has_a_scale_in_words() {
        let said = [0.3, 2.0, 5.0, 20.0, 60.0, 2e5].map(describe_strength);
        let words = ["none", "slight", "some", "strong", "very strong", "extreme"];
        assert_eq!(said, words);
    }

    #[test]
    fn e_values_keep_their_order_of_magnitude() {
        assert_eq!([format_e_value(312.4), format_e_value(19.9)], ["312", "19"]);
        assert_eq!(format_e_value(2.0e9), "2e9");
        assert_eq!(format_e_value(0.002), "<0.01");
    }

    #[test]
    fn one_is_no_plural() {
        assert_eq!(
            [format_count(1, "block"), format_count(3, "block")],
            ["1 block", "3 blocks"]
        );
    }

    #[test]
    fn a_confidence_is_written_without_needless_decimals() {
        assert_eq!(format_percent(0.95), "95");
        assert_eq!(format_percent(0.999), "99.9");
    }
}
