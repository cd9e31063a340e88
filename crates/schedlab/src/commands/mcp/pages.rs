//! The size of an answer. An agent pays for each word that it reads, so none is longer than
//! [`MOST_BYTES`]; the rest waits under a handle.

use model::printable::clean_lines;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Bytes of an answer: 1 500 tokens at 2.7 bytes, which is what figures cost. Prose has four.
pub const MOST_BYTES: usize = 4_000;
/// Room for the line that names the handle.
const FOR_HANDLE: usize = 120;
/// Rests that are kept; the oldest goes first.
const MOST_RESTS: usize = 32;
/// The most that is kept of one answer.
const MOST_REST_BYTES: usize = 1 << 20;

/// Rests of long answers.
#[derive(Debug, Default)]
pub struct Pages {
    rests: Mutex<Rests>,
}

#[derive(Debug, Default)]
struct Rests {
    number: u32,
    kept: VecDeque<(u32, String)>,
}

impl Pages {
    /// The first part of a text, whole lines if they are not too long, and the handle of the rest.
    pub fn cut_text(&self, text: &str) -> String {
        let text = clean_lines(text);
        if text.len() <= MOST_BYTES {
            return text.into_owned();
        }
        let (first, rest) = split_text(&text, MOST_BYTES - FOR_HANDLE);
        let rest = split_text(rest, MOST_REST_BYTES).0;
        let left = rest.len();
        let mut rests = self.rests.lock().unwrap_or_else(PoisonError::into_inner);
        rests.number += 1;
        let number = rests.number;
        rests.kept.push_back((number, rest.to_owned()));
        if rests.kept.len() > MOST_RESTS {
            rests.kept.pop_front();
        }
        format!("{first}\n[{left} bytes more: ask the tool `more` with handle {number}]")
    }

    /// The rest of this handle, with the handle of what is left then.
    pub fn next_part(&self, handle: u64) -> Option<String> {
        let rest = {
            let rests = self.rests.lock().unwrap_or_else(PoisonError::into_inner);
            let mut kept = rests.kept.iter();
            kept.find(|(number, _)| u64::from(*number) == handle)?
                .1
                .clone()
        };
        Some(self.cut_text(&rest))
    }
}

/// Before and after the last end of a line, or of a letter, within so many bytes.
fn split_text(text: &str, most: usize) -> (&str, &str) {
    if text.len() <= most {
        return (text, "");
    }
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end));
    let (first, _) = text.split_at(end.unwrap_or(0));
    match first.rfind('\n') {
        Some(line) if line > most / 2 => (&text[..line], &text[line + 1..]),
        _ => (first, &text[first.len()..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_answer_is_longer_than_the_limit_and_nothing_of_it_is_lost() {
        let lines: Vec<String> = (0..2000).map(|n| format!("line {n} of many: é")).collect();
        let text = lines.join("\n");
        let pages = Pages::default();
        let mut answer = pages.cut_text(&text);
        let mut seen = Vec::new();
        loop {
            assert!(answer.len() <= MOST_BYTES, "{}", answer.len());
            let handle = match answer.rsplit_once("\n[") {
                Some((part, end)) if end.contains("handle") => {
                    seen.extend(part.lines().map(str::to_owned));
                    end.rsplit(' ')
                        .next()
                        .unwrap()
                        .trim_end_matches(']')
                        .parse()
                }
                _ => {
                    seen.extend(answer.lines().map(str::to_owned));
                    break;
                }
            };
            answer = pages.next_part(handle.unwrap()).unwrap();
        }
        assert_eq!(seen, lines);
        assert_eq!(pages.next_part(9999), None);
    }

    #[test]
    fn a_line_without_an_end_is_cut_between_letters() {
        let text = "é".repeat(5000);
        let answer = Pages::default().cut_text(&text);
        assert!(answer.len() <= MOST_BYTES && answer.starts_with("éé"));
    }
}
