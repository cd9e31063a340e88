//! The common protocol: some runs of one arm, then as many of the other, and a
//! percentage or Welch's test between them.
//!
//! The last three runs of a side and the first three of the next one are such a
//! comparison too. Each side serves the comparisons with both of its neighbours.

use crate::record::Side;
use stats::{summary, t_test};

const ALPHA: f64 = 0.05;
/// Default of an experiment.
const SMALLEST_EFFECT: f64 = 0.02;

/// Rule that tells a difference from noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    Percentage,
    Welch,
}

/// Result of a comparison for the slower arm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer {
    pub injected_percent: f64,
    /// Below the other, above it, or neither.
    pub called: std::cmp::Ordering,
    pub machine_ns: u64,
}

/// All comparisons of neighbouring sides, with `runs` runs each.
pub fn compare(sides: &[&Side], runs: usize, rule: Rule) -> Vec<Answer> {
    let neighbours = sides.windows(2).filter(|pair| !pair[1].begins_series);
    neighbours
        .filter(|pair| pair.iter().all(|side| side.values.len() >= runs))
        .map(|pair| answer(pair[0], pair[1], runs, rule))
        .collect()
}

fn answer(first: &Side, second: &Side, runs: usize, rule: Rule) -> Answer {
    let from = first.values.len() - runs;
    let (before, after) = (&first.values[from..], &second.values[..runs]);
    let first_is_slower = first.injected_percent > second.injected_percent;
    let (slower, other) = match first_is_slower {
        true => (before, after),
        false => (after, before),
    };
    let spent = first.run_ns[from..].iter().chain(&second.run_ns[..runs]);
    Answer {
        injected_percent: first.injected_percent.max(second.injected_percent),
        called: call(slower, other, rule),
        machine_ns: spent.sum(),
    }
}

fn call(slower: &[f64], other: &[f64], rule: Rule) -> std::cmp::Ordering {
    let mean = |values| summary::mean(values).unwrap_or(0.0);
    let change = mean(slower) / mean(other) - 1.0;
    let differs = match rule {
        Rule::Percentage => change.abs() > SMALLEST_EFFECT,
        Rule::Welch => t_test::welch_test(slower, other, ALPHA).is_some_and(|test| test.p < ALPHA),
    };
    match differs {
        true => change.total_cmp(&0.0),
        false => std::cmp::Ordering::Equal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Ordering::{Equal, Greater, Less};

    fn side(injected_percent: f64, values: [f64; 4]) -> Side {
        Side {
            begins_series: false,
            injected_percent,
            values: values.to_vec(),
            run_ns: vec![1, 10, 100, 1000],
            load_average: 0.0,
        }
    }

    #[test]
    fn neighbours_are_compared_where_they_touch() {
        let (a, b) = (
            side(0.0, [1.0, 50.0, 100.0, 101.0]),
            side(3.0, [97.0, 96.0, 50.0, 1.0]),
        );
        let answers = compare(&[&a, &b], 2, Rule::Percentage);
        assert_eq!(answers.len(), 1);
        assert_eq!(answers[0].called, Less);
        assert_eq!(answers[0].machine_ns, 1100 + 11);
        assert_eq!(answers[0].injected_percent, 3.0);
    }

    #[test]
    fn the_slower_arm_is_called_whether_it_came_first_or_last() {
        let slow = side(10.0, [90.0, 91.0, 90.5, 89.9]);
        let fast = side(0.0, [100.0, 101.0, 99.0, 100.5]);
        for rule in [Rule::Percentage, Rule::Welch] {
            let answers = compare(&[&fast, &slow, &fast], 4, rule);
            assert!(answers.iter().all(|a| a.called == Less), "{rule:?}");
        }
    }

    #[test]
    fn what_is_within_the_noise_is_not_called_by_welch() {
        let a = side(0.0, [100.0, 120.0, 80.0, 100.0]);
        let b = side(0.0, [110.0, 125.0, 90.0, 105.0]);
        assert_eq!(compare(&[&a, &b], 4, Rule::Welch)[0].called, Equal);
        assert_eq!(compare(&[&a, &b], 4, Rule::Percentage)[0].called, Greater);
    }

    #[test]
    fn a_new_series_is_no_neighbour() {
        let a = side(0.0, [1.0; 4]);
        let mut b = a.clone();
        b.begins_series = true;
        assert!(compare(&[&a, &b], 4, Rule::Percentage).is_empty());
    }
}
