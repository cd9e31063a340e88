//! Text for a person or a program, without what a terminal would obey.
//!
//! Everything that schedlab prints passes here, on both standard streams: [`write`](Stream::write)
//! takes [`Shown`], which is made of cleaned text or of JSON and of nothing else. What other programs
//! print is piped through [`relay_lines`]; they are never handed the terminal. The exceptions go through
//! [`raw_output`] and say why: messages between two processes of schedlab, and the terminal of a guest.

use model::printable::{clean_lines, is_hidden, one_line};
use serde::Serialize;
use std::fmt::{Display, Write as _};
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;

/// Bytes of a line of another program that are shown as one; the rest of the line is shown after them.
const LONGEST_LINE: u64 = 64 << 10;

/// Text that may be printed: it has no character that a terminal would obey.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shown(String);

/// Words of several lines, whoever made them: what a terminal would obey is seen instead, and line
/// ends and tabs stay.
pub fn clean_text(words: impl Display) -> Shown {
    Shown(clean_lines(&words.to_string()).into_owned())
}

/// The same for text of ours in colours, which stay: SGR sequences of ECMA-48, which change how
/// text looks and nothing else. Words of others must have been cleaned before they were put into it.
pub fn coloured_text(words: impl Display) -> Shown {
    let words = words.to_string();
    let mut shown = String::with_capacity(words.len());
    let mut rest = words.as_str();
    while let Some(at) = rest.find('\u{1b}') {
        let (before, from) = rest.split_at(at);
        shown += &clean_lines(before);
        let length = colour(from);
        let (sequence, behind) = from.split_at(length.unwrap_or(1));
        match length {
            Some(_) => shown += sequence,
            None => shown += &one_line(sequence),
        }
        rest = behind;
    }
    Shown(shown + &clean_lines(rest))
}

/// Words of one line: a line end in them, and the spaces around that, are shown as a space.
pub fn clean_line(words: impl Display) -> Shown {
    let words = words.to_string();
    let lines = words.split(['\n', '\r']).map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    Shown(one_line(&lines.join(" ")).into_owned())
}

/// Length of the sequence for a colour that the text begins with.
fn colour(text: &str) -> Option<usize> {
    let codes = text.strip_prefix("\u{1b}[")?;
    let end = codes.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    codes[end..].starts_with('m').then_some(2 + end + 1)
}

/// A value as JSON over several lines, with the end of its last line. JSON leaves DEL, C1, bidirectional
/// overrides and characters without width as they are; here they are escaped, too.
pub fn json_text(value: &impl Serialize) -> Result<Shown, serde_json::Error> {
    let text = serde_json::to_string_pretty(value)?;
    Ok(escaped(&text))
}

/// The same in one line, with its end.
pub fn json_line(value: &impl Serialize) -> Result<Shown, serde_json::Error> {
    let text = serde_json::to_string(value)?;
    Ok(escaped(&text))
}

fn escaped(json: &str) -> Shown {
    let mut shown = String::with_capacity(json.len() + 1);
    for c in json.chars() {
        // Within a string JSON has no line end itself.
        match is_hidden(c) && c != '\n' {
            true => escape(c, &mut shown),
            false => shown.push(c),
        }
    }
    shown.push('\n');
    Shown(shown)
}

fn escape(c: char, to: &mut String) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        // Writing to a string cannot fail.
        let _ = write!(to, "\\u{unit:04x}");
    }
}

impl Shown {
    /// Text itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Text itself, for a file.
    pub fn into_string(self) -> String {
        self.0
    }
}

impl Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// One of the two standard streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output: the answer.
    Output,
    /// Standard error: whatever else is said.
    Errors,
}

#[expect(clippy::disallowed_methods, reason = "this is the door")]
impl Stream {
    /// Prints a text.
    pub fn write(self, shown: &Shown) -> io::Result<()> {
        self.put(shown.0.as_bytes())
    }

    /// Is it a terminal?
    pub fn is_terminal(self) -> bool {
        match self {
            Stream::Output => io::stdout().is_terminal(),
            Stream::Errors => io::stderr().is_terminal(),
        }
    }

    /// Columns of the terminal; none where it is no terminal.
    pub fn terminal_columns(self) -> Option<usize> {
        let size = match self {
            Stream::Output => rustix::termios::tcgetwinsize(io::stdout()),
            Stream::Errors => rustix::termios::tcgetwinsize(io::stderr()),
        };
        size.ok().map(|size| usize::from(size.ws_col))
    }

    /// Empties the line that the cursor of a terminal is in.
    pub fn clear_line(self) {
        if self.is_terminal() {
            // Who does not see it any more is gone.
            let _ = self.put(b"\r\x1b[2K");
        }
    }

    fn put(self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Output => put(&mut io::stdout().lock(), bytes),
            Stream::Errors => put(&mut io::stderr().lock(), bytes),
        }
    }
}

fn put(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}

/// A line on standard error. One that nobody reads any more is no error.
pub fn print_note(words: impl Display) {
    let _ = Stream::Errors.write(&clean_text(format_args!("{words}\n")));
}

