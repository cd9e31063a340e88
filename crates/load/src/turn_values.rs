//! Values by the turns of arms that change places while a load runs.
//!
//! Each thread keeps its values as they are, one word each in memory that was reserved, and sorts
//! them into windows when the load has ended: nothing is done at a change. A value that was
//! finished in a washout belongs to nobody, nor does one that began before the second half of the
//! washout of its own turn: until then the change was being made.

use crate::Parsed;
use crate::latency::Quantile;
use crate::recording::{Interval, Recorder, interval_log, samples_needed};
use hdrhistogram::Histogram;
use model::turns::file_of_arm;
use model::{InPlace, MetricDef, TrialFile, Turns};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Bits of a word that are the value, in nanoseconds: almost five hours.
const VALUE_BITS: u32 = 44;
const LARGEST_VALUE: u64 = (1 << VALUE_BITS) - 1;
/// Values a second of one thread that memory is reserved for; it is touched when it is used.
const RESERVED_PER_SEC: u64 = 100_000;
const MOST_RESERVED: u64 = 16 << 20;

/// Values of one thread, one word each: the half of a window, counted from the first of the first turn, above
/// the value.
pub(crate) type Words = Arc<Mutex<Vec<u64>>>;

/// Turn of a value.
pub(crate) fn turn_of(word: u64) -> usize {
    usize::try_from(word >> VALUE_BITS).unwrap_or(usize::MAX) / 2
}

/// The value itself.
pub(crate) fn value_of(word: u64) -> u64 {
    word & LARGEST_VALUE
}

/// Values of one thread.
#[derive(Debug)]
pub struct ByTurn {
    lengths: InPlace,
    /// Nobody else has them but who tells of them, so the thread waits for nobody.
    words: Words,
    /// All values since the first turn began, in washouts too.
    finished: u64,
    /// Values come with the moment at which they began, not with that of their end.
    by_start: bool,
}

impl ByTurn {
    /// No values yet.
    pub fn new(turns: &Turns) -> Self {
        let reserved = (turns.all_ns() / 1_000_000_000 + 1).saturating_mul(RESERVED_PER_SEC);
        let reserved = usize::try_from(reserved.min(MOST_RESERVED)).unwrap_or_default();
        ByTurn {
            lengths: turns.lengths,
            words: Arc::new(Mutex::new(Vec::with_capacity(reserved))),
            finished: 0,
            by_start: false,
        }
    }

    pub(crate) fn share_words(&self) -> Words {
        Arc::clone(&self.words)
    }

    /// Takes the moments of values as those at which they began.
    pub fn by_start(self) -> Self {
        ByTurn {
            by_start: true,
            ..self
        }
    }

    /// Counts a value that was finished, or began, this long after the first turn began.
    pub fn record(&mut self, at_ns: u64, value_ns: u64) {
        self.finished += 1;
        let Some((turn, half)) = self.lengths.half_at(at_ns) else {
            return;
        };
        let turn_ns = self.lengths.turn_ns();
        let within_ns = at_ns % turn_ns;
        let longest_ns = match self.by_start {
            // Ended in this turn.
            true => turn_ns - within_ns,
            // Begun after the change, and in this turn.
            false => within_ns - self.lengths.washout_ns / 2,
        };
        if value_ns > longest_ns {
            return;
        }
        let half = 2 * turn + half as u64;
        let word = half << VALUE_BITS | value_ns.min(LARGEST_VALUE);
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        words.push(word);
    }
}

impl Clone for ByTurn {
    /// Values of its own.
    fn clone(&self) -> Self {
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        ByTurn {
            words: Arc::new(Mutex::new(words.clone())),
            ..*self
        }
    }
}

/// Figures of one turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnFigures {
    /// Figures of the whole window, by metric.
    pub whole: BTreeMap<String, f64>,
    /// Figures of the first and of the second half of the window.
    pub halves: [BTreeMap<String, f64>; 2],
}

