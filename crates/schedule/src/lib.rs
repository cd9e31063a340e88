//! From an [`model::Experiment`] to a [`model::Plan`]: the order of its trials, the time
//! that they take, and what there is to warn of before the first one.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod length;
mod limits;
mod order;
mod turns;
mod warnings;

pub use length::{
    Between, Search, between_trials, block_ns, list_searches, search_limit_ns, searches_ns,
};
pub use limits::check_quota;
pub use order::{list_cells, machine_seed, plan_blocks, trial_seed};
pub use turns::{pilot_turns, plan_turns, turns_ns};
pub use warnings::{
    experiment_warnings, lasting_warnings, least_blocks, longest_time_ns, rounded_budget,
    short_budget,
};
