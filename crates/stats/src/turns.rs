//! Verdicts on pairs of windows of arms that take turns inside processes.
//!
//! The input is `x = ln(arm / baseline)` of each pair, or `arm − baseline` where a ratio has no meaning,
//! in the order of measuring, by process. The order inside each pair was drawn by a fair coin, so the
//! test is that of [`randomization`], looked at after each process. The ratio, or the difference, is
//! that of the centre of the pairs ([`randomization::estimate_centre`]).
//!
//! Pairs of one process share its memory layout and placement, and what they say is about this
//! process. With two processes or more, the interval is wider by the variance between them
//! ([`levels`]) at Student's quantile: it covers what further processes would show. That part is
//! an estimate for a fixed number of processes, not valid at every look.

use crate::chance::Outlook;
use crate::differences::Difference;
use crate::levels::{self, Levels};
use crate::randomization::{self, Prior, Process};
use crate::safe_test::{Interval, saturating_exp};
use crate::summary;
use crate::verdict::{
    Judgement, Params, Test, Verdict, judge_direction, to_ratio, undecidable_judgement,
};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Judges the log-ratios of the pairs of each process.
///
/// In the judgement, blocks are pairs, and none are said to be needed.
pub fn judge(processes: &[Vec<f64>], params: &Params) -> Judgement {
    let (judged, shown) = judge_shifts(processes, params, params.smallest_effect.ln_1p());
    match shown {
        None => judged,
        Some(shown) => Judgement {
            ratio: shown.centre.exp(),
            interval: shown.interval(params.alpha).map(to_ratio),
            ..judged
        },
    }
}

/// Judges the differences of the pairs of each process, where a ratio has no meaning;
/// `smallest_effect` of the parameters is in their unit. The coin decides the sign of a difference as
/// it does that of a log-ratio, so the test is the same.
pub fn judge_differences(processes: &[Vec<f64>], params: &Params) -> Judgement {
    let (judged, shown) = judge_shifts(processes, params, params.smallest_effect);
    let difference = shown.map(|shown| Difference {
        value: shown.centre,
        interval: shown.interval(params.alpha),
        smallest: params.smallest_effect,
    });
    Judgement {
        difference,
        ..judged
    }
}

/// The judgement on shifts of pairs, without the ratio or the difference that is made of them, and the
/// view of all pairs; none of it without pairs. Shifts within `limit` are of no interest.
fn judge_shifts<'a>(
    processes: &'a [Vec<f64>],
    params: &Params,
    limit: f64,
) -> (Judgement, Option<View<'a>>) {
    let all = processes.concat();
    if all.is_empty() || all.iter().any(|x| !x.is_finite()) {
        return (undecidable_judgement(&all), None);
    }
    let decision = first_decision(processes, params, limit);
    let shown = View::of(processes);
    let pairs = |count: usize| u32::try_from(processes[..count].concat().len()).unwrap_or(u32::MAX);
    let judged = Judgement {
        verdict: decision.map_or(Verdict::Unknown, |(verdict, _)| verdict),
        e_value: saturating_exp(shown.ln_e),
        outlook: shown.outlook(limit),
        decided_at: decision.map(|(_, count)| pairs(count)),
        upheld: decision.is_none_or(|(verdict, _)| shown.supports(verdict, params, limit)),
        test: Test::Coins,
        ..undecidable_judgement(&all)
    };
    (judged, Some(shown))
}

/// The interval of the ratio of the pairs of each process, at 1 − alpha.
pub fn confidence_interval(processes: &[Vec<f64>], alpha: f64) -> Option<Interval> {
    View::of(processes).interval(alpha).map(to_ratio)
}

/// *Same* after the first processes for which it holds, else the first crossing; with the number
/// of processes.
fn first_decision(processes: &[Vec<f64>], params: &Params, limit: f64) -> Option<(Verdict, usize)> {
    let mut crossing = None;
    for count in 1..=processes.len() {
        let view = View::of(&processes[..count]);
        if view.is_same(params, limit) {
            return Some((Verdict::Same, count));
        }
        if crossing.is_none() && view.is_different(params) {
            crossing = Some((view.side(params), count));
        }
    }
    crossing
}

/// Knowledge after some processes.
struct View<'a> {
    processes: &'a [Vec<f64>],
    all: Vec<f64>,
    ln_e: f64,
    /// Centre of all pairs.
    centre: f64,
}

impl<'a> View<'a> {
    fn of(processes: &'a [Vec<f64>]) -> Self {
        let all = processes.concat();
        View {
            processes,
            ln_e: Process::from_shifted(&all, 0.0, Prior::PAIRS).ln_e(),
            centre: randomization::estimate_centre(&all).unwrap_or(f64::NAN),
            all,
        }
    }

