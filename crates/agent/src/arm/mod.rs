//! Kinds of arm, one file each: how to check, apply, read back and undo.

pub mod deadline;
pub mod policy;
pub mod scheduler;
pub mod tunables;
