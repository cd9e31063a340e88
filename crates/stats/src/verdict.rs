//! Better, worse, same or unknown: what the values of a comparison say, and the safe t-test's answer.
//!
//! Where a coin drew the order of what is compared, [`crate::coins`] judges, and assumes nothing of the noise.
//! [`judge`] is for values of which no coin drew anything, such as cells beside each other. The input is
//! `x = ln(arm / baseline)` of every block, **in the order in which the blocks were measured**. After each
//! block the safe test and its confidence sequence are looked at:
//!
//! - the interval lies inside ± the smallest effect of interest: *same*;
//! - else the e-value reaches `1/alpha`: *better* or *worse*;
//! - else *unknown*, with the number of blocks that it would take.
//!
//! A verdict stands from the first block at which there was one. It is not
//! withdrawn when a cell goes on for the sake of its other arms: the error rate
//! `alpha` is that of *ever* crossing, so the call at the crossing is already
//! paid for, and one that came and went with every block could never stop
//! anything. The only change that later blocks can make is from better or worse
//! to *same*: a difference is real, and now known to be too small to matter.
//! All calls together err with probability `alpha` at most, since each of them
//! is true whenever the confidence sequence covers the true ratio throughout.
//!
//! Ratio, interval and e-value are those of *all* the blocks. Not the running
//! intersection of the intervals: that is as valid and narrower, but it ends up
//! empty when the noise drifts, and hides the very trouble. Instead
//! [`Judgement::upheld`] says whether all blocks together still support the
//! verdict; where they do not, the noise has probably changed during the run. Then a report says
//! *unknown*, and what it was called before: a call beside an interval that includes "no change"
//! would be believed by nobody, and to call less makes no more errors.
//!
//! Everything is recomputed from the blocks alone; nothing is remembered
//! between calls.

pub mod ending;

use crate::chance::Outlook;
use crate::differences::Difference;
use crate::safe_test::{self, Interval};
use crate::search::smallest_count;
use crate::summary::Moments;
use model::Better;
use serde::{Deserialize, Serialize};

/// An estimate beyond this many blocks is not worth giving.
pub(crate) const MAX_BLOCKS_NEEDED: u32 = 10_000;

/// Limits that a verdict is held to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Params {
    /// Error rate of one comparison, in (0, 1).
    pub alpha: f64,
    /// Smallest change of the ratio that is of interest: 0.02 is 2 %.
    pub smallest_effect: f64,
    /// A metric that only explains is judged as if higher were better.
    pub better: Better,
}

/// Verdict on an arm against the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The metric changed for the better, with the error rate `alpha`.
    Better,
    /// The metric changed for the worse, with the error rate `alpha`.
    Worse,
    /// The change, if there is one, is smaller than the smallest effect of interest.
    Same,
    /// The blocks so far are too few, or too far apart, to say.
    Unknown,
}

impl Verdict {
    /// Word of the verdict in lower case, as in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Same => "same",
            Verdict::Unknown => "unknown",
        }
    }

    /// Better or worse: a claim that can be false.
    pub fn is_call(self) -> bool {
        matches!(self, Verdict::Better | Verdict::Worse)
    }
}

/// Test that a verdict is by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// The safe t-test of the log-ratios ([`safe_test`]).
    SafeT,
    /// The coins that drew the order of the arms ([`crate::randomization`]).
    #[default]
    Coins,
}

/// A verdict and the numbers behind it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judgement {
    /// Verdict that stands after all blocks.
    pub verdict: Verdict,
    /// For *unknown*, the blocks in total that it takes if those to come are like those
    /// that were measured; `None` with fewer than two blocks, or beyond 10 000.
    pub blocks_needed: Option<u32>,
    /// Centre of arm / baseline over the blocks; by the t-test their geometric mean. NaN if there are no
    /// blocks, or if one of them has no finite logarithm.
    pub ratio: f64,
    /// Interval of the ratio, at 1 − alpha and valid at every look; `None` while unbounded.
    pub interval: Option<Interval>,
    /// Against "no difference".
    pub e_value: f64,
    /// Number of blocks that were judged.
    pub blocks: u32,
    /// Knowledge from which the chance of a decision by more blocks is told; none with too few of them, and by
    /// the t-test.
    pub outlook: Option<Outlook>,
    /// The block, counted from 1, that brought the verdict.
    pub decided_at: Option<u32>,
    /// All blocks together support the verdict; always true of *unknown*.
    pub upheld: bool,
    /// Test that ratio, interval and evidence are by.
    pub test: Test,
    /// Change in the unit of the metric, where no ratio has a meaning; ratio and interval are not known
    /// then.
    pub difference: Option<Difference>,
}

