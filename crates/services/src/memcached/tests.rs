//! The answer parser and the requests.

use super::*;
use crate::openloop::{Answer, Done, Fault, Taken};
use proptest::prelude::*;

/// The answer to one request, taken in the pieces that `cuts` make of it.
fn taken(operation: Operation, text: &[u8], cuts: &[usize]) -> Result<Taken, Fault> {
    let mut answer = MemcachedAnswer::new();
    answer.expect(Request { operation, key: 0 });
    let mut progress = Taken::More;
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    for piece in cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]) {
        progress = answer.take_bytes(piece)?;
    }
    Ok(progress)
}

fn got(text: &str) -> Result<Taken, Fault> {
    taken(Operation::Get, text.as_bytes(), &[])
}

fn set(text: &str) -> Result<Taken, Fault> {
    taken(Operation::Set, text.as_bytes(), &[])
}

const fn done(ok: bool, hit: Option<bool>) -> Result<Taken, Fault> {
    Ok(Taken::Done(Done {
        ok,
        hit,
        keep: true,
    }))
}

const HIT: &str = "VALUE key 0 9 123\r\nEND\r\nabcd\r\nEND\r\n";

#[test]
fn a_value_may_contain_what_looks_like_its_end() {
    assert_eq!(got(HIT), done(true, Some(true)));
}

#[test]
fn a_get_without_a_value_is_a_miss() {
    assert_eq!(got("END\r\n"), done(true, Some(false)));
}

#[test]
fn a_stored_value_is_neither_hit_nor_miss() {
    assert_eq!(set("STORED\r\n"), done(true, None));
}

#[test]
fn errors_are_whole_answers_that_say_no() {
    assert_eq!(
        set("SERVER_ERROR out of memory storing object\r\n"),
        done(false, None)
    );
    assert_eq!(got("ERROR\r\n"), done(false, None));
    assert_eq!(set("NOT_STORED\r\n"), done(false, None));
}

#[test]
fn garbage_is_refused() {
    let long = "x".repeat(600);
    for text in [
        "STORED\r\n",
        "END\n",
        "END \r\n",
        "VALUE key 0\r\n",
        "VALUE key 0 -1\r\n",
        "VALUE key 0 2\r\nabc\r\nEND\r\n",
        "VALUE key 0 2\r\nab\r\rEND\r\n",
        "VALUE key 0 2\r\nab\r\nVALUE key 0 2\r\nab\r\nEND\r\n",
        "END\r\nEND\r\n",
        &long,
    ] {
        assert_eq!(got(text), Err(Fault::Garbage), "{text:.60}");
    }
}

#[test]
fn a_connection_that_ends_early_is_a_hang_up_or_half_an_answer() {
    let mut answer = MemcachedAnswer::new();
    let request = Request {
        operation: Operation::Get,
        key: 0,
    };
    answer.expect(request);
    assert_eq!(answer.end_of_stream(), Err(Fault::HangUp));
    assert_eq!(answer.take_bytes(b"VALUE k 0 3\r\nab"), Ok(Taken::More));
    assert_eq!(answer.end_of_stream(), Err(Fault::HalfAnswer));
}

proptest! {
    #[test]
    fn an_answer_is_the_same_in_whatever_pieces_it_comes(cuts: Vec<usize>) {
        prop_assert_eq!(taken(Operation::Get, HIT.as_bytes(), &cuts), done(true, Some(true)));
    }

    #[test]
    fn nothing_that_a_server_sends_upsets_the_parser(text: Vec<u8>, cuts: Vec<usize>) {
        for operation in [Operation::Get, Operation::Set] {
            let judged = |cuts: &[usize]| taken(operation, &text, cuts);
            prop_assert_eq!(judged(&cuts), judged(&[]));
        }
    }

    #[test]
    fn a_damaged_answer_is_judged_alike_in_whatever_pieces_it_comes(
        at in 0..HIT.len(), byte: u8, cuts: Vec<usize>,
    ) {
        let mut text = HIT.as_bytes().to_vec();
        text[at] = byte;
        let judged = |cuts: &[usize]| taken(Operation::Get, &text, cuts);
        prop_assert_eq!(judged(&cuts), judged(&[]));
    }
}

fn keys(count: u64) -> Arc<Keys> {
    let value_size = Sizes::Fixed { bytes: 3 };
    Arc::new(Keys::new(count, Sizes::Fixed { bytes: 6 }, value_size))
}

fn text(keys: &Keys, operation: Operation, key: u32) -> String {
    let mut text = Vec::new();
    keys.write(Request { operation, key }, &mut text);
    String::from_utf8(text).unwrap()
}

#[test]
fn requests_are_lines_of_the_text_protocol() {
    let keys = keys(100);
    assert_eq!(text(&keys, Operation::Get, 42), "get 000042\r\n");
    let set = text(&keys, Operation::Set, 7);
    assert!(
        set.starts_with("set 000007 0 0 3\r\n") && set.ends_with("\r\n"),
        "{set:?}"
    );
    assert_eq!(set.len(), "set 000007 0 0 3\r\nabc\r\n".len());
}

#[test]
fn keys_are_long_enough_to_differ() {
    let keys = Keys::new(1000, Sizes::Fixed { bytes: 1 }, Sizes::Fixed { bytes: 0 });
    assert_eq!(text(&keys, Operation::Get, 999), "get 999\r\n");
    assert_eq!(text(&keys, Operation::Get, 1), "get 001\r\n");
}

#[test]
fn the_mix_has_the_share_of_gets_and_reaches_every_key() {
    let mut requests = Requests::new(keys(50), 90.0, 3, 0);
    let drawn: Vec<Request> = (0..20_000).map(|_| requests.draw()).collect();
    let gets = drawn
        .iter()
        .filter(|r| r.operation == Operation::Get)
        .count();
    assert!((gets as f64 / 20_000.0 - 0.9).abs() < 0.01);
    let different: std::collections::BTreeSet<u32> = drawn.iter().map(|r| r.key).collect();
    assert_eq!(different.len(), 50);
}

#[test]
fn the_same_seed_gives_the_same_requests_and_threads_differ() {
    let drawn = |seed, thread| {
        let mut requests = Requests::new(keys(50), 50.0, seed, thread);
        (0..100).map(|_| requests.draw()).collect::<Vec<_>>()
    };
    assert_eq!(drawn(1, 0), drawn(1, 0));
    assert_ne!(drawn(1, 0), drawn(1, 1));
}
