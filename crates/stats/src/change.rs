//! Changes in a series that grows by one value a run: steps and slow drifts, at a stated rate of false alarms.
//!
//! Nobody knows the level of a series or how much its runs scatter. So a value is looked at by its *residual*: how
//! far it is from the mean of those before it, as a share of what that distance scatters (Brown, Durbin and
//! Evans, 1975). Where nothing changes, residuals are independent and of one unknown size. For each run at which
//! something may have begun, and for each of two shapes, an e-value says how much better the residuals since then fit a
//! change of unknown size than none. Level and noise are integrated out (the t-test of Pérez-Ortiz, Lardy, de Heide
//! and Grünwald, 2024), so the e-value holds whatever they are. The sum of these over all such runs is an *e-detector*
//! (Shin, Ramdas and Rinaldo, 2024): where nothing changes it grows by one a value on average, so the alarm at a sum
//! of `A` is false once in `A` values at most.
//!
//! What is said of a value depends on it and on those before it alone. So a longer series moves no alarm.

use crate::safe_test::Interval;
use crate::summary::median;
use statrs::distribution::{ContinuousCDF, StudentsT};
use std::collections::VecDeque;
use std::ops::RangeInclusive;

/// Values before a change, at least: fewer say little of the level.
const FEWEST_BEFORE: usize = 5;
/// Values since a change, at least: one alone is a bad night.
const FEWEST_SINCE: usize = 2;
/// Changes that began longer ago are not looked for any more.
const MOST_STARTS: usize = 400;
/// Variance of the size of a step before it is seen, by that of the values.
const GAIN_OF_STEP: f64 = 4.0;
/// The same of the slope of a drift, a value.
const GAIN_OF_DRIFT: f64 = 0.01;
/// A residual beyond so many standard deviations counts as if it had so many: one bad night is no change.
const MOST_DEVIATIONS: f64 = 3.0;
/// Residuals from which the standard deviation is known well enough for that.
const FEWEST_RESIDUALS: usize = 6;
/// Standard deviation by the median size, of normal values around 0.
const SD_BY_MEDIAN: f64 = 1.4826;
/// Share of the smallest size by clipped residuals; a change below it is not so large by the values.
const LEAST_SHARE: f64 = 0.25;
/// Variance of values that are the same to the last digit.
const LEAST_VARIANCE: f64 = 1e-12;
/// Error of the interval of a size.
const ALPHA: f64 = 0.05;

/// The value of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// The value, a logarithm of a ratio for one.
    pub value: f64,
    /// Its standard error, as the run itself knows it.
    pub error: f64,
}

/// Limits of a search for changes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Smallest size that is of interest, on the scale of the values.
    pub smallest: f64,
    /// Values to one false alarm, at least, on average.
    pub values_to_false_alarm: f64,
}

/// The way in which a series changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// From one value to the next.
    Step,
    /// A little with each value.
    Drift,
}

/// A change of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Index of the first value that has it.
    pub first: usize,
    /// Index of the value with which it was seen.
    pub seen: usize,
    /// Step or drift.
    pub shape: Shape,
    /// Size until it was seen, on the scale of the values.
    pub size: f64,
    /// Interval of the size at 95 %, as if its beginning had been known before.
    pub interval: Interval,
    /// Evidence with which it was seen.
    pub evidence: f64,
}

impl Change {
    /// Index of the first value of what comes after the change. What drifts is compared with where it is now.
    pub fn next_begin(&self) -> usize {
        match self.shape {
            Shape::Step => self.first,
            Shape::Drift => self.seen,
        }
    }
}

/// The part of a series in which changes are looked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Since {
    /// Values before this one belong to an earlier change.
    pub begin: usize,
    /// With values before this one nothing is seen any more: it was told.
    pub told: usize,
}

/// The changes of a series, in their order.
pub fn find_changes(readings: &[Reading], since: Since, limits: Limits) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut since = since;
    while let Some(change) = next_change(readings, since, limits) {
        since = Since {
            begin: change.next_begin(),
            told: change.seen + 1,
        };
        changes.push(change);
    }
    changes
}

