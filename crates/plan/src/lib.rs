//! From an experiment file or the command line to an [`model::Experiment`], and
//! from it to a [`model::Plan`]. The only crate that knows source spans; keys of a
//! target are read by the target.

pub mod arms;
mod build;
mod check;
mod collect;
mod condition;
mod error;
mod file;
mod grid;
mod length;
mod limits;
mod loads;
mod nearest;
mod schedule;
mod services;
mod spread;
mod stack;
mod table;
mod warnings;
pub mod workloads;

pub use build::{Request, experiment_from_request, with_aa};
pub use check::check;
pub use collect::check_collectors;
pub use error::PlanError;
pub use file::parse_experiment;
pub use length::block_ns;
pub use load::units::{parse_duration, parse_load, parse_percent, parse_size};
pub use nearest::nearest;
pub use schedule::{plan, trial_seed};
pub use warnings::warnings;
