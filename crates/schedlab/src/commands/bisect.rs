//! `schedlab bisect`: the commit that made a kernel, a sched_ext scheduler or another program worse,
//! each step an interleaved comparison with the good commit.

mod directory;
mod ending;
mod judgement;
mod kernel;
mod program;
mod question;
mod state;
mod state_text;
mod subject;
mod work;

use crate::args::BisectArgs;
use crate::exit::CliError;
use crate::measure::{Measured, measure_anew};
use crate::output::note;
use crate::progress::Spinner;
use crate::request::read_measurable;
use crate::sources;
use doors::started::Agreed;
use doors::written::{self, Marked};
pub use ending::Ending;
use git::{Bisection, Mark, Next};
use judgement::{Judged, judge, reason_of_build};
use question::Question;
pub use question::{progress_text, results_dir};
use report::Table;
use runner::Outcome;
use schedulers::GitName;
pub use state::State;
use state::Step;
use std::borrow::Cow;
use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use subject::{Subject, check_boots, find_subject};
pub use work::Work;

/// Comparisons beside those of the bisection itself: both ends at first, the culprit with its
/// parent at last.
const BESIDE: u32 = 2;

/// Smallest change that counts where the whole one is a multiple of the good commit.
pub const MOST_OF_AN_EFFECT: f64 = 0.5;

/// Time of a step for which none is left.
const LEAST_SHARE_NS: u64 = 1_000_000_000;

struct Bisect<'a> {
    args: &'a BisectArgs,
    work: Option<Work<'a>>,
    subject: Subject<'a>,
    dir: PathBuf,
    /// Patches that each commit is built with.
    patches: Vec<PathBuf>,
    /// Directory of the trees of programs.
    trees: PathBuf,
    bisection: Bisection,
    state: State,
    /// Its place in the ledger, where a session pays.
    question: Option<Question>,
    /// Time that the trials of this command took.
    spent: Cell<Duration>,
    /// The directory is of this process.
    _marked: Marked,
}

pub fn bisect(args: &BisectArgs) -> Result<ExitCode, CliError> {
    bisect_from(args, None)
}

/// The same with this work, in place of what was typed.
pub fn bisect_from(args: &BisectArgs, work: Option<Work>) -> Result<ExitCode, CliError> {
    find_commit(args, work)?.print(args)
}

/// Bisects, and says nothing but the steps.
pub fn find_commit(args: &BisectArgs, work: Option<Work>) -> Result<Ending, CliError> {
    let mut bisect = Bisect::open(args, work)?;
    let next = bisect.path();
    let answered = match &bisect.question {
        Some(question) => {
            let outcome = question.record_end(&bisect.dir, &bisect.state, next.as_ref())?;
            Some((outcome, question.to_text(outcome)))
        }
        None => None,
    };
    let next = next.inspect_err(|error| {
        if matches!(error, CliError::Interrupted) {
            let dir = bisect.dir.display();
            note!("The steps so far are in {dir}; the same command with -o {dir} goes on.");
        }
    })?;
    Ok(Ending {
        dir: bisect.dir,
        state: bisect.state,
        next,
        answered,
    })
}