/// Values of all threads, by turn and half, in order of size.
struct Sorted {
    halves: Vec<[Vec<u64>; 2]>,
    finished: u64,
}

impl Sorted {
    fn of(recorders: Vec<Recorder>, turns: usize) -> Self {
        let mut sorted = Sorted {
            halves: vec![Default::default(); turns],
            finished: 0,
        };
        for values in recorders.into_iter().filter_map(Recorder::into_by_turn) {
            sorted.finished += values.finished;
            let words = values.words.lock().unwrap_or_else(PoisonError::into_inner);
            for word in words.iter() {
                let half = usize::from(word >> VALUE_BITS & 1 == 1);
                if let Some(halves) = sorted.halves.get_mut(turn_of(*word)) {
                    halves[half].push(value_of(*word));
                }
            }
        }
        sorted
            .halves
            .iter_mut()
            .flatten()
            .for_each(|half| half.sort_unstable());
        sorted
    }

    fn largest(&self) -> u64 {
        let last = self.halves.iter().flatten().filter_map(|half| half.last());
        last.copied().max().unwrap_or(0)
    }

    /// Histogram of a window.
    fn histogram(&self, turn: usize, largest: u64) -> Result<Histogram<u32>, String> {
        let mut histogram = Histogram::new_with_bounds(1, largest.max(2), 3)
            .map_err(|e| format!("make a histogram up to {largest} ns: {e}"))?;
        for value in self.halves[turn].iter().flatten() {
            histogram.saturating_record(*value);
        }
        Ok(histogram)
    }
}

/// Value of a quantile among values in order of size; `None` with too few beyond it.
pub(crate) fn quantile(sorted: &[u64], permille: Option<u32>) -> Option<f64> {
    let Some(permille) = permille else {
        return sorted.last().map(|value| *value as f64);
    };
    let count = sorted.len() as u64;
    let rank = (count * u64::from(permille)).div_ceil(1000).max(1);
    let enough = count >= samples_needed(permille);
    let value = sorted.get(usize::try_from(rank - 1).ok()?)?;
    enough.then_some(*value as f64)
}

/// Figures of a load under arms that take turns, as they come together.
#[derive(Debug)]
pub struct InTurns<'a> {
    turns: &'a Turns,
    opened: SystemTime,
    parsed: Parsed,
    figures: Vec<TurnFigures>,
}

impl<'a> InTurns<'a> {
    /// No figures yet; the first turn began at `opened`.
    pub fn new(turns: &'a Turns, opened: SystemTime) -> Self {
        InTurns {
            turns,
            opened,
            parsed: Parsed::default(),
            figures: vec![TurnFigures::default(); turns.order.len()],
        }
    }

    /// Quantiles of one kind of latency in each window, and a log for each arm with an interval
    /// for each of its windows. Gives how many were finished at all.
    pub fn latency(
        &mut self,
        name: &str,
        quantiles: &[Quantile],
        rate: Option<MetricDef>,
        recorders: Vec<Recorder>,
    ) -> Result<u64, String> {
        let sorted = Sorted::of(recorders, self.turns.order.len());
        let largest = sorted.largest();
        let histograms = (0..self.turns.order.len()).map(|turn| sorted.histogram(turn, largest));
        let histograms: Vec<Histogram<u32>> = histograms.collect::<Result<_, _>>()?;
        for (def, permille) in quantiles {
            for (turn, histogram) in histograms.iter().enumerate() {
                let value = of_histogram(histogram, *permille);
                let halves = [0, 1].map(|half| quantile(&sorted.halves[turn][half], *permille));
                self.set(turn, *def, value, halves);
            }
            self.define(*def);
        }
        if let Some(def) = rate {
            let seconds = self.turns.lengths.window_ns as f64 / 1e9;
            for (turn, halves) in sorted.halves.iter().enumerate() {
                let [first, second] = halves.each_ref().map(|half| half.len() as f64);
                let halves = [first, second].map(|count| Some(2.0 * count / seconds));
                self.set(turn, def, Some((first + second) / seconds), halves);
            }
            self.define(def);
        }
        self.logs(name, &histograms)?;
        Ok(sorted.finished)
    }

