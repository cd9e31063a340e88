//! Answers and requests are judged alike in whatever pieces they come.
//!
//! The first two bytes of an input are the lengths of the pieces, in turn; the rest is
//! the text. So a seed can be read and written by hand.

use services::http::{Asked, HttpAnswer};
use services::memcached::{MemcachedAnswer, Operation, Request};
use services::openloop::{Answer, Done, Fault, Taken};
use services::serve::{Session, Store};

/// The answer of an HTTP server.
pub fn http_answer(input: &[u8]) {
    let Some((lengths, text)) = text(input) else {
        return;
    };
    for head_only in [false, true] {
        let asked = Asked {
            head_only,
            keep_bytes: 64,
        };
        let judged = |pieces: &[&[u8]]| verdict(HttpAnswer::new(), asked, pieces);
        let whole = judged(&[text]);
        assert_eq!(judged(&pieces(lengths, text)), whole);
        assert_eq!(judged(&pieces([1, 1], text)), whole);
    }
}

/// The answer of memcached.
pub fn memcached_answer(input: &[u8]) {
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
}

/// Requests to the embedded server, HTTP and memcached on one connection.
pub fn server_requests(input: &[u8]) {
    let Some((lengths, text)) = text(input) else {
        return;
    };
    let whole = answered(&[text]);
    assert_eq!(answered(&pieces(lengths, text)), whole);
    assert_eq!(answered(&pieces([1, 1], text)), whole);
}

/// The answers, and whether the connection has ended.
fn answered(pieces: &[&[u8]]) -> (Vec<u8>, bool) {
    let (mut session, store) = (Session::default(), Store::default());
    for piece in pieces {
        session.take_bytes(piece, &store);
    }
    (session.pending_answers().to_vec(), session.is_over())
}

/// The lengths of the pieces, in turn.
type Lengths = [u8; 2];

/// `None` for an input that is too short to have a text.
fn text(input: &[u8]) -> Option<(Lengths, &[u8])> {
    let (lengths, text) = input.split_first_chunk()?;
    Some((*lengths, text))
}

/// The text in pieces of these lengths; a piece is never empty.
fn pieces(lengths: Lengths, mut text: &[u8]) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    for length in lengths.into_iter().cycle() {
        if text.is_empty() {
            break;
        }
        let length = usize::from(length).clamp(1, text.len());
        let (piece, rest) = text.split_at(length);
        pieces.push(piece);
        text = rest;
    }
    pieces
}

/// The outcome of an answer, and what the end of the connection would make of it.
#[derive(Debug, PartialEq, Eq)]
struct Verdict {
    taken: Result<Taken, Fault>,
    at_the_end: Option<Result<Done, Fault>>,
}

/// The verdict on the answer to one request. Bytes after its end are garbage.
fn verdict<R, A: Answer<R>>(mut answer: A, request: R, pieces: &[&[u8]]) -> Verdict {
    answer.expect(request);
    let mut taken = Ok(Taken::More);
    for piece in pieces {
        taken = match taken {
            Ok(Taken::More) => answer.take_bytes(piece),
            Ok(Taken::Done(_)) => Err(Fault::Garbage),
            Err(fault) => Err(fault),
        };
    }
    let is_open = taken == Ok(Taken::More);
    Verdict {
        taken,
        at_the_end: is_open.then(|| answer.end_of_stream()),
    }
}