impl Judgement {
    /// The verdict of one look at all blocks together, whatever a look at the first of them alone
    /// would have decided.
    pub fn at_the_end(self, params: &Params) -> Judgement {
        let (interval, band, change) = match self.difference {
            Some(found) => (
                found.interval,
                Interval::centred_at(0.0, found.smallest),
                found.value,
            ),
            None => {
                let band = to_ratio(Interval::centred_at(0.0, params.smallest_effect.ln_1p()));
                (self.interval, band, self.ratio.ln())
            }
        };
        let is_same = interval.is_some_and(|i| i.lies_within(&band));
        let verdict = if is_same {
            Verdict::Same
        } else if self.e_value >= 1.0 / params.alpha {
            judge_direction(change, params)
        } else {
            Verdict::Unknown
        };
        Judgement {
            verdict,
            decided_at: (verdict != Verdict::Unknown).then_some(self.blocks),
            upheld: true,
            ..self
        }
    }

    /// The verdict that all blocks together support; *unknown* where only earlier ones did.
    pub fn supported_verdict(&self) -> Verdict {
        match self.upheld {
            true => self.verdict,
            false => Verdict::Unknown,
        }
    }

    /// The verdict of earlier blocks that all of them together no longer support.
    pub fn withdrawn_verdict(&self) -> Option<Verdict> {
        (!self.upheld).then_some(self.verdict)
    }

    /// True of a difference that is there in these processes, and that further ones may not show: they differ by so much
    /// that the interval, which is of those as well, has no change in it.
    pub fn is_of_these_processes(&self) -> bool {
        let is_called = matches!(self.supported_verdict(), Verdict::Better | Verdict::Worse);
        let (interval, none) = match self.difference {
            Some(found) => (found.interval, 0.0),
            None => (self.interval, 1.0),
        };
        is_called && interval.is_some_and(|interval| interval.low <= none && interval.high >= none)
    }

    /// None without blocks.
    pub fn known_ratio(&self) -> Option<f64> {
        Some(self.ratio).filter(|ratio| ratio.is_finite())
    }

    /// The lower end of the interval, where it is a number.
    pub fn lower_end(&self) -> Option<f64> {
        let low = self.interval.map(|interval| interval.low);
        low.filter(|low| low.is_finite())
    }

    /// The upper end of the interval, where it is a number.
    pub fn upper_end(&self) -> Option<f64> {
        let high = self.interval.map(|interval| interval.high);
        high.filter(|high| high.is_finite())
    }
}

/// `ln(arm / baseline)`; `None` unless both are positive and finite.
pub fn log_ratio(arm: f64, baseline: f64) -> Option<f64> {
    let x = (arm / baseline).ln();
    (arm > 0.0 && baseline > 0.0 && x.is_finite()).then_some(x)
}

/// Judgement on the log-ratios `xs` of blocks of which no coin drew the order, by the safe t-test.
pub fn judge(xs: &[f64], params: &Params) -> Judgement {
    if xs.is_empty() || xs.iter().any(|x| !x.is_finite()) {
        return Judgement {
            test: Test::SafeT,
            ..undecidable_judgement(xs)
        };
    }
    let all = Moments::from_values(xs);
    let decision = first_decision(xs, params);
    let upheld = decision.is_none_or(|decision| supports(&all, decision.verdict, params));
    let is_open = decision.is_none() || !upheld;
    Judgement {
        verdict: decision.map_or(Verdict::Unknown, |decision| decision.verdict),
        blocks_needed: is_open.then(|| blocks_needed(&all, params)).flatten(),
        ratio: all.mean().exp(),
        interval: safe_test::confidence_interval(&all, params.alpha).map(to_ratio),
        e_value: safe_test::saturating_exp(safe_test::ln_e_value(&all)),
        outlook: None,
        blocks: all.count(),
        decided_at: decision.map(|decision| decision.block),
        upheld,
        test: Test::SafeT,
        difference: None,
    }
}

#[derive(Debug, Clone, Copy)]
struct Decision {
    verdict: Verdict,
    block: u32,
}

