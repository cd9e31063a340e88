//! What is bisected: a scheduler, a program or the kernel, and whether it can be measured as asked.

use super::{Work, kernel};
use crate::args::{BisectArgs, ExperimentArgs};
use crate::exit::CliError;
use crate::request::read_wanted;
use model::TargetSpec;
use plan::PlanError;

/// Kinds of things that are bisected.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'a> {
    /// Of sched_ext.
    Scheduler,
    /// Made by this shell command.
    Program(&'a str),
    /// Linux, which guests boot.
    Kernel,
}

/// Refuses a file whose target does not boot kernels that are built here.
pub fn check_boots(given: &ExperimentArgs) -> Result<(), CliError> {
    if given.file.is_none() {
        return Ok(());
    }
    let mut unchanged = given.clone();
    unchanged.words.arms = vec!["default".to_owned()];
    check_target(&read_wanted(&unchanged)?.experiment.target)
}

/// Refuses a target that does not boot kernels that are built here.
pub fn check_target(target: &TargetSpec) -> Result<(), CliError> {
    let can = machines::find_abilities(target).map_err(PlanError::from)?;
    match can.kernels && !can.reboots {
        true => Ok(()),
        false => Err(CliError::usage(
            format!(
                "target {} does not boot a kernel that is built here",
                target.kind()
            ),
            "[target] kind = \"vm\" in the file",
        )),
    }
}

/// The kind of what is to be bisected, where it can be measured as asked.
pub fn find_subject<'a>(args: &'a BisectArgs, work: Option<Work>) -> Result<Subject<'a>, CliError> {
    let subject = match &args.build {
        Some(build) => Subject::Program(build),
        None if args.program == kernel::NAME => Subject::Kernel,
        None => Subject::Scheduler,
    };
    let given = &args.experiment;
    let words = &given.words;
    if let Some(work) = work {
        return work.check_subject(subject).map(|()| subject);
    }
    if given.file.is_none() && words.workloads.is_empty() && words.command.is_empty() {
        let remedy = match subject {
            Subject::Program(_) => {
                "the command that is measured, after --: -- sh -c '$PROGRAM --size 3'"
            }
            _ => "-w wakeup, or an experiment file without arms of its own",
        };
        return Err(CliError::usage("bisect needs a workload", remedy));
    }
    let elsewhere = words.target.as_deref().or(words.clock.as_deref());
    match (subject, elsewhere, words.target.as_deref()) {
        (Subject::Program(_), Some(elsewhere), _) => Err(CliError::usage(
            format!("a program that is built here is not there on {elsewhere}"),
            "measure it on this machine, or in a guest: --vm debian:sid",
        )),
        (Subject::Kernel, _, Some(target)) => Err(CliError::usage(
            format!("{target} does not boot a kernel that is built here"),
            "leave it out: the kernels of commits are booted in guests",
        )),
        (Subject::Scheduler | Subject::Program(_), ..)
            if args.config.is_some() || !args.fragment.is_empty() =>
        {
            Err(CliError::usage(
                "`--config` and `--fragment` are of a kernel",
                "leave them out, or bisect the kernel: schedlab bisect kernel --repository linux",
            ))
        }
        _ => Ok(subject),
    }
}
