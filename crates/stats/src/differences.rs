//! Verdicts on differences, where a ratio has no meaning: slack below 0, misses of which there are none.
//!
//! The input is `x = arm − baseline` of each block, in the unit of the metric and in the order of measuring.
//! A coin drew which arm came first. If the label makes no difference the coin only decides the sign of `x`,
//! and a sign needs no logarithm: the judgement is that of [`coins`]. Nothing is assumed of the noise, so many
//! blocks of 0 and few of 3 are no trouble. Where all blocks have one sign,
//! [`fewest_pairs`](crate::randomization::fewest_pairs) of them decide.

use crate::coins;
use crate::safe_test::Interval;
use crate::verdict::{Judgement, Params};

/// Change on the scale of differences.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// Arm minus baseline: the centre of the blocks.
    pub value: f64,
    /// Interval of the difference, valid at every look; `None` while unbounded.
    pub interval: Option<Interval>,
    /// Smallest difference that is of interest.
    pub smallest: f64,
}

/// Judges the differences `xs` of blocks; `smallest_effect` of the parameters is in their unit.
pub fn judge(xs: &[f64], params: &Params) -> Judgement {
    let (judged, shift) = coins::judge_shifts(xs, params, params.smallest_effect);
    let difference = shift.map(|shift| Difference {
        value: shift.value,
        interval: shift.interval,
        smallest: params.smallest_effect,
    });
    Judgement {
        difference,
        ..judged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::randomization::{Prior, Process};
    use crate::testing::Normal;
    use model::Better;

    const MISSES: Params = Params {
        alpha: 0.05,
        smallest_effect: 0.1,
        better: Better::Lower,
    };

    #[test]
    fn misses_that_come_from_none_are_worse_and_that_go_to_none_are_better() {
        let came: Vec<f64> = (0..12).map(|k| 3.0 + 0.03 * f64::from(k % 5)).collect();
        let judged = judge(&came, &MISSES);
        assert_eq!(
            (judged.verdict, judged.decided_at),
            (Verdict::Worse, Some(6))
        );
        let difference = judged.difference.unwrap();
        let interval = difference.interval.unwrap();
        assert!(interval.low > 2.9 && interval.high < 3.3, "{difference:?}");
        assert!((3.0..3.12).contains(&difference.value), "{difference:?}");
        assert_eq!((judged.known_ratio(), judged.lower_end()), (None, None));
        let went: Vec<f64> = came.iter().map(|x| -x).collect();
        assert_eq!(judge(&went, &MISSES).verdict, Verdict::Better);
        let higher = Params {
            better: Better::Higher,
            ..MISSES
        };
        assert_eq!(judge(&went, &higher).verdict, Verdict::Worse);
    }

    #[test]
    fn nothing_under_both_arms_is_the_same_also_without_a_smallest_effect() {
        for smallest_effect in [0.0, 0.1] {
            let params = Params {
                smallest_effect,
                ..MISSES
            };
            let judged = judge(&[0.0; 6], &params);
            assert_eq!(
                (judged.verdict, judged.decided_at),
                (Verdict::Same, Some(6))
            );
            assert_eq!(judge(&[0.0; 5], &params).blocks_needed, Some(6));
        }
    }

    #[test]
    fn a_miss_here_and_there_is_not_decided() {
        let mut xs = [0.0; 20];
        (xs[3], xs[9], xs[14]) = (1.0, -1.0, 1.0);
        assert_eq!(judge(&xs, &MISSES).verdict, Verdict::Unknown);
    }

    fn is_ever_different(xs: &[f64]) -> bool {
        let mut coins = Process::new(Prior::BLOCKS);
        xs.iter().any(|x| {
            coins.push(*x);
            coins.ln_e() >= -MISSES.alpha.ln()
        })
    }

    /// False calls of so many runs of equal arms, each looked at after every one of 30 blocks.
    fn false_calls(runs: usize, mut level: impl FnMut(&mut Normal) -> f64) -> usize {
        let mut normal = Normal::from_seed(38);
        let mut run = || {
            let xs: Vec<f64> = (0..30)
                .map(|_| level(&mut normal) - level(&mut normal))
                .collect();
            is_ever_different(&xs)
        };
        (0..runs).filter(|_| run()).count()
    }

    #[test]
    fn equal_arms_are_called_in_at_most_one_of_twenty_over_all_looks() {
        type Level = fn(&mut Normal) -> f64;
        let shapes: [(&str, Level); 4] = [
            ("normal", |normal| -200.0 + 9.0 * normal.next_value()),
            ("counts", |normal| (normal.next_value().abs() * 2.0).floor()),
            ("mostly none", |normal| {
                (normal.next_value() - 1.5).max(0.0).ceil()
            }),
            ("bursts", |normal| normal.next_value().powi(5)),
        ];
        for (name, level) in shapes {
            let called = false_calls(1000, level);
            assert!(called <= 50, "{name}: {called} of 1000");
        }
    }

    /// Equal arms, whose figures fall to 0 ever more often from some block on: the scale changes then.
    #[test]
    fn a_change_of_the_scale_during_a_run_calls_at_most_one_of_twenty_equal_arms() {
        let mut normal = Normal::from_seed(77);
        let mut run = |first_zero: usize| {
            let blocks: Vec<[f64; 2]> = (0..30)
                .map(|k| {
                    let zero = k >= first_zero;
                    [(); 2].map(|()| {
                        let value = 3.0 + normal.next_value();
                        if zero && value < 2.5 {
                            0.0
                        } else {
                            value.max(0.1)
                        }
                    })
                })
                .collect();
            let is_positive = |block: &[f64; 2]| block.iter().all(|value| *value > 0.0);
            let before = blocks.iter().take_while(|block| is_positive(block)).count();
            let logarithms = blocks[..before].iter().map(|[a, b]| (a / b).ln());
            let params = Params {
                smallest_effect: 0.02,
                ..MISSES
            };
            let early = crate::coins::judge(&logarithms.collect::<Vec<_>>(), &params);
            let differences: Vec<f64> = blocks.iter().map(|[a, b]| a - b).collect();
            early.verdict.is_call() || is_ever_different(&differences)
        };
        let called = (0..400).filter(|k| run(5 + k % 20)).count();
        assert!(called <= 20, "{called} of 400");
    }
}
