//! A file of another tool.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| inputs::read("imports", input));
