//! Bytes from outside, read within a limit that is said where it is reached.
//!
//! Files of users and strangers are opened with [`open_file`], which waits for no pipe and takes
//! no device; files of the kernel are read with [`kernel_text`], streams with [`stream_bytes`],
//! lines with [`Lines`], JSON with [`json`], and what another program says with [`output_of`].
//! Other modules must not read whole inputs by themselves: `clippy.toml` forbids the functions of
//! the standard library that have no limit.

mod child;
mod file;
mod json;
mod line;
mod log;
mod stream;

pub use child::{
    Asked, Heard, NoOutput, output_of, output_of_child, output_of_work, output_within,
    start_reading,
};
pub use file::{
    KERNEL_BYTES, LARGE_FILE_BYTES, SMALL_FILE_BYTES, file_bytes, file_bytes_here, file_text,
    kernel_bytes, kernel_text, large_file_bytes, open_file, open_file_here, open_kernel_file,
    small_file_bytes, small_file_text, text_of_file_or_pipe,
};
pub use json::{MostJson, parse_json};
pub use line::{LONGEST_SHOWN_LINE, Lines, line_within, lines_within};
pub use log::{Log, MOST_LOG_BYTES, join_output, to_log};
pub use stream::{copy_within, discard_rest, start_of, stream_bytes, stream_text};

use std::io::{Error, ErrorKind};

/// The error of an input that has more bytes than are read of it.
pub fn too_large(most_bytes: u64) -> Error {
    let most = size(most_bytes);
    let what = format!("it is larger than {most}, the most that is read of it");
    Error::new(ErrorKind::FileTooLarge, what)
}

/// A number of bytes as people write a limit: `4 MiB`, `8 KiB`, `100 bytes`.
fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        bytes if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        bytes => format!("{} KiB", bytes >> 10),
    }
}
