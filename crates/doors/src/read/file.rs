//! Files, which are opened without waiting and read up to a limit.

use super::stream::{stream_bytes, text_of};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use std::fs::{File, FileType, OpenOptions};
use std::io::{self, Error, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// The most that is read of a file of the kernel: `/proc/cpuinfo` and `/proc/PID/environ` of
/// large machines have some MiB.
pub const KERNEL_BYTES: u64 = 16 << 20;

/// The most that is read of a file with settings, a list of names, or what else people and programs
/// write down.
pub const SMALL_FILE_BYTES: u64 = 4 << 20;
/// The most that is read of a program, a kernel or the first files of one: a build of schedlab with
/// debug information has some hundred MiB.
pub const LARGE_FILE_BYTES: u64 = 1 << 30;

/// Opens a regular file for reading. A pipe, which may never end, a device and a directory are
/// refused, and none of them is waited for.
pub fn open_file(path: impl AsRef<Path>) -> io::Result<File> {
    open_regular(path.as_ref(), OFlags::NONBLOCK)
}

/// The same where the path itself is no symbolic link, which may lead out of the directory of a
/// stranger.
pub fn open_file_here(path: impl AsRef<Path>) -> io::Result<File> {
    open_regular(path.as_ref(), OFlags::NONBLOCK | OFlags::NOFOLLOW)
}

/// Opens a file of the kernel, below `/proc`, `/sys` or a file system of its own. It may be a
/// device that only root can make; what is read of it is the caller's to limit.
#[allow(
    clippy::disallowed_methods,
    reason = "this is the door: the path is one of the kernel, which no user can replace"
)]
pub fn open_kernel_file(path: impl AsRef<Path>) -> io::Result<File> {
    File::open(path)
}

fn open_regular(path: &Path, flags: OFlags) -> io::Result<File> {
    let found = match flags.contains(OFlags::NOFOLLOW) {
        true => path.symlink_metadata()?,
        false => path.metadata()?,
    };
    // Some devices do something when they are opened: a watchdog begins to count.
    refuse_device(found.file_type())?;
    let file = open_with(path, flags | OFlags::NOCTTY)?;
    let kind = file.metadata()?.file_type();
    match kind.is_file() {
        true => Ok(file),
        false => Err(not_regular(name(kind))),
    }
}

fn open_with(path: &Path, flags: OFlags) -> io::Result<File> {
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path);
    opened.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => not_regular("a symbolic link"),
        // A socket cannot be opened.
        Some(libc::ENXIO) => not_regular("a socket"),
        _ => error,
    })
}

fn refuse_device(kind: FileType) -> io::Result<()> {
    match kind.is_char_device() || kind.is_block_device() {
        true => Err(not_regular(name(kind))),
        false => Ok(()),
    }
}

fn not_regular(what: &str) -> Error {
    let what = format!("it is {what}, and only regular files are read");
    Error::new(ErrorKind::InvalidInput, what)
}

fn name(kind: FileType) -> &'static str {
    match () {
        () if kind.is_dir() => "a directory",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_block_device() => "a block device",
        () => "a device",
    }
}

/// All bytes of a regular file that has at most `most_bytes`.
pub fn file_bytes(path: impl AsRef<Path>, most_bytes: u64) -> io::Result<Vec<u8>> {
    stream_bytes(open_file(path)?, most_bytes)
}

/// The same where the path itself is no symbolic link.
pub fn file_bytes_here(path: impl AsRef<Path>, most_bytes: u64) -> io::Result<Vec<u8>> {
    stream_bytes(open_file_here(path)?, most_bytes)
}

/// The text of a regular file that has at most `most_bytes`. An error where it is no UTF-8.
pub fn file_text(path: impl AsRef<Path>, most_bytes: u64) -> io::Result<String> {
    text_of(file_bytes(path, most_bytes)?)
}

/// The text of a file with settings or names. An error where it is no UTF-8.
pub fn small_file_text(path: impl AsRef<Path>) -> io::Result<String> {
    file_text(path, SMALL_FILE_BYTES)
}

/// All bytes of a file with settings or names.
pub fn small_file_bytes(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    file_bytes(path, SMALL_FILE_BYTES)
}

