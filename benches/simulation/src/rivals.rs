//! Other ways to find changes in a series of nights, as they are in common use. Each looks at all nights again
//! after every one of them.

use stats::summary::{Moments, median};
use stats::t_test::welch_test;

/// Nights that a look takes in: that is where tools for CI cut, and more is slow.
pub const WINDOW: usize = 60;
/// p-value of Otava.
const ALPHA_OF_OTAVA: f64 = 0.001;
/// Nights on each side of a split.
const FEWEST: usize = 2;
/// Standard deviation by the median distance, of normal values.
const SD_BY_MEDIAN: f64 = 1.4826;
/// Nights of a mean that is put beside the last ones.
const BASELINE_NIGHTS: usize = 7;
const LAST_NIGHTS: usize = 2;

/// Changes by E-divisive means, with Welch's test in place of permutations, as Otava has it (once Hunter).
pub fn split_by_energy(values: &[f64], smallest: f64) -> Vec<usize> {
    let mut found = Vec::new();
    let mut parts = vec![(0, values.len())];
    while let Some((begin, end)) = parts.pop() {
        let Some(at) = largest_energy(&values[begin..end]).map(|at| begin + at) else {
            continue;
        };
        let (before, after) = (&values[begin..at], &values[at..end]);
        let test = welch_test(before, after, ALPHA_OF_OTAVA);
        if test.is_some_and(|test| test.p < ALPHA_OF_OTAVA) {
            parts.extend([(begin, at), (at, end)]);
            found.push(at);
        }
    }
    found.sort_unstable();
    keep_large(values, found, smallest)
}

/// The split with the largest distance between the two sides, in distances of pairs (Matteson and James, 2014).
fn largest_energy(values: &[f64]) -> Option<usize> {
    let count = values.len();
    let distance = |from: usize, to: std::ops::Range<usize>| -> f64 {
        to.map(|other| (values[from] - values[other]).abs()).sum()
    };
    let mut left = 0.0;
    let mut across: f64 = 0.0;
    let mut right: f64 = (0..count).map(|i| distance(i, i + 1..count)).sum();
    let mut best = None;
    let mut most = 0.0;
    for at in 1..count {
        // The value before the split goes to the left.
        let (with_left, with_right) = (distance(at - 1, 0..at - 1), distance(at - 1, at..count));
        left += with_left;
        across += with_right - with_left;
        right -= with_right;
        if at < FEWEST || count - at < FEWEST {
            continue;
        }
        let (n, m) = (at as f64, (count - at) as f64);
        let pairs = |n: f64| n * (n - 1.0) / 2.0;
        let apart = 2.0 * across / (n * m) - left / pairs(n) - right / pairs(m);
        let energy = n * m / (n + m) * apart;
        if energy > most {
            (most, best) = (energy, Some(at));
        }
    }
    best
}

/// Changes of the mean by the best partition with a price for each (optimal partitioning, which PELT prunes), at
/// the price of Schwarz; the noise is that of differences from night to night.
pub fn split_by_partition(values: &[f64], smallest: f64) -> Vec<usize> {
    let sd = noise_of_steps(values);
    if sd <= 0.0 {
        return Vec::new();
    }
    let price = 2.0 * (values.len() as f64).ln();
    let mut best = vec![-price];
    let mut last = vec![0];
    for end in 1..=values.len() {
        let (mut least, mut from) = (f64::INFINITY, 0);
        let mut moments = Moments::default();
        for begin in (0..end).rev() {
            moments.push(values[begin]);
            let cost = best[begin] + price + moments.squared_deviations() / (sd * sd);
            if end - begin >= FEWEST && cost < least {
                (least, from) = (cost, begin);
            }
        }
        best.push(least);
        last.push(from);
    }
    let mut found = Vec::new();
    let mut end = values.len();
    while last[end] > 0 {
        end = last[end];
        found.push(end);
    }
    found.reverse();
    keep_large(values, found, smallest)
}

/// Standard deviation of the noise, by the distances from value to value.
pub fn noise_of_steps(values: &[f64]) -> f64 {
    let steps = values.windows(2).map(|pair| (pair[1] - pair[0]).abs());
    let steps: Vec<f64> = steps.collect();
    SD_BY_MEDIAN * median(&steps).unwrap_or(0.0) / 2f64.sqrt()
}

/// The last two nights beside the mean of the seven before: a threshold, as most CIs have it.
pub fn pass_threshold(values: &[f64], smallest: f64) -> Vec<usize> {
    let Some(at) = values.len().checked_sub(LAST_NIGHTS) else {
        return Vec::new();
    };
    let before = &values[at.saturating_sub(BASELINE_NIGHTS)..at];
    let mean = Moments::from_values(before).mean();
    let last = &values[at..];
    let beyond = |sign: f64| last.iter().all(|value| sign * (value - mean) > smallest);
    match before.len() == BASELINE_NIGHTS && (beyond(1.0) || beyond(-1.0)) {
        true => vec![at],
        false => Vec::new(),
    }
}

/// Changes between whose sides the means differ by as much.
fn keep_large(values: &[f64], found: Vec<usize>, smallest: f64) -> Vec<usize> {
    let ends = found.iter().copied().skip(1).chain([values.len()]);
    let begins = std::iter::once(0).chain(found.iter().copied());
    let sides = begins.zip(found.iter().copied()).zip(ends);
    let is_large = |((begin, at), end): ((usize, usize), usize)| {
        let mean = |part: &[f64]| Moments::from_values(part).mean();
        let size = mean(&values[at..end]) - mean(&values[begin..at]);
        (size.abs() >= smallest).then_some(at)
    };
    sides.filter_map(is_large).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_find_a_plain_step_and_nothing_in_small_waves() {
        let wave = |night: usize| {
            if night.is_multiple_of(2) {
                0.001
            } else {
                -0.001
            }
        };
        let flat: Vec<f64> = (0..30).map(wave).collect();
        let step: Vec<f64> = (0..30)
            .map(|night| wave(night) + if night < 20 { 0.0 } else { 0.05 })
            .collect();
        for split in [split_by_energy, split_by_partition] {
            assert_eq!(split(&flat, 0.02), Vec::<usize>::new());
            assert_eq!(split(&step, 0.02), [20]);
        }
        assert_eq!(pass_threshold(&flat, 0.02), Vec::<usize>::new());
        assert_eq!(pass_threshold(&step[..22], 0.02), [20]);
    }
}
