//! `schedlab check`: would this experiment run here?

use crate::args::ExperimentArgs;
use crate::exit::CliError;
use crate::measure::build;
use crate::output::say;
use crate::request::wanted;
use crate::targets;
use std::process::ExitCode;
use std::sync::Arc;

pub fn check(args: &ExperimentArgs) -> Result<ExitCode, CliError> {
    let experiment = wanted(args)?.experiment;
    let mut target = targets::target(&experiment, &Arc::default())?;
    let mut controller = targets::controller(&Arc::default())?;
    let problems = runner::check(
        &experiment,
        target.as_mut(),
        Some(controller.as_mut()),
        &build(),
    )?;
    if !problems.is_empty() {
        return Err(CliError::Unmet(problems));
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
