//! Files and folders that a trial keeps: whatever a service or the load left in its folder (a
//! generator's HTML, a recording), in pieces on their way to the runner.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytesize::ByteSize;
use doors::read::{open_file_here, stream_bytes};
use model::{KeptPiece, Reply, Severity, Warning};
use std::fs::{self};
use std::io::{self, Read};
use std::path::Path;

/// A multiple of three, so that pieces of base64 can be joined.
const PIECE_BYTES: usize = 768 << 10;
/// More are no report but a data set.
const MOST_FILES: usize = 4096;

/// Keeps a file that the agent itself made. No limit is for it.
pub fn send(say: &mut dyn FnMut(Reply), path: &str, bytes: &[u8]) {
    for piece in bytes.chunks(PIECE_BYTES) {
        say(Reply::Kept {
            piece: piece_of(path, piece),
        });
    }
}

fn piece_of(path: &str, bytes: &[u8]) -> KeptPiece {
    KeptPiece {
        path: path.to_owned(),
        base64: BASE64_STANDARD.encode(bytes),
    }
}

/// The files of one trial, on their way.
pub struct Kept<'a> {
    say: &'a mut dyn FnMut(Reply),
    limit: u64,
    left_bytes: u64,
    left_files: usize,
    /// Files that were not kept, and why.
    refused: Vec<(String, &'static str)>,
}

impl<'a> Kept<'a> {
    pub fn new(limit: u64, say: &'a mut dyn FnMut(Reply)) -> Self {
        Kept {
            say,
            limit,
            left_bytes: limit,
            left_files: MOST_FILES,
            refused: Vec::new(),
        }
    }

    /// Keeps a file, or all files below a folder. Links are not followed: they may lead to
    /// files of this machine that are nobody's business.
    pub fn keep_files(&mut self, of: &str, folder: &Path, path: &str) {
        let name = format!("{of}/{path}");
        if let Err(error) = self.add_any(&name, &folder.join(path)) {
            let why = match error.kind() {
                io::ErrorKind::NotFound => "is not there",
                _ => "cannot be read",
            };
            self.refused.push((name, why));
        }
    }

    fn add_any(&mut self, name: &str, path: &Path) -> io::Result<()> {
        let about = fs::symlink_metadata(path)?;
        if about.is_dir() {
            let mut entries: Vec<_> = fs::read_dir(path)?.collect::<io::Result<_>>()?;
            entries.sort_by_key(fs::DirEntry::file_name);
            return entries.into_iter().try_for_each(|entry| {
                let below = format!("{name}/{}", entry.file_name().to_string_lossy());
                self.add_any(&below, &entry.path())
            });
        }
        let refused = match () {
            () if !about.is_file() => Some("is no regular file"),
            () if self.left_files == 0 => Some("is one file too many"),
            () if about.len() > self.left_bytes => Some("is too large"),
            () => None,
        };
        match refused {
            Some(why) => self.refused.push((name.to_owned(), why)),
            None => {
                self.left_files -= 1;
                self.left_bytes -= self.send(name, path, about.len())?;
            }
        }
        Ok(())
    }

    /// Sends a file in pieces, an empty one too; gives its length.
    fn send(&mut self, name: &str, path: &Path, length: u64) -> io::Result<u64> {
        let mut file = open_file_here(path)?.take(length);
        let mut sent = 0;
        loop {
            let bytes = stream_bytes((&mut file).take(PIECE_BYTES as u64), PIECE_BYTES as u64)?;
            let read = bytes.len();
            if read > 0 || sent == 0 {
                let piece = piece_of(name, &bytes);
                (self.say)(Reply::Kept { piece });
            }
            sent += read as u64;
            if read < PIECE_BYTES {
                return Ok(sent);
            }
        }
    }

    /// The files that are missing in the results, in one warning.
    pub fn warning(&self) -> Option<Warning> {
        let (name, why) = self.refused.first()?;
        let others = match self.refused.len() - 1 {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let limit = ByteSize(self.limit).display().iec();
        Some(Warning {
            severity: Severity::Caution,
            what: format!("not kept: {name} {why}{others} (keep-limit {limit})"),
            remedy: "correct `keep`, or raise keep-limit".to_owned(),
        })
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)]
mod tests {
    use super::*;

    fn kept(limit: u64, folder: &Path, paths: &[&str]) -> (Vec<KeptPiece>, Option<String>) {
        let mut pieces = Vec::new();
        let mut say = |reply| match reply {
            Reply::Kept { piece } => pieces.push(piece),
            other => panic!("{other:?}"),
        };
        let mut kept = Kept::new(limit, &mut say);
        paths
            .iter()
            .for_each(|path| kept.keep_files("load", folder, path));
        let warning = kept.warning().map(|warning| warning.what);
        (pieces, warning)
    }

    #[test]
    fn folders_are_kept_whole_and_large_files_in_pieces() {
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("report/js");
        fs::create_dir_all(&report).unwrap();
        let bytes: Vec<u8> = (0..PIECE_BYTES * 2 + 1).map(|n| (n % 251) as u8).collect();
        fs::write(report.join("a.bin"), &bytes).unwrap();
        fs::write(folder.path().join("report/empty"), "").unwrap();
        let (pieces, warning) = kept(4 << 20, folder.path(), &["report"]);
        assert_eq!(warning, None);
        let paths: Vec<&str> = pieces.iter().map(|piece| piece.path.as_str()).collect();
        let of_bin = ["load/report/js/a.bin"; 3];
        assert_eq!(paths, [&["load/report/empty"], &of_bin[..]].concat());
        let joined: String = pieces.iter().map(|piece| piece.base64.as_str()).collect();
        assert!(BASE64_STANDARD.decode(joined).unwrap() == bytes);
    }

    #[test]
    fn what_is_too_large_a_link_or_not_there_is_said_and_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("large"), "12345").unwrap();
        fs::write(path("small"), "1234").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", path("link")).unwrap();
        let (pieces, warning) = kept(4, folder.path(), &["large", "small", "link", "none"]);
        assert_eq!(pieces.len(), 1);
        assert_eq!(pieces[0].path, "load/small");
        let warning = warning.unwrap();
        assert!(
            warning.contains("load/large is too large, and 2 more"),
            "{warning}"
        );
        let (_, warning) = kept(4, folder.path(), &["link"]);
        assert!(warning.unwrap().contains("load/link is no regular file"));
        let (_, warning) = kept(4, folder.path(), &["none"]);
        assert!(warning.unwrap().contains("load/none is not there"));
    }
}
