//! Recording of latencies: one pre-allocated recorder a thread, merged once after the
//! window, read as quantiles and written as an HdrHistogram interval log.
//!
//! Values are nanoseconds with three significant digits. A value is counted if it
//! was finished inside the window, in the interval in which it was finished.

use crate::closed_windows;
use crate::late::{Late, LateLog};
use crate::latency::Quantile;
use crate::progress::Teller;
use crate::stalls::Stalls;
use crate::sys;
use crate::turn_values::ByTurn;
use crate::worst::{self, At, Worst};
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use hdrhistogram::{Counter, Histogram};
use model::{MetricDef, Turns};
use std::ops::Range;
use std::time::{Duration, SystemTime};

const SIGNIFICANT_DIGITS: u8 = 3;
const NS_PER_SEC: u64 = 1_000_000_000;
/// Bounds the memory of a long window: intervals grow instead.
const MOST_INTERVALS: u64 = 10;
/// A quantile with fewer samples beyond it is noise and is left out.
pub const FEWEST_BEYOND: u64 = 10;

/// The measured window, CLOCK_MONOTONIC; the end is outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Time at which it opens.
    pub begin_ns: u64,
    /// Time at which it closes.
    pub end_ns: u64,
}

impl Window {
    /// True if a moment is inside the window.
    pub fn contains(&self, at_ns: u64) -> bool {
        (self.begin_ns..self.end_ns).contains(&at_ns)
    }

    /// Length of the window in seconds.
    pub fn seconds(&self) -> f64 {
        (self.end_ns - self.begin_ns) as f64 / NS_PER_SEC as f64
    }
}

/// Owned by one thread. Everything is allocated and touched when it is made.
#[derive(Debug, Clone)]
pub struct Recorder {
    window: Window,
    interval_ns: u64,
    intervals: Vec<Histogram<u32>>,
    stalls: Stalls,
    /// The worst value so far, where it is watched.
    worst: Option<(At, Worst)>,
    /// Values beyond a bound, where there is one.
    late: Option<Late>,
    /// Values by turn, where arms take turns; then the intervals stay empty.
    by_turn: Option<ByTurn>,
    /// Tells those who watch, where the log has a name.
    teller: Option<Teller>,
}

impl Recorder {
    /// For a window of `duration_ns` and values up to `highest_ns`; higher ones
    /// are counted as `highest_ns`.
    pub fn new(duration_ns: u64, highest_ns: u64) -> Result<Self, String> {
        let interval_ns = interval_ns(duration_ns);
        let intervals = (0..intervals(duration_ns))
            .map(|_| empty(highest_ns))
            .collect::<Result<_, _>>()?;
        Ok(Recorder {
            window: Window {
                begin_ns: u64::MAX,
                end_ns: u64::MAX,
            },
            interval_ns,
            intervals,
            stalls: Stalls::none(),
            worst: None,
            late: None,
            by_turn: None,
            teller: None,
        })
    }

    /// Memory of the counts of such a recorder.
    pub fn bytes(duration_ns: u64, highest_ns: u64) -> u64 {
        let of_one = |one: Histogram<u32>| (one.distinct_values() * size_of::<u32>()) as u64;
        let bytes = empty(highest_ns).map_or(0, of_one);
        intervals(duration_ns).saturating_mul(bytes)
    }

    /// Keeps values of `limit_ns` and more as well, with the time of the worst.
    pub fn with_stalls_from(mut self, limit_ns: u64) -> Self {
        self.stalls = Stalls::with_limit(limit_ns);
        self
    }

    /// Watches the worst value, if that of this log is wanted, and those beyond a bound, and tells how far it is.
    pub fn watched_as(mut self, log: &str, at: At) -> Self {
        self.teller = Teller::open(log);
        self.worst = worst::is_watched(log).then_some((at, Worst::default()));
        self.late = Late::of_log(log);
        self
    }

    /// Keeps values by turn, where arms take turns.
    pub fn in_turns(mut self, turns: Option<&Turns>) -> Self {
        self.by_turn = turns.map(ByTurn::new);
        self
    }