fn next_change(readings: &[Reading], since: Since, limits: Limits) -> Option<Change> {
    let mut detector = Detector::new(limits);
    let part = readings.get(since.begin..)?;
    let mut seen = part
        .iter()
        .zip(since.begin..)
        .filter_map(|(reading, index)| {
            let change = detector.see_value(*reading);
            change.filter(|_| index >= since.told)
        });
    let change = seen.next()?;
    Some(Change {
        first: since.begin + change.first,
        seen: since.begin + change.seen,
        ..change
    })
}

/// A detector of the next change, which sees one value after the other.
#[derive(Debug, Clone)]
pub struct Detector {
    limits: Limits,
    spread: Spread,
    values: Vec<Weighed>,
    sums: Sums,
    level: Level,
    residuals: Residuals,
    starts: VecDeque<Start>,
}

/// Weights, and weighted values, of all values until each.
#[derive(Debug, Clone, Default)]
struct Sums(Vec<(f64, f64)>);

/// A step that may be.
#[derive(Debug, Clone, Copy)]
struct Step {
    first: usize,
    size: f64,
    /// Squares that it explains.
    explained: f64,
}

impl Sums {
    fn add(&mut self, value: f64, variance: f64) {
        let (weight, sum) = self.0.last().copied().unwrap_or_default();
        self.0
            .push((weight + 1.0 / variance, sum + value / variance));
    }

    /// The step that explains most, of those that begin in this range.
    fn find_step(&self, firsts: RangeInclusive<usize>) -> Option<Step> {
        let (all, whole) = *self.0.last()?;
        let step = |first: usize| {
            let (before, sum) = *self.0.get(first.checked_sub(1)?)?;
            let after = all - before;
            let size = (whole - sum) / after - sum / before;
            let explained = size * size * after * before / all;
            Some(Step {
                first,
                size,
                explained,
            })
        };
        let steps = firsts.filter_map(step);
        steps.max_by(|a, b| a.explained.total_cmp(&b.explained))
    }
}

/// A value with its variance, up to a factor that is the same for all.
#[derive(Debug, Clone, Copy)]
struct Weighed {
    value: f64,
    variance: f64,
}

/// Mean of the values so far.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    count: f64,
    weight: f64,
    mean: f64,
}

impl Level {
    fn add(&mut self, value: f64, variance: f64) {
        self.count += 1.0;
        self.weight += 1.0 / variance;
        self.mean += (value - self.mean) / (variance * self.weight);
    }

    /// Standard deviation of the distance of the next value.
    fn deviation(&self, variance: f64) -> f64 {
        (variance + 1.0 / self.weight).sqrt()
    }
}

/// Sizes in their order, for the median: a few large ones do not move it.
#[derive(Debug, Clone, Default)]
struct Sizes(Vec<f64>);

impl Sizes {
    fn add(&mut self, size: f64) {
        let at = self.0.partition_point(|known| *known < size);
        self.0.insert(at, size);
    }

    /// Standard deviation of what has these sizes; 0 without any.
    fn deviation(&self) -> f64 {
        let count = self.0.len();
        match count {
            0 => 0.0,
            _ => SD_BY_MEDIAN * (self.0[(count - 1) / 2] + self.0[count / 2]) / 2.0,
        }
    }
}

/// All residuals.
#[derive(Debug, Clone, Default)]
struct Residuals {
    count: f64,
    squares: f64,
    sizes: Sizes,
}

impl Residuals {
    fn add(&mut self, residual: f64) {
        self.count += 1.0;
        self.squares += residual * residual;
        self.sizes.add(residual.abs());
    }

    fn clip(&self, residual: f64) -> f64 {
        let most = MOST_DEVIATIONS * self.sizes.deviation();
        match self.sizes.0.len() >= FEWEST_RESIDUALS && most > 0.0 {
            true => residual.clamp(-most, most),
            false => residual,
        }
    }
}