    fn interval(&self, alpha: f64) -> Option<Interval> {
        let within = randomization::confidence_sequence(&self.all, alpha, Prior::PAIRS)?;
        let more = between(self.processes, alpha);
        Some(Interval {
            low: within.low - more,
            high: within.high + more,
        })
    }

    /// Pairs of one process have its luck, so its processes say how far the centre may move: none with one.
    fn outlook(&self, limit: f64) -> Option<Outlook> {
        let centres = self.processes.iter();
        let centres: Vec<f64> = centres
            .filter_map(|pairs| randomization::estimate_centre(pairs))
            .collect();
        Some(Outlook {
            units: u32::try_from(centres.len()).unwrap_or(u32::MAX),
            pairs: u32::try_from(self.all.len()).unwrap_or(u32::MAX),
            centre: self.centre,
            spread: summary::sd(&centres)?,
            pair_spread: randomization::estimate_spread(&self.all)?,
            limit,
        })
    }

    fn is_different(&self, params: &Params) -> bool {
        self.ln_e >= -params.alpha.ln()
    }

    fn is_same(&self, params: &Params, limit: f64) -> bool {
        // Both ends are rejected wherever the interval lies between them, and that is soon known.
        let is_rejected = |shift: f64| {
            Process::from_shifted(&self.all, shift, Prior::PAIRS).ln_e() >= -params.alpha.ln()
        };
        // An end of 0 is none: pairs that are all 0 reject everything else.
        let may_be = limit == 0.0 || is_rejected(limit) && is_rejected(-limit);
        may_be
            && self
                .interval(params.alpha)
                .is_some_and(|interval| interval.lies_within(&Interval::centred_at(0.0, limit)))
    }

    /// Side of the centre; where that is 0, of most pairs.
    fn side(&self, params: &Params) -> Verdict {
        let most = || {
            self.all
                .iter()
                .filter(|x| **x != 0.0)
                .map(|x| x.signum())
                .sum()
        };
        let shift = match self.centre == 0.0 {
            true => most(),
            false => self.centre,
        };
        judge_direction(shift, params)
    }

    fn supports(&self, verdict: Verdict, params: &Params, limit: f64) -> bool {
        match verdict {
            Verdict::Same => self.is_same(params, limit),
            Verdict::Better | Verdict::Worse => {
                self.is_different(params) && self.side(params) == verdict
            }
            Verdict::Unknown => true,
        }
    }
}

/// Half the width that processes add; 0 of one process, and where they do not differ.
fn between(processes: &[Vec<f64>], alpha: f64) -> f64 {
    let groups = processes.iter().map(Vec::as_slice);
    let groups: Vec<&[f64]> = groups.filter(|group| !group.is_empty()).collect();
    let sizes = || groups.iter().map(|group| group.len() as f64);
    let all: f64 = sizes().sum();
    // Each pair counts alike, so that a long process counts for more than a short one.
    let share = sizes().map(|size| (size / all).powi(2)).sum();
    let count = u32::try_from(groups.len()).unwrap_or(u32::MAX);
    let levels = levels::split_variance(&groups);
    levels.map_or(0.0, |levels| {
        half_width_between(levels, count, share, alpha)
    })
}

