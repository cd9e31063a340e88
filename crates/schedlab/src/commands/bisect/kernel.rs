//! Kernels of commits: one work tree and one build go from commit to commit, so that make builds only
//! what changed; the image of each commit is kept.

use super::program;
use crate::exit::CliError;
use crate::sources;
use git::Bisection;
use model::printable::last_lines;
use std::fs;
use std::path::{Path, PathBuf};
use vm::VmError;
use vm::kernel::build::{self, BuildRequest};

/// Word that stands for the kernel in place of a scheduler or a program.
pub const NAME: &str = "kernel";
/// Where a kernel's configuration starts from unless it is said.
pub const CONFIG: &str = "defconfig";
/// Image of a built tree, which an arm names by the tree.
const IMAGE: &str = "arch/x86/boot/bzImage";
/// Files that are kept of a build.
const KEPT: [&str; 2] = [IMAGE, ".config"];
/// Lines of a build that a reason quotes.
const QUOTED_LINES: usize = 3;

/// The kernels of a bisection.
pub struct Kernels<'a> {
    pub bisection: &'a Bisection,
    /// Directory of the bisection.
    pub dir: &'a Path,
    /// Start of the configuration: a target of make, or a file.
    pub config: &'a str,
    /// Files that are merged into it.
    pub fragments: &'a [PathBuf],
}

/// Refuses a directory that no arm could name, and a machine that cannot build a kernel.
pub fn check(dir: &Path) -> Result<(), CliError> {
    program::check_name(&dir.join(NAME))?;
    Ok(build::check_tools()?)
}

impl Kernels<'_> {
    /// Directory of the image of a commit, whether it is built or not.
    pub fn of(&self, commit: &str) -> PathBuf {
        self.dir.join("kernels").join(short(commit))
    }

    /// Builds the kernel of a commit, unless that was done before; the inner error is how the build
    /// failed.
    pub fn build(&self, commit: &str) -> Result<Result<(), String>, CliError> {
        let kernel = self.of(commit);
        if kernel.join(IMAGE).is_file() {
            return Ok(Ok(()));
        }
        let tree = self.dir.join("linux");
        self.bisection.checkout(commit, &tree)?;
        let log = self.dir.join(format!("{}.log", short(commit)));
        // Of an earlier try.
        let _ = fs::remove_file(&log);
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let request = BuildRequest {
            source: tree.display().to_string(),
            commit: None,
            base: self.config.to_owned(),
            fragments: self.fragments.to_vec(),
            output: Some(self.dir.join("build")),
            jobs: cpus,
            sched_ext: false,
            log: Some(log.clone()),
        };
        let bar = sources::progress_bar()?;
        bar.set_message(format!("building the kernel of {}", short(commit)));
        let built = build::build(&request, self.dir);
        bar.finish_and_clear();
        let built = match built {
            Ok(built) => built,
            Err(VmError::Unmet(problem)) => return Ok(Err(failed(&problem, &log))),
            Err(error) => return Err(error.into()),
        };
        keep(&built, &kernel).map_err(CliError::internal)?;
        Ok(Ok(()))
    }
}

fn short(commit: &str) -> &str {
    commit.get(..git::SHORT).unwrap_or(commit)
}

/// Copies what a guest boots beside its place, and renames it when it is whole.
fn keep(built: &Path, kernel: &Path) -> std::io::Result<()> {
    let part = kernel.with_extension("part");
    let _ = fs::remove_dir_all(&part);
    for file in KEPT {
        let to = part.join(file);
        fs::create_dir_all(to.parent().unwrap_or(&part))?;
        fs::copy(built.join(file), to)?;
    }
    fs::rename(part, kernel)
}

/// The reason for which a kernel was not built, with the errors of its compiler.
fn failed(problem: &model::Problem, log: &Path) -> String {
    let said = fs::read_to_string(log).unwrap_or_default();
    let errors: Vec<&str> = said.lines().filter(|l| l.contains("error:")).collect();
    let quoted = match errors.as_slice() {
        [] => last_lines(&said, QUOTED_LINES, "; "),
        [first, ..] => (*first).to_owned(),
    };
    match quoted.is_empty() {
        true => problem.what.clone(),
        false => format!("{}: {quoted} ({})", problem.what, log.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_that_failed_quotes_the_compiler_and_not_the_end_of_make() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let problem = model::Problem {
            object: "kernel build".to_owned(),
            what: "`make` failed".to_owned(),
            remedy: String::new(),
        };
        assert_eq!(failed(&problem, &log), "`make` failed");
        let said = "  CC fair.o\nfair.c:1:1: error: expected ';'\nmake[2]: *** [fair.o] Error 1\n\
                    make[1]: *** [kernel] Error 2\nmake: *** [sub-make] Error 2\n";
        fs::write(&log, said).unwrap();
        let why = failed(&problem, &log);
        assert!(
            why.contains("expected ';'") && !why.contains("sub-make"),
            "{why}"
        );
        fs::write(&log, "make: *** No rule to make target 'bzImage'\n").unwrap();
        assert!(failed(&problem, &log).contains("No rule"));
    }
}
