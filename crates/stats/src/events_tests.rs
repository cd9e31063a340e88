use super::*;
use crate::testing::{Normal, assert_close, assert_near};

const LIMITS: Limits = Limits {
    alpha: 0.05,
    same_within: Some(1.5),
    same_below: None,
};

fn counted(count: u32) -> Counted {
    Counted {
        count,
        exposure: 60.0,
    }
}

/// A block of equal exposures.
fn block(baseline: u32, arm: u32) -> Block {
    Block {
        baseline: counted(baseline),
        arm: counted(arm),
        full_exposure: None,
    }
}

fn e_value(blocks: &[Block]) -> f64 {
    ln_e_of_shift(blocks, 0.0).exp()
}

/// A machine whose rate may storm from window to window, and two arms on it.
struct Machine {
    chance: Normal,
    /// Events of the baseline in a window, at its mean.
    mean: f64,
    ratio: f64,
    /// Chance that a window has ten times the events.
    storms: f64,
    /// True of events that end their window.
    ends: bool,
}

impl Machine {
    fn new(seed: u64, mean: f64, ratio: f64) -> Machine {
        Machine {
            chance: Normal::from_seed(seed),
            mean,
            ratio,
            storms: 0.0,
            ends: false,
        }
    }

    fn block(&mut self) -> Block {
        let moods = [self.mood(), self.mood()];
        let arm_is_first = self.chance.uniform() < 0.5;
        let of = |arm: bool| moods[usize::from(arm != arm_is_first)];
        let (baseline, arm) = (of(false), of(true) * self.ratio);
        Block {
            baseline: self.window(baseline),
            arm: self.window(arm),
            full_exposure: self.ends.then_some(60.0),
        }
    }

    /// Events to be expected of the baseline in a window.
    fn mood(&mut self) -> f64 {
        match self.chance.uniform() < self.storms {
            true => 10.0 * self.mean,
            false => self.mean,
        }
    }

    fn window(&mut self, mean: f64) -> Counted {
        let mut at = 0.0;
        let mut count = 0;
        loop {
            at -= self.chance.uniform().ln() / mean;
            if at >= 1.0 {
                break;
            }
            count += 1;
            if self.ends {
                return Counted {
                    count,
                    exposure: 60.0 * at,
                };
            }
        }
        counted(count)
    }

    fn blocks(&mut self, count: usize) -> Vec<Block> {
        (0..count).map(|_| self.block()).collect()
    }
}

#[test]
fn the_mean_over_all_coins_is_one_whatever_the_counts_and_exposures() {
    let windows = [
        [counted(0), counted(3)],
        [counted(700), counted(1)],
        [
            Counted {
                count: 1,
                exposure: 0.5,
            },
            counted(0),
        ],
        [counted(0), counted(0)],
        [counted(5), counted(5)],
    ];
    let coins = 1_u32 << windows.len();
    let of_coin = |coin: u32| {
        let block = |(k, [one, other]): (usize, &[Counted; 2])| {
            let (baseline, arm) = match coin >> k & 1 {
                0 => (*one, *other),
                _ => (*other, *one),
            };
            Block {
                baseline,
                arm,
                full_exposure: None,
            }
        };
        let blocks: Vec<Block> = windows.iter().enumerate().map(block).collect();
        e_value(&blocks)
    };
    let sum: f64 = (0..coins).map(of_coin).sum();
    assert_close(Some(sum / f64::from(coins)), 1.0);
}

#[test]
fn one_event_in_each_of_six_blocks_decides_and_in_five_it_does_not() {
    let five = judge(&[block(0, 1); 5], &LIMITS);
    assert_eq!(five.verdict, Verdict::Unknown);
    assert!(five.e_value < 20.0 && five.blocks_needed.is_some_and(|n| n == 6 || n == 7));
    let six = judge(&[block(0, 1); 6], &LIMITS);
    assert_eq!((six.verdict, six.decided_at), (Verdict::Worse, Some(6)));
    assert_eq!((six.ratio, six.high), (None, None));
    assert!(six.low.is_some_and(|low| low > 1.0), "{six:?}");
    let gone = judge(&[block(1, 0); 6], &LIMITS);
    assert_eq!(gone.verdict, Verdict::Better);
    assert_eq!((gone.ratio, gone.low), (Some(0.0), None));
    assert_close(gone.high, 1.0 / six.low.unwrap());
}

#[test]
fn a_storm_in_one_window_is_one_coin() {
    assert!(e_value(&[block(0, 5000)]) <= 2.0);
    assert!(e_value(&[block(0, 5000), block(0, 1)]) <= 4.0);
}

#[test]
fn blocks_without_an_event_say_nothing_of_the_ratio() {
    let none = judge(&[block(0, 0); 30], &LIMITS);
    assert_eq!((none.verdict, none.e_value), (Verdict::Unknown, 1.0));
    assert_eq!((none.low, none.high, none.ratio), (None, None, None));
    assert_eq!(none.blocks_needed, None);
}

