//! Xen through its own toolstack: CPU pools, their schedulers, guests and their consoles.
//!
//! Everything is asked of xl(1) and xenstore-read(1) in dom0, so it is the same for a hypervisor
//! in a virtual machine and for one on a real machine. What they print is read by functions that
//! take text. Nothing here decides what is measured.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod console;
mod guest;
mod host;
mod pool;
mod scheduler;
mod table;
mod toolstack;

pub use console::Console;
pub use guest::{Guest, GuestConfig, Running, destroy_all, preferred_cpus};
pub use host::{Host, find_schedulers};
pub use pool::{Pool, PoolWanted, Step, list_pools, put_back_parameters};
pub use scheduler::{Parameters, Reservation, SCHEDULERS, Scheduler, WEIGHTS, list_reservations};
pub use toolstack::{XenError, is_there};

/// The pool that every domain is in unless something else was asked for. Dom0 is always in it.
pub const POOL_0: &str = "Pool-0";
