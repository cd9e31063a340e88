//! Names of collectors. Which there are, only the agent knows.

use crate::error::PlanError;
use model::Experiment;

/// Check that all collectors of an experiment file are among the known ones; the error has its
/// place in the text.
pub fn check_collectors(
    experiment: &Experiment,
    known: &[&str],
    (file_name, text): (&str, &str),
) -> Result<(), PlanError> {
    let of_arms = experiment
        .arms
        .iter()
        .filter_map(|arm| arm.collect.as_ref());
    let mut named = experiment.collect.iter().chain(of_arms).flatten();
    let Some(unknown) = named.find(|name| !known.contains(&name.as_str())) else {
        return Ok(());
    };
    let near = model::nearest(unknown, known.iter().copied());
    let help = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", known.join(", ")),
    };
    let error = PlanError::new(format!("there is no collector `{unknown}`")).with_help(help);
    Err(match text.find(unknown) {
        Some(at) => error.at(at..at + unknown.len()).in_file(file_name, text),
        None => error,
    })
}
