//! Figures of a list of frame times, as the tools of players compute them.

use crate::files::load_from_count;
use crate::{Place, make_figure};
use model::{Better, Measurement};
use stats::frames::{average_rate, low_by_mean, low_by_rank};

/// Longest frame time that is one: an hour.
const MOST_NS: f64 = 3.6e12;

/// Rules by which lows and medians are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// MangoHud: the mean of the slowest hundredth (0.7), and the frame at its border (from 0.8 on).
    MangoHud,
    /// CapFrameX: the mean of all at or above the 99th percentile, and percentiles between frames.
    CapFrameX,
}

/// Nanoseconds of a frame time in a unit of so many nanoseconds; `None` if it cannot be one.
pub fn parse_time(text: &str, unit_ns: f64) -> Option<u64> {
    let value: f64 = text.trim().parse().ok()?;
    to_ns(value, unit_ns)
}

/// The same of a number.
pub fn to_ns(value: f64, unit_ns: f64) -> Option<u64> {
    let ns = (value * unit_ns).round();
    (1.0..=MOST_NS)
        .contains(&ns)
        .then(|| model::truncate_to_u64(ns))
}

/// The cell of a program.
pub fn place(program: &str, tool: &str) -> Place {
    Place {
        workload: program.to_owned(),
        benchmark: tool.to_owned(),
        load: load_from_count(None),
        load_name: String::new(),
    }
}

/// Figures of frames, at least one; `dropped` of them were not shown, where the tool says so.
pub fn figures(times_ns: &[u64], dropped: Option<usize>, rules: Rules) -> Vec<Measurement> {
    let rate = |name: &str, value: Option<f64>| {
        value.map(|value| make_figure(name, "1/s", Better::Higher, value))
    };
    let [median, p1, low, low_thousandth] = match rules {
        Rules::MangoHud => [
            low_by_rank(times_ns, 500),
            low_by_rank(times_ns, 10),
            low_by_mean(times_ns, 10),
            low_by_mean(times_ns, 1),
        ],
        Rules::CapFrameX => [
            rate_quantile(times_ns, 0.5),
            rate_quantile(times_ns, 0.01),
            low_above_quantile(times_ns, 0.99),
            low_above_quantile(times_ns, 0.999),
        ],
    };
    let rates = [
        rate("fps_average", average_rate(times_ns)),
        rate("fps_median", median),
        rate("fps_1_percent_low", low),
        rate("fps_0_1_percent_low", low_thousandth),
        rate("fps_p1", p1),
    ];
    let mut figures: Vec<Measurement> = rates.into_iter().flatten().collect();
    let longest_ns = times_ns.iter().max().copied().unwrap_or(0) as f64;
    figures.push(make_figure(
        "longest_frame",
        "ns",
        Better::Lower,
        longest_ns,
    ));
    let minutes = length_ns(times_ns) as f64 / 6e10;
    figures.extend(dropped.map(|dropped| {
        let rate = dropped as f64 / minutes;
        make_figure("dropped_frames_per_min", "1/min", Better::Lower, rate)
    }));
    figures
}

/// Length of all frames together.
pub fn length_ns(times_ns: &[u64]) -> u64 {
    times_ns.iter().sum()
}

/// Rate of the frames that take as long as the quantile of all or longer.
fn low_above_quantile(times_ns: &[u64], quantile: f64) -> Option<f64> {
    let mut sorted: Vec<f64> = times_ns.iter().map(|time| *time as f64).collect();
    sorted.sort_by(f64::total_cmp);
    let border_ns = quantile_of(&sorted, quantile)?;
    let times = times_ns.iter().copied();
    let slow: Vec<u64> = times.filter(|time| *time as f64 >= border_ns).collect();
    average_rate(&slow)
}

/// Quantile of the rates of the frames.
fn rate_quantile(times_ns: &[u64], quantile: f64) -> Option<f64> {
    let mut rates: Vec<f64> = times_ns.iter().map(|time| 1e9 / *time as f64).collect();
    rates.sort_by(f64::total_cmp);
    quantile_of(&rates, quantile)
}

/// The median-unbiased quantile of values in order of size (Hyndman and Fan's eighth), which is the one of
/// Math.NET's `Quantile` that CapFrameX calls.
fn quantile_of(sorted: &[f64], quantile: f64) -> Option<f64> {
    let (first, last) = (*sorted.first()?, *sorted.last()?);
    let rank = (sorted.len() as f64 + 1.0 / 3.0) * quantile + 1.0 / 3.0;
    let below = usize::try_from(model::truncate_to_u64(rank)).ok()?;
    Some(match below {
        0 => first,
        below if below >= sorted.len() => last,
        below => {
            let (low, high) = (sorted[below - 1], sorted[below]);
            low + (rank - below as f64) * (high - low)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn value(figures: &[Measurement], name: &str) -> f64 {
        let found = figures.iter().find(|figure| figure.metric == name);
        found.unwrap_or_else(|| panic!("there is no {name}")).value
    }

    fn is(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
    }

    /// 97 frames of 10 ms and one each of 20, 30 and 50 ms: 1.07 s.
    fn times() -> Vec<u64> {
        let mut times = vec![10 * MS; 97];
        times.extend([50 * MS, 20 * MS, 30 * MS]);
        times
    }

    #[test]
    fn lows_of_mangohud_are_as_worked_by_hand() {
        let figures = figures(&times(), None, Rules::MangoHud);
        is(value(&figures, "fps_average"), 100.0 / 1.07);
        is(value(&figures, "fps_median"), 100.0);
        // One of 100 is the slowest hundredth, and its border.
        is(value(&figures, "fps_1_percent_low"), 20.0);
        is(value(&figures, "fps_p1"), 20.0);
        is(value(&figures, "fps_0_1_percent_low"), 20.0);
        is(value(&figures, "longest_frame"), 50e6);
    }

    #[test]
    fn lows_of_capframex_are_as_worked_by_hand() {
        let figures = figures(&times(), Some(3), Rules::CapFrameX);
        // Rank 100.33 × 0.99 + 0.33 = 99.66: between 30 and 50 ms, so only 50 ms is above.
        is(value(&figures, "fps_1_percent_low"), 20.0);
        // Rank 100.33 × 0.01 + 0.33 = 1.3367 of the rates 20, 33.3, 50, 100 …
        is(
            value(&figures, "fps_p1"),
            20.0 + (100.0 / 3.0 - 20.0) * 1.01 / 3.0,
        );
        is(value(&figures, "fps_median"), 100.0);
        is(value(&figures, "dropped_frames_per_min"), 3.0 * 60.0 / 1.07);
    }

    #[test]
    fn with_ties_capframex_takes_in_all_frames_at_the_border() {
        // 995 of 16 ms and 5 of 32 ms: the 99th percentile is 16 ms.
        let times = [vec![16 * MS; 995], vec![32 * MS; 5]].concat();
        let figures = figures(&times, None, Rules::CapFrameX);
        is(
            value(&figures, "fps_1_percent_low"),
            value(&figures, "fps_average"),
        );
    }

    #[test]
    fn a_time_is_above_nothing_and_below_an_hour() {
        assert_eq!(parse_time("16.67", 1e6), Some(16_670_000));
        assert_eq!(parse_time("16670", 1e3), Some(16_670_000));
        for bad in ["0", "-1", "nan", "inf", "1e9", "x"] {
            assert_eq!(parse_time(bad, 1e6), None, "{bad}");
        }
    }
}
