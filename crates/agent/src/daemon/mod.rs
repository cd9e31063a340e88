//! What an arm gives the processes that it is for and that no trial starts.

pub mod threads;
