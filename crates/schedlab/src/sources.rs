//! Schedulers that arms name by a commit of a repository or by a version: built before anything is
//! measured.

use crate::exit::CliError;
use crate::progress::Spinner;
use doors::started::Agreed;
use model::{Arm, Experiment, Problem, Revision};
use plan::PlanError;
use schedulers::{GitName, Step};
use std::path::Path;

/// A scheduler that was not built.
#[derive(Debug)]
pub enum Unbuilt {
    /// Its source does not build, whoever tries again.
    Gone(schedulers::Error),
    /// All else: a tool that is missing, the network, an interruption.
    Now(CliError),
}

impl From<CliError> for Unbuilt {
    fn from(error: CliError) -> Self {
        Unbuilt::Now(error)
    }
}

impl From<schedulers::Error> for Unbuilt {
    fn from(error: schedulers::Error) -> Self {
        use schedulers::Error::{BuildFailed, NoSuchCrate, OtherVersion};
        match error {
            BuildFailed { .. } | NoSuchCrate { .. } | OtherVersion { .. } => Unbuilt::Gone(error),
            error => Unbuilt::Now(error.into()),
        }
    }
}

impl From<Unbuilt> for CliError {
    fn from(unbuilt: Unbuilt) -> Self {
        match unbuilt {
            Unbuilt::Gone(error) => error.into(),
            Unbuilt::Now(error) => error,
        }
    }
}

/// Builds the schedulers that arms name by a commit, unless they were built before, and names their
/// programs in the arms.
pub fn build(experiment: &mut Experiment, agreed: Agreed) -> Result<(), CliError> {
    Ok(build_versions(experiment, agreed)?)
}

/// The same for who wants to know whether it is worth trying again.
pub fn build_versions(experiment: &mut Experiment, agreed: Agreed) -> Result<(), Unbuilt> {
    let arms = experiment.arms.iter_mut();
    for scheduler in arms.filter_map(|arm| arm.scheduler.as_mut()) {
        let asked = scheduler.program.clone();
        let Some(of) = GitName::parse(&asked) else {
            install_version(&asked)?;
            continue;
        };
        let repository = whole(of.repository);
        let of = GitName {
            repository: &repository,
            ..of
        };
        let bar = Spinner::new()?;
        let built =
            schedulers::install_git(of, agreed, &mut |step| bar.show_line(&step_words(&step)));
        bar.end_display();
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
fn install_version(program: &str) -> Result<(), Unbuilt> {
    if program.contains('/') || !program.contains('@') {
        return Ok(());
    }
    let bar = Spinner::new()?;
    let installed = schedulers::install(program, false, &mut |step| {
        bar.show_line(&step_words(&step))
    });
    bar.end_display();
    installed?;
    Ok(())
}

/// An error where a scheduler is missing, if the target has the programs of this machine: that is
/// known before the machine is waited for or a guest is booted.
pub fn require_installed(experiment: &Experiment) -> Result<(), CliError> {
    // This machine itself is looked at as soon, and all that it lacks is said at once, unless another run
    // must be waited for. What a misspelt name lacks is its letters.
    let is_looked_at =
        experiment.target.is_local() && !crate::targets::is_in_use(&experiment.target)?;
    let def = machines::find_def(&experiment.target).map_err(PlanError::from)?;
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
        let is_ours = !is_looked_at || misspelt(program).is_some();
        (found.is_none() && is_ours).then(|| missing(&arm.name, program))
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

/// The known name that a scheduler of another name is nearest to. A path is no name.
fn misspelt(program: &str) -> Option<&'static str> {
    let name = Some(program).filter(|program| !program.contains('/'))?;
    let (name, _) = name.split_once('@').unwrap_or((name, ""));
    schedulers::find_nearest(name).filter(|near| *near != name)
}

fn missing(arm: &str, program: &str) -> Problem {
    let remedy = match misspelt(program) {
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

/// A step of a build in words.
pub fn step_words(step: &Step) -> String {
    // A step may hold what a build printed.
    doors::shown::clean_line(plain_words(step)).into_string()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_scheduler_has_a_nearest_and_a_path_or_a_right_name_has_none() {
        for (name, near) in [
            ("scx_lavdd", Some("scx_lavd")),
            ("scx_bplfand", Some("scx_bpfland")),
            ("scx_lavdd@1.1.3", Some("scx_lavd")),
            ("scx_lavd", None),
            ("scx_lavd@1.1.3", None),
            ("./scx_lavdd", None),
        ] {
            assert_eq!(misspelt(name), near, "{name}");
        }
        assert!(
            missing("a", "scx_lavdd")
                .remedy
                .contains("did you mean `scx_lavd`?")
        );
        assert!(missing("a", "scx_lavd").remedy.contains("install scx_lavd"));
    }
}
