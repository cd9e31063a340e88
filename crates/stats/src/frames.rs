//! Rates and lows of frames, as players' tools compute them of a list of frame times.
//!
//! There are two definitions of "1 % low" in use. One is a mean: the rate of the slowest hundredth of
//! all frames together (MangoHud 0.7, CapFrameX's *1 % low average*). The other is a rank: the rate
//! of the frame at the border of that hundredth (MangoHud from 0.8 on, CapFrameX's *P1*).
//! Under vertical sync a frame time is a multiple of the frame interval, so the rank is one of
//! a few values and jumps between them; the mean moves with every frame that is missed.

use std::cmp::Reverse;

const NS_PER_SEC: f64 = 1e9;

/// Frames per second of all frames together; `None` without any.
pub fn average_rate(times_ns: &[u64]) -> Option<f64> {
    let sum: f64 = times_ns.iter().map(|time| *time as f64).sum();
    (sum > 0.0).then(|| times_ns.len() as f64 * NS_PER_SEC / sum)
}

/// Frames per second of the slowest `permille` of the frames together, at least one: MangoHud 0.7
/// (`src/logging.cpp`), whose number of frames is rounded up.
pub fn low_by_mean(times_ns: &[u64], permille: usize) -> Option<f64> {
    let count = (times_ns.len() * permille).div_ceil(1000);
    average_rate(&slowest_first(times_ns)[..count])
}

/// Frames per second of the frame that so many permille of all are as slow as: MangoHud from 0.8 on
/// (`src/fps_metrics.h`), whose rank is rounded down.
pub fn low_by_rank(times_ns: &[u64], permille: usize) -> Option<f64> {
    let rank = (times_ns.len() * permille / 1000).saturating_sub(1);
    average_rate(slowest_first(times_ns).get(rank..=rank)?)
}

fn slowest_first(times_ns: &[u64]) -> Vec<u64> {
    let mut sorted = times_ns.to_vec();
    sorted.sort_unstable_by_key(|time| Reverse(*time));
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// 297 frames of 10 ms, and one each of 20, 40 and 100 ms.
    fn times() -> Vec<u64> {
        let mut times = vec![10 * MS; 297];
        times.extend([40 * MS, 20 * MS, 100 * MS]);
        times
    }

    fn is(rate: Option<f64>, expected: f64) {
        let rate = rate.unwrap();
        assert!((rate - expected).abs() < 1e-9, "{rate}, not {expected}");
    }

    #[test]
    fn the_average_is_of_times_and_not_of_rates() {
        // 300 frames in 3.13 s.
        is(average_rate(&times()), 300.0 / 3.13);
        assert_eq!(average_rate(&[]), None);
    }

    #[test]
    fn a_low_by_mean_is_of_the_slowest_frames_together() {
        // Three frames in 160 ms; one in 100 ms.
        is(low_by_mean(&times(), 10), 3.0 / 0.16);
        is(low_by_mean(&times(), 1), 10.0);
        // A hundredth of 301 is rounded up to four.
        let one_more = [times(), vec![10 * MS]].concat();
        is(low_by_mean(&one_more, 10), 4.0 / 0.17);
        assert_eq!(low_by_mean(&[], 10), None);
    }

    #[test]
    fn a_low_by_rank_is_of_one_frame() {
        // The third one of 300.
        is(low_by_rank(&times(), 10), 50.0);
        is(low_by_rank(&times(), 1), 10.0);
        // Up to 399 frames it is still the third.
        let more = [times(), vec![10 * MS; 99]].concat();
        is(low_by_rank(&more, 10), 50.0);
        assert_eq!(low_by_rank(&[], 10), None);
    }
}
