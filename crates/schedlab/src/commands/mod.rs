//! The commands, one file each.

pub mod certify;
pub mod check;
pub mod compare;
pub mod doctor;
pub mod forecast;
pub mod hidden;
pub mod list;
pub mod overhead;
pub mod pack;
pub mod plan;
pub mod report;
pub mod restore;
pub mod run;
pub mod scheduler;
pub mod snapshot;
pub mod verify;
pub mod vm;