    /// The same for values that are recorded with the moment at which they began.
    pub fn in_turns_by_start(mut self, turns: Option<&Turns>) -> Self {
        self.by_turn = turns.map(|turns| ByTurn::new(turns).by_start());
        self
    }

    /// Lets others know of its values by turn while they are made: their quantiles, and how many they are.
    pub fn told_as(self, quantiles: &'static [Quantile], rate: Option<MetricDef>) -> Self {
        if let Some(by_turn) = &self.by_turn {
            closed_windows::add(quantiles, rate, by_turn.share_words());
        }
        self
    }

    /// The values by turn, where they were kept so.
    pub fn into_by_turn(self) -> Option<ByTurn> {
        self.by_turn
    }

    /// Each value with its count, interval by interval, to be sent elsewhere.
    pub fn counts(&self) -> Vec<Vec<(u64, u64)>> {
        let of_interval = |histogram: &Histogram<u32>| {
            let values = histogram.iter_recorded();
            values
                .map(|value| (value.value_iterated_to(), u64::from(value.count_at_value())))
                .collect()
        };
        self.intervals.iter().map(of_interval).collect()
    }

    /// Takes over values that another recorder of the same window counted.
    pub fn add_counts(&mut self, counts: &[Vec<(u64, u64)>]) {
        for (histogram, counts) in self.intervals.iter_mut().zip(counts) {
            for (value_ns, count) in counts {
                let count = u32::try_from(*count).unwrap_or(u32::MAX);
                histogram.saturating_record_n(*value_ns, count);
            }
        }
    }

    /// Says when the window is; until then nothing is counted.
    pub fn open(&mut self, window: Window) {
        self.window = window;
    }

    /// Counts a value that was finished at `at_ns`.
    pub fn record(&mut self, at_ns: u64, value_ns: u64) {
        if !self.window.contains(at_ns) {
            return;
        }
        if let Some(teller) = &mut self.teller {
            teller.add(at_ns, value_ns);
        }
        if let Some(by_turn) = &mut self.by_turn {
            return by_turn.record(at_ns - self.window.begin_ns, value_ns);
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "intervals are in memory, so a usize counts them"
        )]
        let index = ((at_ns - self.window.begin_ns) / self.interval_ns) as usize;
        if let Some(histogram) = self.intervals.get_mut(index) {
            histogram.saturating_record(value_ns);
            self.stalls.record_latency(at_ns, value_ns);
            if let Some(late) = &mut self.late {
                late.record_value(at_ns - self.window.begin_ns, value_ns);
            }
            if let Some((at, worst)) = &mut self.worst
                && value_ns > worst.took_ns
            {
                *worst = worst_of(*at, at_ns, value_ns, self.window);
            }
        }
    }
}

/// A worst value, which the process is told of.
#[cold]
fn worst_of(at: At, at_ns: u64, took_ns: u64, window: Window) -> Worst {
    worst::report_value(took_ns);
    Worst {
        took_ns,
        end_ns: match at {
            At::End => at_ns,
            At::Due => at_ns.saturating_add(took_ns),
        },
        thread: sys::thread_id(),
        window_begin_ns: window.begin_ns,
        window_end_ns: window.end_ns,
    }
}

/// Whole seconds: one, or more so that there are at most [`MOST_INTERVALS`].
fn interval_ns(duration_ns: u64) -> u64 {
    duration_ns
        .div_ceil(MOST_INTERVALS * NS_PER_SEC)
        .max(1)
        .saturating_mul(NS_PER_SEC)
}

/// Number of intervals of a window.
fn intervals(duration_ns: u64) -> u64 {
    duration_ns.div_ceil(interval_ns(duration_ns)).max(1)
}

fn empty(highest_ns: u64) -> Result<Histogram<u32>, String> {
    let mut histogram = Histogram::new_with_bounds(1, highest_ns.max(2), SIGNIFICANT_DIGITS)
        .map_err(|e| format!("make a histogram up to {highest_ns} ns: {e}"))?;
    // Writes every count, so that no page is first touched inside the window.
    histogram.reset();
    Ok(histogram)
}

/// Recordings of all threads together.
#[derive(Debug, Clone)]
pub struct Recording {
    window: Window,
    interval_ns: u64,
    intervals: Vec<Histogram<u32>>,
    total: Histogram<u32>,
    stalls: Stalls,
    worst: Option<Worst>,
    late: Option<Late>,
}