impl<'a> Bisect<'a> {
    /// Begins, or goes on where the directory holds the same bisection.
    fn open(args: &'a BisectArgs, work: Option<Work<'a>>) -> Result<Self, CliError> {
        let subject = find_subject(args, work)?;
        let commit =
            |name: &str| git::commit_of(&args.repository, Some(name)).map_err(CliError::from);
        let (good, bad) = (commit(&args.good)?, commit(&args.bad)?);
        let dir = args.output.clone();
        let dir = dir.unwrap_or_else(|| crate::measure::default_dir("bisect"));
        let marked = directory::take_directory(&dir)?;
        // A workload finds the programs from wherever it runs.
        let dir = fs::canonicalize(&dir).map_err(CliError::internal)?;
        match subject {
            Subject::Scheduler => {}
            Subject::Program(_) => program::check(&args.program, &dir.join(program::TREES))?,
            Subject::Kernel => {
                check_boots(&args.experiment)?;
                kernel::check(&dir)?;
            }
        }
        let clone = dir.join("repository.git");
        let bisection = Bisection::open(&args.repository, (&good, &bad), &args.path, &clone)?;
        let fragments = find_files("--fragment", &args.fragment)?;
        let patches = find_files("--patch", &args.patch)?;
        let begun = State {
            digests: kernel::digests(args.config.as_deref(), &fragments)?,
            commits: bisection.count_commits(&good, &bad)?,
            confidence: args.experiment.confidence.unwrap_or(0.95),
            smallest_effect: 0.0,
            ends: None,
            steps: Vec::new(),
            again: None,
            good,
            bad,
            program: args.program.clone(),
            build: args.build.clone(),
            config: args.config.clone(),
            fragments,
            patches: kernel::digests(None, &patches)?,
            paths: args.path.clone(),
        };
        let mut state = take_state(&dir, &bisection, begun, args.session.is_some())?;
        let question = match args.session {
            Some(session) => Some(Question::register(args, session, &mut state)?),
            None => None,
        };
        Ok(Bisect {
            args,
            work,
            subject,
            question,
            spent: Cell::default(),
            patches,
            trees: dir.join(program::TREES),
            dir,
            bisection,
            state,
            _marked: marked,
        })
    }

    /// The whole way, as far as it was not gone before.
    fn path(&mut self) -> Result<Next, CliError> {
        self.ends()?;
        let next = self.steps()?;
        if let Next::First(culprit) = &next {
            self.again(culprit)?;
        }
        Ok(next)
    }

    /// Makes sure that the bad commit is worse than the good one, and by how much.
    fn ends(&mut self) -> Result<(), CliError> {
        if self.state.ends.is_some() {
            return Ok(());
        }
        let (good, bad) = (self.state.good.clone(), self.state.bad.clone());
        self.ends_build()?;
        let (step, judged) = self.compare("ends", &good, &bad)?;
        if judged.mark != Mark::Bad {
            return Err(CliError::usage(
                format!(
                    "the bad commit was not found to be worse than the good one, so there is \
                     nothing to look for: {}",
                    judged.why
                ),
                "another workload or load shows the difference, or a larger --budget",
            ));
        }
        // Half of the whole change tells the commits with it from those without.
        let half = (judged.change.unwrap_or(0.04) / 2.0).min(MOST_OF_AN_EFFECT);
        let asked = self.args.experiment.smallest_effect.as_deref();
        let asked = asked.and_then(|text| load::units::parse_percent(text).ok());
        self.state.smallest_effect = asked.map_or(half, |percent| percent / 100.0);
        self.state.ends = Some(step);
        self.keep()
    }

    /// Without both ends there is nothing to look for.
    fn ends_build(&self) -> Result<(), CliError> {
        for commit in [&self.state.good, &self.state.bad] {
            let built = match self.patched(commit)? {
                Ok(patched) => self.built(&patched)?,
                Err(why) => Err(why),
            };
            if let Err(why) = built {
                let short = commit.get(..git::SHORT).unwrap_or(commit);
                return Err(CliError::usage(
                    format!("both ends must build, and {short} does not: {why}"),
                    "name commits that build here, or mend what the build says",
                ));
            }
        }
        Ok(())
    }

    /// Judges commits until one is left, or only those that were skipped.
    fn steps(&mut self) -> Result<Next, CliError> {
        let good = self.state.good.clone();
        let mut next = self.bisection.find_next()?;
        while let Next::Try(commit) = &next {
            let commit = commit.clone();
            let name = format!("{:02}", self.state.steps.len() + 1);
            let (step, judged) = self.compare(&name, &good, &commit)?;
            self.say(&step);
            self.state.steps.push(step);
            next = self.bisection.mark_commit(judged.mark)?;
            self.keep()?;
        }
        Ok(next)
    }

    /// Compares the culprit with its parent, which nobody compared before.
    fn again(&mut self, culprit: &str) -> Result<(), CliError> {
        if self.state.again.is_some() {
            return Ok(());
        }
        let parent = self.bisection.first_parent(culprit)?;
        let (step, _) = self.compare("again", &parent, culprit)?;
        self.state.again = Some(step);
        self.keep()
    }

