//! From an [`model::Experiment`] to a [`model::Plan`]: the order of its trials, the time
//! that they take, and what there is to warn of before the first one.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod length;
mod limits;
mod order;
mod turns;
mod warnings;

pub use length::{
    Between, Search, between_trials, block_ns, search_limit_ns, searches, searches_ns,
};
pub use limits::check_quota;
pub use order::{cells, machine_seed, plan, trial_seed};
pub use turns::{pilot_turns, turns};
pub use warnings::{
    lasting_warnings, least_blocks, rounded_budget, short_budget, stretched, warnings,
};