impl Recording {
    /// Merges recorders of the same window and bounds; `None` without any.
    pub fn merge(recorders: impl IntoIterator<Item = Recorder>) -> Option<Self> {
        let mut recorders = recorders.into_iter();
        let Recorder {
            window,
            interval_ns,
            mut intervals,
            mut stalls,
            worst,
            mut late,
            ..
        } = recorders.next()?;
        let mut worst = worst.map(|(_, worst)| worst);
        for other in recorders {
            for (into, from) in intervals.iter_mut().zip(&other.intervals) {
                *into += from;
            }
            stalls.merge_from(&other.stalls);
            if let Some((late, others)) = late.as_mut().zip(other.late) {
                late.merge_from(others);
            }
            let others = other.worst.map(|(_, worst)| worst);
            worst = worst.into_iter().chain(others).max_by_key(|w| w.took_ns);
        }
        let total = sum(&intervals)?;
        Some(Recording {
            window,
            interval_ns,
            intervals,
            total,
            stalls,
            worst,
            late,
        })
    }

    /// Values beyond the bound of this log, where it has one.
    pub(crate) fn late_values(&self, log: &str) -> Option<LateLog> {
        let late = self.late.clone()?;
        Some(late.into_log(log, self.count(), self.window))
    }

    /// Number of values that were counted in the window.
    pub fn count(&self) -> u64 {
        self.total.len()
    }

    /// Mean of the values in nanoseconds; `None` without any.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.total.mean())
    }

    /// Stalls among these values.
    pub fn stalls(&self) -> &Stalls {
        &self.stalls
    }

    /// The worst value, where it was watched and there was one.
    pub fn worst_value(&self) -> Option<Worst> {
        self.worst.filter(|worst| worst.took_ns > 0)
    }

    /// A moment of the window, from its opening.
    pub fn offset_ns(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.window.begin_ns)
    }

    /// Values in each interval, without a last one that is shorter than the others.
    pub fn whole_intervals(&self) -> Vec<u64> {
        let whole = (self.window.end_ns - self.window.begin_ns) / self.interval_ns;
        let whole = usize::try_from(whole).unwrap_or(usize::MAX);
        let whole = self.intervals.iter().take(whole);
        whole.map(Histogram::len).collect()
    }

    /// The first and the last third of the whole intervals that lie in a part of the window, in
    /// nanoseconds from its opening; `None` with fewer than three of them, or nothing in a third.
    pub fn outer_thirds(&self, part_ns: &Range<u64>) -> Option<[Histogram<u32>; 2]> {
        let index = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let whole = self.whole_intervals().len();
        let end = index(part_ns.end / self.interval_ns).min(whole);
        let begin = index(part_ns.start.div_ceil(self.interval_ns)).min(end);
        let third = (end - begin) / 3;
        let first = sum(&self.intervals[begin..begin + third])?;
        let last = sum(&self.intervals[end - third..end])?;
        (!first.is_empty() && !last.is_empty()).then_some([first, last])
    }

    /// `None` if nothing was counted.
    pub fn max_ns(&self) -> Option<u64> {
        (self.count() > 0).then(|| self.total.max())
    }

    /// The quantile `permille` (990 is p99); `None` with fewer than
    /// [`FEWEST_BEYOND`] samples beyond it.
    pub fn quantile_ns(&self, permille: u32) -> Option<u64> {
        (self.count() >= samples_needed(permille))
            .then(|| self.total.value_at_quantile(f64::from(permille) / 1000.0))
    }

    /// The text of an HdrHistogram interval log (V2, deflated), values in nanoseconds.
    /// `opened` is the wall-clock time at which the window opened.
    pub fn interval_log(&self, what: &str, opened: SystemTime) -> Result<String, String> {
        interval_log(what, opened, self.timed_intervals())
    }

    fn timed_intervals(&self) -> impl Iterator<Item = Interval<'_, u32>> {
        let whole_ns = self.window.end_ns - self.window.begin_ns;
        self.intervals
            .iter()
            .enumerate()
            .map(move |(i, histogram)| {
                let start_ns = i as u64 * self.interval_ns;
                let length_ns = self.interval_ns.min(whole_ns - start_ns);
                Interval {
                    tag: None,
                    start: Duration::from_nanos(start_ns),
                    length: Duration::from_nanos(length_ns),
                    histogram,
                }
            })
    }
}