/// How much of the scatter of runs their own errors explain.
#[derive(Debug, Clone, Default)]
struct Spread {
    count: f64,
    errors: f64,
    last: Option<f64>,
    /// Distances from one value to the next.
    steps: Sizes,
}

impl Spread {
    /// Variance of a value: that of its own error, half as it says itself and half as is usual, and what runs
    /// scatter beyond their errors, as far as those before it tell.
    fn variance(&self, reading: Reading) -> f64 {
        let own = reading.error * reading.error;
        let usual = (self.errors + own) / (self.count + 1.0);
        let beyond = match self.count < 2.0 {
            true => usual,
            false => (self.steps.deviation().powi(2) / 2.0 - self.errors / self.count).max(0.0),
        };
        ((own + usual) / 2.0 + beyond).max(LEAST_VARIANCE)
    }

    fn add(&mut self, reading: Reading) {
        if let Some(last) = self.last {
            self.steps.add((reading.value - last).abs());
        }
        self.last = Some(reading.value);
        self.errors += reading.error * reading.error;
        self.count += 1.0;
    }
}

/// Changes that began with one value.
#[derive(Debug, Clone, Copy)]
struct Start {
    first: usize,
    step: Fit,
    drift: Fit,
}

/// Fit of the residuals to a change.
#[derive(Debug, Clone, Copy)]
struct Fit {
    /// Variance of its size before it is seen.
    gain: f64,
    /// Weighted sum of what a change of size one adds to the values.
    added: f64,
    squares: f64,
    products: f64,
}

impl Fit {
    fn new(gain: f64) -> Fit {
        Fit {
            gain,
            added: 0.0,
            squares: 0.0,
            products: 0.0,
        }
    }

    /// `adds`: what a change of size one adds to the value.
    fn see_residual(&mut self, adds: f64, residual: f64, level: &Level, variance: f64) {
        let moved = (adds - self.added / level.weight) / level.deviation(variance);
        self.added += adds / variance;
        self.squares += moved * moved;
        self.products += moved * residual;
    }

    fn e_value(&self, residuals: &Residuals) -> f64 {
        let grown = 1.0 + self.gain * self.squares;
        let explained = match residuals.squares > 0.0 {
            true => self.gain * self.products.powi(2) / grown / residuals.squares,
            false => 0.0,
        };
        let log = -0.5 * grown.ln() - 0.5 * residuals.count * (-explained).ln_1p();
        log.min(300.0).exp()
    }
}

impl Start {
    /// `variance`: that of a usual value.
    fn new(first: usize, variance: f64) -> Start {
        Start {
            first,
            step: Fit::new(GAIN_OF_STEP * variance),
            drift: Fit::new(GAIN_OF_DRIFT * variance),
        }
    }

    fn see_residual(&mut self, index: usize, residual: f64, level: &Level, variance: f64) {
        self.step.see_residual(1.0, residual, level, variance);
        let since = adds(Shape::Drift, self.first, index);
        self.drift.see_residual(since, residual, level, variance);
    }
}

/// Part that a change of size one, a value for a drift, adds to a value.
fn adds(shape: Shape, first: usize, index: usize) -> f64 {
    match (shape, index < first) {
        (_, true) => 0.0,
        (Shape::Step, false) => 1.0,
        (Shape::Drift, false) => (index - first + 1) as f64,
    }
}

/// The start that fits best, and the evidence of all.
struct Evidence {
    sum: f64,
    best: f64,
    first: usize,
    shape: Shape,
    /// Size by the residuals as they count.
    size: f64,
}

impl Detector {
    /// A detector that has seen nothing.
    pub fn new(limits: Limits) -> Detector {
        Detector {
            limits,
            spread: Spread::default(),
            values: Vec::new(),
            sums: Sums::default(),
            level: Level::default(),
            residuals: Residuals::default(),
            starts: VecDeque::new(),
        }
    }

