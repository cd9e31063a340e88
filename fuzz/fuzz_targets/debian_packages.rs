//! Output of apt-cache, and lists of modules.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| inputs::read("debian_packages", input));
