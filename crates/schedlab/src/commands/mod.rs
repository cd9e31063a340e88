//! The commands, one file each.

pub mod check;
pub mod doctor;
pub mod hidden;
pub mod list;
pub mod plan;
pub mod report;
pub mod restore;
pub mod run;
pub mod scheduler;
