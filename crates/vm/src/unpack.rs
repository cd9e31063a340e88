//! Unpacking of gzip, xz, zstd and their like, up to a limit: the files may be a stranger's,
//! and a few kilobytes of them unpack to all of the memory.

use doors::read::stream_bytes;
use doors::started::tool_command;
use std::io::{Error, ErrorKind, Result};
use std::process::{ExitStatus, Stdio};

/// The output of `program -dc` for `input`, and how it ended.
pub fn output_of(program: &'static str, input: Stdio, limit: u64) -> Result<(Vec<u8>, ExitStatus)> {
    let mut child = tool_command(program)
        .arg("-dc")
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let read = match child.stdout.take() {
        Some(output) => stream_bytes(output, limit),
        None => Ok(Vec::new()),
    };
    if read.is_err() {
        // It may have ended already, which is what is wanted.
        let _ = child.kill();
    }
    let status = child.wait()?;
    let bytes = read.map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => {
            let what = format!("it has more than {} MiB when unpacked", limit >> 20);
            Error::new(ErrorKind::FileTooLarge, what)
        }
        _ => error,
    })?;
    Ok((bytes, status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::process::Command;

    #[test]
    fn what_unpacks_to_more_than_the_limit_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let packed = dir.path().join("zeros.gz");
        let made = Command::new("sh")
            .args(["-c", "head -c 4000000 /dev/zero | gzip > \"$1\"", "sh"])
            .arg(&packed)
            .status();
        assert!(made.unwrap().success());
        let open = || Stdio::from(File::open(&packed).unwrap());
        let (bytes, status) = output_of("gzip", open(), 4_000_000).unwrap();
        assert_eq!((bytes.len(), status.success()), (4_000_000, true));
        let error = output_of("gzip", open(), 3 << 20).unwrap_err().to_string();
        assert!(error.contains("more than 3 MiB"), "{error}");
    }

    #[test]
    fn what_is_not_packed_and_a_program_that_is_not_there_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("text");
        std::fs::write(&path, "text").unwrap();
        let open = || Stdio::from(File::open(&path).unwrap());
        let (bytes, status) = output_of("gzip", open(), 100).unwrap();
        assert_eq!((bytes.len(), status.success()), (0, false));
        let missing = output_of("no-such-program", open(), 100).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }
}
