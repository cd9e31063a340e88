//! Standard output. A reader that goes away early (`| head`) is no error.

use crate::exit::CliError;
use std::io::{ErrorKind, Write, stdout};

pub fn write(text: impl AsRef<[u8]>) -> Result<(), CliError> {
    let mut out = stdout();
    match out.write_all(text.as_ref()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(CliError::internal(e)),
        _ => Ok(()),
    }
}
