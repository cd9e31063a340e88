//! Reading an HdrHistogram interval log (`*.hlog`) into one histogram.
//!
//! The logs may be anybody's. The hdrhistogram crate finds the intervals, but decodes them
//! into an array as large as their header says, which may be all memory; and it makes one
//! histogram for each, where a report merges tens of thousands. So the encoding that we
//! write (V2, deflated or plain: `encodeIntoCompressedByteBuffer` of the Java
//! implementation) is added count by count here, and no other is read.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use doors::read::copy_within;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use std::time::Duration;

/// A generator writes ten intervals, the collector of run queues one for each CPU, of
/// which the largest kernels have 8192.
pub(crate) const MOST_INTERVALS: usize = 10_000;
/// Twice what an interval with every count of a histogram of three digits takes.
const MOST_INFLATED_BYTES: u64 = 1 << 20;

/// Ten thousand million a second for two months. The histograms of a report are sums of
/// these (a dozen blocks, 128 intervals), and quantiles of a histogram are found with sums
/// of its counts that have 64 bits.
const MOST_SAMPLES: u64 = 1 << 56;

/// Fewer samples beyond a quantile than this, and it is noise.
pub(crate) const FEWEST_BEYOND: f64 = 10.0;

const V2_COMPRESSED: [u8; 4] = 0x1c84_9314_u32.to_be_bytes();
const V2: [u8; 4] = 0x1c84_9313_u32.to_be_bytes();
/// Cookie, payload length, normalizing offset, digits, lowest, highest, ratio.
const HEADER_BYTES: usize = 40;

/// A histogram of three digits, for any value.
pub(crate) fn new_histogram() -> Histogram<u64> {
    // The precision is a constant that is known to be valid.
    #[allow(clippy::expect_used)]
    let mut histogram = Histogram::new(3).expect("three significant digits are valid");
    histogram.auto(true);
    histogram
}

/// Adds the intervals of a log up. `buffer` is scratch space.
pub fn add_log(text: &[u8], into: &mut Histogram<u64>, buffer: &mut Vec<u8>) -> Result<(), String> {
    for interval in read_intervals(text) {
        interval?.add_to(into, buffer)?;
    }
    Ok(())
}

/// A number of lines, not looked into.
pub fn count_intervals(text: &[u8]) -> usize {
    let lines = text.split(|byte| *byte == b'\n');
    lines
        .filter(|line| line.first().is_some_and(u8::is_ascii_digit))
        .count()
}

/// An interval of a log, still encoded.
#[derive(Debug)]
pub struct Interval {
    pub(crate) length: Duration,
    encoded: Vec<u8>,
}

/// In the order of time.
pub fn read_intervals(text: &[u8]) -> impl Iterator<Item = Result<Interval, String>> {
    let found = IntervalLogIterator::new(text).filter_map(|entry| match entry {
        Err(e) => Some(Err(format!("not an interval log: {e:?}"))),
        Ok(LogEntry::Interval(interval)) => {
            let bytes = STANDARD.decode(interval.encoded_histogram());
            let length = interval.duration();
            Some(match bytes {
                Ok(encoded) => Ok(Interval { length, encoded }),
                Err(e) => Err(damaged(&e.to_string())),
            })
        }
        Ok(_) => None,
    });
    found.enumerate().map(|(index, interval)| match index {
        MOST_INTERVALS.. => Err(format!(
            "more than the {MOST_INTERVALS} intervals that a log can have"
        )),
        _ => interval,
    })
}

fn damaged(why: &str) -> String {
    format!("an interval is damaged: {why}")
}

impl Interval {
    /// Adds the counts of the interval to `into`. `buffer` is scratch space.
    ///
    /// The error says what is damaged in the encoding; `into` may then have some of the counts.
    pub fn add_to(&self, into: &mut Histogram<u64>, buffer: &mut Vec<u8>) -> Result<(), String> {
        let bytes = match self.encoded.strip_prefix(&V2_COMPRESSED) {
            Some(deflated) => {
                inflate(deflated, buffer)?;
                buffer.as_slice()
            }
            None => &self.encoded,
        };
        let (counts, layout) = counts(bytes).map_err(|e| damaged(&e))?;
        add_counts(counts, layout, into).map_err(|e| damaged(&e))
    }
}

/// The part behind the cookie: a length, and so many bytes.
fn inflate(deflated: &[u8], buffer: &mut Vec<u8>) -> Result<(), String> {
    let deflated = deflated.get(4..).ok_or_else(|| damaged("it is cut off"))?;
    buffer.clear();
    let inflated = copy_within(ZlibDecoder::new(deflated), buffer, MOST_INFLATED_BYTES);
    match inflated {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => Err(damaged(
            "it inflates to more than the 1 MiB that an interval can have",
        )),
        Err(error) => Err(damaged(&error.to_string())),
    }
}

