//! `schedlab check`: would this experiment run here?

use crate::args::ExperimentArgs;
use crate::exit::CliError;
use crate::measure::{build, interrupt_flag};
use crate::output::say;
use crate::progress::Steps;
use crate::request::wanted;
use crate::targets;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

pub fn check(args: &ExperimentArgs) -> Result<ExitCode, CliError> {
    let experiment = wanted(args)?.experiment;
    let interrupted = interrupt_flag()?;
    let _lock = match experiment.arms.iter().any(|arm| arm.scheduler.is_some()) {
        true => {
            let lock = targets::machine_lock()?;
            targets::restore_leftovers()?;
            Some(lock)
        }
        false => None,
    };
    let mut target = targets::target(&experiment, &interrupted)?;
    let mut controller = targets::controller(&interrupted)?;
    let mut display = Steps::new();
    let problems = runner::check(
        &experiment,
        target.as_mut(),
        Some(controller.as_mut()),
        &build(),
        &interrupted,
        &mut |step| display.show(step),
    );
    display.end();
    match problems {
        _ if interrupted.load(Ordering::Relaxed) => return Err(CliError::Interrupted),
        Ok(Some(problems)) if problems.is_empty() => {}
        Ok(problems) => return Err(CliError::Unmet(problems.unwrap_or_default())),
        Err(error) => return Err(error.into()),
    }
    let plan = schedule::plan(&experiment);
    say!(
        "{}: {} arms × {} cells on the target `{}`: nothing is missing",
        experiment.name,
        experiment.arms.len(),
        plan.cells.len(),
        experiment.target.kind()
    );
    let mut warnings = schedule::warnings(&experiment, &plan, target::cpus(&experiment.target));
    warnings.extend(target.warnings());
    super::plan::print_warnings(&warnings);
    Ok(ExitCode::SUCCESS)
}
