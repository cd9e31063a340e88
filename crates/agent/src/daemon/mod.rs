//! Changes of processes that no trial starts.

pub mod threads;
