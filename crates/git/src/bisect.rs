//! A bisection, which git(1) keeps: in a bare clone of its own, so that the repository is left alone
//! and `git bisect log` of the clone tells how it went.

use crate::{Error, check_source, io, no_commit, run_git, said, succeeded, unmet};
use doors::written::Part;
use std::path::{Path, PathBuf};
use std::process::Output;

/// Names of commits that were made by patches begin so, and end with the commit that they are of.
const PATCHED: &str = "refs/patched/";

/// Bisection of a clone.
#[derive(Debug)]
pub struct Bisection {
    clone: PathBuf,
    source: String,
    paths: Vec<String>,
}

/// Judgement of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// As the good commit.
    Good,
    /// As the bad one.
    Bad,
    /// Nothing could be said of it.
    Skip,
}

/// State of a bisection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// This commit is to be judged.
    Try(String),
    /// This one is the first that is bad.
    First(String),
    /// Only commits that were skipped are left.
    OnlySkipped,
}

impl Mark {
    /// Word of git bisect.
    pub fn name(self) -> &'static str {
        match self {
            Mark::Good => "good",
            Mark::Bad => "bad",
            Mark::Skip => "skip",
        }
    }
}

impl Bisection {
    /// Begins between two commits of a repository, in a clone at `clone`; goes on with the one that
    /// is there. Where there are `paths`, only commits that change them are looked at.
    pub fn open(
        source: &str,
        (good, bad): (&str, &str),
        paths: &[String],
        clone: &Path,
    ) -> Result<Self, Error> {
        let bisection = Bisection::at_clone(source, paths, clone);
        check_source(source)?;
        if !clone.exists() {
            // A clone that was killed is not taken for whole.
            let parent = clone.parent().unwrap_or(clone);
            let part = Part::create_in(parent).map_err(io("create", parent))?;
            let directory = part.path().display().to_string();
            succeeded(
                source,
                &run_git(&["clone", "-q", "--bare"], &[source, &directory])?,
            )?;
            part.put_at(clone).map_err(io("put in place", clone))?;
        }
        if !clone.join("BISECT_START").exists() {
            let ancestor = bisection.at(&["merge-base", "--is-ancestor"], &[good, bad])?;
            if !ancestor.status.success() {
                let why = "the bad commit does not come after it";
                return Err(no_commit(source, good, why));
            }
            if bisection.count_commits(good, bad)? == 0 {
                let what = match paths {
                    [] => format!(
                        "{good} and {bad} are the same commit, so nothing lies between them"
                    ),
                    _ => format!(
                        "no commit after {good} up to {bad} changes {}",
                        paths.join(", ")
                    ),
                };
                return Err(unmet(
                    &format!("repository {source}"),
                    &what,
                    "name an older good commit, or a later bad one",
                ));
            }
            let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
            let start = ["start", "--no-checkout", bad, good, "--"];
            let begun = bisection.bisect(&start, &paths)?;
            succeeded(source, &begun)?;
        }
        Ok(bisection)
    }

    pub(crate) fn at_clone(source: &str, paths: &[String], clone: &Path) -> Self {
        Bisection {
            paths: paths.to_vec(),
            clone: clone.to_owned(),
            source: source.to_owned(),
        }
    }

    /// Number of commits after the good one, up to the bad one, which may be the bad one.
    pub fn count_commits(&self, good: &str, bad: &str) -> Result<u32, Error> {
        let paths: Vec<&str> = self.paths.iter().map(String::as_str).collect();
        let between = format!("{good}..{bad}");
        let counted = self.said(&["rev-list", "--count", &between, "--"], &paths)?;
        Ok(counted.parse().unwrap_or(u32::MAX))
    }

    /// State of the bisection: the commit to be tried, or the end.
    pub fn find_next(&self) -> Result<Next, Error> {
        let log = self.read_log()?;
        let first = log.lines().rev().find_map(|line| {
            let rest = line.strip_prefix("# first bad commit: [")?;
            Some(rest.split(']').next()?.to_owned())
        });
        if let Some(first) = first {
            return Ok(Next::First(first));
        }
        if log.contains("# only skipped commits left to test") {
            return Ok(Next::OnlySkipped);
        }
        let head = self.said(&["rev-parse", "--verify"], &["BISECT_HEAD"])?;
        Ok(Next::Try(head))
    }

    /// Judges the commit that was to be tried.
    pub fn mark_commit(&self, mark: Mark) -> Result<Next, Error> {
        let marked = self.bisect(&[mark.name()], &[])?;
        // 2: only skipped commits are left, which the log says too.
        if marked.status.code() != Some(2) {
            succeeded(&self.source, &marked)?;
        }
        self.find_next()
    }

