//! Processes that an arm is for and that no trial starts: a daemon that runs on the target before
//! the trial, and goes on after it.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The way in which the processes of a daemon are found when a trial begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Daemon {
    /// Processes of the cgroup with this path, as in `/proc/PID/cgroup`, and of all below it.
    Cgroup(String),
    /// Processes of this unit of systemd.
    Unit(String),
    /// Processes of the container with this name or ID.
    Container(String),
    /// The process with this ID, and all that it started.
    Pid(i32),
    /// All processes with this name of a command, and all that they started.
    Name(String),
    /// All processes that listen on this TCP port, and all that they started.
    Port(u16),
}

impl Daemon {
    /// Words before the value, in files and on the command line.
    pub const KEYS: [&'static str; 6] = ["cgroup", "unit", "container", "pid", "name", "port"];

    /// The daemon that a key and its text mean; `None` if that is none of the keys.
    pub fn from_key(key: &str, text: &str) -> Option<Result<Daemon, String>> {
        let text = text.trim();
        let owned = text.to_owned();
        let daemon = match key.trim() {
            "cgroup" => Daemon::Cgroup(owned),
            "unit" => Daemon::Unit(owned),
            "container" => Daemon::Container(owned),
            "name" => Daemon::Name(owned),
            "pid" => match text.parse() {
                Ok(pid) => Daemon::Pid(pid),
                Err(_) => return Some(Err(format!("`{text}` is no ID of a process"))),
            },
            "port" => match text.parse() {
                Ok(port) => Daemon::Port(port),
                Err(_) => return Some(Err(format!("`{text}` is no TCP port"))),
            },
            _ => return None,
        };
        Some(Ok(daemon))
    }

    /// Its key and the text of its value.
    pub fn key_and_text(&self) -> (&'static str, String) {
        match self {
            Daemon::Cgroup(path) => ("cgroup", path.clone()),
            Daemon::Unit(name) => ("unit", name.clone()),
            Daemon::Container(name) => ("container", name.clone()),
            Daemon::Pid(pid) => ("pid", pid.to_string()),
            Daemon::Name(name) => ("name", name.clone()),
            Daemon::Port(port) => ("port", port.to_string()),
        }
    }

    /// True where its processes are those of one cgroup.
    pub fn is_cgroup(&self) -> bool {
        !matches!(self, Daemon::Pid(_) | Daemon::Name(_) | Daemon::Port(_))
    }
}

impl fmt::Display for Daemon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, value) = self.key_and_text();
        write!(f, "{key} {value}")
    }
}
