//! Programs of commits: each commit has a tree of its own, in which a shell command builds it.

use crate::exit::CliError;
use crate::progress::Spinner;
use confine::User;
use doors::read::{Log, MOST_LOG_BYTES, join_output, to_log};
use doors::started::{Agreed, Workshop};
use doors::written;
use model::printable::last_lines;
use std::borrow::Cow;
use std::os::unix::process::ExitStatusExt;
use std::path::{Component, Path, PathBuf};
use std::process::{ExitStatus, Stdio};

/// Directory of all trees, below that of the bisection.
pub const TREES: &str = "trees";
/// Lines of a build that an error quotes.
const QUOTED_LINES: usize = 3;
/// SIGINT and SIGTERM (signal(7)).
const INTERRUPTS: [i32; 2] = [2, 15];

/// The tree of one commit.
pub struct Tree<'a> {
    pub repository: Cow<'a, str>,
    pub commit: &'a str,
    /// The file that the build makes, from the top of the tree.
    pub program: &'a str,
    /// Directory of the trees of all commits.
    pub all: &'a Path,
}

/// Refuses a program that no tree of a commit could have, or that no arm could name.
pub fn check(program: &str, all: &Path) -> Result<(), CliError> {
    let mut parts = Path::new(program).components();
    if program.is_empty() || !parts.all(|part| matches!(part, Component::Normal(_))) {
        return Err(CliError::usage(
            format!("`{program}` is no file within the tree of a commit"),
            "give its path from the top of the tree, such as bin/sort",
        ));
    }
    check_name(&all.join(program))
}

/// Refuses a path that no arm could name.
pub fn check_name(path: &Path) -> Result<(), CliError> {
    match path.to_string_lossy().contains('+') {
        false => Ok(()),
        true => Err(CliError::usage(
            format!(
                "{} has a plus sign, which joins the changes of an arm",
                path.display()
            ),
            "another directory (-o), or a build that makes a file without one",
        )),
    }
}

impl Tree<'_> {
    /// Directory of its files.
    pub fn files(&self) -> PathBuf {
        git::tree_path(&self.repository, self.commit, self.all)
    }

    /// The program, whether it is built or not.
    pub fn program(&self) -> PathBuf {
        self.files().join(self.program)
    }

    /// Builds the program, unless that was done before; the inner error is how the build failed. It is
    /// built where it stays, since builds write their directory into what they make.
    pub fn build(&self, command: &str) -> Result<Result<(), String>, CliError> {
        let short = self.commit.get(..git::SHORT).unwrap_or(self.commit);
        let done = self.all.join(format!("{short}.built"));
        if done.is_file() && self.program().is_file() {
            return Ok(Ok(()));
        }
        // Half of a build is no start of the next one.
        if self.files().exists() {
            written::remove_recorded(&self.files()).map_err(CliError::internal)?;
        }
        let bar = Spinner::new()?;
        bar.show_line(&format!("building {short}"));
        let built = self.build_here(command, &self.all.join(format!("{short}.log")));
        bar.end_display();
        if let Ok(Ok(())) = &built {
            written::write_file(&done, command).map_err(CliError::internal)?;
        }
        built
    }

    fn build_here(&self, command: &str, log: &Path) -> Result<Result<(), String>, CliError> {
        let files = git::fetch_tree(&self.repository, self.commit, self.all)?;
        let status = run(command, &files, &self.repository, log).map_err(CliError::internal)?;
        if status
            .signal()
            .is_some_and(|signal| INTERRUPTS.contains(&signal))
        {
            return Err(CliError::Interrupted);
        }
        let why = match (status.success(), self.program().is_file()) {
            (true, true) => return Ok(Ok(())),
            (true, false) => format!("the build made no {}", self.program),
            (false, _) => format!("the build failed: {status}"),
        };
        Ok(Err(failure_reason(&why, log)))
    }
}

/// The reason for which a build failed, with the first error of its compiler, or else its last lines:
/// those of make(1) only repeat that it failed.
pub fn failure_reason(why: &str, log: &Path) -> String {
    let said = doors::read::file_bytes(log, 2 * MOST_LOG_BYTES).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let quoted = match said.lines().find(|line| line.contains(" error: ")) {
        Some(error) => error.to_owned(),
        None => last_lines(&said, QUOTED_LINES, "; "),
    };
    let quoted = match quoted.as_str() {
        "" => String::new(),
        quoted => format!(": {quoted}"),
    };
    format!("{why}{quoted} ({})", log.display())
}

/// Runs a shell command in a directory, with its output in a file. Where root builds, the directory is
/// another user's for as long.
fn run(command: &str, directory: &Path, source: &str, log: &Path) -> std::io::Result<ExitStatus> {
    let log = Log::append_to(written::create_file(log)?)?;
    let above = directory.parent().unwrap_or(directory);
    let workshop = Workshop::open(Agreed::by_command(), User::for_builds(), above, source)?;
    workshop.give_to_user(directory)?;
    let mut shell = workshop.build_command("sh");
    shell
        .args(["-c", command])
        .current_dir(directory)
        .stdin(Stdio::null());
    let output = join_output(&mut shell)?;
    let child = workshop.spawn(shell, &[directory.to_owned()]);
    let status = to_log(child.map_err(std::io::Error::other)?, output, log)?;
    workshop.take_back(directory)?;
    Ok(status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_build_that_failed_quotes_the_compiler_and_not_the_end_of_make() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        assert!(failure_reason("`make` failed", &log).starts_with("`make` failed ("));
        let said = "  CC fair.o\nfair.c:1:1: error: expected ';'\nmake[2]: *** [fair.o] Error 1\n\
                    make[1]: *** [kernel] Error 2\nmake: *** [sub-make] Error 2\n";
        fs::write(&log, said).unwrap();
        let why = failure_reason("`make` failed", &log);
        assert!(
            why.contains("expected ';'") && !why.contains("sub-make"),
            "{why}"
        );
        fs::write(&log, "make: *** No rule to make target 'bzImage'\n").unwrap();
        assert!(failure_reason("`make` failed", &log).contains("No rule"));
    }
}
