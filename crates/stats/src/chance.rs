//! Chance that more blocks decide a comparison, from those so far.
//!
//! If the blocks to come are like those that were measured, the centre of all of them is `c + s·√(1/n − 1/N)·t`: `c` and `s` are
//! the centre and the spread of the `n` blocks so far, `N` are all at the end, and `t` has Student's distribution with
//! `n − 1` degrees of freedom, since centre and spread are only estimated. At each of some numbers
//! up to the last this tells how likely the centre is so far from 0 that the test calls it, or so near that the interval lies
//! within the smallest effect. A series of looks decides at most about twice as often as the best of them (reflection), so
//! twice the largest chance is given. It is no part of any verdict: what is given up for it is *unknown*.
//! docs/statistics-simulation.md has how often it would have been decided.
//!
//! Where arms take turns, a process is what a block is here: its pairs have its luck in common.

use crate::coins::as_by_t_test;
use crate::safe_test;
use crate::search::smallest_count;
use crate::summary::Moments;
use crate::verdict::MAX_BLOCKS_NEEDED;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Knowledge of a comparison that is not decided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlook {
    /// Number of blocks, or of processes in which arms took turns.
    pub units: u32,
    /// Number of pairs in all of them: as many as blocks, or of windows.
    pub pairs: u32,
    /// Centre of the shifts of all pairs.
    pub centre: f64,
    /// Standard deviation of a block, or of the centre of a process.
    pub spread: f64,
    /// Standard deviation of a pair.
    pub pair_spread: f64,
    /// Shifts within this are of no interest.
    pub limit: f64,
}

/// Numbers of blocks at which it is looked.
const LOOKS: u32 = 24;
/// Looks of a series decide at most so often as the best of them.
const REFLECTION: f64 = 2.0;

impl Outlook {
    /// Chance, at most, that so many more blocks decide at the error rate `alpha`; 1 where nothing can be told.
    pub fn chance_to_decide(&self, alpha: f64, more: u32) -> f64 {
        let freedom = f64::from(self.units) - 1.0;
        let (Ok(student), true) = (StudentsT::new(0.0, 1.0, freedom), self.spread > 0.0) else {
            return 1.0;
        };
        let looks = LOOKS.min(more);
        let at = |look: u32| {
            let steps = u64::from(look) * u64::from(more) / u64::from(looks);
            u32::try_from(steps).unwrap_or(more)
        };
        let chances = (1..=looks).map(|look| self.chance_at(alpha, at(look), &student));
        (REFLECTION * chances.fold(0.0, f64::max)).min(1.0)
    }

    fn chance_at(&self, alpha: f64, more: u32, student: &StudentsT) -> f64 {
        let known = f64::from(self.units);
        let all = known + f64::from(more);
        let Some(half) = self.half_width(alpha, all) else {
            return 0.0;
        };
        let error = self.spread * (1.0 / known - 1.0 / all).sqrt();
        let below = |centre: f64| student.cdf((centre - self.centre) / error);
        let within = (self.limit - half).max(0.0);
        let same = below(within) - below(-within);
        let different = 1.0 - below(half) + below(-half);
        same + different
    }

    /// The smallest number of blocks in all, at least `fewest`, that would decide if nothing changed but the
    /// number.
    pub fn units_needed(&self, alpha: f64, fewest: u32) -> Option<u32> {
        let below = self.units.max(fewest.saturating_sub(1));
        smallest_count(below, MAX_BLOCKS_NEEDED, |count| {
            let half = self.half_width(alpha, count.into());
            half.is_some_and(|half| {
                self.centre.abs() + half <= self.limit || self.centre.abs() >= half
            })
        })
    }

    /// Half the width of the interval with so many blocks.
    fn half_width(&self, alpha: f64, units: f64) -> Option<f64> {
        let each = f64::from(self.pairs) / f64::from(self.units);
        let pairs = u32::try_from(model::truncate_to_u64(units * each)).unwrap_or(u32::MAX);
        let expected = Moments::from_mean_and_sd(as_by_t_test(pairs), 0.0, self.pair_spread);
        safe_test::half_width(&expected, alpha)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Normal;
    use crate::verdict::Params;
    use crate::{coins, turns};
    use model::Better;

    const PARAMS: Params = Params {
        alpha: 0.05,
        smallest_effect: 0.02,
        better: Better::Higher,
    };

    #[test]
    fn a_hopeless_comparison_has_no_chance_and_one_that_is_nearly_decided_has() {
        let noisy = Outlook {
            units: 10,
            pairs: 10,
            centre: 0.01,
            spread: 0.3,
            pair_spread: 0.3,
            limit: 0.02,
        };
        assert!(noisy.chance_to_decide(0.05, 4) < 0.05);
        let near = Outlook {
            spread: 0.012,
            pair_spread: 0.012,
            ..noisy
        };
        assert!(near.chance_to_decide(0.05, 4) > 0.5);
        assert_eq!(noisy.chance_to_decide(0.05, 0), 0.0, "no block is to come");
        let one = Outlook { units: 1, ..noisy };
        assert_eq!(
            one.chance_to_decide(0.05, 4),
            1.0,
            "one process tells nothing"
        );
        let still = Outlook {
            spread: 0.0,
            ..noisy
        };
        assert_eq!(still.chance_to_decide(0.05, 4), 1.0);
    }

    #[test]
    fn what_is_set_aside_would_seldom_have_been_decided() {
        let mut normal = Normal::from_seed(5);
        let (mut hopeless, mut decided) = (0, 0);
        for k in 0..2000 {
            let (mean, sd) = (0.002 * f64::from(k % 20), 0.03 + 0.01 * f64::from(k % 7));
            let xs: Vec<f64> = (0..30).map(|_| mean + sd * normal.next_value()).collect();
            let end = coins::find_first_decision(&xs, &PARAMS);
            let is_hopeless = |blocks: usize| {
                let judged = coins::judge(&xs[..blocks], &PARAMS);
                judged
                    .outlook
                    .unwrap()
                    .chance_to_decide(0.05, 30 - judged.blocks)
                    < 0.05
            };
            let last = end.map_or(30, |block| block as usize - 1).min(12);
            if (8..=last).step_by(2).any(is_hopeless) {
                hopeless += 1;
                decided += u32::from(end.is_some());
            }
        }
        assert!(hopeless > 100, "{hopeless}");
        assert!(decided * 20 <= hopeless, "{decided} of {hopeless}");
    }

    #[test]
    fn luck_of_processes_is_no_reason_to_give_up_where_their_number_is_small() {
        let mut normal = Normal::from_seed(3);
        let (mut hopeless, mut decided) = (0, 0);
        for _ in 0..40 {
            let processes: Vec<Vec<f64>> = (0..6)
                .map(|_| {
                    let luck = 0.02 * normal.next_value();
                    (0..20).map(|_| luck + 0.1 * normal.next_value()).collect()
                })
                .collect();
            let is_open = |count: usize| {
                turns::judge(&processes[..count], &PARAMS)
                    .decided_at
                    .is_none()
            };
            let is_hopeless = |count: usize| {
                let judged = turns::judge(&processes[..count], &PARAMS);
                let outlook = judged.outlook.unwrap();
                outlook.chance_to_decide(0.05, 6 - outlook.units) < 0.05
            };
            if (2..6).take_while(|count| is_open(*count)).any(is_hopeless) {
                hopeless += 1;
                decided += u32::from(!is_open(6));
            }
        }
        assert!(hopeless > 10, "{hopeless}");
        assert!(decided * 20 <= hopeless, "{decided} of {hopeless}");
    }
}