/// Mapping of indices to values, as in `countsArrayIndex` of the Java implementation.
#[derive(Debug, Clone, Copy)]
struct Layout {
    /// log2 of the smallest distance between two values.
    unit_magnitude: u32,
    /// log2 of half the number of values in a bucket.
    half_magnitude: u32,
}

impl Layout {
    fn new(digits: u32, lowest: u64) -> Layout {
        let distinct = 2 * 10u64.pow(digits);
        Layout {
            unit_magnitude: lowest.max(1).ilog2(),
            half_magnitude: distinct.next_power_of_two().ilog2() - 1,
        }
    }

    fn value_at(self, index: u64) -> Option<u64> {
        let half = 1u64 << self.half_magnitude;
        let bucket = (index >> self.half_magnitude).saturating_sub(1);
        let within = match index < half {
            true => index,
            false => (index & (half - 1)) + half,
        };
        let bucket = u32::try_from(bucket).ok()?;
        let shift = bucket.checked_add(self.unit_magnitude)?;
        (shift < within.leading_zeros()).then(|| within << shift)
    }
}

/// The counts of a V2 histogram without shift and scale.
fn counts(histogram: &[u8]) -> Result<(&[u8], Layout), String> {
    let (header, counts) = histogram
        .split_at_checked(HEADER_BYTES)
        .ok_or("it is cut off")?;
    let word = |at: usize| {
        let bytes = header.get(at..at + 4).and_then(|b| b.try_into().ok());
        bytes.map_or(0, u32::from_be_bytes)
    };
    let long = |at: usize| u64::from(word(at)) << 32 | u64::from(word(at + 4));
    let (length, offset, digits) = (word(4), word(8), word(12));
    let (lowest, ratio) = (long(16), f64::from_bits(long(32)));
    if !(header.starts_with(&V2) && offset == 0 && digits <= 5 && ratio == 1.0) {
        return Err("it is no plain V2 histogram, and schedlab writes nothing else".to_owned());
    }
    let there = counts.len();
    let counts = usize::try_from(length).ok().and_then(|n| counts.get(..n));
    let counts = counts.ok_or_else(|| {
        format!("its header says {length} bytes of counts, but there are only {there}")
    })?;
    Ok((counts, Layout::new(digits, lowest)))
}

/// ZigZag LEB128 numbers: a count, or minus the number of empty places.
fn add_counts(mut counts: &[u8], layout: Layout, into: &mut Histogram<u64>) -> Result<(), String> {
    let mut index = 0u64;
    while !counts.is_empty() {
        let number = take_number(&mut counts).ok_or("it is cut off")?;
        let places = match number {
            0.. => 1,
            _ => number.unsigned_abs(),
        };
        if number > 0 {
            let value = layout.value_at(index).ok_or("a value is out of range")?;
            let samples = number.unsigned_abs();
            if into.len().saturating_add(samples) > MOST_SAMPLES {
                return Err("there are more samples than can ever be taken".to_owned());
            }
            into.record_n(value, samples).map_err(|e| e.to_string())?;
        }
        index = index.checked_add(places).ok_or("a value is out of range")?;
    }
    Ok(())
}

