//! The ingredients of arms, one file each: how they are written, checked, put in force,
//! proven and undone.

mod asked;
mod handicap;
pub mod ingredient;
mod kernel;
pub(crate) mod policy;
pub(crate) mod scheduler;
pub mod tunables;
mod weight;

pub use asked::{Asked, Value};
pub use policy::{check_policy, read_policy};
pub use weight::check_weight;
