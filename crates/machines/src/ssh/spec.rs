//! The keys of `[target]` with `kind = "ssh"`.

use super::NAME;
use crate::By;
use crate::def::{CONFIGURATION_OF_SSH, PROGRAM};
use crate::far::{Sudo, check_address};
use crate::reboots::{self, REBOOTS, RESET};
use jiff::SignedDuration;
use model::{Invalid, KeyDef, Reset, TargetSpec};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Time for which a lost connection is made anew, where the keys say nothing.
const RECONNECT: Duration = Duration::from_secs(300);
/// The same for a machine that was restarted: the firmware of a large one takes minutes.
const REBOOT_LIMIT: Duration = Duration::from_secs(900);

/// Another machine, as an experiment names it. ssh(1) and its configuration do the rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SshSpec {
    /// `user@machine`, or a `Host` of the configuration of ssh(1).
    pub host: String,
    /// Port of its sshd; `None` as ssh(1) has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Address of the machine in the network of this machine, for loads that are to go over it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// File of the private key; `None` as ssh(1) has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<PathBuf>,
    /// Configuration of ssh(1) in place of the user's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<PathBuf>,
    /// Build of schedlab for the machine; `None`: this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<PathBuf>,
    /// Use of sudo(8) by a user who is not root.
    #[serde(default, skip_serializing_if = "Sudo::is_usual")]
    pub sudo: Sudo,
    /// Time for which a lost connection is made anew; `None`: five minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconnect: Option<SignedDuration>,
    /// The way to other kernels, where the machine may be restarted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reboots: Option<By>,
    /// Occasions on which it is restarted; `None`: for each block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<Reset>,
    /// Time within which it must be back; `None`: fifteen minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reboot_limit: Option<SignedDuration>,
}

/// Keys of the table `[target]`.
pub const KEYS: &[KeyDef] = &[
    KeyDef::new(
        "host",
        "text",
        "needed",
        "The machine, as ssh(1) is told it: `user@machine`, or a `Host` of its configuration.",
    ),
    KeyDef::new("port", "number", "as ssh(1) has it", "Port of its sshd."),
    KeyDef::new(
        "address",
        "IP address",
        "the one at which its sshd took the connection",
        "Address of the machine in the network of this one, for `load-way = \"network\"`.",
    ),
    KeyDef::new(
        "identity",
        "path",
        "as ssh(1) has it",
        "Private key, which must ask for no passphrase, or be held by ssh-agent(1).",
    ),
    KeyDef::new(
        "config",
        "path",
        "the user's",
        "Configuration of ssh(1), as for `ssh -F`.",
    ),
    KeyDef::new(
        "agent",
        "path",
        "this program, or `schedlab-MACHINE` beside it",
        "Build of the same schedlab for a machine of another architecture, as `uname -m` names it.",
    ),
    KeyDef::new(
        "sudo",
        "`auto`, `yes` or `no`",
        "`auto`",
        "Use of sudo by a user who is not root; `auto`: where an arm changes something and sudo \
         asks for no password; `yes`: an error where it asks for one.",
    ),
    KeyDef::new(
        "reconnect",
        "duration",
        "`\"5m\"`",
        "Time for which a lost connection is made anew; afterwards the run ends and can be resumed.",
    ),
    REBOOTS,
    RESET,
    KeyDef::new(
        "reboot-limit",
        "duration",
        "`\"15m\"`",
        "Time within which the machine is back after it was restarted; afterwards the run ends.",
    ),
];

impl SshSpec {
    /// The machine that the target of an experiment is.
    pub fn from_target(spec: &TargetSpec) -> Result<Self, Invalid> {
        let ssh: SshSpec = spec.read_keys()?;
        ssh.check()?;
        Ok(ssh)
    }

