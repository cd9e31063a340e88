//! The files of a commit of a git repository, which is a path or a URL. git does the work, so that
//! proxies and keys are as they are set up for it.

#![cfg_attr(test, allow(clippy::unwrap_used))]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod bisect;

pub use bisect::{Bisection, Mark, Next};

use doors::started::tool_command;
use doors::written::Part;
use model::Problem;
use model::printable::last_lines;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

/// Ways by which git may fetch. `ext::` would start any program.
const PROTOCOLS: [&str; 5] = ["https", "http", "ssh", "git", "file"];
/// Lines of git that an error quotes.
const QUOTED_LINES: usize = 3;
/// Digits of a commit in the name of its tree.
pub const SHORT: usize = 12;

/// Error in taking a commit's files.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused a step.
    #[error("{step}: {object}: {source}")]
    Io {
        /// Verb of the step that failed, as in "create".
        step: &'static str,
        /// File or program that the step was about.
        object: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// No git here, no such repository, or no such commit in it.
    #[error("{}: {}; {}", .0.object, .0.what, .0.remedy)]
    Unmet(Problem),
}

/// True for what git clones from elsewhere: `https://…`, `user@host:path`.
pub fn is_url(source: &str) -> bool {
    source.contains("://") || (source.contains('@') && source.contains(':'))
}

/// The commit of a name in a repository, with its 40 digits. Without a name it is that of the
/// repository's own branch.
pub fn commit_of(source: &str, name: Option<&str>) -> Result<String, Error> {
    let name = name.unwrap_or("HEAD");
    check_source(source)?;
    if name.starts_with('-') || name.is_empty() {
        return Err(no_commit(source, name, "that is no name of a commit"));
    }
    match is_url(source) {
        true => far_commit(source, name),
        false => near_commit(source, name),
    }
}

/// Refuses a repository that git would take for an option.
pub fn check_source(source: &str) -> Result<(), Error> {
    match source.starts_with('-') || source.is_empty() {
        false => Ok(()),
        true => Err(unmet(
            &format!("repository {source}"),
            "a repository's name does not begin with a dash",
            "name a URL, or a path: ./-NAME",
        )),
    }
}

/// The files of a commit, below the directory of all trees; fetched unless they are there. The
/// repository itself is left alone.
pub fn fetch_tree(source: &str, commit: &str, all: &Path) -> Result<PathBuf, Error> {
    check_source(source)?;
    let tree = tree_path(source, commit, all);
    if tree.exists() {
        return Ok(tree);
    }
    let part = Part::create_in(all).map_err(io("create", all))?;
    let files = part.path();
    tracing::info!("taking {commit} from {source}");
    fetch(source, commit, &files)?;
    part.put_at(&tree).map_err(io("put in place", &tree))?;
    Ok(tree)
}

/// The directory that [`fetch_tree`] gives. All digits of the commit are in it: what has them all is the same
/// from whatever repository, and of a few digits somebody can make a second commit.
pub fn tree_path(source: &str, commit: &str, all: &Path) -> PathBuf {
    all.join(format!("{}-{commit}", short_name(source)))
}

/// One commit alone where the server gives it, else the whole repository. One that is here needs
/// no copy of its objects.
fn fetch(source: &str, commit: &str, into: &Path) -> Result<(), Error> {
    let directory = into.display().to_string();
    let at = |ours: &[&str], words: &[&str]| run_git(&[&["-C", &directory], ours].concat(), words);
    if is_url(source) {
        succeeded(source, &run_git(&["init", "-q"], &[&directory])?)?;
        let one = at(&["fetch", "-q", "--depth", "1"], &[source, commit])?;
        if !one.status.success() {
            let all = "+refs/*:refs/all/*";
            succeeded(source, &at(&["fetch", "-q"], &[source, all])?)?;
        }
    } else {
        let path = fs::canonicalize(source).map_err(io("find", Path::new(source)))?;
        let path = path.display().to_string();
        let clone = ["clone", "-q", "--shared", "--no-checkout"];
        succeeded(source, &run_git(&clone, &[&path, &directory])?)?;
    }
    succeeded(source, &at(&["checkout", "-q", "--detach"], &[commit])?)
}

/// The commit of a name in a repository of this machine.
fn near_commit(path: &str, name: &str) -> Result<String, Error> {
    let peeled = format!("{name}^{{commit}}");
    let found = run_git(&["-C", path, "rev-parse", "--verify"], &[&peeled])?;
    let commit = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    match found.status.success() && is_commit(&commit) {
        true => Ok(commit),
        false => Err(no_commit(path, name, &said(&found))),
    }
}

