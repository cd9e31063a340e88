//! Names by which a load whose workers are guests of the hypervisor, and whoever takes back what it left, know
//! the guests and their files.

/// Beginning of the names of all guests that are workers.
pub const PREFIX: &str = "schedlab-worker-";
/// Directory of the file system and of the guests' configurations while there are guests.
pub const DIRECTORY: &str = "/run/schedlab-guests";