    /// Sets a figure of one turn, of its whole window and of the halves.
    pub fn set(
        &mut self,
        turn: usize,
        def: MetricDef,
        whole: Option<f64>,
        halves: [Option<f64>; 2],
    ) {
        let figures = &mut self.figures[turn];
        let all = [&mut figures.whole].into_iter().chain(&mut figures.halves);
        for (into, value) in all.zip([whole].into_iter().chain(halves)) {
            if let Some(value) = value {
                into.insert(def.name.to_owned(), value);
            }
        }
    }

    /// Gives unit and direction of a metric that was set: the value is that of each arm's windows.
    pub fn define(&mut self, def: MetricDef) {
        let measured = self
            .figures
            .iter()
            .any(|turn| turn.whole.contains_key(def.name));
        if measured {
            self.parsed.metrics.push(def.to_measurement(0.0));
        }
    }

    fn logs(&mut self, name: &str, histograms: &[Histogram<u32>]) -> Result<(), String> {
        let what = format!("{} latency", name.replace('-', " "));
        let arms = self.turns.order.iter().map(|turn| turn.arm + 1).max();
        // A process that ended before its last turn has no windows after that.
        let taken = histograms.iter().rposition(|h| !h.is_empty());
        let histograms = &histograms[..taken.map_or(0, |last| last + 1)];
        for arm in 0..arms.unwrap_or(0) {
            let intervals = histograms.iter().enumerate();
            let own = intervals.filter(|(turn, _)| self.turns.order[*turn].arm == arm);
            let intervals = own.map(|(turn, histogram)| self.interval(turn, histogram));
            let text = interval_log(&what, self.opened, intervals)?;
            self.parsed.files.push(TrialFile {
                name: file_of_arm(arm, &format!("{name}.hlog")),
                text,
            });
        }
        Ok(())
    }

    fn interval<'h>(&self, turn: usize, histogram: &'h Histogram<u32>) -> Interval<'h, u32> {
        let lengths = self.turns.lengths;
        let start_ns = lengths.turn_ns() * turn as u64 + lengths.washout_ns;
        Interval {
            tag: None,
            start: Duration::from_nanos(start_ns),
            length: Duration::from_nanos(lengths.window_ns),
            histogram,
        }
    }

    /// The middle one of the windows' figures of a metric; 0 without any.
    pub fn median_figure(&self, metric: &str) -> f64 {
        let values = self
            .figures
            .iter()
            .filter_map(|turn| turn.whole.get(metric));
        let mut values: Vec<f64> = values.copied().collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(0.0)
    }

    /// All figures.
    pub fn finish(mut self) -> Parsed {
        self.parsed.turns = self.figures;
        self.parsed
    }

    /// Reason why the trial must not count.
    pub fn void(&mut self, why: String) {
        self.parsed.void = Some(why);
    }
}

