//! Work of a bisection that no command line has: an experiment in whose arm the commits take turns.

use super::state::Step;
use super::subject::{Subject, check_target};
use super::{Bisect, LEAST_SHARE_NS};
use crate::exit::CliError;
use crate::request::Wanted;
use crate::sources;
use doors::started::Agreed;
use model::{Arm, Experiment, whole_nanos};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Ingredient of arms, and the variable of it that has the path of a program.
const ENV: &str = "env";
const PROGRAM: &str = "PROGRAM";

/// Work of a bisection that no command line has.
#[derive(Clone, Copy)]
pub struct Work<'a> {
    /// Its one arm has the scheduler, the program or the kernel that is bisected.
    pub experiment: &'a Experiment,
    /// Wall time for the trials of the whole path; else each step has that of the experiment.
    pub budget_ns: Option<u64>,
}

impl Work<'_> {
    /// Refuses what its target cannot have.
    pub(super) fn check_subject(&self, subject: Subject) -> Result<(), CliError> {
        let target = &self.experiment.target;
        match subject {
            Subject::Kernel => check_target(target),
            Subject::Program(_) if !target.is_local() => Err(CliError::usage(
                format!(
                    "a program that is built here is not there on {}",
                    target.kind()
                ),
                "bisect it by hand, on this machine or in a guest: schedlab bisect --help",
            )),
            Subject::Scheduler | Subject::Program(_) => Ok(()),
        }
    }
}

impl Bisect<'_> {
    /// The experiment with two commits in its arm.
    pub(super) fn name_commits(
        &self,
        work: Work,
        arms: [(&str, &str); 2],
    ) -> Result<Wanted, CliError> {
        let mut experiment = work.experiment.clone();
        if let Some(whole) = work.budget_ns {
            experiment.stop.budget_ns = Some(self.share_time(whole));
        }
        let Some(template) = experiment.arms.pop() else {
            return Err(CliError::internal("the experiment has no arm"));
        };
        experiment.arms = arms
            .map(|(name, commit)| {
                let mut arm = template.clone();
                arm.name = name.to_owned();
                self.name_commit(&mut arm, commit);
                arm
            })
            .to_vec();
        sources::build(&mut experiment, Agreed::by_command())?;
        Ok(Wanted {
            experiment,
            source: None,
            calibrations: BTreeMap::new(),
        })
    }

    fn name_commit(&self, arm: &mut Arm, commit: &str) {
        match self.subject {
            Subject::Scheduler => {
                if let Some(scheduler) = &mut arm.scheduler {
                    scheduler.program = self.scheduler(commit);
                }
            }
            Subject::Program(_) => {
                let path = self.tree(commit).program().display().to_string();
                let variables = arm.ingredients.entry(ENV.to_owned());
                let variables = variables.or_insert_with(|| Map::new().into());
                variables[PROGRAM] = Value::String(path);
            }
            Subject::Kernel => {
                let image = self.kernels().image_dir(commit);
                arm.kernel = Some(image.display().to_string());
            }
        }
    }

    /// An equal share of the time that is left, for this step: what one decides sooner is for those after it.
    fn share_time(&self, whole_ns: u64) -> u64 {
        let is_measured = |step: &&Step| step.results.is_some();
        let steps = self.state.steps.iter().chain(&self.state.ends);
        let done = steps.filter(is_measured).count();
        // The last comparison, of the culprit with its parent, has a share in any case.
        let to_do = (self.most_steps() as usize).saturating_sub(done).max(2);
        let left_ns = whole_ns.saturating_sub(whole_nanos(self.spent.get()));
        (left_ns / to_do as u64).max(LEAST_SHARE_NS)
    }
}