#[test]
fn without_an_event_the_rate_has_a_bound() {
    // 38 minutes at 95 %: fewer than 0.08 a minute.
    assert_near(bound_without_event(38.0, 0.05), 0.0788, 1e-3);
    assert_eq!(bound_without_event(0.0, 0.05), None);
    // Python: scipy.stats.gamma.ppf(1 - 0.05 / 6, 2) / 10.
    assert_near(
        rate_bound(
            Counted {
                count: 1,
                exposure: 10.0,
            },
            0.05,
        ),
        0.698_2,
        2e-2,
    );
}

#[test]
fn events_too_rare_to_matter_are_the_same_within_a_rate() {
    let rare = Limits {
        same_below: Some(0.01),
        ..LIMITS
    };
    let judged = judge(&[block(0, 0); 10], &rare);
    assert_eq!(judged.verdict, Verdict::Same);
    // Of either arm: the bound of no event at half of a half of 5 %.
    let enough = (-(0.05_f64 / 4.0).ln() / 0.01 / 60.0).ceil();
    assert_eq!(judged.decided_at.map(f64::from), Some(enough));
}

#[test]
fn many_events_at_one_rate_are_the_same_within_a_ratio() {
    let blocks = Machine::new(5, 20.0, 1.0).blocks(40);
    let judged = judge(&blocks, &LIMITS);
    assert_eq!((judged.verdict, judged.upheld), (Verdict::Same, true));
}

#[test]
fn events_of_a_cluster_are_one() {
    assert_eq!(count_clusters(&[], 5), 0);
    assert_eq!(count_clusters(&[1, 2, 5, 6, 7, 100], 5), 3);
    assert_eq!(count_clusters(&[1, 2, 3], 0), 3);
}

#[test]
fn very_many_events_have_few_counts_that_may_be_kept() {
    let kept = kept_counts(1_000_000, 0.3);
    assert!(kept.len() <= 202, "{}", kept.len());
    let mean: f64 = kept
        .iter()
        .map(|(chance, count)| chance * f64::from(*count))
        .sum();
    assert_near(Some(mean), 300_000.0, 1e-5);
    assert_eq!(kept_counts(3, 1.0), [(0.0, 0), (1.0, 3)]);
    assert_eq!(kept_counts(1, 0.25), [(0.75, 0), (0.25, 1)]);
}

#[test]
fn a_decision_is_foreseen_as_it_comes() {
    let foreseen = expect_decision([0.0, 0.16], 3.0, 0.05).unwrap();
    let mut machine = Machine::new(9, 0.48, 1.0);
    let found: Vec<f64> = (0..60)
        .map(|_| {
            let mut looks = Looks::new(&LIMITS);
            let is_decided = |_: &u32| {
                looks.push(&Block {
                    baseline: counted(0),
                    ..machine.block()
                });
                looks.is_different(&LIMITS)
            };
            f64::from((1..200).find(is_decided).unwrap_or(200))
        })
        .collect();
    let mean = found.iter().sum::<f64>() / found.len() as f64;
    let off = f64::from(foreseen) / mean;
    assert!((0.7..1.5).contains(&off), "{foreseen} and {mean}");
    assert_eq!(expect_decision([0.1, 0.1], 3.0, 0.05), None);
}

/// Shares of the series of blocks: those that are called at any look, and those at whose end the ratio is not
/// rejected, so that the interval holds it.
fn shares(mut machine: Machine, series: u32, blocks: usize) -> (f64, f64) {
    let (mut called, mut covered) = (0, 0);
    for _ in 0..series {
        let blocks = machine.blocks(blocks);
        let mut looks = Looks::new(&Limits {
            same_within: None,
            ..LIMITS
        });
        let is_called = |block: &Block| {
            looks.push(block);
            looks.is_different(&LIMITS)
        };
        called += u32::from(blocks.iter().any(is_called));
        covered += u32::from(ln_e_of_shift(&blocks, machine.ratio.ln()) < 20_f64.ln());
    }
    let share = |count: u32| f64::from(count) / f64::from(series);
    (share(called), share(covered))
}

#[test]
fn equal_arms_are_rarely_called_also_in_storms_and_where_events_end_windows() {
    for (seed, mean, storms, ends) in [
        (1, 0.3, 0.0, false),
        (2, 3.0, 0.2, false),
        (3, 0.3, 0.0, true),
        (4, 2.0, 0.2, true),
    ] {
        let machine = Machine {
            storms,
            ends,
            ..Machine::new(seed, mean, 1.0)
        };
        let (called, covered) = shares(machine, 200, 30);
        // Three standard errors of 200 series are 4.6 %.
        assert!(called <= 0.096, "{mean} {storms} {ends}: {called}");
        assert!(covered >= 0.904, "{mean} {storms} {ends}: {covered}");
    }
}

#[test]
fn the_interval_holds_the_ratio_also_in_storms_and_where_events_end_windows() {
    for (seed, mean, storms, ends) in [
        (1, 0.3, 0.0, false),
        (2, 3.0, 0.2, false),
        (3, 0.3, 0.0, true),
        (4, 2.0, 0.0, true),
    ] {
        let machine = Machine {
            storms,
            ends,
            ..Machine::new(seed, mean, 5.0)
        };
        let (called, covered) = shares(machine, 100, 30);
        assert!(covered >= 0.885, "{mean} {storms} {ends}: {covered}");
        assert!(called >= 0.5, "{mean} {storms} {ends}: {called}");
    }
}
