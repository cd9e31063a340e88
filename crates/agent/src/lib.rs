//! The agent: the one process on the target that applies arms, runs trials and
//! reads the kernel. It speaks [`model::message`] over any byte stream.
//!
//! Invariants: a change is in the journal on disk before it is made; a trial
//! whose evidence disagrees with its arm is void; no figure comes from an arm that
//! could not be applied; after a trial the machine is as it was before.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod arm;
mod bell;
mod calibrate;
mod cgroup;
mod check;
mod co_runners;
mod collectors;
mod container;
mod context;
mod counters;
mod daemon;
mod early_end;
mod error;
mod evidence;
mod fence;
mod files;
mod fixes;
mod guard;
mod interrupt;
pub mod journal;
mod judge;
mod kept_files;
mod kernel_file;
mod load_files;
mod load_process;
pub mod machine_lock;
mod memory;
mod network;
mod process;
mod processes;
mod rails;
mod roles;
mod runner_input;
mod serve;
mod settle;
mod spawn;
mod stage;
mod state;
mod stop;
mod sys;
mod trial;
mod turn;
mod turns;

#[cfg(test)]
mod fixture;

pub use arm::policy::foreseen_warnings;
pub use arm::scheduler::SCHEDULERS_VARIABLE;
pub use check::check;
pub use collectors::{
    Cost, Costs, MOST as COSTLY, SURROUNDINGS, costs_file,
    def::CollectorDef,
    events::{check as check_events, event_names},
    log_of as collector_log_of, metrics as collector_metrics,
    table::COLLECTORS,
};
pub use counters::METRICS;
pub use error::AgentError;
pub use fixes::{Fixed, apply_fixes, restore_fixes};
pub use guard::{guard_main, is_busy, restore};
pub use journal::{Restored, another_journal_holds_something};
pub use judge::{judge as judge_evidence, judge_until_end};
pub use runner_input::{Heard, SILENCE};
pub use serve::{Options, serve};
pub use state::{STATE_VARIABLE, runs_dir, state_dir};
pub use stop::Stop;
