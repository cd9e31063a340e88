//! Ingredients of an arm, one file each: how to check it, put it in force, prove it and undo
//! it.

mod built_in;
mod busy;
pub(crate) mod changes;
pub(crate) mod cpus;
mod daemon;
mod env;
mod handicap;
pub(crate) mod hypervisor;
pub mod ingredient;
mod kernel;
pub(crate) mod policy;
mod profile;
mod quota;
mod requirement;
pub(crate) mod scheduler;
pub mod table;
pub mod tunables;
mod uclamp;
mod weight;

pub use policy::{POLICY_KEYS, check_policy, read_policy};
pub use requirement::{Asked, Value};
pub use scheduler::{find_with as find_scheduler, how_to_get};
pub use weight::check_weight;
pub(crate) use weight::settings_of;
