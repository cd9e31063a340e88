//! A memcached answer is judged alike in whatever pieces it comes.
#![no_main]

use fuzz::{pieces, text, verdict};
use libfuzzer_sys::fuzz_target;
use load::memcached::{MemcachedAnswer, Operation, Request};

fuzz_target!(|input: &[u8]| {
    let Some((lengths, text)) = text(input) else {
        return;
    };
    for operation in [Operation::Get, Operation::Set] {
        let request = Request { operation, key: 0 };
        let judged = |pieces: &[&[u8]]| verdict(MemcachedAnswer::new(), request, pieces);
        let whole = judged(&[text]);
        assert_eq!(judged(&pieces(lengths, text)), whole);
        assert_eq!(judged(&pieces([1, 1], text)), whole);
    }
});
