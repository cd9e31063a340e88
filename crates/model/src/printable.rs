//! Text from files and programs on its way to a person.
//!
//! A terminal obeys control characters (ECMA-48: the title, the clipboard, the cursor),
//! and bidirectional controls change the order in which a line is read (Unicode TR 36,
//! CVE-2021-42574). Every renderer for people therefore shows such characters as
//! `\u{…}`. JSON, for programs, keeps them: it has an escape of its own.

use std::borrow::Cow;
use std::fmt::Write;

/// Text that stays in its line: a name, a value, a sentence.
pub fn one_line(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden)
}

/// Text of several lines that have been made by us, or whose line ends do no harm: line
/// ends and tabs stay.
pub fn clean_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_hidden(c) && !matches!(c, '\n' | '\t'))
}

/// The last `count` lines that say something, as one text. Empty lines say nothing, nor do the
/// frames of a Java stack trace, which come after the message of its exception.
pub fn last_lines(text: &str, count: usize, separator: &str) -> String {
    let lines = telling(text);
    lines[lines.len().saturating_sub(count)..].join(separator)
}

/// The lines from the last one that begins with `error: `, since advice on usage follows it;
/// [`last_lines`] where there is none.
pub fn error_lines(text: &str, count: usize, separator: &str) -> String {
    let is_error = |line: &&str| {
        let head = line.trim_start().get(..ERROR.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(ERROR))
    };
    let lines = telling(text);
    match lines.iter().rposition(is_error) {
        Some(from) => lines[from..lines.len().min(from + count)].join(separator),
        None => last_lines(text, count, separator),
    }
}

fn telling(text: &str) -> Vec<&str> {
    let says = |line: &&str| !line.trim().is_empty() && !line.starts_with("\tat ");
    text.lines().filter(says).collect()
}

/// How programs begin the line that says what went wrong.
const ERROR: &str = "error: ";

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_escaped(c) {
            // Writing to a string cannot fail.
            true => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Bytes in hexadecimal, as sha256sum(1) writes them.
pub fn write_hexadecimal(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02x}");
    }
    out
}

/// Characters that are obeyed rather than seen: C0, DEL and C1; marks, embeddings,
/// overrides and isolates of the bidirectional algorithm; characters without width; ends
/// of lines and paragraphs; tags.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_seen_instead() {
        // OSC 52 writes the clipboard, C1's CSI begins a sequence in one byte.
        assert_eq!(one_line("\u{1b}]52;c;eA==\u{7}"), "\\u{1b}]52;c;eA==\\u{7}");
        assert_eq!(one_line("a\u{9b}2Jb\u{7f}"), "a\\u{9b}2Jb\\u{7f}");
        assert_eq!(one_line("\u{202e}gnp.exe"), "\\u{202e}gnp.exe");
        assert_eq!(one_line("a\u{2066}b\u{feff}"), "a\\u{2066}b\\u{feff}");
    }

    #[test]
    fn a_name_with_a_line_end_stays_in_its_line() {
        assert_eq!(one_line("cell\nbatch: better"), "cell\\u{a}batch: better");
        assert_eq!(one_line("a\r\tb\u{2028}c"), "a\\u{d}\\u{9}b\\u{2028}c");
        assert_eq!(clean_lines("a\n\tb\r\u{1b}"), "a\n\tb\\u{d}\\u{1b}");
    }

    #[test]
    fn other_text_is_left_alone() {
        let text = "wakeup 50 % · 30 µs → naïve 漢字 \u{5e9}\u{5dc}";
        assert!(matches!(one_line(text), Cow::Borrowed(same) if same == text));
    }

    #[test]
    fn the_last_lines_are_joined_for_a_message() {
        assert_eq!(last_lines("a\n\nb\nc\nd\n", 2, " | "), "c | d");
        assert_eq!(last_lines("", 2, " | "), "");
        let trace = "NotFound: no.such.Simulation\n\tat a.B(B.java:1)\n\tat c.D(D.java:2)\nend\n";
        assert_eq!(
            last_lines(trace, 2, " | "),
            "NotFound: no.such.Simulation | end"
        );
    }

    #[test]
    fn an_error_of_usage_is_quoted_from_its_first_line() {
        let usage =
            "starting\nerror: unexpected argument '--x'\n\n  tip: '--xy'\nUsage: a\nFor more\n";
        assert_eq!(
            error_lines(usage, 3, " | "),
            "error: unexpected argument '--x' |   tip: '--xy' | Usage: a"
        );
        assert_eq!(error_lines("a\nb\nc\n", 2, " | "), "b | c");
    }
}
