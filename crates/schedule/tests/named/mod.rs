//! Reader of experiments with all that can be named.

use model::Experiment;
use plan::PlanError;

pub fn parse_experiment(text: &str) -> Result<Experiment, PlanError> {
    catalogue::install();
    plan::parse_experiment("x.toml", text)
}
