//! What an arm changes, one file for each ingredient: how to check it, put it in force,
//! prove it and undo it.

mod asked;
pub(crate) mod ingredient;
pub(crate) mod policy;
pub(crate) mod scheduler;
pub mod tunables;
mod weight;
