//! Verdicts on differences, where a ratio has no meaning: slack below 0, misses of which there are none.
//!
//! The input is `x = arm − baseline` of each block, in the unit of the metric and in the order of measuring.
//! A coin drew which arm came first. If the label makes no difference the coin only decides the sign of `x`,
//! and a sign needs no logarithm: the test is that of [`randomization`], looked at after each block. Nothing is
//! assumed of the noise, so many blocks of 0 and few of 3 are no trouble. Where all blocks have one sign,
//! [`randomization::fewest_pairs`] of them decide.

use crate::randomization::{self, Process, fewest_pairs};
use crate::safe_test::{Interval, saturating_exp};
use crate::verdict::{Judgement, Params, Test, Verdict, judge_direction, undecidable_judgement};

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
    if xs.is_empty() || xs.iter().any(|x| !x.is_finite()) {
        return undecidable_judgement(xs);
    }
    let (mut same, mut called) = (None, None);
    for count in 1..=xs.len() {
        let here = &xs[..count];
        let block = u32::try_from(count).unwrap_or(u32::MAX);
        if same.is_none() && is_same(here, params) {
            same = Some((Verdict::Same, block));
        }
        if called.is_none() && is_different(here, params) {
            called = Some((side(here, params), block));
        }
    }
    let decision = same.or(called);
    let verdict = decision.map_or(Verdict::Unknown, |(verdict, _)| verdict);
    let fewest = fewest_pairs(params.alpha);
    Judgement {
        verdict,
        decided_at: decision.map(|(_, block)| block),
        blocks_needed: (xs.len() < fewest as usize).then_some(fewest),
        upheld: match verdict {
            Verdict::Same => is_same(xs, params),
            Verdict::Unknown => true,
            called => is_different(xs, params) && side(xs, params) == called,
        },
        e_value: saturating_exp(Process::from_shifted(xs, 0.0).ln_e()),
        test: Test::Coins,
        difference: Some(Difference {
            value: randomization::estimate_centre(xs).unwrap_or(0.0),
            interval: randomization::confidence_sequence(xs, params.alpha),
            smallest: params.smallest_effect,
        }),
        ..undecidable_judgement(xs)
    }
}

fn is_different(xs: &[f64], params: &Params) -> bool {
    Process::from_shifted(xs, 0.0).ln_e() >= -params.alpha.ln()
}

fn is_same(xs: &[f64], params: &Params) -> bool {
    let limit = params.smallest_effect;
    // Both ends are rejected wherever the interval lies between them, and that is soon known.
    let is_rejected = |end: f64| Process::from_shifted(xs, end).ln_e() >= -params.alpha.ln();
    let may_be = limit == 0.0 || is_rejected(limit) && is_rejected(-limit);
    may_be
        && randomization::confidence_sequence(xs, params.alpha)
            .is_some_and(|found| found.lies_within(&Interval::centred_at(0.0, limit)))
}

/// Side of the centre; where that is 0, of most blocks.
fn side(xs: &[f64], params: &Params) -> Verdict {
    let centre = randomization::estimate_centre(xs).filter(|centre| *centre != 0.0);
    let most = || xs.iter().filter(|x| **x != 0.0).map(|x| x.signum()).sum();
    judge_direction(centre.unwrap_or_else(most), params)
}

#[cfg(test)]
mod tests {
    use super::*;
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
            (Verdict::Worse, Some(8))
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
            let judged = judge(&[0.0; 8], &params);
            assert_eq!(
                (judged.verdict, judged.decided_at),
                (Verdict::Same, Some(8))
            );
            assert_eq!(judge(&[0.0; 7], &params).blocks_needed, Some(8));
        }
    }

    #[test]
    fn a_miss_here_and_there_is_not_decided() {
        let mut xs = [0.0; 20];
        (xs[3], xs[9], xs[14]) = (1.0, -1.0, 1.0);
        assert_eq!(judge(&xs, &MISSES).verdict, Verdict::Unknown);
    }

    fn is_ever_different(xs: &[f64]) -> bool {
        (1..=xs.len()).any(|count| is_different(&xs[..count], &MISSES))
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
