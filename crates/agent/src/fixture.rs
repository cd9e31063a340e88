//! A workload for tests, and the few kinds that they name.

#[path = "../tests/few/mod.rs"]
pub mod few;

use model::{Kind, Workload};

/// A workload that is the command `true`.
pub fn command() -> Workload {
    few::install();
    Workload::new(Kind::new("command").with_param("argv", vec!["true"]))
}
