//! The embedded server answers requests, HTTP and memcached on one connection, alike
//! in whatever pieces they come.
#![no_main]

use fuzz::{pieces, text};
use libfuzzer_sys::fuzz_target;
use load::serve::{Session, Store};

/// The answers, and whether the connection has ended.
fn answered(pieces: &[&[u8]]) -> (Vec<u8>, bool) {
    let (mut session, store) = (Session::default(), Store::default());
    for piece in pieces {
        session.take(piece, &store);
    }
    (session.answers().to_vec(), session.is_over())
}

fuzz_target!(|input: &[u8]| {
    let Some((lengths, text)) = text(input) else {
        return;
    };
    let whole = answered(&[text]);
    assert_eq!(answered(&pieces(lengths, text)), whole);
    assert_eq!(answered(&pieces([1, 1], text)), whole);
});
