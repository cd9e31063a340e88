//! Files that a load writes: their texts once it has ended, if it wrote them in this trial.

use doors::read::{open_file, stream_bytes};
use load::Launch;
use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The most that is read of a file.
const MOST_BYTES: u64 = 16 << 20;

/// Files that figures are read from, as they were before the load.
#[derive(Debug)]
pub struct Files {
    files: BTreeMap<String, (PathBuf, Option<Stamp>)>,
}

/// Changed by every write, also by one of the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    changed: (i64, i64),
    bytes: u64,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Stamp {
            file: (metadata.dev(), metadata.ino()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            bytes: metadata.len(),
        }
    }
}

impl Files {
    /// Looks at the files of a launch, before its process starts.
    pub fn before_launch(launch: &Launch) -> Self {
        let directory = launch.directory.clone().unwrap_or_default();
        let look = |name: &String| {
            let path = directory.join(name);
            let stamp = fs::metadata(&path).ok().map(|found| Stamp::of(&found));
            (name.clone(), (path, stamp))
        };
        Files {
            files: launch.files.iter().map(look).collect(),
        }
    }

    /// The texts, after the process has ended; an error for a file that it did not write.
    pub fn texts(self) -> BTreeMap<String, Result<String, String>> {
        let read = |(name, (path, before)): (String, (PathBuf, Option<Stamp>))| {
            let text = text(&path, before);
            (
                name,
                text.map_err(|why| format!("the file {} {why}", path.display())),
            )
        };
        self.files.into_iter().map(read).collect()
    }
}

fn text(path: &Path, before: Option<Stamp>) -> Result<String, String> {
    let refused = |error: std::io::Error| format!("cannot be read: {error}");
    let found = fs::metadata(path).map_err(refused)?;
    // Reading a pipe or a device may never end.
    if !found.is_file() {
        return Err("is no regular file".to_owned());
    }
    if before == Some(Stamp::of(&found)) {
        return Err("is an old one, which the program did not write in this trial".to_owned());
    }
    if found.len() > MOST_BYTES {
        return Err(format!("is larger than {} MiB", MOST_BYTES >> 20));
    }
    let file = open_file(path).map_err(refused)?;
    let bytes = stream_bytes(file, MOST_BYTES).map_err(refused)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(directory: &Path, path: &str) -> Launch {
        Launch {
            directory: Some(directory.to_owned()),
            files: [path.to_owned()].into(),
            ..Launch::default()
        }
    }

    #[test]
    fn a_file_that_was_written_is_read_and_an_old_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let launch = launch(directory.path(), "figures.csv");
        let why = |texts: BTreeMap<String, Result<String, String>>| {
            texts["figures.csv"].clone().unwrap_err()
        };
        assert!(why(Files::before_launch(&launch).texts()).contains("cannot be read"));
        let files = Files::before_launch(&launch);
        fs::write(directory.path().join("figures.csv"), "a\n1\n").unwrap();
        assert_eq!(files.texts()["figures.csv"], Ok("a\n1\n".to_owned()));
        let old = why(Files::before_launch(&launch).texts());
        assert!(old.contains("figures.csv is an old one"), "{old}");
    }

    #[test]
    fn what_is_no_regular_file_is_not_read() {
        let texts = Files::before_launch(&launch(Path::new("/"), "dev/zero")).texts();
        let why = texts["dev/zero"].clone().unwrap_err();
        assert_eq!(why, "the file /dev/zero is no regular file");
    }
}
