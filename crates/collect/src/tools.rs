//! External programs: where they are, and which version.

use doors::read::{Asked, output_within};
use doors::started::{Agreed, named_command};
use model::Program;
use model::program::TOOL_FILE;
use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// `tool.NAME` for each of the programs that is on PATH: its version, and what it was made from
/// where schedlab installed it; `present` where neither is known.
pub fn find_versions(programs: &[Program]) -> BTreeMap<String, String> {
    let found = programs.iter().filter_map(|program| {
        let path = which::which(program.name).ok()?;
        let version = program
            .version
            .and_then(|argument| read_version(&path, argument));
        let version = match (version, origin(&path)) {
            (Some(version), Some(origin)) => format!("{version} ({origin})"),
            (version, origin) => version.or(origin).unwrap_or_else(|| "present".to_owned()),
        };
        Some((format!("tool.{}", program.name), version))
    });
    found.collect()
}

/// The line beside a program that schedlab installed: its commit or its package.
fn origin(program: &Path) -> Option<String> {
    let program = program.canonicalize().ok()?;
    // PROGRAM is in `bin`, or in `usr/bin` of an unpacked package.
    let above = program.ancestors().skip(2).take(2);
    let files = above.map(|directory| directory.join(TOOL_FILE));
    let text = files
        .filter_map(|file| doors::read::small_file_text(file).ok())
        .next()?;
    text.lines().next().map(str::to_owned)
}

/// A program in a list of directories, or by path if it has a slash.
pub fn find_in(program: &str, directories: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
    let path = env::join_paths(directories).ok()?;
    which::which_in(program, Some(path), env::current_dir().ok()?).ok()
}

/// A program that does not print its version by then is not asked further.
const VERSION_LIMIT: Duration = Duration::from_secs(5);

/// The first line that a program prints with a digit in it.
pub fn read_version(program: &Path, argument: &str) -> Option<String> {
    let asked = Asked {
        time: VERSION_LIMIT,
        ..Asked::default()
    };
    let output = output_within(
        named_command(program, Agreed::by_trial()).arg(argument),
        asked,
    )
    .ok()?;
    let text = [output.stdout, output.stderr].concat();
    first_version(&String::from_utf8_lossy(&text))
}

fn first_version(text: &str) -> Option<String> {
    text.lines()
        .map(str::trim)
        .find(|line| line.contains(|c: char| c.is_ascii_digit()) && line.len() < 200)
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn program(directory: &Path, name: &str, text: &str) -> PathBuf {
        let path = directory.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn a_program_is_found_in_the_first_directory_that_has_it() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let expected = program(b.path(), "scx_x", "#!/bin/sh\n");
        fs::write(a.path().join("scx_x"), "not executable").unwrap();
        let directories = [a.path().to_owned(), b.path().to_owned()];
        assert_eq!(
            find_in("scx_x", directories.clone()),
            Some(expected.clone())
        );
        assert_eq!(find_in("scx_y", directories.clone()), None);
        assert_eq!(find_in(expected.to_str().unwrap(), []), Some(expected));
    }

    #[test]
    fn an_installed_tool_says_what_it_was_made_from() {
        let tree = ::tests::tree(&[
            ("x-1/bin/x", ""),
            ("x-1/schedlab-tool", "commit 1\n"),
            ("y-2/usr/bin/y", ""),
            ("y-2/schedlab-tool", "Debian package y 2\n"),
            ("z/bin/z", ""),
        ]);
        let origin = |path: &str| origin(&tree.path().join(path));
        assert_eq!(origin("x-1/bin/x").as_deref(), Some("commit 1"));
        assert_eq!(
            origin("y-2/usr/bin/y").as_deref(),
            Some("Debian package y 2")
        );
        assert_eq!(origin("z/bin/z"), None);
        std::os::unix::fs::symlink("../../x-1/bin/x", tree.path().join("z/bin/x")).unwrap();
        assert_eq!(
            origin("z/bin/x").as_deref(),
            Some("commit 1"),
            "through a link"
        );
    }

    #[test]
    fn the_version_is_the_first_line_with_a_number() {
        let text = "usage\nhackbench V 2.40\nUsage:\n";
        assert_eq!(first_version(text).as_deref(), Some("hackbench V 2.40"));
        assert_eq!(first_version("nothing\n"), None);
    }
}
