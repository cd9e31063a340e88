//! The answer of an HTTP server.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| inputs::read("http_answer", input));
