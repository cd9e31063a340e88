//! Variance on two levels, such as blocks within boots or trials within blocks. Repetition is
//! worth its time only where the values differ; this says on which level that is.
//!
//! Kalibera and Jones, "Rigorous benchmarking in reasonable time" (2013),
//! sections 6 and 8; with unequal groups the usual analysis of variance
//! (Searle, Casella, McCulloch, "Variance components", 3.6), which is the same
//! where they are equal.

use crate::summary::Moments;

/// Variance components of values in groups.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Levels {
    /// Variance of values within a group.
    pub within: f64,
    /// Variance of the true means of the groups; 0 if the estimate is negative.
    pub between: f64,
}

/// Splits the variance; `None` with fewer than two groups or no group of two.
pub fn split_variance(groups: &[&[f64]]) -> Option<Levels> {
    let groups: Vec<Moments> = groups
        .iter()
        .map(|group| Moments::from_values(group))
        .collect();
    let groups: Vec<Moments> = groups.into_iter().filter(|g| g.count() > 0).collect();
    let sizes = || groups.iter().map(|group| f64::from(group.count()));
    let (values, count) = (sizes().sum::<f64>(), groups.len() as f64);
    if groups.len() < 2 || values <= count {
        return None;
    }
    let within = groups.iter().map(Moments::squared_deviations).sum::<f64>() / (values - count);
    let typical_size = (values - sizes().map(|n| n * n).sum::<f64>() / values) / (count - 1.0);
    let between = (mean_square_between(&groups, values) - within) / typical_size;
    Some(Levels {
        within,
        between: between.max(0.0),
    })
}

fn mean_square_between(groups: &[Moments], values: f64) -> f64 {
    let weighted = |g: &Moments| f64::from(g.count()) * g.mean();
    let grand_mean = groups.iter().map(weighted).sum::<f64>() / values;
    let square = |g: &Moments| f64::from(g.count()) * (g.mean() - grand_mean).powi(2);
    groups.iter().map(square).sum::<f64>() / (groups.len() as f64 - 1.0)
}

impl Levels {
    /// The values to take from each group for the narrowest interval in a given
    /// time, where a new group costs `group_cost` before its first value and
    /// each value `value_cost`, in the same unit. `None` if groups do not differ:
    /// then one group, for as long as the time lasts, is best.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a cast of a float saturates: more than u32::MAX repetitions are as good as no limit"
    )]
    pub fn optimum_repetitions(&self, group_cost: f64, value_cost: f64) -> Option<u32> {
        let square = group_cost / value_cost * self.within / self.between;
        (self.between > 0.0).then(|| square.sqrt().ceil().max(1.0) as u32)
    }

    /// Standard error of the grand mean over `groups` of `repetitions` each.
    pub fn standard_error(&self, groups: u32, repetitions: u32) -> f64 {
        let (groups, repetitions) = (f64::from(groups), f64::from(repetitions));
        (self.between / groups + self.within / (groups * repetitions)).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Normal, assert_close, assert_near};

    #[test]
    fn the_components_of_equal_groups_agree_with_numpy() {
        // numpy 2.4.6: within = mean of var(ddof=1), between = var(means, ddof=1) − within/3.
        let levels =
            split_variance(&[&[9.8, 10.1, 10.4], &[11.0, 11.3, 11.9], &[10.2, 10.6, 10.1]]);
        assert_close(levels.map(|l| l.within), 0.12333333333333334);
        assert_close(levels.map(|l| l.between), 0.44888888888888967);
    }

    #[test]
    fn the_components_of_unequal_groups_agree_with_scipy() {
        // scipy 1.17.1: stats.f_oneway gives MSB/MSW; within = MSW by numpy,
        // between = MSW·(F − 1)/n0 with n0 = (9 − (4 + 9 + 16)/9)/2.
        let levels =
            split_variance(&[&[9.8, 10.1], &[11.0, 11.3, 11.9], &[10.2, 10.6, 10.1, 10.4]]);
        assert_close(levels.map(|l| l.within), 0.10208333333333335);
        assert_close(levels.map(|l| l.between), 0.49557692307692325);
    }

    #[test]
    fn known_components_are_found_again() {
        let mut normal = Normal::from_seed(21);
        let mut group = |_| -> Vec<f64> {
            let mean = 2.0 * normal.next_value();
            (0..6).map(|_| mean + normal.next_value()).collect()
        };
        let groups: Vec<Vec<f64>> = (0..2000).map(&mut group).collect();
        let slices: Vec<&[f64]> = groups.iter().map(Vec::as_slice).collect();
        let levels = split_variance(&slices);
        assert_near(levels.map(|l| l.within), 1.0, 0.1);
        assert_near(levels.map(|l| l.between), 4.0, 0.15);
    }

    #[test]
    fn the_optimum_repetitions_give_the_smallest_error_for_the_time() {
        let levels = Levels {
            within: 9.0,
            between: 1.0,
        };
        // sqrt(60/5 · 9/1) = 10.39.
        assert_eq!(levels.optimum_repetitions(60.0, 5.0), Some(11));
        let variance_times_cost = |n: f64| (1.0 + 9.0 / n) * (60.0 + 5.0 * n);
        let best = (1..100)
            .map(f64::from)
            .min_by(|a, b| variance_times_cost(*a).total_cmp(&variance_times_cost(*b)));
        assert!(best.is_some_and(|n| (10.0..=11.0).contains(&n)), "{best:?}");
    }

    #[test]
    fn equal_groups_need_no_second_one() {
        let levels = split_variance(&[&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]]);
        assert_eq!(levels.map(|l| l.between), Some(0.0));
        assert_eq!(levels.and_then(|l| l.optimum_repetitions(60.0, 5.0)), None);
    }

    #[test]
    fn more_groups_shrink_the_error_where_more_values_no_longer_do() {
        let levels = Levels {
            within: 1.0,
            between: 1.0,
        };
        assert!(levels.standard_error(2, 1_000_000) > 0.7);
        assert!(levels.standard_error(100, 1) < 0.15);
    }

    #[test]
    fn one_group_or_single_values_cannot_be_split() {
        assert_eq!(split_variance(&[&[1.0, 2.0, 3.0]]), None);
        assert_eq!(split_variance(&[&[1.0], &[2.0]]), None);
        assert_eq!(split_variance(&[&[1.0, 2.0], &[]]), None);
    }
}