    /// Text that `git bisect replay` takes.
    pub fn read_log(&self) -> Result<String, Error> {
        let log = self.bisect(&["log"], &[])?;
        succeeded(&self.source, &log)?;
        Ok(String::from_utf8_lossy(&log.stdout).into_owned())
    }

    /// Commits that were judged, in their order, each with `good`, `bad` or `skip`.
    pub fn judged_commits(&self) -> Result<Vec<(String, String)>, Error> {
        let judged = |line: &str| {
            let (verdict, commit) = line.strip_prefix("git bisect ")?.split_once(' ')?;
            let is_verdict = ["good", "bad", "skip"].contains(&verdict);
            is_verdict.then(|| (verdict.to_owned(), commit.trim().to_owned()))
        };
        Ok(self.read_log()?.lines().filter_map(judged).collect())
    }

    /// First line of a commit's message.
    pub fn read_subject(&self, commit: &str) -> Result<String, Error> {
        self.said(&["show", "-s", "--format=%s"], &[commit])
    }

    /// First parent of a commit.
    pub fn first_parent(&self, commit: &str) -> Result<String, Error> {
        self.said(&["rev-parse", "--verify"], &[&format!("{commit}^")])
    }

    /// Puts the files of a commit into a work tree of the clone, which is made at first. Files that are
    /// the same in the commit before keep their times, so that make(1) builds only what changed.
    pub fn checkout(&self, commit: &str, tree: &Path) -> Result<(), Error> {
        let directory = tree.display().to_string();
        let output = match tree.exists() {
            true => run_git(
                &["-C", &directory, "checkout", "-q", "--force", "--detach"],
                &[commit],
            )?,
            false => self.at(
                &["worktree", "add", "-q", "--force", "--detach"],
                &[&directory, commit],
            )?,
        };
        succeeded(&self.source, &output)
    }

    /// Directory of the clone, which has the commits that [`Bisection::patch_commit`] makes.
    pub fn clone_dir(&self) -> &Path {
        &self.clone
    }

    /// The commit that these patches, one after the other, make of a commit, with that as its parent. It is made
    /// once. A patch that the commit has already changes nothing. The inner error is why one does not apply.
    pub fn patch_commit(
        &self,
        commit: &str,
        patches: &[PathBuf],
    ) -> Result<Result<String, String>, Error> {
        let name = format!("{PATCHED}{commit}");
        let made_before = self.at(&["rev-parse", "--verify", "--quiet"], &[&name])?;
        if made_before.status.success() {
            let text = String::from_utf8_lossy(&made_before.stdout);
            return Ok(Ok(text.trim().to_owned()));
        }
        // A bare repository has an index, too, when something is read into it.
        self.said(&["read-tree"], &[commit])?;
        for patch in patches {
            let applied = self.at(&["apply", "--cached"], &[&patch.display().to_string()])?;
            if !applied.status.success() && !self.has_patch(patch)? {
                let why = said(&applied);
                return Ok(Err(format!("{} does not apply: {why}", patch.display())));
            }
        }
        let tree = self.said(&["write-tree"], &[])?;
        let message = format!("{}, patched", self.read_subject(commit)?);
        let ours = [
            "-c",
            "user.name=schedlab",
            "-c",
            "user.email=schedlab@localhost",
        ];
        let of = ["commit-tree", "-p", commit, "-m", &message];
        let patched = self.said(&[&ours[..], &of].concat(), &[&tree])?;
        self.said(&["update-ref"], &[&name, &patched])?;
        Ok(Ok(patched))
    }

    /// Do the files that were read have the change already?
    fn has_patch(&self, patch: &Path) -> Result<bool, Error> {
        let ours = ["apply", "--cached", "--check", "--reverse"];
        let reversed = self.at(&ours, &[&patch.display().to_string()])?;
        Ok(reversed.status.success())
    }

    fn at(&self, ours: &[&str], words: &[&str]) -> Result<Output, Error> {
        let clone = self.clone.display().to_string();
        run_git(&[&["-C", &clone], ours].concat(), words)
    }

    fn bisect(&self, ours: &[&str], words: &[&str]) -> Result<Output, Error> {
        let clone = self.clone.display().to_string();
        run_git(&[&["-C", &clone, "bisect"], ours].concat(), words)
    }

    fn said(&self, ours: &[&str], words: &[&str]) -> Result<String, Error> {
        let output = self.at(ours, words)?;
        succeeded(&self.source, &output)?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// A repository with commits 0 to 8, whose directory is kept with it.
    fn repository() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let script = "git init -q . && for n in 0 1 2 3 4 5 6 7 8; do \
                      git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m $n && \
                      git tag c$n; done";
        let made = Command::new("sh")
            .args(["-c", script])
            .current_dir(directory.path())
            .status();
        assert!(made.unwrap().success());
        directory
    }