/// *Same* at the first block where it holds, else the first crossing.
fn first_decision(xs: &[f64], params: &Params) -> Option<Decision> {
    let mut crossing = None;
    let mut moments = Moments::default();
    for &x in xs {
        moments.push(x);
        let here = |verdict| Decision {
            verdict,
            block: moments.count(),
        };
        if is_same(&moments, params) {
            return Some(here(Verdict::Same));
        }
        if crossing.is_none() && is_different(&moments, params) {
            crossing = Some(here(judge_direction(moments.mean(), params)));
        }
    }
    crossing
}

fn is_same(moments: &Moments, params: &Params) -> bool {
    let band = Interval::centred_at(0.0, params.smallest_effect.ln_1p());
    safe_test::confidence_interval(moments, params.alpha).is_some_and(|i| i.lies_within(&band))
}

fn is_different(moments: &Moments, params: &Params) -> bool {
    safe_test::ln_e_value(moments) >= -params.alpha.ln()
}

/// Direction of a change, from its logarithm.
pub(crate) fn judge_direction(change: f64, params: &Params) -> Verdict {
    let is_better = (change > 0.0) != (params.better == Better::Lower);
    match is_better {
        true => Verdict::Better,
        false => Verdict::Worse,
    }
}

fn supports(moments: &Moments, verdict: Verdict, params: &Params) -> bool {
    match verdict {
        Verdict::Same => is_same(moments, params),
        Verdict::Better | Verdict::Worse => {
            is_different(moments, params) && judge_direction(moments.mean(), params) == verdict
        }
        Verdict::Unknown => true,
    }
}

/// The smallest number of blocks that would decide, if mean and standard
/// deviation stayed what they are. Both criteria keep holding once they do.
fn blocks_needed(moments: &Moments, params: &Params) -> Option<u32> {
    let (mean, sd) = (moments.mean(), moments.sd()?);
    smallest_count(moments.count(), MAX_BLOCKS_NEEDED, |count| {
        let expected = Moments::from_mean_and_sd(count, mean, sd);
        is_same(&expected, params) || is_different(&expected, params)
    })
}

pub(crate) fn to_ratio(interval: Interval) -> Interval {
    Interval {
        low: interval.low.exp(),
        high: interval.high.exp(),
    }
}

