//! Standard output. A reader that goes away early (`| head`) is no error. What a terminal
//! would obey is shown instead, whatever the words quote.

use crate::exit::CliError;
use clap::ValueEnum;
use doors::written;
use model::printable::lines;
use serde::Serialize;
use std::fmt::Arguments;
use std::io::{ErrorKind, Write, stdout};
use std::path::Path;
use std::process::{Command, Stdio};

/// Like `println!`, without its panic when nobody reads any more.
macro_rules! say {
    ($($words:tt)*) => { $crate::output::line(format_args!($($words)*)) };
}
pub(crate) use say;

/// Formats of what is no report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Plain {
    Text,
    Json,
}

impl Plain {
    /// The option that asks for it, for a schedlab on another machine.
    pub fn word(self) -> &'static str {
        match self {
            Plain::Text => "--format=text",
            Plain::Json => "--format=json",
        }
    }
}

pub fn line(words: Arguments) {
    let words = words.to_string();
    if let Err(error) = writeln!(stdout(), "{}", lines(&words)) {
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
    let terminal = || rustix::termios::tcgetwinsize(stdout()).ok();
    let columns = said.or_else(|| terminal().map(|size| usize::from(size.ws_col)));
    columns
        .filter(|columns| *columns > 0)
        .unwrap_or(report::Options::USUAL_WIDTH)
}

/// A value as JSON, over several lines.
pub fn json(value: &impl Serialize) -> Result<(), CliError> {
    write(json_text(value)?)
}

/// The text of [`json`], with the end of its last line.
pub fn json_text(value: &impl Serialize) -> Result<String, CliError> {
    let text = serde_json::to_string_pretty(value).map_err(CliError::internal)?;
    Ok(text + "\n")
}

/// A whole text.
pub fn write(text: impl AsRef<[u8]>) -> Result<(), CliError> {
    let mut out = stdout();
    match out.write_all(text.as_ref()).and_then(|()| out.flush()) {
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
    let mut command = Command::new("xdg-open");
    command.arg(page.canonicalize().unwrap_or_else(|_| page.to_owned()));
    command.stdin(Stdio::null()).stdout(Stdio::null());
    if let Err(error) = command.stderr(Stdio::null()).spawn() {
        let page = page.display();
        eprintln!(
            "xdg-open cannot be started ({error}; the package xdg-utils has it): open {page}"
        );
    }
}
