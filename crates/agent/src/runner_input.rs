//! Standard input from a runner that gives signs of life. Where the way to a far machine is cut,
//! nobody says so: a pipe that stays open and silent would keep an arm in force for hours.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// Time without a sign of life after which the runner is gone: six of its pauses between two
/// (`SIGN_OF_LIFE` of target's child.rs).
pub const SILENCE: Duration = Duration::from_secs(60);

/// A file that ends when it is silent for long, also where it stays open.
#[derive(Debug)]
pub struct Heard {
    file: OwnedFd,
    silence: Duration,
}

impl Heard {
    /// Standard input of this process.
    pub fn stdin(silence: Duration) -> io::Result<Self> {
        Ok(Heard {
            file: io::stdin().as_fd().try_clone_to_owned()?,
            silence,
        })
    }
}

impl Read for Heard {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let limit = Instant::now() + self.silence;
        loop {
            let left = limit.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).map_err(io::Error::other)?;
            let mut files = [PollFd::new(&self.file, PollFlags::IN)];
            match poll(&mut files, Some(&left)) {
                Ok(0) => {
                    tracing::warn!("the runner was silent for {} s", self.silence.as_secs());
                    return Ok(0);
                }
                Ok(_) => {
                    return Ok(rustix::io::retry_on_intr(|| {
                        rustix::io::read(&self.file, &mut *buffer)
                    })?);
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};

    #[test]
    fn a_file_that_stays_open_and_silent_ends() {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"one\n\ntwo\n").unwrap();
        let heard = Heard {
            file: reader.into(),
            silence: Duration::from_millis(50),
        };
        let lines: io::Result<Vec<String>> = BufReader::new(heard).lines().collect();
        assert_eq!(lines.unwrap(), ["one", "", "two"]);
        drop(writer);
    }

    #[test]
    fn the_end_of_a_file_is_not_waited_for() {
        let (reader, writer) = io::pipe().unwrap();
        drop(writer);
        let mut heard = Heard {
            file: reader.into(),
            silence: Duration::MAX / 4,
        };
        assert_eq!(heard.read(&mut [0; 8]).unwrap(), 0);
    }
}