pub(crate) fn undecidable_judgement(xs: &[f64]) -> Judgement {
    Judgement {
        verdict: Verdict::Unknown,
        blocks_needed: None,
        ratio: f64::NAN,
        interval: None,
        e_value: 1.0,
        outlook: None,
        blocks: u32::try_from(xs.len()).unwrap_or(u32::MAX),
        decided_at: None,
        upheld: true,
        test: Test::Coins,
        difference: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Normal;
    use proptest::prelude::*;

    const HIGHER: Params = Params {
        alpha: 0.05,
        smallest_effect: 0.02,
        better: Better::Higher,
    };
    const LOWER: Params = Params {
        better: Better::Lower,
        ..HIGHER
    };

    fn noisy(seed: u64, count: usize, mean: f64, sd: f64) -> Vec<f64> {
        let mut normal = Normal::from_seed(seed);
        (0..count)
            .map(|_| mean + sd * normal.next_value())
            .collect()
    }

    #[test]
    fn a_clear_gain_is_better_where_higher_is_better_and_worse_where_lower_is() {
        let xs = noisy(1, 12, 0.10, 0.02);
        assert_eq!(judge(&xs, &HIGHER).verdict, Verdict::Better);
        assert_eq!(judge(&xs, &LOWER).verdict, Verdict::Worse);
        let mirrored: Vec<f64> = xs.iter().map(|x| -x).collect();
        assert_eq!(judge(&mirrored, &HIGHER).verdict, Verdict::Worse);
        assert_eq!(judge(&mirrored, &LOWER).verdict, Verdict::Better);
    }

    #[test]
    fn little_noise_around_no_change_is_the_same() {
        let judgement = judge(&noisy(2, 12, 0.0, 0.003), &HIGHER);
        assert_eq!(judgement.verdict, Verdict::Same);
        assert!(judgement.upheld);
    }

    #[test]
    fn a_real_change_below_the_smallest_effect_is_the_same() {
        let judgement = judge(&noisy(3, 30, 0.01, 0.003), &HIGHER);
        assert_eq!(judgement.verdict, Verdict::Same);
        assert!(judgement.e_value >= 20.0, "the difference itself is proven");
    }

    #[test]
    fn much_noise_is_unknown_and_says_how_many_blocks_it_would_take() {
        let judgement = judge(&noisy(4, 6, 0.0, 0.05), &HIGHER);
        assert_eq!(judgement.verdict, Verdict::Unknown);
        assert!(judgement.blocks_needed.is_some_and(|needed| needed > 6));
        assert_eq!(judgement.decided_at, None);
    }

    #[test]
    fn one_block_or_none_is_unknown_without_an_estimate() {
        for xs in [&[][..], &[0.3]] {
            let judgement = judge(xs, &HIGHER);
            let found = (judgement.verdict, judgement.blocks_needed);
            assert_eq!(found, (Verdict::Unknown, None));
            assert_eq!((judgement.interval, judgement.e_value), (None, 1.0));
        }
    }

    #[test]
    fn a_block_without_a_finite_ratio_makes_everything_unknown() {
        let judgement = judge(&[0.1, 0.1, f64::INFINITY, 0.1, 0.1, 0.1], &HIGHER);
        assert_eq!(judgement.e_value, 1.0);
        assert!(judgement.ratio.is_nan());
        assert_eq!(log_ratio(3.0, 0.0), None);
        assert_eq!(log_ratio(0.0, 3.0), None);
        assert_eq!(log_ratio(-1.0, -3.0), None);
        assert_eq!(log_ratio(2.0, 2.0), Some(0.0));
    }

    #[test]
    fn arms_that_never_differ_are_the_same_from_the_fifth_block() {
        assert_eq!(judge(&[0.0; 4], &HIGHER).blocks_needed, Some(5));
        assert_eq!(judge(&[0.0; 5], &HIGHER).verdict, Verdict::Same);
    }

    #[test]
    fn a_verdict_stands_when_later_blocks_blur_it_and_says_so() {
        let mut xs = noisy(5, 8, 0.10, 0.01);
        let early = judge(&xs, &HIGHER);
        assert_eq!((early.verdict, early.upheld), (Verdict::Better, true));
        xs.extend(noisy(6, 8, -0.10, 0.01));
        let late = judge(&xs, &HIGHER);
        assert_eq!((late.verdict, late.upheld), (Verdict::Better, false));
        assert_eq!(late.at_the_end(&HIGHER).verdict, Verdict::Unknown);
        assert_eq!(early.at_the_end(&HIGHER).verdict, Verdict::Better);
        assert_eq!(late.decided_at, early.decided_at);
        assert_eq!(late.supported_verdict(), Verdict::Unknown);
        assert_eq!(late.withdrawn_verdict(), Some(Verdict::Better));
        assert!(late.blocks_needed.is_some_and(|needed| needed > 16));
    }

    #[test]
    fn the_interval_of_a_fresh_verdict_excludes_no_change() {
        let xs = noisy(8, 40, 0.05, 0.03);
        let decided = judge(&xs, &HIGHER).decided_at;
        let first = decided.map_or(0, |block| block as usize);
        let judgement = judge(&xs[..first], &HIGHER);
        assert_eq!(judgement.decided_at, decided);
        assert!(judgement.interval.is_some_and(|i| i.low > 1.0));
    }

    proptest! {
        #[test]
        fn the_estimate_is_the_smallest_count_that_decides(
            seed in 0..1000u64, mean in -0.05..0.05f64, sd in 0.005..0.1f64,
        ) {
            let moments = Moments::from_values(&noisy(seed, 6, mean, sd));
            let decides = |count| {
                let expected = Moments::from_mean_and_sd(count, moments.mean(), moments.sd().unwrap());
                is_same(&expected, &HIGHER) || is_different(&expected, &HIGHER)
            };
            prop_assume!(!decides(6));
            let scanned = (6..=MAX_BLOCKS_NEEDED).find(|&count| decides(count));
            prop_assert_eq!(blocks_needed(&moments, &HIGHER), scanned);
        }

        #[test]
        fn a_verdict_is_only_ever_refined_to_same(
            seed in 0..1000u64, mean in -0.05..0.05f64, sd in 0.002..0.05f64,
        ) {
            let xs = noisy(seed, 30, mean, sd);
            let verdicts: Vec<Verdict> =
                (1..=30).map(|count| judge(&xs[..count], &HIGHER).verdict).collect();
            for pair in verdicts.windows(2) {
                let unknown = pair[0] == Verdict::Unknown;
                prop_assert!(unknown || pair[1] == pair[0] || pair[1] == Verdict::Same);
            }
        }
    }
}
