//! Programs of the roles beside the load: servers, which answer, and antagonists, which disturb. Each is a module
//! with its parameters and its definition; the catalogue has the list.

pub mod antagonist_command;
pub mod echo;
pub mod http_echo;
pub mod memcached;
pub mod nginx;
pub mod provoke;
pub mod rr;
pub mod server_command;
pub mod spinner;
pub mod stress_ng;
pub mod tbench;