fn of_histogram(histogram: &Histogram<u32>, permille: Option<u32>) -> Option<f64> {
    let value = match permille {
        None if histogram.is_empty() => return None,
        None => histogram.max(),
        Some(permille) if histogram.len() < samples_needed(permille) => return None,
        Some(permille) => histogram.value_at_quantile(f64::from(permille) / 1000.0),
    };
    Some(value as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency as m;
    use crate::recording::{FEWEST_BEYOND, Window};
    use model::Turn;

    const MS: u64 = 1_000_000;

    fn turns(count: usize) -> Turns {
        Turns {
            lengths: InPlace::new(100 * MS),
            order: (0..count)
                .map(|turn| Turn {
                    arm: turn % 2,
                    pair: u32::try_from(turn / 2).unwrap_or_default(),
                })
                .collect(),
        }
    }

    /// Records values, given by their end in milliseconds since the first turn and their length
    /// in nanoseconds.
    fn recorded(turns: &Turns, values: &[(u64, u64)]) -> Recorder {
        let mut recorder = Recorder::new(turns.all_ns(), 1_000 * MS)
            .unwrap()
            .in_turns(Some(turns));
        let begin_ns = 7;
        recorder.open(Window {
            begin_ns,
            end_ns: begin_ns + turns.all_ns(),
        });
        for (at_ms, value_ns) in values {
            recorder.record(begin_ns + at_ms * MS, *value_ns);
        }
        recorder
    }

    fn counts(values: &[(u64, u64)]) -> (Vec<[usize; 2]>, u64) {
        let turns = turns(2);
        let sorted = Sorted::of(vec![recorded(&turns, values)], 2);
        let counts = sorted
            .halves
            .iter()
            .map(|halves| halves.each_ref().map(Vec::len));
        (counts.collect(), sorted.finished)
    }

    #[test]
    fn values_are_counted_in_the_half_in_which_they_were_finished() {
        let (found, finished) = counts(&[(30, 5), (30, 6), (80, 5), (150, 5), (239, 5)]);
        assert_eq!(found, [[2, 1], [1, 1]]);
        assert_eq!(finished, 5);
    }

    #[test]
    fn what_ends_in_a_washout_or_spans_a_change_belongs_to_nobody() {
        // In a washout; from before the change; from the change's half of the washout.
        let (found, finished) = counts(&[(125, 5), (145, 30 * MS), (141, 12 * MS), (145, 10 * MS)]);
        assert_eq!(found, [[0, 0], [1, 0]]);
        assert_eq!(finished, 4);
    }

    #[test]
    fn values_with_the_moment_of_their_start_must_end_in_their_turn() {
        let turns = turns(2);
        let mut values = ByTurn::new(&turns).by_start();
        for (at_ms, value_ms) in [(10, 1), (30, 60), (30, 91), (110, 10), (110, 11), (150, 5)] {
            values.record(at_ms * MS, value_ms * MS);
        }
        let halves: Vec<u64> = values
            .words
            .lock()
            .unwrap()
            .iter()
            .map(|word| word >> VALUE_BITS)
            .collect();
        assert_eq!(halves, [0, 1, 2]);
        assert_eq!(values.finished, 6);
    }

    #[test]
    fn each_window_has_its_figures_and_each_arm_its_log() {
        let turns = turns(4);
        let values: Vec<(u64, u64)> = (0..480)
            .map(|ms| (ms, if ms / 120 % 2 == 0 { 1_000 } else { 2_000 }))
            .collect();
        let mut figures = InTurns::new(&turns, SystemTime::UNIX_EPOCH);
        let rate = Some(m::REQUESTS_PER_SEC);
        let recorders = vec![recorded(&turns, &values)];
        figures
            .latency("request", m::REQUEST, rate, recorders)
            .unwrap();
        let parsed = figures.finish();
        let p50 = |turn: usize| parsed.turns[turn].whole["request_p50"];
        assert!(p50(0) < 1_010.0 && p50(1) > 1_990.0 && p50(2) < 1_010.0);
        assert_eq!(parsed.turns[3].whole["requests_per_sec"], 1000.0);
        assert_eq!(parsed.turns[3].halves[1]["requests_per_sec"], 1000.0);
        assert!(!parsed.turns[0].whole.contains_key("request_p99"));
        let names: Vec<&str> = parsed.files.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["arm-0/request.hlog", "arm-1/request.hlog"]);
    }

    #[test]
    fn a_quantile_needs_values_beyond_it() {
        let values: Vec<u64> = (1..=100).collect();
        assert_eq!(quantile(&values, Some(900)), Some(90.0));
        assert_eq!(quantile(&values, Some(990)), None);
        assert_eq!(quantile(&values, None), Some(100.0));
        assert_eq!(quantile(&[], None), None);
        assert_eq!(FEWEST_BEYOND, 10);
    }
}
