//! Schedulers that arms name by a commit of a repository or by a version: built before anything is
//! measured.

use crate::exit::CliError;
use doors::started::Agreed;
use indicatif::{ProgressBar, ProgressStyle};
use model::{Arm, Experiment, Problem, Revision};
use plan::PlanError;
use schedulers::{GitName, Step};
use std::path::Path;
use std::time::Duration;

/// Builds the schedulers that arms name by a commit, unless they were built before, and names their
/// programs in the arms.
pub fn build(experiment: &mut Experiment, agreed: Agreed) -> Result<(), CliError> {
    let arms = experiment.arms.iter_mut();
    for scheduler in arms.filter_map(|arm| arm.scheduler.as_mut()) {
        let asked = scheduler.program.clone();
        let Some(of) = GitName::of(&asked) else {
            install_version(&asked)?;
            continue;
        };
        let repository = whole(of.repository);
        let of = GitName {
            repository: &repository,
            ..of
        };
        let bar = progress_bar()?;
        let built = schedulers::install_git(of, agreed, &mut |step| bar.set_message(words(&step)));
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

/// Builds the version that an arm names, `scx_lavd@1.1.3`, unless it is installed. A path is one of a
/// program that is there, and a name without a version is taken as it is installed.
fn install_version(program: &str) -> Result<(), CliError> {
    if program.contains('/') || !program.contains('@') {
        return Ok(());
    }
    let bar = progress_bar()?;
    let installed = schedulers::install(program, false, &mut |step| bar.set_message(words(&step)));
    bar.finish_and_clear();
    installed?;
    Ok(())
}

/// An error where a scheduler is missing, if the target has the programs of this machine: that is
/// known before the machine is waited for or a guest is booted.
pub fn require_installed(experiment: &Experiment) -> Result<(), CliError> {
    // This machine itself is looked at as soon, and all that it lacks is said at once, unless another run
    // must be waited for.
    if experiment.target.is_local() && !crate::targets::is_in_use(&experiment.target)? {
        return Ok(());
    }
    let def = target::def(&experiment.target).map_err(PlanError::from)?;
    if !(def.can)(&experiment.target)
        .map_err(PlanError::from)?
        .programs_of_here
    {
        return Ok(());
    }
    let installed = schedulers::bin_dirs()?;
    let problem = |arm: &Arm| {
        let program = &arm.scheduler.as_ref()?.program;
        let found = agent::arm::find_scheduler(program, installed.clone());
        found.is_none().then(|| missing(&arm.name, program))
    };
    match experiment
        .arms
        .iter()
        .filter_map(problem)
        .collect::<Vec<_>>()
    {
        problems if problems.is_empty() => Ok(()),
        problems => Err(CliError::Unmet(problems)),
    }
}

fn missing(arm: &str, program: &str) -> Problem {
    let near = schedulers::nearest(program).filter(|near| *near != program);
    let remedy = match near {
        Some(near) => format!("did you mean `{near}`? `schedlab scheduler list` has all"),
        None => agent::arm::how_to_get(program),
    };
    Problem {
        object: format!("arm {arm}"),
        what: format!("the scheduler {program} was not found"),
        remedy,
    }
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
    // A step may hold what a build printed.
    doors::shown::sentence(plain_words(step)).into_string()
}

fn plain_words(step: &Step) -> String {
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
