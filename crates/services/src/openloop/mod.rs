//! The engine of the open-loop generators: requests start at seeded intended times,
//! whatever the server does, and are timed from there.
//!
//! Invariants: every request that was intended inside the window is in the
//! distribution, also one that failed or was never sent, with the time that it has
//! taken until then; the service time stands beside it; what the generator itself is
//! late is measured and judged; a sleeping thread is woken by a timer that is exact
//! to the nanosecond, not by milliseconds.

pub mod address;
mod config;
mod connection;
pub mod driver;
pub mod figures;
mod generate;
mod inbox;
mod kinds;
pub mod metrics;
mod poller;
mod protocol;
mod search;
mod shape;
mod tally;
mod worker;

pub use config::Config;
pub use connection::own_limit;
pub use generate::{THREAD, generate};
pub use poller::{Events, Poller, Wait, events, index};
pub use protocol::{Answer, Done, Fault, Protocol, Taken, Wrong};
pub use shape::Ramps;
pub use tally::{Failure, Tally, Times};
