//! The needs of a guest besides its description.

use super::failure::io;
use super::{cache, frame, view};
use crate::VmError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

/// The needs of a guest besides its description.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// A static program whose PID 1 is `init::main`; it is the agent as well.
    pub program: PathBuf,
    /// Directory of fetched and built things, see [`cache::directory`].
    pub cache: PathBuf,
    /// Arguments that make it an agent.
    pub agent: Vec<String>,
    /// Files and directories that guests see, wherever they lie; those that are not
    /// there are no error.
    #[serde(default)]
    pub shown: Vec<PathBuf>,
    /// Working directory in the guest.
    pub directory: PathBuf,
    /// Environment of the agent and of commands in the guest.
    pub environment: BTreeMap<String, String>,
}

impl Options {
    /// This program, here, with what matters of its environment.
    pub fn of_this_process() -> Result<Self, VmError> {
        let here = Path::new("/proc/self");
        Ok(Options {
            program: env::current_exe().map_err(io("find this program", here))?,
            cache: cache::directory()?,
            agent: vec!["agent".to_owned()],
            shown: view::of_programs(),
            directory: env::current_dir().map_err(io("find the current directory", here))?,
            environment: guest_environment(env::vars()),
        })
    }
}

/// Variables that programs need to run as they do on the host; a session's own (display,
/// agents, tokens) stay outside.
fn guest_environment(vars: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
    const KEPT: [&str; 15] = [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "TERM",
        "TZ",
        "LANG",
        "JAVA_HOME",
        "CARGO_HOME",
        "RUSTUP_HOME",
        "XDG_CACHE_HOME",
        "XDG_DATA_HOME",
        "RUST_LOG",
        "RUST_BACKTRACE",
    ];
    let kept = |name: &str| {
        KEPT.contains(&name) || name.starts_with("LC_") || name.starts_with("SCHEDLAB_")
    };
    let mut environment: BTreeMap<String, String> = vars.filter(|(name, _)| kept(name)).collect();
    let path = environment.entry("PATH".to_owned()).or_default();
    // An ordinary user's PATH lacks what root runs in the guest.
    for directory in [
        "/usr/local/sbin",
        "/usr/local/bin",
        "/usr/sbin",
        "/usr/bin",
        "/sbin",
        "/bin",
    ] {
        if !path.split(':').any(|d| d == directory) {
            path.push_str(if path.is_empty() { "" } else { ":" });
            path.push_str(directory);
        }
    }
    environment.insert(frame::GUEST_VARIABLE.to_owned(), "1".to_owned());
    environment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_gets_what_programs_need_and_no_secrets() {
        let vars = [
            ("PATH", "/opt/bin:/usr/bin"),
            ("SCHEDLAB_SCHEDULERS", "/s"),
            ("LC_ALL", "C"),
            ("API_TOKEN", "secret"),
            ("DISPLAY", ":0"),
        ];
        let environment =
            guest_environment(vars.map(|(k, v)| (k.to_owned(), v.to_owned())).into_iter());
        assert_eq!(
            environment["PATH"],
            "/opt/bin:/usr/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/bin"
        );
        assert_eq!(environment["SCHEDLAB_SCHEDULERS"], "/s");
        assert_eq!(environment["LC_ALL"], "C");
        assert!(!environment.contains_key("API_TOKEN") && !environment.contains_key("DISPLAY"));
    }
}