/// The ninth byte of a number is whole.
fn take_number(bytes: &mut &[u8]) -> Option<i64> {
    let mut encoded = 0u64;
    for position in 0..9 {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        let last = position == 8 || first & 0x80 == 0;
        let bits = if position == 8 { *first } else { first & 0x7f };
        encoded |= u64::from(bits) << (7 * position);
        if last {
            break;
        }
    }
    Some((encoded >> 1).cast_signed() ^ -((encoded & 1).cast_signed()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::{Serializer, V2DeflateSerializer, V2Serializer};
    use proptest::prelude::*;
    use std::io::Read;

    fn empty() -> Histogram<u64> {
        let mut histogram = Histogram::new(3).unwrap();
        histogram.auto(true);
        histogram
    }

    fn histogram(lowest: u64, digits: u8, values: &[(u64, u64)]) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(lowest, 60_000_000_000, digits).unwrap();
        for (value, count) in values {
            histogram.saturating_record_n(*value, *count);
        }
        histogram
    }

    fn decoded(bytes: &[u8]) -> Result<Histogram<u64>, String> {
        let mut into = empty();
        let interval = Interval {
            length: Duration::ZERO,
            encoded: bytes.to_vec(),
        };
        interval.add_to(&mut into, &mut Vec::new())?;
        Ok(into)
    }

    fn deflated(histogram: &Histogram<u64>) -> Vec<u8> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(histogram, &mut bytes)
            .unwrap();
        bytes
    }

    #[test]
    fn counts_whose_sum_has_more_than_64_bits_are_refused() {
        let each = MOST_SAMPLES / 2;
        let most = [(1, each), (2, each)];
        let read = decoded(&deflated(&histogram(1, 3, &most))).unwrap();
        assert_eq!(read.value_at_quantile(1.0), 2);
        for count in [each + 1, i64::MAX.unsigned_abs()] {
            let more = [(1, count), (2, count), (3, count)];
            let error = decoded(&deflated(&histogram(1, 3, &more))).unwrap_err();
            assert!(error.contains("more samples"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_added_count_by_count_is_what_the_crate_reads(
            values in prop::collection::vec((0..60_000_000_000u64, 1..1_000_000u64), 0..40),
            digits in 1..=5u8,
            lowest in 1..5_000u64,
        ) {
            let original = histogram(lowest, digits, &values);
            let mut expected = empty();
            expected.add(&original).unwrap();
            prop_assert_eq!(decoded(&deflated(&original)), Ok(expected));
        }

        #[test]
        fn damaged_bytes_are_an_error_or_some_histogram_but_never_a_panic(
            at in 0..200usize, to in any::<u8>(),
        ) {
            let mut bytes = deflated(&histogram(1, 3, &[(5, 7), (70_000, 2), (9_000_000, 1)]));
            let at = at % bytes.len();
            bytes[at] = to;
            let _ = decoded(&bytes);
            let _ = decoded(&bytes[..at]);
        }
    }

    #[test]
    fn the_plain_encoding_is_read_too() {
        let original = histogram(1, 3, &[(5, 7), (9_000_000, 1)]);
        let mut bytes = Vec::new();
        V2Serializer::new()
            .serialize(&original, &mut bytes)
            .unwrap();
        assert_eq!(decoded(&bytes).unwrap().len(), 8);
    }

    #[test]
    fn what_is_not_a_log_is_an_error() {
        let text = b"0.0,1.0,2.0,HISTnotbase64!\n";
        assert!(add_log(text, &mut empty(), &mut Vec::new()).is_err());
    }

    /// A V2 histogram of three digits whose header says so many bytes of counts.
    fn v2(length: u32, counts: &[u8]) -> Vec<u8> {
        let mut bytes = V2.to_vec();
        bytes.extend(length.to_be_bytes());
        bytes.extend(0u32.to_be_bytes());
        bytes.extend(3u32.to_be_bytes());
        bytes.extend(1u64.to_be_bytes());
        bytes.extend(u64::MAX.to_be_bytes());
        bytes.extend(1f64.to_bits().to_be_bytes());
        bytes.extend(counts);
        bytes
    }

    fn zlib(content: &[u8]) -> Vec<u8> {
        let mut bytes = V2_COMPRESSED.to_vec();
        bytes.extend([0; 4]);
        let fast = flate2::Compression::fast();
        let mut inflater = flate2::read::ZlibEncoder::new(content, fast);
        inflater.read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_header_does_not_make_memory() {
        // 111 bytes of a log took 4.2 GB.
        let error = decoded(&v2(u32::MAX, &[2])).unwrap_err();
        assert!(error.contains("says 4294967295 bytes of counts"), "{error}");
    }

    #[test]
    fn what_is_inflated_has_a_limit() {
        let error = decoded(&zlib(&vec![0; 2 << 20])).unwrap_err();
        assert!(error.contains("more than the 1 MiB"), "{error}");
    }

    #[test]
    fn intervals_have_a_limit() {
        let encoded = STANDARD.encode(deflated(&histogram(1, 3, &[(5, 7)])));
        let line = format!("0.0,1.0,2.0,{encoded}\n");
        let log =
            |lines: usize| add_log(line.repeat(lines).as_bytes(), &mut empty(), &mut Vec::new());
        assert_eq!(log(MOST_INTERVALS), Ok(()));
        let error = log(MOST_INTERVALS + 1).unwrap_err();
        assert!(error.contains("more than the 10000 intervals"), "{error}");
    }

    #[test]
    fn places_beyond_the_last_value_are_out_of_range_and_do_not_wrap() {
        // ZigZag of i64::MIN, twice, and of one count: 2^63 empty places, and so many more.
        let most = [0xff; 9];
        let far: Vec<u8> = [&most[..], &most[..], &[2]].concat();
        let error = decoded(&v2(19, &far)).unwrap_err();
        assert!(error.contains("out of range"), "{error}");
    }

    #[test]
    fn another_encoding_is_said_to_be_one() {
        let mut shifted = v2(1, &[2]);
        shifted[11] = 1;
        let v1 = [0x1c, 0x84, 0x93, 0x01].repeat(20);
        for bytes in [shifted, v1, Vec::new()] {
            assert!(decoded(&bytes).is_err());
        }
    }
}