    fn say(&self, step: &Step) {
        if !self.args.answer.quiet {
            let short = step.commit.get(..git::SHORT).unwrap_or(&step.commit);
            note!("{short} {}: {} ({})", step.verdict, step.subject, step.why);
        }
    }

    fn keep(&self) -> Result<(), CliError> {
        directory::write_state(&self.dir, &self.state, self.bisection.read_log()?)
    }

    /// An interleaved comparison of two commits, in a results directory of its own.
    fn compare(
        &self,
        name: &str,
        baseline: &str,
        commit: &str,
    ) -> Result<(Step, Judged), CliError> {
        let name = Path::new(directory::RESULTS).join(name);
        let dir = self.dir.join(&name);
        let skip = |why| Judged {
            mark: Mark::Skip,
            why,
            change: None,
        };
        let judged = match self.built_both(baseline, commit)? {
            Err(why) => skip(why),
            Ok([baseline, commit]) => self.measure(&dir, &baseline, &commit)?,
        };
        let step = Step {
            commit: commit.to_owned(),
            subject: self.bisection.read_subject(commit)?,
            verdict: judged.mark.name().to_owned(),
            why: judged.why.clone(),
            results: dir.exists().then_some(name),
        };
        Ok((step, judged))
    }

    /// The commits of what was built of two commits; the inner error is why one of them does not build.
    fn built_both(
        &self,
        baseline: &str,
        commit: &str,
    ) -> Result<Result<[String; 2], String>, CliError> {
        let mut built = [String::new(), String::new()];
        for (built, commit) in built.iter_mut().zip([baseline, commit]) {
            *built = match self.patched(commit)? {
                Ok(patched) => patched,
                Err(why) => return Ok(Err(why)),
            };
            if let Err(why) = self.built(built)? {
                return Ok(Err(why));
            }
        }
        Ok(Ok(built))
    }

    /// The commit with the patches that were asked for; the inner error is why they do not apply.
    fn patched(&self, commit: &str) -> Result<Result<String, String>, CliError> {
        match self.patches.is_empty() {
            true => Ok(Ok(commit.to_owned())),
            false => Ok(self.bisection.patch_commit(commit, &self.patches)?),
        }
    }