    /// Sees the next value: a change, if there is enough evidence for one by now. A detector that has told one goes
    /// on to tell it; a new one sees what comes after it ([`find_changes`]).
    pub fn see_value(&mut self, reading: Reading) -> Option<Change> {
        let index = self.values.len();
        let variance = self.spread.variance(reading);
        self.spread.add(reading);
        self.values.push(Weighed {
            value: reading.value,
            variance,
        });
        self.sums.add(reading.value, variance);
        if index == 0 {
            self.level.add(reading.value, variance);
            return None;
        }
        if index >= FEWEST_BEFORE {
            let usual = self.level.count / self.level.weight;
            self.starts.push_back(Start::new(index, usual));
        }
        if self.starts.len() > MOST_STARTS {
            self.starts.pop_front();
        }
        let deviation = self.level.deviation(variance);
        let residual = self
            .residuals
            .clip((reading.value - self.level.mean) / deviation);
        for start in &mut self.starts {
            start.see_residual(index, residual, &self.level, variance);
        }
        self.residuals.add(residual);
        self.level
            .add(self.level.mean + residual * deviation, variance);
        self.find_change(index)
    }

    fn find_change(&self, index: usize) -> Option<Change> {
        let evidence = self.weigh_evidence(index);
        let is_enough = evidence.sum >= self.limits.values_to_false_alarm;
        let (first, shape) = self
            .find_beginning(&evidence, index)
            .filter(|_| is_enough)?;
        let (size, interval) = self.estimate_size(first, shape)?;
        (size.abs() >= self.limits.smallest).then_some(Change {
            first,
            seen: index,
            shape,
            size,
            interval,
            evidence: evidence.sum,
        })
    }

    /// Beginning and shape of a change by the values as they are, also those that are far off; none where it is too
    /// small, or the last value alone.
    fn find_beginning(&self, evidence: &Evidence, last: usize) -> Option<(usize, Shape)> {
        // By the values as they are: one that is far off counts with a few deviations in the evidence, and the level
        // follows a large step by so much each time, which looks like a drift that began later.
        let step = self.sums.find_step(FEWEST_BEFORE..=last)?;
        let is_seen = step.first + FEWEST_SINCE <= last + 1;
        let is_step =
            is_seen && step.size.abs() >= self.limits.smallest && self.has_moved(step.first);
        let as_step = is_step.then_some((step.first, Shape::Step));
        let is_small = evidence.size.abs() < self.limits.smallest * LEAST_SHARE;
        if evidence.shape == Shape::Step || is_small {
            return as_step;
        }
        // One large step is no drift, even if the values before it went its way.
        let (fit, _) = self.fit_change(evidence.first, Shape::Drift);
        match step.explained <= fit.products.powi(2) / fit.squares {
            true => Some((evidence.first, Shape::Drift)),
            false => as_step,
        }
    }

    /// Are most values since this one beside the median of those before it, by half of the smallest size at least? A few
    /// that are far off move neither.
    fn has_moved(&self, first: usize) -> bool {
        let (before, since) = self.values.split_at(first);
        let before: Vec<f64> = before.iter().map(|weighed| weighed.value).collect();
        let middle = median(&before).unwrap_or(0.0);
        let least = self.limits.smallest / 2.0;
        let moved = since
            .iter()
            .filter(|weighed| (weighed.value - middle).abs() >= least);
        moved.count() * 2 > since.len()
    }

    fn weigh_evidence(&self, index: usize) -> Evidence {
        let mut all = Evidence {
            sum: 0.0,
            best: 0.0,
            first: 0,
            shape: Shape::Step,
            size: 0.0,
        };
        let old_enough = |start: &&Start| start.first + FEWEST_SINCE <= index + 1;
        for start in self.starts.iter().take_while(old_enough) {
            for (shape, fit) in [(Shape::Step, &start.step), (Shape::Drift, &start.drift)] {
                let e_value = fit.e_value(&self.residuals);
                all.sum += e_value / 2.0;
                if e_value > all.best {
                    (all.best, all.first, all.shape) = (e_value, start.first, shape);
                    all.size = fit.products / fit.squares * adds(shape, start.first, index);
                }
            }
        }
        all
    }

