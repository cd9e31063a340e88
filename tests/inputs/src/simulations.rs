//! Logs of the requests of a Gatling simulation: its own, which is binary, and that of `demo/`.

use kinds::gatling::parse;

/// A log. Times of what is read overflow nothing.
pub fn requests(input: &[u8]) {
    for request in parse(input).unwrap_or_default() {
        request.counts_from_ns();
        request.latency_ns();
    }
}
