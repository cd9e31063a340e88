//! A workload for tests.

use model::{Kind, Workload};

/// A workload that is the command `true`.
pub fn command() -> Workload {
    Workload::new(Kind::new("command").with_param("argv", vec!["true"]))
}