    /// Fit of a change to the values as they are, and the sum of squares.
    fn fit_change(&self, first: usize, shape: Shape) -> (Fit, f64) {
        let mut level = Level::default();
        let mut squares = 0.0;
        let mut fit = Fit::new(0.0);
        for (index, weighed) in self.values.iter().enumerate() {
            if index > 0 {
                let deviation = level.deviation(weighed.variance);
                let residual = (weighed.value - level.mean) / deviation;
                fit.see_residual(
                    adds(shape, first, index),
                    residual,
                    &level,
                    weighed.variance,
                );
                squares += residual * residual;
            }
            level.add(weighed.value, weighed.variance);
        }
        (fit, squares)
    }

    /// Size of a change by least squares.
    fn estimate_size(&self, first: usize, shape: Shape) -> Option<(f64, Interval)> {
        let (fit, squares) = self.fit_change(first, shape);
        let by_value = fit.products / fit.squares;
        let unexplained = (squares - fit.products * by_value).max(0.0);
        let degrees = self.residuals.count - 1.0;
        let student = StudentsT::new(0.0, 1.0, degrees).ok()?;
        let error = (unexplained / degrees / fit.squares).sqrt();
        let until = adds(shape, first, self.values.len() - 1);
        let half = student.inverse_cdf(1.0 - ALPHA / 2.0) * error * until;
        let size = by_value * until;
        Some((size, Interval::centred_at(size, half)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Normal;

    const LIMITS: Limits = Limits {
        smallest: 0.02,
        values_to_false_alarm: 365.0,
    };
    /// Night to night, beyond the error of a run.
    const SCATTER: f64 = 0.006;
    const ERROR: f64 = 0.004;

    fn nights(seed: u64, count: usize, change: impl Fn(usize) -> f64) -> Vec<Reading> {
        let mut normal = Normal::from_seed(seed);
        let sd = SCATTER.hypot(ERROR);
        (0..count)
            .map(|night| Reading {
                value: 0.1 + change(night) + sd * normal.next_value(),
                error: ERROR,
            })
            .collect()
    }

    fn step(at: usize, size: f64) -> impl Fn(usize) -> f64 {
        move |night| if night >= at { size } else { 0.0 }
    }

    fn changes(readings: &[Reading]) -> Vec<Change> {
        find_changes(readings, Since::default(), LIMITS)
    }

    /// Nights that scatter by a hundredth of the smallest change that is of interest.
    fn quiet_nights(seed: u64, count: usize, change: impl Fn(usize) -> f64) -> Vec<Reading> {
        let mut normal = Normal::from_seed(seed);
        let reading = |night| Reading {
            value: change(night) + 2e-4 * normal.next_value(),
            error: 1e-4,
        };
        (0..count).map(reading).collect()
    }

    #[test]
    fn a_step_that_is_a_thousand_times_the_scatter_is_found_within_days() {
        for seed in 1..=100 {
            for (before, size) in [(16, 1.386), (16, -0.05), (30, -0.05), (30, 0.7)] {
                let found = changes(&quiet_nights(seed, before + 8, step(before, size)));
                let change = found.first();
                let change =
                    change.unwrap_or_else(|| panic!("{seed}: {size} after {before} nights"));
                assert!(
                    change.first == before && change.shape == Shape::Step,
                    "{seed}: {change:?}"
                );
                assert!((change.size - size).abs() < 0.01, "{seed}: {change:?}");
            }
        }
    }

    #[test]
    fn a_night_that_is_far_off_makes_no_change_of_a_drift_that_is_too_small_to_be_of_interest() {
        for seed in 1..=100 {
            let drift = |night: usize| 3e-5 * night as f64;
            let far = move |night: usize| drift(night) + if night == 32 { 0.2 } else { 0.0 };
            let found = changes(&quiet_nights(seed, 60, far));
            assert!(found.is_empty(), "{seed}: {found:?}");
        }
    }

    #[test]
    fn a_step_is_found_within_days_at_its_night_with_its_size() {
        let mut near = 0;
        for seed in 1..=100 {
            let found = changes(&nights(seed, 60, step(30, -0.05)));
            let change = found.iter().find(|c| c.seen >= 30).expect("a change");
            assert!(change.seen <= 36, "{seed}: {change:?}");
            assert!(change.size < -0.02, "{seed}: {change:?}");
            let holds = change.interval.low <= -0.05 && -0.05 <= change.interval.high;
            near += usize::from(change.first.abs_diff(30) <= 1 && holds);
        }
        assert!(near >= 80, "{near} of 100");
    }

    #[test]
    fn alarms_where_nothing_changes_are_no_more_than_is_said() {
        let years = 100_u32;
        // With every change of interest: what is smaller than 2 % is kept back by its size as well.
        let limits = Limits {
            smallest: 0.0,
            ..LIMITS
        };
        let of_year = |seed: u32| {
            let nights = nights(u64::from(seed), 365, |_| 0.0);
            find_changes(&nights, Since::default(), limits).len()
        };
        let alarms: usize = (0..years).map(of_year).sum();
        assert!((1..=100).contains(&alarms), "{alarms} in {years} years");
    }

    #[test]
    fn a_large_step_is_seen_no_later_than_a_small_one_also_after_few_nights() {
        for (before, size) in [(8, 0.1), (8, 0.4), (30, 0.4)] {
            for seed in 1..=20 {
                let found = changes(&nights(seed, before + 10, step(before, size)));
                let change = found.iter().find(|c| c.seen >= before).expect("a change");
                assert!(change.seen < before + 9, "{size} {seed}: {change:?}");
                assert!(
                    (change.size - size).abs() < 0.02,
                    "{size} {seed}: {change:?}"
                );
            }
        }
    }

    #[test]
    fn more_nights_move_no_alarm() {
        for seed in 1..=20 {
            let all = nights(seed, 120, |night| {
                step(30, 0.04)(night) + step(80, -0.06)(night)
            });
            let whole = changes(&all);
            assert!(whole.len() >= 2, "{seed}: {whole:?}");
            for count in [50, 60, 90, 119] {
                let part = changes(&all[..count]);
                assert_eq!(part, whole[..part.len()], "{seed}, {count} nights");
                assert_eq!(part.len(), whole.iter().filter(|c| c.seen < count).count());
            }
            // One that was told is where the next search begins.
            let since = Since {
                begin: whole[0].next_begin(),
                told: whole[0].seen + 1,
            };
            assert_eq!(find_changes(&all, since, LIMITS), whole[1..]);
        }
    }

    #[test]
    fn a_slow_drift_is_found() {
        let drift = |night: usize| 0.001 * night.saturating_sub(20) as f64;
        for seed in 1..=20 {
            let found = changes(&nights(seed, 90, drift));
            let size: f64 = found.iter().map(|change| change.size).sum();
            assert!(!found.is_empty() && size > 0.02, "{seed}: {found:?}");
        }
    }

    #[test]
    fn a_night_that_is_far_off_is_no_change() {
        let mut alarms = 0;
        for seed in 1..=100 {
            let far = |night| if night == 30 { 0.2 } else { 0.0 };
            alarms += changes(&nights(seed, 60, far)).len();
        }
        assert!(alarms <= 10, "{alarms} in 100 series");
    }

    #[test]
    fn figures_that_never_scatter_have_no_change_until_they_change() {
        let exact = |night: usize| Reading {
            value: step(10, 0.03)(night),
            error: 0.0,
        };
        let readings: Vec<Reading> = (0..20).map(exact).collect();
        assert_eq!(changes(&readings[..10]), []);
        let found = changes(&readings);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].first, found[0].shape), (10, Shape::Step));
        assert!((found[0].size - 0.03).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn a_run_of_few_blocks_weighs_less_than_one_of_many() {
        let mut spread = Spread::default();
        for reading in nights(1, 20, |_| 0.0) {
            spread.add(reading);
        }
        let variance = |error| spread.variance(Reading { value: 0.0, error });
        assert!(variance(0.05) > 10.0 * variance(ERROR));
        assert!(variance(0.0) > variance(ERROR) / 3.0, "luck of few blocks");
    }
}
