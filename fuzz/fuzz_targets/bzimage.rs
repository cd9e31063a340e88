//! The header of a kernel image.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| inputs::read("bzimage", input));
