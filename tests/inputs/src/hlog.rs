//! Interval logs: as text, and one interval by its bytes, plain or deflated, so that what
//! is inside of the encodings is reached too.
//!
//! The first byte of an input says which: a digit or a `#` begins a log itself, `P` a plain
//! V2 histogram, `D` one that is deflated here.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::ZlibEncoder;
use hdrhistogram::Histogram;
use report::hlog::{add_log, count_intervals, read_intervals};
use std::io::Read;

const V2_COMPRESSED: [u8; 4] = 0x1c84_9314_u32.to_be_bytes();

/// An `*.hlog` file of a trial.
pub fn hlog(input: &[u8]) {
    match input.split_first() {
        Some((b'P', histogram)) => log(&line(histogram)),
        Some((b'D', histogram)) => log(&line(&deflated(histogram))),
        _ => log(input),
    }
}

fn log(text: &[u8]) {
    count_intervals(text);
    let mut histogram = empty();
    let mut buffer = Vec::new();
    if add_log(text, &mut histogram, &mut buffer).is_ok() {
        // Adding the intervals one by one finds the same.
        let mut samples = 0u64;
        for interval in read_intervals(text) {
            let mut one = empty();
            let interval = interval.expect("it was added before");
            interval
                .add_to(&mut one, &mut buffer)
                .expect("it was added before");
            samples = samples.saturating_add(one.len());
        }
        assert_eq!(samples, histogram.len());
        histogram.value_at_quantile(0.99);
    }
    assert!(buffer.len() <= (1 << 20) + 1);
}

fn empty() -> Histogram<u64> {
    let mut histogram = Histogram::new(3).expect("three digits are valid");
    histogram.auto(true);
    histogram
}

fn deflated(histogram: &[u8]) -> Vec<u8> {
    let mut bytes = V2_COMPRESSED.to_vec();
    bytes.extend([0; 4]);
    let mut inner = ZlibEncoder::new(histogram, Compression::fast());
    inner.read_to_end(&mut bytes).expect("memory takes all");
    bytes
}

/// A log of one interval.
fn line(histogram: &[u8]) -> Vec<u8> {
    format!("0.0,1.0,2.0,{}\n", STANDARD.encode(histogram)).into_bytes()
}
