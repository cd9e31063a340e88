//! Numbers with their units, as people write them.

/// `0.3ms`, `2s`, `20m`: the largest unit in which the number is at least 1,
/// with up to three decimals.
pub fn format_duration_ns(ns: u64) -> String {
    const UNITS: [(&str, f64); 6] = [
        ("h", 3.6e12),
        ("m", 6e10),
        ("s", 1e9),
        ("ms", 1e6),
        ("us", 1e3),
        ("ns", 1.0),
    ];
    let value = ns as f64;
    let (unit, size) = UNITS
        .into_iter()
        .find(|(_, size)| value >= *size)
        .unwrap_or(("s", 1e9));
    format!("{}{unit}", trim_decimals(value / size))
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
    fn rates_are_written_with_their_prefix() {
        assert_eq!(format_rate(10_000.0), "10k/s");
        assert_eq!(format_rate(250.0), "250/s");
    }
}
