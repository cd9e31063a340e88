use super::*;
use crate::testing::Normal;
use crate::verdict;
use model::Better;
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

/// Blocks around a mean, of which every tenth is a burst to either side.
fn bursts(seed: u64, count: usize, mean: f64) -> Vec<f64> {
    let burst = |k: usize| match k % 20 {
        4 => 2.0,
        14 => -2.0,
        _ => 0.0,
    };
    let quiet = noisy(seed, count, mean, 0.02).into_iter();
    quiet.enumerate().map(|(k, x)| x + burst(k)).collect()
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
fn little_noise_around_no_change_and_a_change_that_is_too_small_are_the_same() {
    let judged = judge(&noisy(2, 12, 0.0, 0.003), &HIGHER);
    assert_eq!((judged.verdict, judged.upheld), (Verdict::Same, true));
    let small = judge(&noisy(3, 30, 0.01, 0.003), &HIGHER);
    assert_eq!(small.verdict, Verdict::Same);
    assert!(small.e_value >= 20.0, "the difference itself is proven");
}

#[test]
fn much_noise_is_unknown_and_says_how_many_blocks_it_would_take() {
    let judged = judge(&noisy(4, 6, 0.0, 0.05), &HIGHER);
    assert_eq!(judged.verdict, Verdict::Unknown);
    assert!(judged.blocks_needed.is_some_and(|needed| needed > 6));
    assert_eq!(judged.decided_at, None);
}

#[test]
fn one_block_or_none_or_one_without_a_ratio_decides_nothing() {
    for xs in [&[][..], &[0.3]] {
        let judged = judge(xs, &HIGHER);
        let found = (judged.verdict, judged.blocks_needed);
        assert_eq!(found, (Verdict::Unknown, None));
        assert_eq!((judged.interval, judged.e_value), (None, 1.0));
    }
    let judged = judge(&[0.1, 0.1, f64::INFINITY, 0.1, 0.1, 0.1, 0.1], &HIGHER);
    assert_eq!(judged.e_value, 1.0);
    assert!(judged.ratio.is_nan());
}

#[test]
fn six_blocks_that_agree_decide_and_five_do_not() {
    for (xs, verdict) in [([0.0; 6], Verdict::Same), ([0.1; 6], Verdict::Better)] {
        let five = judge(&xs[..5], &HIGHER);
        assert_eq!(
            (five.verdict, five.blocks_needed),
            (Verdict::Unknown, Some(6))
        );
        let six = judge(&xs, &HIGHER);
        assert_eq!((six.verdict, six.decided_at), (verdict, Some(6)));
    }
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
    assert_eq!(late.decided_at, early.decided_at);
    assert_eq!(late.supported_verdict(), Verdict::Unknown);
    assert_eq!(late.withdrawn_verdict(), Some(Verdict::Better));
    assert!(late.blocks_needed.is_some_and(|needed| needed > 16));
}

#[test]
fn an_effect_among_bursts_is_found_where_the_t_test_sees_none() {
    let xs = bursts(1, 40, 0.03);
    assert_eq!(verdict::judge(&xs, &HIGHER).verdict, Verdict::Unknown);
    let judged = judge(&xs, &HIGHER);
    assert_eq!(judged.verdict, Verdict::Better);
    assert!((1.01..1.05).contains(&judged.ratio), "{judged:?}");
    assert!(judged.interval.is_some_and(|i| i.low > 1.0 && i.high < 1.1));
}

#[test]
fn a_verdict_before_the_first_burst_stands() {
    let mut xs = vec![0.1, 0.11, 0.09, 0.1, 0.11, 0.1, 0.09, 0.1];
    let before = judge(&xs, &HIGHER);
    xs.extend([-3.0, -3.0]);
    let after = judge(&xs, &HIGHER);
    assert_eq!(after.verdict, Verdict::Better);
    assert_eq!(after.decided_at, before.decided_at);
}

/// Equal arms beside a neighbour that takes a tenth of the machine in every second trial: each block has it
/// once, and only the coin says under which arm.
fn beside_a_neighbour(normal: &mut Normal) -> Vec<f64> {
    let mut block = || {
        let coin = (normal.uniform() - 0.5).signum();
        0.1 * coin + 0.001 * normal.next_value()
    };
    (0..30).map(|_| block()).collect()
}

#[test]
fn equal_arms_beside_a_periodic_neighbour_are_called_by_the_t_test_and_seldom_by_coins() {
    let mut normal = Normal::from_seed(3);
    let series: Vec<Vec<f64>> = (0..1000).map(|_| beside_a_neighbour(&mut normal)).collect();
    let count = |judge: fn(&[f64], &Params) -> Judgement| {
        let called = series
            .iter()
            .filter(|xs| judge(xs, &HIGHER).verdict.is_call());
        called.count()
    };
    let (by_coins, by_t_test) = (count(judge), count(verdict::judge));
    assert!(by_coins <= 50, "{by_coins} of 1000 by coins");
    assert!(by_t_test > 60, "{by_t_test} of 1000 by the t-test");
}

#[test]
fn the_estimate_is_about_where_most_runs_are_decided() {
    let estimates = (0..200).filter_map(|seed| {
        let xs = noisy(seed, 60, 0.03, 0.04);
        let estimate = judge(&xs[..8], &HIGHER).blocks_needed?;
        let decided = find_first_decision(&xs, &HIGHER)?;
        Some((f64::from(estimate) / f64::from(decided)).ln())
    });
    let middle = crate::summary::median(&estimates.collect::<Vec<_>>()).unwrap();
    assert!(middle.abs() < 0.35, "{middle}");
}

proptest! {
    #[test]
    fn a_verdict_is_only_ever_refined_to_same(
        seed in 0..1000u64, mean in -0.05..0.05f64, sd in 0.002..0.05f64,
    ) {
        let xs = noisy(seed, 24, mean, sd);
        let verdicts: Vec<Verdict> =
            (1..=24).map(|count| judge(&xs[..count], &HIGHER).verdict).collect();
        for pair in verdicts.windows(2) {
            let unknown = pair[0] == Verdict::Unknown;
            prop_assert!(unknown || pair[1] == pair[0] || pair[1] == Verdict::Same);
        }
    }

    #[test]
    fn a_run_ends_where_the_first_verdict_is(
        seed in 0..1000u64, mean in -0.05..0.05f64, sd in 0.002..0.05f64,
    ) {
        let xs = noisy(seed, 24, mean, sd);
        let looks = 1..=24u32;
        let decides = |count: &u32| judge(&xs[..*count as usize], &HIGHER).verdict != Verdict::Unknown;
        prop_assert_eq!(find_first_decision(&xs, &HIGHER), looks.into_iter().find(decides));
    }
}