    /// The repository that has what is built.
    fn repository(&self) -> Cow<'_, str> {
        match self.patches.is_empty() {
            true => Cow::Borrowed(&self.args.repository),
            false => self.bisection.clone_dir().to_string_lossy(),
        }
    }

    /// The arm of a commit, as on the command line.
    fn arm(&self, commit: &str) -> String {
        match self.subject {
            Subject::Scheduler => self.scheduler(commit),
            Subject::Program(_) => format!("env.PROGRAM={}", self.tree(commit).program().display()),
            Subject::Kernel => format!("kernel={}", self.kernels().image_dir(commit).display()),
        }
    }

    fn kernels(&self) -> kernel::Kernels<'_> {
        kernel::Kernels {
            bisection: &self.bisection,
            dir: &self.dir,
            config: self.args.config.as_deref().unwrap_or(kernel::CONFIG),
            fragments: &self.state.fragments,
        }
    }

    fn tree<'b>(&'b self, commit: &'b str) -> program::Tree<'b> {
        program::Tree {
            repository: self.repository(),
            commit,
            program: &self.args.program,
            all: &self.trees,
        }
    }

    fn scheduler(&self, commit: &str) -> String {
        let (program, args) = match self.args.program.split_once(' ') {
            Some((program, args)) => (program, format!(" {args}")),
            None => (self.args.program.as_str(), String::new()),
        };
        format!("{program}@git:{}#{commit}{args}", self.repository())
    }

    /// Builds what a commit has, unless it was built before; the inner error is why it does not
    /// build.
    fn built(&self, commit: &str) -> Result<Result<(), String>, CliError> {
        match self.subject {
            Subject::Scheduler => self.built_scheduler(commit),
            Subject::Program(build) => self.tree(commit).build(build),
            Subject::Kernel => self.kernels().build(commit),
        }
    }

    fn built_scheduler(&self, commit: &str) -> Result<Result<(), String>, CliError> {
        let scheduler = self.scheduler(commit);
        let scheduler = scheduler.split(' ').next().unwrap_or_default();
        let of =
            GitName::parse(scheduler).ok_or_else(|| CliError::internal("no name of a commit"))?;
        let bar = Spinner::new()?;
        let built = schedulers::install_git(of, Agreed::by_command(), &mut |step| {
            bar.show_line(&sources::step_words(&step));
        });
        bar.end_display();
        match built.map_err(CliError::from) {
            Ok(_) => Ok(Ok(())),
            Err(CliError::Internal { message, .. }) => Ok(Err(reason_of_build(&message))),
            Err(error) => Err(error),
        }
    }

    fn measure(&self, dir: &Path, baseline: &str, commit: &str) -> Result<Judged, CliError> {
        // What an interrupt left of this step begins anew.
        written::remove_marked(dir)
            .map_err(|e| CliError::internal(format!("remove {}: {e}", dir.display())))?;
        let arms = [("good", baseline), ("tried", commit)];
        let mut given = self.args.experiment.clone();
        given.words.arms = arms
            .map(|(name, at)| format!("{name}:={}", self.arm(at)))
            .to_vec();
        match self.subject {
            Subject::Program(_) if given.words.vm.is_some() => {
                let trees = [baseline, commit].map(|at| self.tree(at).files());
                given
                    .expose
                    .extend(trees.map(|tree| tree.display().to_string()));
            }
            // A kernel needs a guest, of which a file may say more.
            Subject::Kernel if given.file.is_none() && given.words.vm.is_none() => {
                given.words.vm = Some(self.kernels().image_dir(baseline).display().to_string());
            }
            _ => {}
        }
        let mut wanted = match self.work {
            Some(work) => self.name_commits(work, arms)?,
            None => read_measurable(&given)?,
        };
        if let Some(question) = &self.question {
            wanted.experiment.seed = question.seed();
        }
        let stop = &mut wanted.experiment.stop;
        let calls: usize = wanted.experiment.workloads.iter().map(count_calls).sum();
        let share = (1.0 - self.state.confidence) / f64::from(self.most_steps());
        stop.confidence = 1.0 - share / calls.max(1) as f64;
        if self.state.smallest_effect > 0.0 {
            stop.smallest_effect = self.state.smallest_effect;
        }
        let measured = measure_anew(Some(dir), wanted, self.args.wait, self.args.answer.quiet)?;
        let Measured { results, outcome } = measured;
        if outcome == Outcome::Interrupted {
            return Err(CliError::Interrupted);
        }
        let table = Table::from_results(&results);
        self.spent.set(self.spent.get() + table.measuring_time());
        super::report::write_report_files(&table, &results)?;
        Ok(judge(&table))
    }

    /// Comparisons of the whole path.
    fn most_steps(&self) -> u32 {
        // git halves what is left.
        let halvings = u32::BITS - self.state.commits.saturating_sub(1).leading_zeros();
        halvings + BESIDE
    }
}

/// The state that an earlier start left, where it is of the same bisection; else that with which one begins.
fn take_state(
    dir: &Path,
    bisection: &Bisection,
    begun: State,
    is_question: bool,
) -> Result<State, CliError> {
    let holds = |what: String| {
        let what = format!("{} holds {what}", dir.display());
        CliError::usage(what, "give another directory (-o)")
    };
    let Some(state) = directory::read_state(dir)? else {
        let steps = directory::known_to_git(bisection, dir)?;
        return Ok(State { steps, ..begun });
    };
    if is_question {
        return Err(holds(
            "a bisection, and a question is measured once".to_owned(),
        ));
    }
    match state.differs_from(&begun) {
        Some(what) => Err(holds(format!("another bisection: its {what} differs"))),
        None => Ok(state),
    }
}

/// The paths of an option from the root, since the same command may be given from elsewhere.
fn find_files(option: &str, paths: &[PathBuf]) -> Result<Vec<PathBuf>, CliError> {
    let whole = |path: &PathBuf| {
        fs::canonicalize(path).map_err(|error| {
            let what = format!("{option} {}: {error}", path.display());
            CliError::usage(what, "name a file that is there")
        })
    };
    paths.iter().map(whole).collect()
}

/// Verdicts that a workload has part in.
pub(super) fn count_calls(workload: &model::Workload) -> usize {
    workload.loads.len() * workload.metrics.len().max(1)
}
