//! Standard output. A reader that goes away early (`| head`) is no error.

use crate::exit::CliError;
use std::fmt::Arguments;
use std::io::{ErrorKind, Write, stdout};

/// Like `println!`, without its panic when nobody reads any more.
macro_rules! say {
    ($($words:tt)*) => { $crate::output::line(format_args!($($words)*)) };
}
pub(crate) use say;

pub fn line(words: Arguments) {
    if let Err(error) = writeln!(stdout(), "{words}") {
        let gone = error.kind() == ErrorKind::BrokenPipe;
        std::process::exit(if gone {
            0
        } else {
            crate::exit::INTERNAL.into()
        });
    }
}

/// A whole text.
pub fn write(text: impl AsRef<[u8]>) -> Result<(), CliError> {
    let mut out = stdout();
    match out.write_all(text.as_ref()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(CliError::internal(e)),
        _ => Ok(()),
    }
}
