//! Four doors between schedlab and what others made or may see: bytes that are read, text that is
//! shown, files that are written, programs that are started. Each is one module, and lints
//! (`clippy.toml`) keep other modules from going around it.

#![cfg_attr(test, allow(clippy::unwrap_used))]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod read;
pub mod shown;
pub mod started;
pub mod watch;
pub mod written;