    /// Bisects with this judgement of subjects, in as many sittings as there are steps.
    fn bisected(judge: impl Fn(u32) -> Mark) -> (Next, u32, String) {
        let repository = repository();
        let source = repository.path().display().to_string();
        let clone = repository.path().join("clone");
        let commit = |name| crate::commit_of(&source, Some(name)).unwrap();
        let (good, bad) = (commit("c0"), commit("c8"));
        for step in 0..20 {
            let bisection = Bisection::open(&source, (&good, &bad), &[], &clone).unwrap();
            let next = bisection.find_next().unwrap();
            let Next::Try(commit) = &next else {
                let subject = match &next {
                    Next::First(first) => bisection.read_subject(first).unwrap(),
                    _ => String::new(),
                };
                return (next, step, subject);
            };
            let number = bisection.read_subject(commit).unwrap().parse().unwrap();
            bisection.mark_commit(judge(number)).unwrap();
        }
        panic!("it never ends");
    }

    #[test]
    fn the_first_bad_commit_is_found_in_few_steps_and_in_many_sittings() {
        for first in 1..=8 {
            let judge = |n| if n < first { Mark::Good } else { Mark::Bad };
            let (next, steps, subject) = bisected(judge);
            assert!(matches!(next, Next::First(_)), "{next:?}");
            assert_eq!(subject, first.to_string());
            assert!(steps <= 4, "{steps}");
        }
    }

    #[test]
    fn a_good_commit_that_is_the_bad_one_is_said_to_be() {
        let repository = repository();
        let source = repository.path().display().to_string();
        let commit = crate::commit_of(&source, Some("c3")).unwrap();
        let clone = repository.path().join("clone");
        let error = Bisection::open(&source, (&commit, &commit), &[], &clone).unwrap_err();
        assert!(error.to_string().contains("are the same commit"), "{error}");
    }

    #[test]
    fn what_cannot_be_judged_is_skipped_and_all_of_it_is_no_answer() {
        let some = |n| match n {
            4 => Mark::Skip,
            n if n < 6 => Mark::Good,
            _ => Mark::Bad,
        };
        assert_eq!(bisected(some).2, "6");
        assert_eq!(bisected(|_| Mark::Skip).0, Next::OnlySkipped);
    }

    #[test]
    fn a_patch_makes_a_commit_of_its_own_once_and_one_that_does_not_apply_says_why() {
        let directory = tempfile::tempdir().unwrap();
        let script = "git init -q . && git config user.name a && git config user.email a@b.c && \
                      for n in one two three; do echo $n > file && git add file && git commit -q -m $n && \
                      git tag $n; done && echo patched > file && git diff > .git/patch && mv .git/patch patch";
        let mut shell = Command::new("sh");
        let made = shell
            .args(["-c", script])
            .current_dir(directory.path())
            .status();
        assert!(made.unwrap().success());
        let source = directory.path().display().to_string();
        let commit = |name| crate::commit_of(&source, Some(name)).unwrap();
        let clone = directory.path().join("clone");
        let ends = (commit("one"), commit("three"));
        let bisection = Bisection::open(&source, (&ends.0, &ends.1), &[], &clone).unwrap();
        let patches = [directory.path().join("patch")];
        let patched = bisection
            .patch_commit(&commit("three"), &patches)
            .unwrap()
            .unwrap();
        let again = bisection
            .patch_commit(&commit("three"), &patches)
            .unwrap()
            .unwrap();
        assert_eq!(patched, again);
        assert_eq!(bisection.first_parent(&patched).unwrap(), commit("three"));
        assert_eq!(
            bisection
                .said(&["show"], &[&format!("{patched}:file")])
                .unwrap(),
            "patched"
        );
        let refused = bisection
            .patch_commit(&commit("two"), &patches)
            .unwrap()
            .unwrap_err();
        assert!(
            refused.contains("patch does not apply: error: "),
            "{refused}"
        );
        // The bisection goes on as without.
        assert_eq!(bisection.find_next().unwrap(), Next::Try(commit("two")));
    }

    #[test]
    fn the_bad_commit_comes_after_the_good_one() {
        let repository = repository();
        let source = repository.path().display().to_string();
        let clone = repository.path().join("clone");
        let error = Bisection::open(&source, ("c8", "c0"), &[], &clone).unwrap_err();
        assert!(error.to_string().contains("does not come after"), "{error}");
    }
}
