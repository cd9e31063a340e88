//! Logs of programs that run for long, such as builds: they grow while the program runs, up to a limit.

use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// The most bytes of a log, but for the line that says that more came.
pub const MOST_LOG_BYTES: u64 = 32 << 20;
const MORE: &[u8] = b"\n[the program said more than 32 MiB; the rest is not kept]\n";
/// Time in which a descendant may hold the pipe open after the program.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// File that takes what a program says, up to the limit. What comes after that is dropped, so that the
/// program is not held up.
#[derive(Debug)]
pub struct Log {
    file: File,
    left: u64,
}

impl Log {
    /// Goes on at the end of the file.
    pub fn append_to(file: File) -> io::Result<Self> {
        let left = MOST_LOG_BYTES.saturating_sub(file.metadata()?.len());
        Ok(Log { file, left })
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = usize::try_from(self.left).unwrap_or(usize::MAX);
        let kept = &bytes[..bytes.len().min(room)];
        self.file.write_all(kept)?;
        self.left -= kept.len() as u64;
        if room > 0 && self.left == 0 {
            self.file.write_all(MORE)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Makes a command write both of its streams into one pipe, of which this is the other end.
pub fn join_output(command: &mut Command) -> io::Result<PipeReader> {
    let (output, input) = io::pipe()?;
    command.stdout(input.try_clone()?).stderr(input);
    Ok(output)
}

/// Writes what a program says to its log until it has ended. The pipe is that of [`join_output`], whose
/// command is gone.
pub fn to_log(mut child: Child, mut output: PipeReader, mut log: Log) -> io::Result<ExitStatus> {
    let (ended, end) = mpsc::channel();
    thread::spawn(move || {
        let written = copy(&mut output, &mut log);
        // Nobody waits any more where a descendant held the pipe open for long.
        let _ = ended.send(written);
    });
    let status = child.wait()?;
    match end.recv_timeout(LAST_WORDS) {
        Ok(written) => written.map(|()| status),
        Err(_) => Ok(status),
    }
}

/// A log that cannot be written any more ends no build: what comes is read all the same.
fn copy(output: &mut PipeReader, log: &mut Log) -> io::Result<()> {
    let mut buffer = [0; 16 << 10];
    let mut written = Ok(());
    loop {
        match output.read(&mut buffer) {
            Ok(0) => return written,
            Ok(size) if written.is_ok() => written = log.write_all(&buffer[..size]),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_log_keeps_both_streams_up_to_its_limit_and_says_that_more_came() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let said = |script: &str| {
            let log = Log::append_to(
                File::options()
                    .create(true)
                    .append(true)
                    .open(&path)
                    .unwrap(),
            );
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            let output = join_output(&mut command).unwrap();
            let child = command.spawn().unwrap();
            drop(command);
            let status = to_log(child, output, log.unwrap()).unwrap();
            (status.code(), fs::read(&path).unwrap())
        };
        let (code, text) = said("echo one; echo two >&2; sleep 5 & exit 3");
        assert_eq!((code, &text[..]), (Some(3), &b"one\ntwo\n"[..]));
        let (code, text) = said("head -c 40000000 /dev/zero; echo last");
        assert_eq!(code, Some(0));
        assert_eq!(text.len() as u64, MOST_LOG_BYTES + MORE.len() as u64);
        assert!(text.ends_with(MORE));
        let (_, again) = said("echo more");
        assert_eq!(again.len(), text.len());
    }
}