    /// Refuses what ssh(1) would take for something else, and names the key.
    pub fn check(&self) -> Result<(), Invalid> {
        let plain = |c: char| !c.is_whitespace() && !c.is_control();
        if self.host.is_empty() || self.host.starts_with('-') || !self.host.chars().all(plain) {
            let what = format!("`{}` is no name of a machine", self.host);
            return Err(Invalid::new("host", what).with_remedy("host = \"user@machine\""));
        }
        if self.port == Some(0) {
            return Err(Invalid::new("port", "there is no port 0"));
        }
        for (key, time) in [
            ("reconnect", self.reconnect),
            ("reboot-limit", self.reboot_limit),
        ] {
            if time.is_some_and(|time| time.is_negative()) {
                return Err(Invalid::new(key, "a time is not negative"));
            }
        }
        check_address(self.address)?;
        reboots::check(self.reboots.is_some(), self.reset)
    }

    /// Time for which a lost connection is made anew.
    pub(super) fn time_to_reconnect(&self) -> Duration {
        let wanted = self.reconnect.map(Duration::try_from);
        wanted.and_then(Result::ok).unwrap_or(RECONNECT)
    }

    /// Time within which it must be back after it was restarted.
    pub(super) fn time_to_reboot(&self) -> Duration {
        let wanted = self.reboot_limit.map(Duration::try_from);
        wanted.and_then(Result::ok).unwrap_or(REBOOT_LIMIT)
    }

    /// The lines for somebody who runs a stranger's experiment: a configuration of ssh(1) and
    /// the agent are programs that this machine, or the other, will run.
    pub fn shown_lines(&self) -> Vec<(&'static str, String)> {
        let port = self.port.map(|port| format!(", port {port}"));
        let file = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let more = [
            (
                "at the address",
                self.address.map(|address| address.to_string()),
            ),
            ("with the key", file(&self.identity)),
            (CONFIGURATION_OF_SSH, file(&self.config)),
            (PROGRAM, file(&self.agent)),
            (
                "which it restarts, by",
                self.reboots.map(|by| by.to_string()),
            ),
        ];
        let more = more
            .into_iter()
            .filter_map(|(what, text)| Some((what, text?)));
        let host = format!("{}{}", self.host, port.unwrap_or_default());
        std::iter::once(("over ssh, on", host))
            .chain(more)
            .collect()
    }
}

impl From<&SshSpec> for TargetSpec {
    fn from(ssh: &SshSpec) -> Self {
        TargetSpec::new(NAME, ssh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn read(keys: &str) -> Result<SshSpec, String> {
        let keys = toml::de::ValueDeserializer::parse(keys).map_err(|e| e.to_string())?;
        let spec = SshSpec::deserialize(keys).map_err(|e| e.to_string())?;
        spec.check().map_err(|e| e.to_string())?;
        Ok(spec)
    }

    #[test]
    fn every_key_is_described() {
        let described: BTreeSet<&str> = KEYS.iter().map(|key| key.name).collect();
        let read = model::key::accepted_keys::<SshSpec>().iter().copied();
        assert_eq!(described, read.collect());
    }

    #[test]
    fn keys_are_the_same_after_they_were_stored() {
        let keys = "{host = \"a@b\", port = 22, sudo = \"yes\", reconnect = \"90s\"}";
        let spec = read(keys).unwrap();
        assert_eq!(spec.time_to_reconnect(), Duration::from_secs(90));
        assert_eq!(SshSpec::from_target(&TargetSpec::from(&spec)), Ok(spec));
        let usual = read("{host = \"lab3\"}").unwrap();
        assert_eq!(
            (usual.sudo, usual.time_to_reconnect()),
            (Sudo::Auto, RECONNECT)
        );
    }

    #[test]
    fn a_host_that_ssh_would_take_for_an_option_is_refused() {
        for host in ["", "-oProxyCommand=x", "a b", "a\\nb"] {
            let error = read(&format!("{{host = \"{host}\"}}")).unwrap_err();
            assert!(error.contains("is no name of a machine"), "{host}: {error}");
        }
        assert!(read("{host = \"a\", reconnect = \"-5s\"}").is_err());
    }

    #[test]
    fn programs_that_a_stranger_brings_are_shown() {
        let spec = read("{host = \"a\", config = \"c\", agent = \"p\"}").unwrap();
        let shown: Vec<String> = spec
            .shown_lines()
            .into_iter()
            .map(|(_, text)| text)
            .collect();
        assert_eq!(shown, ["a", "c", "p"]);
    }
}