/// Half the width that so many processes add to the interval. `share` is the sum of the squares of the shares that they
/// have in all pairs.
pub(crate) fn half_width_between(levels: Levels, processes: u32, share: f64, alpha: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, f64::from(processes) - 1.0) {
        Ok(student) if levels.between > 0.0 => {
            student.inverse_cdf(1.0 - alpha / 2.0) * (levels.between * share).sqrt()
        }
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Normal;
    use model::Better;

    const HIGHER: Params = Params {
        alpha: 0.05,
        smallest_effect: 0.02,
        better: Better::Higher,
    };

    /// Processes of 20 pairs around a mean of their own.
    fn processes(seed: u64, means: &[f64], sd: f64) -> Vec<Vec<f64>> {
        let mut normal = Normal::from_seed(seed);
        let mut process = |mean: &f64| (0..20).map(|_| mean + sd * normal.next_value()).collect();
        means.iter().map(&mut process).collect()
    }

    #[test]
    fn a_change_that_only_these_processes_show_is_told_from_one_that_all_do() {
        let few = judge(&processes(1, &[0.02, 0.2], 0.01), &HIGHER);
        assert_eq!(few.verdict, Verdict::Better);
        assert!(few.is_of_these_processes(), "{:?}", few.interval);
        let alike = judge(&processes(1, &[0.1, 0.1, 0.1], 0.01), &HIGHER);
        assert_eq!(alike.verdict, Verdict::Better);
        assert!(!alike.is_of_these_processes(), "{:?}", alike.interval);
    }

    #[test]
    fn a_clear_gain_is_better_or_worse_by_the_direction_of_the_metric() {
        let found = judge(&processes(1, &[0.1], 0.03), &HIGHER);
        assert_eq!((found.verdict, found.blocks), (Verdict::Better, 20));
        assert!(
            found
                .interval
                .is_some_and(|i| i.low > 1.05 && i.high < 1.15)
        );
        let lower = Params {
            better: Better::Lower,
            ..HIGHER
        };
        let found = judge(&processes(1, &[0.1], 0.03), &lower);
        assert_eq!(found.verdict, Verdict::Worse);
    }

    #[test]
    fn little_noise_around_no_change_is_the_same_after_the_first_process() {
        let found = judge(&processes(2, &[0.0, 0.0], 0.005), &HIGHER);
        assert_eq!((found.verdict, found.decided_at), (Verdict::Same, Some(20)));
        assert!(found.upheld);
    }

    #[test]
    fn processes_that_differ_widen_the_interval() {
        let width = |means: &[f64]| {
            let found = judge(&processes(3, means, 0.01), &HIGHER);
            found.interval.map(|i| i.high - i.low).unwrap()
        };
        let (alike, apart) = (width(&[0.1, 0.1, 0.1]), width(&[0.05, 0.1, 0.15]));
        assert!(apart > 3.0 * alike, "{alike} and {apart}");
    }

    #[test]
    fn a_process_with_most_of_the_pairs_has_most_of_the_luck() {
        let mut normal = Normal::from_seed(5);
        let mut process = |count: u32, mean: f64| -> Vec<f64> {
            (0..count)
                .map(|_| mean + 0.01 * normal.next_value())
                .collect()
        };
        let even = [process(20, 0.0), process(20, 0.2), process(20, 0.1)];
        let uneven = [process(4, 0.0), process(4, 0.2), process(52, 0.1)];
        let ratio = between(&uneven, 0.05) / between(&even, 0.05);
        // Processes seem to differ by half as much, and the long one has 0.87 of the pairs: √(0.55 · 0.76 / ⅓).
        assert!((1.05..1.2).contains(&ratio), "{ratio}");
    }

    #[test]
    fn nothing_is_known_without_pairs_or_with_one_that_has_no_ratio() {
        for processes in [vec![], vec![vec![]], vec![vec![0.1; 9], vec![f64::NAN]]] {
            let found = judge(&processes, &HIGHER);
            assert_eq!((found.verdict, found.e_value), (Verdict::Unknown, 1.0));
        }
    }

    #[test]
    fn a_verdict_stands_when_later_processes_blur_it_and_says_so() {
        let found = judge(&processes(4, &[0.1, -0.1], 0.02), &HIGHER);
        assert_eq!(
            (found.verdict, found.decided_at),
            (Verdict::Better, Some(20))
        );
        assert!(!found.upheld);
    }

    const MISSES: Params = Params {
        alpha: 0.05,
        smallest_effect: 0.1,
        better: Better::Lower,
    };

    #[test]
    fn misses_in_windows_that_come_from_none_are_worse_in_their_unit() {
        let came: Vec<f64> = (0..20).map(|k| f64::from(k % 3)).collect();
        let found = judge_differences(std::slice::from_ref(&came), &MISSES);
        assert_eq!((found.verdict, found.blocks), (Verdict::Worse, 20));
        let difference = found.difference.unwrap();
        assert!((0.5..1.5).contains(&difference.value), "{difference:?}");
        assert_eq!((found.known_ratio(), found.lower_end()), (None, None));
        // Most windows have none, so the centre is 0.
        let few: Vec<f64> = (0..40).map(|k| f64::from(k % 5 / 4)).collect();
        assert_eq!(judge_differences(&[few], &MISSES).verdict, Verdict::Worse);
        let went: Vec<f64> = came.iter().map(|x| -x).collect();
        assert_eq!(judge_differences(&[went], &MISSES).verdict, Verdict::Better);
    }

    #[test]
    fn windows_without_a_miss_are_the_same() {
        let found = judge_differences(&[vec![0.0; 20]], &MISSES);
        assert_eq!((found.verdict, found.upheld), (Verdict::Same, true));
        let nothing = judge_differences(&[], &MISSES);
        assert_eq!(
            (nothing.verdict, nothing.difference),
            (Verdict::Unknown, None)
        );
    }
}
