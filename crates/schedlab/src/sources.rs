//! Schedulers that arms name by a commit of a repository: built before anything is measured.

use crate::exit::CliError;
use indicatif::{ProgressBar, ProgressStyle};
use model::{Experiment, Revision};
use schedulers::{GitName, Step};
use std::path::Path;
use std::time::Duration;

/// Builds the schedulers that arms name by a commit, unless they were built before, and names their
/// programs in the arms.
pub fn build(experiment: &mut Experiment) -> Result<(), CliError> {
    let arms = experiment.arms.iter_mut();
    for scheduler in arms.filter_map(|arm| arm.scheduler.as_mut()) {
        let asked = scheduler.program.clone();
        let Some(of) = GitName::of(&asked) else {
            continue;
        };
        let repository = whole(of.repository);
        let of = GitName {
            repository: &repository,
            ..of
        };
        let bar = progress_bar()?;
        let built = schedulers::install_git(of, &mut |step| bar.set_message(words(&step)));
        bar.finish_and_clear();
        let (program, commit) = built?;
        scheduler.built_from = Some(Revision {
            repository: repository.clone(),
            asked: of.revision.map(str::to_owned),
            commit,
        });
        scheduler.program = program.display().to_string();
    }
    Ok(())
}

/// The path of a repository from the root, so that results name it wherever they are read.
fn whole(repository: &str) -> String {
    let found = Path::new(repository).canonicalize();
    found.map_or(repository.to_owned(), |path| path.display().to_string())
}

/// Spinner of a build.
pub fn progress_bar() -> Result<ProgressBar, CliError> {
    let bar = ProgressBar::new_spinner();
    let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}");
    bar.set_style(style.map_err(CliError::internal)?);
    bar.enable_steady_tick(Duration::from_millis(200));
    Ok(bar)
}

/// A step of a build in words.
pub fn words(step: &Step) -> String {
    match step {
        Step::Chosen { name, version } => format!("{name} {version}"),
        Step::Commit { name, commit } => format!("{name} of {commit}"),
        Step::Downloading => "downloading sources".to_owned(),
        Step::Compiling { done, total, now } => {
            format!("compiling {done} of {total} crates: {now}")
        }
        Step::Installed => "installed".to_owned(),
    }
}
