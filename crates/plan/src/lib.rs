//! From an experiment file or the command line to an [`model::Experiment`]. The only crate
//! that knows source spans; keys of a target are read by the target, those of a kind of
//! workload by the kind, those of an ingredient of arms by the ingredient.
//!
//! Each part of an experiment is one module: what it reads from a file, and its checks.
//! `words` makes the text of a file of a command line, `file` reads the one and the other, `check` looks at
//! whole experiments wherever they come from.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod antagonist;
mod arm;
mod build;
mod check;
mod client;
mod co_runner;
mod condition;
mod document;
mod error;
mod event;
mod event_bound;
mod file;
mod grid;
mod loads;
mod metric;
mod name;
mod placement;
mod places;
mod program;
mod recipient;
mod reference;
mod serde_errors;
mod server;
mod space;
mod spread;
mod stack;
mod stop;
mod table;
mod target;
mod turns;
mod words;
mod workload;

pub use arm::{forms, parse_arm};
pub use check::check;
pub use document::Key;
pub use error::PlanError;
pub use file::{parse_experiment, parse_with_arms};
pub use load::units::{parse_duration, parse_fraction, parse_load, parse_size};
pub use reference::{TABLES, TableDef};
pub use space::{Point, Space, Tuning, read_tuning};
pub use words::{Document, Words, lay_over, parse_workload, provoke};
