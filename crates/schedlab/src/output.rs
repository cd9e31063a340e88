//! Output of the commands, all of it through [`doors::shown`]. A reader that goes away early
//! (`| head`) is no error.

use crate::exit::CliError;
use clap::ValueEnum;
use doors::shown::{self, Shown, Stream};
use doors::started::tool_command;
use doors::written;
use serde::Serialize;
use std::fmt::{Arguments, Display};
use std::io::ErrorKind;
use std::path::Path;
use std::process::Stdio;

/// Like `println!`, without its panic when nobody reads any more.
macro_rules! say {
    ($($words:tt)*) => { $crate::output::line(format_args!($($words)*)) };
}
pub(crate) use say;

/// A line on standard error, like `eprintln!`.
macro_rules! note {
    ($($words:tt)*) => { doors::shown::print_note(format_args!($($words)*)) };
}
pub(crate) use note;

/// Formats of what is no report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Plain {
    Text,
    Json,
}

impl Plain {
    /// The option that asks for it, for a schedlab on another machine.
    pub fn option_word(self) -> &'static str {
        match self {
            Plain::Text => "--format=text",
            Plain::Json => "--format=json",
        }
    }
}

pub fn line(words: Arguments) {
    let words = shown::clean_text(format_args!("{words}\n"));
    if let Err(error) = Stream::Output.write(&words) {
        let gone = error.kind() == ErrorKind::BrokenPipe;
        std::process::exit(if gone {
            0
        } else {
            crate::exit::INTERNAL.into()
        });
    }
}

/// Columns for text: what COLUMNS says, else the terminal's, else the usual ones.
pub fn width() -> usize {
    let said = std::env::var("COLUMNS").ok();
    let said = said.and_then(|columns| columns.trim().parse().ok());
    let columns = said.or_else(|| Stream::Output.terminal_columns());
    columns
        .filter(|columns| *columns > 0)
        .unwrap_or(report::Options::USUAL_WIDTH)
}

/// Does the stream show colours, and does its user want them?
pub fn has_colours(stream: Stream) -> bool {
    let term = std::env::var_os("TERM");
    let is_plain = std::env::var_os("NO_COLOR").is_some() || term.is_some_and(|t| t == "dumb");
    stream.is_terminal() && !is_plain
}

/// A value as JSON, over several lines.
pub fn json(value: &impl Serialize) -> Result<(), CliError> {
    write(&shown::json_text(value).map_err(CliError::internal)?)
}

/// The text of [`json`], with the end of its last line.
pub fn json_text(value: &impl Serialize) -> Result<String, CliError> {
    let json = shown::json_text(value).map_err(CliError::internal)?;
    Ok(json.into_string())
}

/// A whole text of ours, without colours.
pub fn print_text(words: impl Display) -> Result<(), CliError> {
    write(&shown::clean_text(words))
}

/// The answer.
pub fn write(answer: &Shown) -> Result<(), CliError> {
    match Stream::Output.write(answer) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(CliError::internal(e)),
        _ => Ok(()),
    }
}

/// Writes a file, whole or not at all.
pub fn file(path: &Path, bytes: Vec<u8>) -> Result<(), CliError> {
    written::write_file_durably(path, bytes)
        .map_err(|e| CliError::internal(format!("writing {}: {e}", path.display())))
}

/// Makes a directory, with those above it.
pub fn directory(dir: &Path) -> Result<(), CliError> {
    written::make_directory(dir)
        .map(drop)
        .map_err(|e| CliError::internal(format!("creating {}: {e}", dir.display())))
}

/// Shows a page in the browser of this desktop. Where there is none, the page is as good without.
pub fn open(page: &Path) {
    let mut command = tool_command("xdg-open");
    command.arg(page.canonicalize().unwrap_or_else(|_| page.to_owned()));
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let (started, page) = (command.stderr(Stdio::null()).spawn(), page.display());
    match started {
        // Whether anything shows it is known to nobody.
        Ok(_) => note!("xdg-open was asked to show {page}"),
        Err(error) => {
            note!(
                "xdg-open cannot be started ({error}; the package xdg-utils has it): open {page}"
            );
        }
    }
}
