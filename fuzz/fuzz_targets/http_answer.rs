//! An HTTP answer is judged alike in whatever pieces it comes.
#![no_main]

use fuzz::{pieces, text, verdict};
use libfuzzer_sys::fuzz_target;
use load::http::{Asked, HttpAnswer};

fuzz_target!(|input: &[u8]| {
    let Some((lengths, text)) = text(input) else {
        return;
    };
    for head_only in [false, true] {
        let judged = |pieces: &[&[u8]]| verdict(HttpAnswer::new(), Asked { head_only }, pieces);
        let whole = judged(&[text]);
        assert_eq!(judged(&pieces(lengths, text)), whole);
        assert_eq!(judged(&pieces([1, 1], text)), whole);
    }
});