/// The same elsewhere. A commit need not have a name there.
fn far_commit(url: &str, name: &str) -> Result<String, Error> {
    if is_commit(name) {
        return Ok(name.to_owned());
    }
    let peeled = format!("{name}^{{}}");
    // The settings of a repository around the working directory could name a program: nothing is there.
    let listed = run_git(&["-C", "/", "ls-remote"], &[url, name, &peeled])?;
    succeeded(url, &listed)?;
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    let refs: Vec<(&str, &str)> = text.lines().filter_map(|l| l.split_once('\t')).collect();
    // An annotated tag is listed twice; the second is the commit that it is of.
    let tag = format!("refs/tags/{name}");
    let places = [
        format!("{tag}^{{}}"),
        tag,
        format!("refs/heads/{name}"),
        name.to_owned(),
    ];
    let found = places
        .iter()
        .find_map(|place| refs.iter().find(|(_, at)| at == place));
    match found {
        Some((commit, _)) if is_commit(commit) => Ok((*commit).to_owned()),
        _ => Err(no_commit(
            url,
            name,
            "it has no tag and no branch of that name",
        )),
    }
}

fn is_commit(name: &str) -> bool {
    name.len() == 40 && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// `https://git.example/linux.git` is linux.
fn short_name(source: &str) -> String {
    let source = source.trim_end_matches('/').trim_end_matches(".git");
    let last = source.trim_end_matches('/').rsplit(['/', ':']).next();
    let plain = last
        .unwrap_or_default()
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c));
    let name: String = plain.collect();
    match name.trim_matches('.').is_empty() {
        true => "tree".to_owned(),
        false => name,
    }
}

/// Commands of git that know no end of options.
const WITHOUT_END: [&str; 3] = ["bisect", "checkout", "worktree"];

/// Runs git with options of ours, and then words that others chose, which are no options. An
/// error is that git did not run.
pub fn run_git(ours: &[&str], words: &[&str]) -> Result<Output, Error> {
    debug_assert!(
        matches!(ours, ["-C", ..] | ["clone" | "init", ..]),
        "{ours:?} would obey a repository around the working directory"
    );
    let knows_end = !ours.iter().any(|word| WITHOUT_END.contains(word));
    let end = (knows_end && !words.is_empty()).then_some("--end-of-options");
    start(ours, end, words)
}

/// Starts git. Whatever a command of git makes of the end of options, a word with a dash is none
/// that anybody needs here.
fn start(ours: &[&str], end: Option<&str>, words: &[&str]) -> Result<Output, Error> {
    if let Some(word) = words.iter().find(|word| word.starts_with('-')) {
        let what = "git would take it for an option";
        return Err(unmet(word, what, "leave out the dash in front of it"));
    }
    if which::which("git").is_err() {
        let remedy = "install the package git";
        return Err(unmet("git", "it is not installed", remedy));
    }
    let mut command = tool_command("git");
    // A repository that asks for a password is none that can be fetched here.
    command
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_ALLOW_PROTOCOL", protocols())
        // The settings of a repository may name a program that fetches what it lacks.
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("LC_ALL", "C")
        .args(ours)
        .args(end)
        .args(words);
    let output = doors::read::output_of_work(&mut command);
    output.map_err(io("start", Path::new("git")))
}

/// The protocols that are allowed, and no more than the user allows.
fn protocols() -> String {
    let allowed = std::env::var("GIT_ALLOW_PROTOCOL").ok();
    let is_allowed = |protocol: &&&str| match &allowed {
        Some(list) => list.split(':').any(|one| one == **protocol),
        None => true,
    };
    let kept: Vec<&str> = PROTOCOLS.iter().filter(is_allowed).copied().collect();
    kept.join(":")
}

fn succeeded(source: &str, output: &Output) -> Result<(), Error> {
    match output.status.success() {
        true => Ok(()),
        false => Err(unmet(
            &format!("repository {source}"),
            &said(output),
            "check its name and the network, or name a clone on this machine",
        )),
    }
}

fn no_commit(source: &str, name: &str, why: &str) -> Error {
    unmet(
        &format!("repository {source}"),
        &format!("there is no commit {name} to take: {why}"),
        "name a tag, a branch, or a commit with its 40 digits",
    )
}

