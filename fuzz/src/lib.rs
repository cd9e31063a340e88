//! What the fuzz targets share: a text cut into pieces, and the verdict on an answer
//! that comes in them.
//!
//! The first two bytes of an input are the lengths of the pieces, in turn; the rest is
//! the text. So a seed can be read and written by hand.

use load::openloop::{Answer, Done, Fault, Progress};

/// The lengths of the pieces, in turn.
pub type Lengths = [u8; 2];

/// `None` for an input that is too short to have a text.
pub fn text(input: &[u8]) -> Option<(Lengths, &[u8])> {
    let (lengths, text) = input.split_first_chunk()?;
    Some((*lengths, text))
}

/// The text in pieces of these lengths; a piece is never empty.
pub fn pieces(lengths: Lengths, mut text: &[u8]) -> Vec<&[u8]> {
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

/// What came of an answer, and what the end of the connection would make of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Verdict {
    taken: Result<Progress, Fault>,
    at_the_end: Option<Result<Done, Fault>>,
}

/// The verdict on the answer to one request. Bytes after its end are garbage.
pub fn verdict<R, A: Answer<R>>(mut answer: A, request: R, pieces: &[&[u8]]) -> Verdict {
    answer.expect(request);
    let mut taken = Ok(Progress::More);
    for piece in pieces {
        taken = match taken {
            Ok(Progress::More) => answer.take(piece),
            Ok(Progress::Done(_)) => Err(Fault::Garbage),
            Err(fault) => Err(fault),
        };
    }
    let is_open = taken == Ok(Progress::More);
    Verdict {
        taken,
        at_the_end: is_open.then(|| answer.end_of_stream()),
    }
}