/// Standard error as a writer, for a log: each piece that is written is cleaned.
#[derive(Debug, Clone, Copy, Default)]
pub struct Notes;

impl Write for Notes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Stream::Errors.write(&clean_text(String::from_utf8_lossy(bytes)))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Shows what another program prints, line by line, until it ends.
pub fn relay_lines(from: impl Read + Send + 'static, to: Stream) -> JoinHandle<()> {
    std::thread::spawn(move || relay(from, |shown| to.write(shown)))
}

/// It is read to its end, also where nobody sees it any more: the program goes on.
#[expect(
    clippy::disallowed_methods,
    reason = "the stream is limited, and what is beyond it is the next piece"
)]
fn relay(from: impl Read, mut show: impl FnMut(&Shown) -> io::Result<()>) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        line.clear();
        match from
            .by_ref()
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut line)
        {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let _ = show(&clean_text(String::from_utf8_lossy(&line)));
    }
}

/// Runs a program to its end, and shows what it prints: its output on `output`, its errors on standard
/// error.
pub fn run_program(command: &mut Command, output: Stream) -> io::Result<ExitStatus> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    to_end(command.spawn()?, output)
}

/// Shows what a program with pipes prints, until it has ended.
pub fn to_end(mut child: Child, output: Stream) -> io::Result<ExitStatus> {
    let followed = [
        child.stdout.take().map(|from| relay_lines(from, output)),
        child
            .stderr
            .take()
            .map(|from| relay_lines(from, Stream::Errors)),
    ];
    let status = child.wait();
    for follower in followed.into_iter().flatten() {
        // It has no panic of its own.
        let _ = follower.join();
    }
    status
}

/// Standard output as it is, for bytes that are no text for a person. `_why` is for the reader of the
/// code: messages to another process of schedlab, or the terminal of a guest.
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub fn raw_output(_why: &'static str) -> io::Stdout {
    io::stdout()
}

/// Standard error as it is; see [`raw_output`].
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub fn raw_errors(_why: &'static str) -> io::Stderr {
    io::stderr()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Title of a terminal, CSI of C1, an override, NUL, a return, DEL, a tag.
    const POISON: &str = "\u{1b}]0;pwn\u{7}\u{9b}2J\u{202e}\u{0}\r\u{7f}\u{e0041}";

    #[test]
    fn text_has_nothing_that_a_terminal_obeys_and_keeps_its_lines() {
        let shown = clean_text(format_args!("a\n\tb{POISON}"));
        assert!(shown.as_str().starts_with("a\n\tb\\u{1b}]0;pwn\\u{7}"));
        assert!(!shown.as_str().replace(['\n', '\t'], "").contains(is_hidden));
    }

    #[test]
    fn json_escapes_what_json_leaves_and_says_the_same() {
        let shown = json_text(&[POISON]).unwrap();
        assert!(
            !shown.as_str().replace('\n', "").contains(is_hidden),
            "{shown}"
        );
        assert!(shown.as_str().contains("\\u009b2J\\u202e"), "{shown}");
        let back: Vec<String> = serde_json::from_str(shown.as_str()).unwrap();
        assert_eq!(back, [POISON]);
    }

    #[test]
    fn colours_stay_and_nothing_else_of_an_escape_does() {
        let shown = coloured_text("\u{1b}[1;31mred\u{1b}[0m \u{1b}[2J\u{1b}]0;x\u{7}\u{1b}");
        assert_eq!(
            shown.as_str(),
            "\u{1b}[1;31mred\u{1b}[0m \\u{1b}[2J\\u{1b}]0;x\\u{7}\\u{1b}"
        );
    }

    #[test]
    fn a_message_of_several_lines_is_one_sentence_where_there_is_one_line() {
        assert_eq!(
            clean_line("another run is under way\n  schedlab run\r\n\nin /root\n").as_str(),
            "another run is under way schedlab run in /root"
        );
        assert_eq!(clean_line("a\u{1b}\tb").as_str(), "a\\u{1b}\\u{9}b");
    }

    #[test]
    fn another_program_is_shown_line_by_line_and_without_its_escapes() {
        let mut seen = Vec::new();
        let said = format!("one\n{POISON}\nlast").into_bytes();
        let said = [said, b"\xff".to_vec()].concat();
        relay(said.as_slice(), |shown| {
            seen.push(shown.as_str().to_owned());
            Ok(())
        });
        assert_eq!(seen.len(), 3, "{seen:?}");
        assert_eq!(
            (seen[0].as_str(), seen[2].as_str()),
            ("one\n", "last\u{fffd}")
        );
        assert!(!seen.concat().replace('\n', "").contains(is_hidden));
    }

    #[test]
    fn a_line_without_an_end_is_shown_in_pieces() {
        let long = vec![b'x'; 3 * usize::try_from(LONGEST_LINE).unwrap()];
        let mut longest = 0;
        relay(long.as_slice(), |shown| {
            longest = longest.max(shown.as_str().len());
            Ok(())
        });
        assert_eq!(longest as u64, LONGEST_LINE);
    }
}
