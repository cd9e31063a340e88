//! The memcached text protocol: `get`, `gets`, `set`, `version`, `quit`.

use super::Step;
use super::store::{Item, Store};
use std::io::Write;

const MOST_LINE_BYTES: usize = 8192;
const MOST_KEY_BYTES: usize = 250;
const MOST_VALUE_BYTES: usize = 1 << 20;
const LINE_END: &[u8] = b"\r\n";

pub fn answer(input: &[u8], store: &Store, output: &mut Vec<u8>) -> Step {
    let end = input.iter().position(|byte| *byte == b'\n');
    // Also one that came as a whole: the pieces must not matter.
    if end.unwrap_or(input.len()) > MOST_LINE_BYTES {
        return refuse("CLIENT_ERROR line too long", output);
    }
    let Some(end) = end else {
        return Step::More;
    };
    let line = input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]);
    let mut words = line
        .split(|byte| *byte == b' ')
        .filter(|word| !word.is_empty());
    let after = end + 1;
    match words.next() {
        Some(b"get" | b"gets") => get(words, store, output),
        Some(b"set") => return set(words, &input[after..], after, store, output),
        Some(b"version") => output.extend_from_slice(b"VERSION schedlab\r\n"),
        Some(b"quit") => return Step::Last,
        _ => output.extend_from_slice(b"ERROR\r\n"),
    }
    Step::Answered(after)
}

fn refuse(why: &str, output: &mut Vec<u8>) -> Step {
    output.extend_from_slice(why.as_bytes());
    output.extend_from_slice(LINE_END);
    Step::Last
}

fn get<'a>(keys: impl Iterator<Item = &'a [u8]>, store: &Store, output: &mut Vec<u8>) {
    for key in keys {
        store.get(key, |item| write_value(key, item, output));
    }
    output.extend_from_slice(b"END\r\n");
}

fn write_value(key: &[u8], item: &Item, output: &mut Vec<u8>) {
    output.extend_from_slice(b"VALUE ");
    output.extend_from_slice(key);
    // Writing to memory does not fail.
    let _ = write!(output, " {} {}\r\n", item.flags, item.value.len());
    output.extend_from_slice(&item.value);
    output.extend_from_slice(LINE_END);
}

/// `set KEY FLAGS EXPIRY BYTES [noreply]` and a line with the value.
fn set<'a>(
    mut words: impl Iterator<Item = &'a [u8]>,
    data: &[u8],
    before: usize,
    store: &Store,
    output: &mut Vec<u8>,
) -> Step {
    let key = words.next().filter(|key| key.len() <= MOST_KEY_BYTES);
    let flags = number(words.next());
    let _expiry = words.next();
    let (Some(key), Some(flags), Some(bytes)) = (key, flags, number(words.next())) else {
        return refuse("CLIENT_ERROR bad command line format", output);
    };
    let bytes = bytes as usize;
    if bytes > MOST_VALUE_BYTES {
        return refuse("SERVER_ERROR object too large for cache", output);
    }
    let Some(line) = data.get(..bytes + LINE_END.len()) else {
        return Step::More;
    };
    let Some(value) = line.strip_suffix(LINE_END) else {
        return refuse("CLIENT_ERROR bad data chunk", output);
    };
    let value = value.into();
    let answer: &[u8] = match store.set(key, Item { flags, value }) {
        true => b"STORED\r\n",
        false => b"SERVER_ERROR out of memory storing object\r\n",
    };
    if words.next() != Some(b"noreply") {
        output.extend_from_slice(answer);
    }
    Step::Answered(before + line.len())
}

fn number(word: Option<&[u8]>) -> Option<u32> {
    std::str::from_utf8(word?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn talk(store: &Store, input: &str) -> (Step, String) {
        let mut output = Vec::new();
        let step = answer(input.as_bytes(), store, &mut output);
        (step, String::from_utf8(output).unwrap())
    }

    #[test]
    fn what_was_set_is_got_and_the_rest_is_missed() {
        let store = Store::default();
        let set = "set a 5 0 3\r\nx\ny\r\n";
        assert_eq!(
            talk(&store, set),
            (Step::Answered(set.len()), "STORED\r\n".to_owned())
        );
        let (step, text) = talk(&store, "get a b\r\nget");
        assert_eq!(step, Step::Answered(9));
        assert_eq!(text, "VALUE a 5 3\r\nx\ny\r\nEND\r\n");
    }

    #[test]
    fn a_value_that_is_not_whole_is_waited_for() {
        let store = Store::default();
        assert_eq!(talk(&store, "set a 0 0 3\r\nxyz\r").0, Step::More);
        assert_eq!(talk(&store, "se").0, Step::More);
    }

    #[test]
    fn what_cannot_be_read_is_answered_with_an_error() {
        let store = Store::default();
        assert_eq!(talk(&store, "fly\r\n").1, "ERROR\r\n");
        for wrong in [
            "set a 0 0\r\n",
            "set a 0 0 3\r\nabcde\r\n",
            "set a 0 0 9999999\r\n",
        ] {
            let (step, text) = talk(&store, wrong);
            assert!(
                step == Step::Last && text.contains("_ERROR "),
                "{wrong}: {text}"
            );
        }
    }
}
