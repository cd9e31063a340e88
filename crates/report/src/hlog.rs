//! Reading an HdrHistogram interval log (`*.hlog`) into one histogram.
//!
//! The hdrhistogram crate finds the intervals and decodes any of them, but into a
//! full array of counts each time, which it then adds element by element. A report
//! merges tens of thousands of them, so the one encoding that we write (V2,
//! deflated: `encodeIntoCompressedByteBuffer` of the Java implementation) is added
//! count by count here. Everything else goes through the crate.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use std::io::Read;

const V2_COMPRESSED: [u8; 4] = 0x1c84_9314_u32.to_be_bytes();
const V2: [u8; 4] = 0x1c84_9313_u32.to_be_bytes();
/// Cookie, payload length, normalizing offset, digits, lowest, highest, ratio.
const HEADER_BYTES: usize = 40;

/// Adds the intervals of a log up. `buffer` is scratch space.
pub fn add_log(text: &[u8], into: &mut Histogram<u64>, buffer: &mut Vec<u8>) -> Result<(), String> {
    for bytes in intervals(text) {
        add_interval(&bytes?, into, buffer).map_err(|e| damaged(&e))?;
    }
    Ok(())
}

/// Adds the intervals of a log to one histogram each, by their number.
pub fn add_each(
    text: &[u8],
    into: &mut Vec<Histogram<u64>>,
    empty: fn() -> Histogram<u64>,
    buffer: &mut Vec<u8>,
) -> Result<(), String> {
    for (index, bytes) in intervals(text).enumerate() {
        if into.len() == index {
            into.push(empty());
        }
        add_interval(&bytes?, &mut into[index], buffer).map_err(|e| damaged(&e))?;
    }
    Ok(())
}

pub fn count_intervals(text: &[u8]) -> usize {
    let lines = text.split(|byte| *byte == b'\n');
    lines
        .filter(|line| line.first().is_some_and(u8::is_ascii_digit))
        .count()
}

/// The encoded histograms, in the order of time.
fn intervals(text: &[u8]) -> impl Iterator<Item = Result<Vec<u8>, String>> {
    IntervalLogIterator::new(text).filter_map(|entry| match entry {
        Err(e) => Some(Err(format!("not an interval log: {e:?}"))),
        Ok(LogEntry::Interval(interval)) => {
            let bytes = STANDARD.decode(interval.encoded_histogram());
            Some(bytes.map_err(|e| damaged(&e.to_string())))
        }
        Ok(_) => None,
    })
}

fn damaged(why: &str) -> String {
    format!("an interval is damaged: {why}")
}

fn add_interval(
    bytes: &[u8],
    into: &mut Histogram<u64>,
    buffer: &mut Vec<u8>,
) -> Result<(), String> {
    if let Some(deflated) = bytes.strip_prefix(&V2_COMPRESSED) {
        let deflated = deflated.get(4..).ok_or("it is cut off")?;
        buffer.clear();
        ZlibDecoder::new(deflated)
            .read_to_end(buffer)
            .map_err(|e| e.to_string())?;
        if let Some((counts, layout)) = plain_counts(buffer) {
            return add_counts(counts, layout, into);
        }
    }
    let mut reader = bytes;
    let interval: Histogram<u64> = Deserializer::new()
        .deserialize(&mut reader)
        .map_err(|e| e.to_string())?;
    into.add(interval).map_err(|e| e.to_string())
}

/// How indices map to values: see `countsArrayIndex` of the Java implementation.
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
        let shift = u32::try_from(bucket).ok()? + self.unit_magnitude;
        (shift < within.leading_zeros()).then(|| within << shift)
    }
}

/// The encoded counts of an inflated V2 histogram without shift and scale; none
/// for anything else.
fn plain_counts(inflated: &[u8]) -> Option<(&[u8], Layout)> {
    let (header, counts) = inflated.split_at_checked(HEADER_BYTES)?;
    let word = |at: usize| {
        header
            .get(at..at + 4)?
            .try_into()
            .ok()
            .map(u32::from_be_bytes)
    };
    let long = |at: usize| {
        header
            .get(at..at + 8)?
            .try_into()
            .ok()
            .map(u64::from_be_bytes)
    };
    let (length, offset, digits) = (word(4)?, word(8)?, word(12)?);
    let (lowest, ratio) = (long(16)?, f64::from_bits(long(32)?));
    let plain = header.starts_with(&V2) && offset == 0 && digits <= 5 && ratio == 1.0;
    let counts = counts.get(..usize::try_from(length).ok()?)?;
    plain.then(|| (counts, Layout::new(digits, lowest)))
}

/// ZigZag LEB128 numbers: a count, or minus the number of empty places.
fn add_counts(mut counts: &[u8], layout: Layout, into: &mut Histogram<u64>) -> Result<(), String> {
    let mut index = 0u64;
    while !counts.is_empty() {
        let number = take_number(&mut counts).ok_or("it is cut off")?;
        if number < 0 {
            index = index.saturating_add(number.unsigned_abs());
            continue;
        }
        if number > 0 {
            let value = layout.value_at(index).ok_or("a value is out of range")?;
            into.record_n(value, number.unsigned_abs())
                .map_err(|e| e.to_string())?;
        }
        index += 1;
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
    Some((encoded >> 1) as i64 ^ -((encoded & 1) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::{Serializer, V2DeflateSerializer, V2Serializer};
    use proptest::prelude::*;

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
        add_interval(bytes, &mut into, &mut Vec::new())?;
        Ok(into)
    }

    fn deflated(histogram: &Histogram<u64>) -> Vec<u8> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(histogram, &mut bytes)
            .unwrap();
        bytes
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
}