/// The text of a regular file, or of a pipe that somebody writes to, as `<(…)` of a shell is. An
/// error where nothing comes for ten seconds, or where it is no UTF-8.
pub fn text_of_file_or_pipe(path: impl AsRef<Path>, most_bytes: u64) -> io::Result<String> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let path = path.as_ref();
    refuse_device(path.metadata()?.file_type())?;
    let file = open_with(path, flags)?;
    if file.metadata()?.file_type().is_fifo() {
        return text_of(stream_bytes(Pipe(file, false), most_bytes)?);
    }
    file_text(path, most_bytes)
}

/// A pipe without blocking, and whether something came of it.
struct Pipe(File, bool);

/// The longest time for which the next bytes of a pipe are waited for.
const PIPE_WAIT: Timespec = Timespec {
    tv_sec: 10,
    tv_nsec: 0,
};

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(buffer) {
                // Nobody has it open for writing: not yet, or not any more.
                Ok(0) if !self.1 => self.wait()?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait()?,
                read => {
                    self.1 = true;
                    return read;
                }
            }
        }
    }
}

impl Pipe {
    /// Until there is something to be read, which may be its end.
    fn wait(&mut self) -> io::Result<()> {
        let mut asked = [PollFd::new(&self.0, PollFlags::IN)];
        let found = poll(&mut asked, Some(&PIPE_WAIT))?;
        // Who had it open and closed it has said all.
        self.1 |= asked[0].revents().contains(PollFlags::HUP);
        match found {
            0 => {
                let what = "it is a pipe, and nobody wrote to it for 10 s";
                Err(Error::new(ErrorKind::TimedOut, what))
            }
            _ => Ok(()),
        }
    }
}

/// All bytes of a file of this user's own making that grows with what is in it, such as a program,
/// a kernel or an image of files.
pub fn large_file_bytes(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    file_bytes(path, LARGE_FILE_BYTES)
}

/// All bytes of a file of the kernel.
pub fn kernel_bytes(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    stream_bytes(open_kernel_file(path)?, KERNEL_BYTES)
}

/// The text of a file of the kernel. Names of processes, cgroups and files in it are bytes, of
/// which those that are no UTF-8 are replaced.
pub fn kernel_text(path: impl AsRef<Path>) -> io::Result<String> {
    let bytes = kernel_bytes(path)?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType as Kind, Mode, mknodat};
    use std::os::unix::net::UnixListener;

    fn refused(path: &Path) -> String {
        file_bytes(path, 8).unwrap_err().to_string()
    }

    #[test]
    fn only_regular_files_are_read_and_nothing_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        mknodat(CWD, &pipe, Kind::Fifo, Mode::from(0o600), 0).unwrap();
        let socket = directory.path().join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        assert!(refused(&pipe).contains("a pipe"), "{}", refused(&pipe));
        assert!(refused(&socket).contains("a socket"));
        assert!(refused(directory.path()).contains("a directory"));
        assert!(refused(Path::new("/dev/zero")).contains("a device"));
    }

    #[test]
    fn a_pipe_is_read_while_somebody_writes_and_not_waited_for_for_ever() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        mknodat(CWD, &pipe, Kind::Fifo, Mode::from(0o600), 0).unwrap();
        let into = pipe.clone();
        let writer = std::thread::spawn(move || std::fs::write(into, "text"));
        assert_eq!(text_of_file_or_pipe(&pipe, 8).unwrap(), "text");
        writer.join().unwrap().unwrap();
        let error = text_of_file_or_pipe(&pipe, 8).unwrap_err().to_string();
        assert!(error.contains("nobody wrote to it"), "{error}");
    }

    #[test]
    fn a_link_is_followed_only_where_it_may_be() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        std::fs::write(&file, "text").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(file_text(&link, 8).unwrap(), "text");
        let error = file_bytes_here(&link, 8).unwrap_err().to_string();
        assert!(error.contains("a symbolic link"), "{error}");
        assert_eq!(file_bytes_here(&file, 8).unwrap(), b"text");
    }

    #[test]
    fn a_file_may_be_as_long_as_the_limit_and_no_longer() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "12345678").unwrap();
        assert_eq!(file_bytes(&file, 8).unwrap(), b"12345678");
        let error = file_bytes(&file, 7).unwrap_err().to_string();
        assert!(error.contains("larger than 7 bytes"), "{error}");
        std::fs::write(&file, b"a\xff").unwrap();
        assert!(file_text(&file, 8).is_err());
        assert_eq!(kernel_text(&file).unwrap(), "a\u{fffd}");
    }
}
