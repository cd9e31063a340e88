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
    files: BTreeMap<String, Named>,
}

/// The files that one name means.
#[derive(Debug)]
struct Named {
    path: PathBuf,
    before: BTreeMap<PathBuf, Stamp>,
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
            let stamp = |path: PathBuf| Some((path.clone(), Stamp::of(&fs::metadata(path).ok()?)));
            let before = paths_of(&path).into_iter().filter_map(stamp).collect();
            (name.clone(), Named { path, before })
        };
        Files {
            files: launch.files.iter().map(look).collect(),
        }
    }

    /// The texts, after the process has ended; an error for a file that it did not write.
    pub fn texts(self) -> BTreeMap<String, Result<String, String>> {
        let files = self.files.into_iter();
        files.map(|(name, named)| (name, named.text())).collect()
    }
}

impl Named {
    /// The text of the file, or of all files of such names that were written, one after the other.
    fn text(&self) -> Result<String, String> {
        let named = |path: &Path, why: String| format!("the file {} {why}", path.display());
        if !is_pattern(&self.path) {
            let text = text(&self.path, self.before.get(&self.path), MOST_BYTES);
            return text.map_err(|why| named(&self.path, why));
        }
        let is_old = |path: &Path| {
            let now = fs::metadata(path).map(|found| Stamp::of(&found)).ok();
            now.as_ref() == self.before.get(path)
        };
        let mut joined = String::new();
        for path in paths_of(&self.path) {
            if !is_old(&path) {
                let left = MOST_BYTES.saturating_sub(joined.len() as u64);
                let text = text(&path, None, left).map_err(|why| named(&path, why))?;
                joined.push_str(&text);
            }
        }
        match joined.is_empty() {
            true => Err(format!(
                "the program wrote nothing into files called {} in this trial",
                self.path.display()
            )),
            false => Ok(joined),
        }
    }
}

/// The last part of a name that means all files which begin and end like it, around its `*`.
fn pattern(path: &Path) -> Option<(&str, &str)> {
    path.file_name()?.to_str()?.split_once('*')
}

fn is_pattern(path: &Path) -> bool {
    pattern(path).is_some()
}

/// The files that a name means, in the order of their names.
fn paths_of(path: &Path) -> Vec<PathBuf> {
    let Some((begin, end)) = pattern(path) else {
        return vec![path.to_owned()];
    };
    let fits = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let inside = name.strip_prefix(begin).map(|rest| rest.ends_with(end));
        inside == Some(true) && path.is_file()
    };
    let entries = path.parent().and_then(|folder| fs::read_dir(folder).ok());
    let entries = entries.into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(fits).collect();
    paths.sort();
    paths
}

fn text(path: &Path, before: Option<&Stamp>, most_bytes: u64) -> Result<String, String> {
    let refused = |error: std::io::Error| format!("cannot be read: {error}");
    let found = fs::metadata(path).map_err(refused)?;
    // Reading a pipe or a device may never end.
    if !found.is_file() {
        return Err("is no regular file".to_owned());
    }
    if before == Some(&Stamp::of(&found)) {
        return Err("is an old one, which the program did not write in this trial".to_owned());
    }
    if found.len() > most_bytes {
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
    fn a_star_means_all_files_that_were_written_in_the_order_of_their_names() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        let launch = launch(directory.path(), "log.*.csv");
        let text = |files: Files| files.texts()["log.*.csv"].clone();
        write("log.1.csv", "old\n");
        let why = text(Files::before_launch(&launch)).unwrap_err();
        assert!(why.contains("wrote nothing into files called"), "{why}");
        let files = Files::before_launch(&launch);
        for (name, line) in [
            ("log.7.csv", "b\n"),
            ("log.3.csv", "a\n"),
            ("log.9.txt", "c\n"),
        ] {
            write(name, line);
        }
        fs::create_dir(directory.path().join("log.2.csv")).unwrap();
        assert_eq!(text(files), Ok("a\nb\n".to_owned()));
    }

    #[test]
    fn what_is_no_regular_file_is_not_read() {
        let texts = Files::before_launch(&launch(Path::new("/"), "dev/zero")).texts();
        let why = texts["dev/zero"].clone().unwrap_err();
        assert_eq!(why, "the file /dev/zero is no regular file");
    }
}
