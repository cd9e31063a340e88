//! The requests of a client on one connection, in whatever pieces they come, and the answers to
//! them, in order. No sockets: [`super::connection`] has them.

use super::store::Store;
use super::{Step, answer};

/// State of one connection of the server.
#[derive(Debug, Default)]
pub struct Session {
    /// The beginning of a request that is not whole.
    input: Vec<u8>,
    answers: Vec<u8>,
    over: bool,
}

impl Session {
    /// Answers the requests that are whole with these bytes.
    pub fn take_bytes(&mut self, bytes: &[u8], store: &Store) {
        if self.over {
            return;
        }
        if self.input.is_empty() {
            let used = self.answer_all(bytes, store);
            self.input.extend_from_slice(&bytes[used..]);
            return;
        }
        let mut input = std::mem::take(&mut self.input);
        input.extend_from_slice(bytes);
        let used = self.answer_all(&input, store);
        input.drain(..used);
        self.input = input;
    }

    /// Bytes of the requests that were answered.
    fn answer_all(&mut self, input: &[u8], store: &Store) -> usize {
        let mut used = 0;
        loop {
            match answer(&input[used..], store, &mut self.answers) {
                Step::More => return used,
                Step::Answered(n) => used += n,
                Step::Last => {
                    self.over = true;
                    return input.len();
                }
            }
        }
    }

    /// Answers that were not cleared yet.
    pub fn pending_answers(&self) -> &[u8] {
        &self.answers
    }

    /// Forgets the answers, once they were sent.
    pub fn clear_answers(&mut self) {
        self.answers.clear();
    }

    /// The last answer was given: the connection ends with it.
    pub fn is_over(&self) -> bool {
        self.over
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Answers to a text that comes in the pieces that `cuts` make of it, and whether
    /// the connection has ended.
    fn answered(text: &[u8], cuts: &[usize]) -> (Vec<u8>, bool) {
        let (mut session, store) = (Session::default(), Store::default());
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        for pair in cuts.windows(2) {
            session.take_bytes(&text[pair[0]..pair[1]], &store);
        }
        (session.pending_answers().to_vec(), session.is_over())
    }

    const TALK: &[u8] = b"set a 1 0 4\r\n\r\nGE\r\nget a b\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n\
        POST /x HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcversion\r\nquit\r\n";

    #[test]
    fn nothing_is_answered_after_the_last_answer() {
        let (answers, over) = answered(TALK, &[]);
        assert!(over);
        assert!(answers.ends_with(b"VERSION schedlab\r\n"));
        assert_eq!(
            answered(&[TALK, b"version\r\n"].concat(), &[TALK.len()]),
            (answers, true)
        );
    }

    #[test]
    fn a_line_or_a_head_that_is_too_long_is_refused_in_whatever_pieces_it_comes() {
        let line = [b"get ", "k".repeat(9_000).as_bytes(), b"\r\n"].concat();
        let head = [
            b"GET / HTTP/1.1\r\nA: ",
            "a".repeat(70_000).as_bytes(),
            b"\r\n\r\n",
        ]
        .concat();
        for (text, refusal) in [(line, "CLIENT_ERROR"), (head, "HTTP/1.1 400")] {
            let (answers, over) = answered(&text, &[]);
            assert!(over && answers.starts_with(refusal.as_bytes()));
            assert_eq!(answered(&text, &[text.len() - 1]), (answers, over));
        }
    }

    proptest! {
        #[test]
        fn requests_are_answered_alike_in_whatever_pieces_they_come(cuts: Vec<usize>) {
            prop_assert_eq!(answered(TALK, &cuts), answered(TALK, &[]));
        }

        #[test]
        fn damaged_requests_are_answered_alike_in_whatever_pieces_they_come(
            at in 0..TALK.len(), byte: u8, cuts: Vec<usize>,
        ) {
            let mut text = TALK.to_vec();
            text[at] = byte;
            prop_assert_eq!(answered(&text, &cuts), answered(&text, &[]));
        }

        #[test]
        fn nothing_that_a_client_sends_upsets_the_server(text: Vec<u8>, cuts: Vec<usize>) {
            prop_assert_eq!(answered(&text, &cuts), answered(&text, &[]));
        }
    }
}
