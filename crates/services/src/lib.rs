//! Loads that ask a service over the network, the service that schedlab brings itself, and the programs of the
//! roles beside a load: servers and antagonists, one module each.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod http;
pub mod memcached;
pub mod openloop;
pub mod programs;
pub mod provoke;
pub mod request_names;
pub mod serve;
mod spin;

pub use provoke::provoke_main;
pub use serve::serve_main;
pub use spin::spin_main;
