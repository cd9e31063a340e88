//! External programs: what to say of one that failed or printed something else than
//! expected.

use crate::Output;
use model::printable::last_lines;
use std::path::{Path, PathBuf};

/// Lines of a program's output that an error quotes.
const QUOTED_LINES: usize = 5;

/// A program that is larger is not looked into.
const LARGEST_PROGRAM: u64 = 64 << 20;

/// Debian packages of programs that servers are often started by, or that ask databases.
const PACKAGES: [(&str, &str); 10] = [
    ("busybox", "busybox-static"),
    ("java", "default-jre-headless"),
    ("javac", "default-jdk-headless"),
    ("mvn", "maven"),
    ("node", "nodejs"),
    ("pgbench", "postgresql"),
    ("python3", "python3"),
    ("redis-benchmark", "redis-server"),
    ("redis-server", "redis-server"),
    ("sqlite3", "sqlite3"),
];

/// Remedy for a program that is not there, with its package where that is known.
pub fn remedy(program: &str) -> String {
    let known = PACKAGES.iter().find(|(name, _)| *name == program);
    match known.map(|(_, package)| package) {
        Some(package) => format!("apt-get install {package}, or give its path"),
        None => format!("install {program}, or give its path"),
    }
}

/// Options of java(1) before a class path.
const CLASS_PATH: [&str; 3] = ["-cp", "-classpath", "--class-path"];
/// Options of java(1) that say what to run, without a class path.
const NO_CLASS_PATH: [&str; 3] = ["-jar", "-m", "--module"];

/// A class path of which nothing is there, in words: Java says only that it does not find the main
/// class. Relative parts are looked up in `directory`, and believed without one.
pub fn no_class_path(argv: &[String], directory: Option<&Path>) -> Option<String> {
    let (program, words) = argv.split_first()?;
    if program.rsplit('/').next() != Some("java") {
        return None;
    }
    // What follows the archive or the module is for the program.
    let mut options = words.split(|w| NO_CLASS_PATH.contains(&w.as_str()));
    let options = options.next()?;
    let at = options
        .iter()
        .position(|w| CLASS_PATH.contains(&w.as_str()))?;
    let path = options.get(at + 1)?;
    let is_there = |part: &str| {
        let part = part.trim_end_matches('*');
        let is_filled_in = part.contains('{');
        let found = match (Path::new(part).is_absolute(), directory) {
            (true, _) => Path::new(part).exists(),
            (false, Some(directory)) => directory.join(part).exists(),
            (false, None) => true,
        };
        is_filled_in || found
    };
    let has_some = path.split(':').any(is_there);
    (!has_some).then(|| format!("nothing of its class path {path} is there"))
}

/// What to do about it.
pub const BUILD_CLASSES: &str =
    "build it (`make demo-jars` builds what demo/ has), or correct the path";

/// Path of a program that is another one of the same name: of machine code, without a word that stands
/// in every version of the one that is meant. A script may start the right one.
pub fn is_another(program: &str, word: &str) -> Option<PathBuf> {
    let path = which::which(program).ok()?;
    let code = doors::read::file_bytes(&path, LARGEST_PROGRAM).ok()?;
    let has = |word: &[u8]| code.windows(word.len()).any(|part| part == word);
    (code.starts_with(b"\x7fELF") && !has(word.as_bytes())).then_some(path)
}

/// Fails with the status and the last lines of a program that did not succeed.
pub fn check_success(what: &str, output: &Output) -> Result<(), String> {
    if output.success {
        return Ok(());
    }
    Err(format!(
        "{what} failed with {}{}",
        output.status,
        quoted(output)
    ))
}

/// The error for output without what was expected in it.
pub fn garbage(what: &str, expected: &str, output: &Output) -> String {
    format!("{what} did not print {expected}{}", quoted(output))
}

/// `: ` and the last lines of standard error, or else of standard output.
fn quoted(output: &Output) -> String {
    [&output.stderr, &output.stdout]
        .into_iter()
        .map(|text| last_lines(text, QUOTED_LINES, "\n"))
        .find(|lines| !lines.is_empty())
        .map_or_else(
            || "; it printed nothing".to_owned(),
            |lines| format!("; it printed: {lines}"),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_of_a_program_is_named_where_it_is_known() {
        let java = "apt-get install default-jre-headless, or give its path";
        assert_eq!(remedy("java"), java);
        assert_eq!(remedy("my-server"), "install my-server, or give its path");
    }

    #[test]
    fn a_class_path_without_anything_in_it_is_told() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("jars")).unwrap();
        let here = Some(folder.path());
        let said = |words: &[&str], directory| {
            let argv: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
            no_class_path(&argv, directory)
        };
        let missing = said(&["/jdk/bin/java", "-Xmx1g", "-cp", "no/*:a.jar", "M"], here);
        assert_eq!(
            missing.unwrap(),
            "nothing of its class path no/*:a.jar is there"
        );
        for path in ["jars/*", "jars", "no/*:jars/*", "{folder}/x", "*"] {
            assert_eq!(said(&["java", "-cp", path, "M"], here), None, "{path}");
        }
        assert_eq!(said(&["java", "-cp", "no/*", "M"], None), None);
        assert!(said(&["java", "-cp", "/no/*", "M"], None).is_some());
        assert_eq!(said(&["python3", "-cp", "/no"], here), None);
        assert_eq!(said(&["java", "-jar", "no.jar", "-cp", "/no"], here), None);
    }

    #[test]
    fn an_error_quotes_the_last_lines_only() {
        let output = Output {
            stderr: (0..9).map(|i| format!("line {i}\n")).collect(),
            status: "exit status 1".to_owned(),
            ..Output::default()
        };
        let error = check_success("prog", &output).unwrap_err();
        assert!(
            error.starts_with("prog failed with exit status 1"),
            "{error}"
        );
        assert!(
            error.contains("line 8") && !error.contains("line 3"),
            "{error}"
        );
    }
}