/// Which of these logs a quantile or maximum comes from: `generator_lateness_p50` is one of
/// `generator-lateness`.
pub fn log_among(logs: &[&'static str], metric: &str) -> Option<&'static str> {
    let (name, figure) = metric.rsplit_once('_')?;
    let digits = figure.strip_prefix('p').unwrap_or_default();
    let is_quantile = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let log = name.replace('_', "-");
    let mut logs = logs.iter().copied();
    logs.find(|known| *known == log && (is_quantile || figure == "max"))
}

/// One line of an interval log.
#[derive(Debug)]
pub struct Interval<'a, C: Counter> {
    /// Without comma, blank or end of line.
    pub tag: Option<String>,
    /// Start of the interval, from the start of the log.
    pub start: Duration,
    /// Length of the interval.
    pub length: Duration,
    /// Values of the interval, in nanoseconds.
    pub histogram: &'a Histogram<C>,
}

/// The text of an HdrHistogram interval log (V2, deflated), values in nanoseconds, that
/// begins at `opened`.
pub fn interval_log<'a, C: Counter + 'a>(
    what: &str,
    opened: SystemTime,
    intervals: impl Iterator<Item = Interval<'a, C>>,
) -> Result<String, String> {
    let failed = |e: &dyn std::fmt::Debug| format!("write the interval log of {what}: {e:?}");
    let mut text = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder
        .add_comment(&format!("{what}, values in nanoseconds"))
        .with_start_time(opened)
        .with_base_time(opened);
    let mut log = builder
        .begin_log_with(&mut text, &mut serializer)
        .map_err(|e| failed(&e))?;
    for interval in intervals {
        let tag = interval.tag.as_deref().and_then(Tag::new);
        log.write_histogram(interval.histogram, interval.start, interval.length, tag)
            .map_err(|e| failed(&e))?;
    }
    String::from_utf8(text).map_err(|e| failed(&e))
}

/// `None` of no histograms.
fn sum(histograms: &[Histogram<u32>]) -> Option<Histogram<u32>> {
    let (first, rest) = histograms.split_first()?;
    let mut sum = first.clone();
    rest.iter().for_each(|histogram| sum += histogram);
    Some(sum)
}

/// Samples from which on the quantile has [`FEWEST_BEYOND`] beyond it.
pub fn samples_needed(permille: u32) -> u64 {
    (FEWEST_BEYOND * 1000).div_ceil(u64::from(1000 - permille.min(999)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    const WINDOW: Window = Window {
        begin_ns: 100,
        end_ns: 100 + 3 * NS_PER_SEC,
    };

    fn recorder() -> Recorder {
        let mut recorder = Recorder::new(3 * NS_PER_SEC, 60 * NS_PER_SEC).unwrap();
        recorder.open(WINDOW);
        recorder
    }

    #[test]
    fn the_memory_of_a_recorder_is_that_of_all_its_counts() {
        for seconds in [1, 3, 60] {
            let (duration_ns, highest_ns) = (seconds * NS_PER_SEC, 2 * seconds * NS_PER_SEC);
            let recorder = Recorder::new(duration_ns, highest_ns).unwrap();
            let counts = recorder.intervals.iter().map(Histogram::distinct_values);
            let bytes = Recorder::bytes(duration_ns, highest_ns);
            assert_eq!(bytes, 4 * counts.sum::<usize>() as u64);
        }
    }

    #[test]
    fn only_values_finished_inside_the_window_are_counted() {
        let mut recorder = recorder();
        for at in [99, 100, WINDOW.end_ns - 1, WINDOW.end_ns] {
            recorder.record(at, 5);
        }
        assert_eq!(Recording::merge([recorder]).unwrap().count(), 2);
    }

    #[test]
    fn nothing_is_counted_before_the_window_is_known() {
        let mut recorder = Recorder::new(NS_PER_SEC, NS_PER_SEC).unwrap();
        recorder.record(5, 5);
        assert_eq!(Recording::merge([recorder]).unwrap().count(), 0);
    }

    #[test]
    fn recorders_of_all_threads_add_up() {
        let (mut one, mut two) = (recorder(), recorder());
        (0..100).for_each(|i| one.record(200, 1000 + i));
        (0..100).for_each(|i| two.record(WINDOW.end_ns - 1, 9000 + i));
        let both = Recording::merge([one, two]).unwrap();
        assert_eq!(both.count(), 200);
        assert_eq!(both.quantile_ns(500), Some(1099));
        assert!(both.max_ns().unwrap().abs_diff(9099) < 10);
    }

    #[test]
    fn a_quantile_needs_ten_samples_beyond_it() {
        assert_eq!(samples_needed(500), 20);
        assert_eq!(samples_needed(900), 100);
        assert_eq!(samples_needed(990), 1000);
        assert_eq!(samples_needed(999), 10_000);
        let mut recorder = recorder();
        (0..99).for_each(|_| recorder.record(200, 7));
        let recording = Recording::merge([recorder]).unwrap();
        assert_eq!(recording.quantile_ns(500), Some(7));
        assert_eq!(recording.quantile_ns(900), None);
    }

    #[test]
    fn a_last_interval_that_is_cut_short_is_not_whole() {
        let mut recorder = Recorder::new(2 * NS_PER_SEC + 5, NS_PER_SEC).unwrap();
        recorder.open(Window {
            begin_ns: 0,
            end_ns: 2 * NS_PER_SEC + 5,
        });
        [1, NS_PER_SEC, 2 * NS_PER_SEC, 2 * NS_PER_SEC + 1]
            .into_iter()
            .for_each(|at| recorder.record(at, 7));
        let recording = Recording::merge([recorder]).unwrap();
        assert_eq!(recording.whole_intervals(), [1, 1]);
    }

    #[test]
    fn values_above_the_bound_are_counted_at_the_bound() {
        let mut recorder = Recorder::new(NS_PER_SEC, 1_000_000).unwrap();
        recorder.open(WINDOW);
        recorder.record(200, u64::MAX);
        let recording = Recording::merge([recorder]).unwrap();
        assert_eq!(recording.count(), 1);
    }

    #[test]
    fn a_long_window_has_at_most_ten_intervals_of_whole_seconds() {
        assert_eq!(interval_ns(300_000_000), NS_PER_SEC);
        assert_eq!(interval_ns(10 * NS_PER_SEC), NS_PER_SEC);
        assert_eq!(interval_ns(61 * NS_PER_SEC), 7 * NS_PER_SEC);
    }

    #[test]
    fn an_interval_log_reads_back_with_its_counts_and_times() {
        let mut recorder = recorder();
        recorder.record(100, 11);
        recorder.record(100 + 2 * NS_PER_SEC, 22);
        let log = Recording::merge([recorder])
            .unwrap()
            .interval_log("wakeup latency", SystemTime::now())
            .unwrap();
        let mut found = Vec::new();
        for entry in IntervalLogIterator::new(log.as_bytes()) {
            let LogEntry::Interval(interval) = entry.unwrap() else {
                continue;
            };
            let bytes = decode_base64(interval.encoded_histogram());
            let histogram: Histogram<u64> = Deserializer::new()
                .deserialize(&mut bytes.as_slice())
                .unwrap();
            found.push((interval.start_timestamp().as_secs(), histogram.len()));
        }
        assert_eq!(found, [(0, 1), (1, 0), (2, 1)]);
    }

    fn decode_base64(text: &str) -> Vec<u8> {
        use base64::Engine;
        base64::engine::general_purpose::STANDARD
            .decode(text)
            .unwrap()
    }

    #[test]
    fn a_quantile_names_its_log() {
        let of = |metric| log_among(&["wakeup", "generator-lateness"], metric);
        assert_eq!(of("wakeup_p999"), Some("wakeup"));
        assert_eq!(of("wakeup_max"), Some("wakeup"));
        assert_eq!(of("generator_lateness_p50"), Some("generator-lateness"));
        for none in ["wakeup_stalls", "wakeup_p", "request_p99", "wakeup", "p99"] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
