//! Kinds of load, a module each: generators of wake-ups and rounds, and adapters for external programs. The
//! catalogue has the list.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod attach;
mod calibrate;
pub mod command;
pub mod fio;
pub mod frames;
pub mod gatling;
pub mod hackbench;
mod matrices;
pub mod netperf;
pub mod pairs;
pub mod periodic;
pub mod rr;
pub mod schbench;
pub mod tbench;
pub mod wakeup;

pub use rr::serve::serve_pairs_main;
