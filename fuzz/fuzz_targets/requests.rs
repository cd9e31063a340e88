//! A log of the requests of a simulation.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| inputs::read("requests", input));