/// The last words of git, or how it ended without any.
fn said(output: &Output) -> String {
    match last_lines(&String::from_utf8_lossy(&output.stderr), QUOTED_LINES, "; ") {
        words if words.is_empty() => format!("git said nothing and ended with {}", output.status),
        words => words,
    }
}

fn io(step: &'static str, object: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let object = object.display().to_string();
    move |source| Error::Io {
        step,
        object,
        source,
    }
}

fn unmet(object: &str, what: &str, remedy: &str) -> Error {
    Error::Unmet(Problem {
        object: object.to_owned(),
        what: what.to_owned(),
        remedy: remedy.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_repository_has_a_short_name_that_is_no_path() {
        for (source, name) in [
            ("https://git.example/a/linux.git", "linux"),
            ("git@git.example:linux-next", "linux-next"),
            ("/home/me/tip/", "tip"),
            ("..", "tree"),
            ("https://git.example/a b/x;y", "xy"),
        ] {
            assert_eq!(short_name(source), name, "{source}");
        }
    }

    #[test]
    fn the_files_of_a_commit_are_taken_from_a_path_and_a_url() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path().join("source");
        fs::create_dir(&at).unwrap();
        let script = "git init -q -b main . && echo text > file && git add -A && \
                      git -c user.name=a -c user.email=a@b.c commit -q -m one";
        let made = Command::new("sh")
            .args(["-c", script])
            .current_dir(&at)
            .status();
        assert!(made.unwrap().success());
        let path = at.display().to_string();
        let commit = commit_of(&path, Some("main")).unwrap();
        for (index, source) in [path.clone(), format!("file://{path}")].iter().enumerate() {
            assert_eq!(commit_of(source, None).unwrap(), commit, "{source}");
            let all = directory.path().join(index.to_string());
            let tree = fetch_tree(source, &commit, &all).unwrap();
            assert_eq!(fs::read_to_string(tree.join("file")).unwrap(), "text\n");
        }
        let clone = directory.path().join("clone");
        let begun = Bisection::open(&path, (&commit, &commit), &[], &clone);
        // One commit is no range; its clone is there all the same.
        drop(begun);
        let bisection = Bisection::at_clone(&path, &[], &clone);
        let work = directory.path().join("work");
        bisection.checkout(&commit, &work).unwrap();
        bisection.checkout(&commit, &work).unwrap();
        assert!(work.join("file").is_file());
    }

    /// Sources and names of commits with which git would run `touch MARK`.
    fn hostile(mark: &Path) -> Vec<String> {
        let mark = mark.display();
        vec![
            format!("--upload-pack=touch {mark}; x@y:z"),
            format!("-utouch {mark}; x@y:z"),
            format!("--upload-pack=touch {mark}"),
            format!("--exec=touch {mark}; file://x"),
            format!("ext::sh -c 'touch {mark}' x@y:z"),
        ]
    }

    #[test]
    fn no_command_of_git_takes_a_strangers_word_for_an_option() {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path().display().to_string();
        let mark = directory.path().join("ran");
        let commit = "0123456789012345678901234567890123456789";
        for word in hostile(&mark) {
            let all = directory.path().join("trees");
            let clone = directory.path().join("clone");
            let tried = [
                commit_of(&word, None).is_err(),
                commit_of(&word, Some("main")).is_err(),
                commit_of(&here, Some(&word)).is_err(),
                commit_of(&format!("file://{here}"), Some(&word)).is_err(),
                fetch_tree(&word, commit, &all).is_err(),
                fetch_tree(&here, &word, &all).is_err(),
                fetch(&word, commit, &directory.path().join("into")).is_err(),
                fetch(
                    &format!("file://{here}"),
                    &word,
                    &directory.path().join("other"),
                )
                .is_err(),
                Bisection::open(&word, (commit, commit), &[], &clone).is_err(),
                Bisection::open(&here, (&word, commit), &[], &clone).is_err(),
                Bisection::open(&here, (commit, &word), &[], &clone).is_err(),
            ];
            assert_eq!(tried, [true; 11], "{word}");
            assert!(!mark.exists(), "{word}");
        }
        assert!(!mark.exists());
    }

    #[test]
    fn urls_are_told_from_paths() {
        assert!(is_url("https://git.example/linux") && is_url("file:///srv/linux"));
        assert!(is_url("git@git.example:linux"));
        assert!(!is_url("/srv/linux") && !is_url("linux") && !is_url("../x"));
    }
}
