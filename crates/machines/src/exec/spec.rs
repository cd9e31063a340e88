//! The keys of `[target]` with `kind = "exec"`.

use super::NAME;
use super::presets::{PRESETS, Preset};
use crate::def::{PROGRAM, START};
use crate::far::{Sudo, check_address, quote_words};
use jiff::SignedDuration;
use model::{Invalid, KeyDef, TargetSpec};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Time for which a lost stream is made anew, where the keys say nothing.
const RECONNECT: Duration = Duration::from_secs(300);
const EXAMPLE: &str = "podman = \"NAME\", or command = [\"podman\", \"exec\", \"-i\", \"NAME\"]";

/// A place that a command leads to, as an experiment names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ExecSpec {
    /// Program and arguments that run the words behind them in the place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Container of Podman.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub podman: Option<String>,
    /// Container of Docker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docker: Option<String>,
    /// Pod of Kubernetes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubectl: Option<String>,
    /// Machine of systemd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machinectl: Option<String>,
    /// Device of Android.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adb: Option<String>,
    /// Does the command hand its words to a shell, as one text?
    #[serde(default, skip_serializing_if = "is_false")]
    pub shell: bool,
    /// Address of the place in the network of this machine, for loads that are to go over it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// Directory of agents in the place; `None`: the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<String>,
    /// Build of schedlab for the place; `None`: this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<PathBuf>,
    /// Use of sudo(8) by a user who is not root.
    #[serde(default, skip_serializing_if = "Sudo::is_usual")]
    pub sudo: Sudo,
    /// Time for which a lost stream is made anew; `None`: five minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconnect: Option<SignedDuration>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// Keys of the table `[target]`.
pub const KEYS: &[KeyDef] = &[
    KeyDef::new(
        "command",
        "words",
        "needed, or one of the next five",
        "Program and arguments that run the words behind them in the place, and pass on standard input, \
         output and the exit status: `[\"podman\", \"exec\", \"-i\", \"NAME\"]`. No terminal, which \
         would change the stream.",
    ),
    KeyDef::new(
        "podman",
        "text",
        "",
        "Container of Podman: `podman exec -i`.",
    ),
    KeyDef::new(
        "docker",
        "text",
        "",
        "Container of Docker: `docker exec -i`.",
    ),
    KeyDef::new(
        "kubectl",
        "text",
        "",
        "Pod of Kubernetes, as `POD` or `pod/POD`: `kubectl exec -i`. For another namespace, context or \
         container use `command`, whose last word is then `--`.",
    ),
    KeyDef::new(
        "machinectl",
        "text",
        "",
        "Container that systemd knows as a machine: `systemd-run --pipe --machine`.",
    ),
    KeyDef::new(
        "adb",
        "text",
        "",
        "Serial number of a device of Android: `adb shell -T`. It needs an `agent` of its architecture.",
    ),
    KeyDef::new(
        "shell",
        "`true` or `false`",
        "`false`",
        "The command hands its words to a shell in there, as one text, as ssh(1) does.",
    ),
    KeyDef::new(
        "address",
        "IP address",
        "",
        "Address of the place in the network of this machine, for `load-way = \"network\"`.",
    ),
    KeyDef::new(
        "cache",
        "path",
        "`~/.cache/schedlab` in there",
        "Directory of the agent in there, from which programs may run.",
    ),
    KeyDef::new(
        "agent",
        "path",
        "this program, or `schedlab-MACHINE` beside it",
        "Build of the same schedlab for a place of another architecture (`uname -m`).",
    ),
    KeyDef::new(
        "sudo",
        "`auto`, `yes` or `no`",
        "`auto`",
        "Use of sudo by a user who is not root in there, as of the target ssh.",
    ),
    KeyDef::new(
        "reconnect",
        "duration",
        "`\"5m\"`",
        "Time for which a lost stream is made anew; afterwards the run ends and can be resumed.",
    ),
];

impl ExecSpec {
    /// The place that the target of an experiment is.
    pub fn from_target(spec: &TargetSpec) -> Result<Self, Invalid> {
        let exec: ExecSpec = spec.read_keys()?;
        exec.check()?;
        Ok(exec)
    }

    /// Refuses what leads to no place, and names the key.
    pub fn check(&self) -> Result<(), Invalid> {
        let named = self.named_places();
        let ways = named.len() + usize::from(!self.command.is_empty());
        if ways != 1 {
            let what = match ways {
                0 => "the target says no command that leads to it".to_owned(),
                _ => "the target says more than one way to it".to_owned(),
            };
            return Err(Invalid::new("command", what).with_remedy(EXAMPLE));
        }
        for (Preset { key, place, .. }, name) in named {
            let is_plain = |c: char| !c.is_whitespace() && !c.is_control();
            if name.is_empty() || name.starts_with('-') || !name.chars().all(is_plain) {
                let what = format!("`{name}` is no name of {place}");
                return Err(Invalid::new(*key, what).with_remedy(format!("{key} = \"NAME\"")));
            }
        }
        if self.command.first().is_some_and(String::is_empty) {
            return Err(Invalid::new("command", "the command has no program").with_remedy(EXAMPLE));
        }
        self.check_details()
    }

    fn check_details(&self) -> Result<(), Invalid> {
        if self.shell && self.command.is_empty() {
            return Err(Invalid::new("shell", "`shell` is of a `command`")
                .with_remedy("leave it out: it is known of the others"));
        }
        if self.cache.as_ref().is_some_and(|dir| !dir.starts_with('/')) {
            return Err(Invalid::new("cache", "the directory must begin with `/`")
                .with_remedy("cache = \"/tmp/schedlab\""));
        }
        check_address(self.address)?;
        match self.reconnect.is_some_and(|time| time.is_negative()) {
            true => Err(Invalid::new("reconnect", "a time is not negative")),
            false => Ok(()),
        }
    }

    /// Presets whose keys are set, with the names of their places.
    fn named_places(&self) -> Vec<(&'static Preset, &str)> {
        // In the order of the presets.
        let names = [
            &self.podman,
            &self.docker,
            &self.kubectl,
            &self.machinectl,
            &self.adb,
        ];
        let all = PRESETS.iter().zip(names);
        all.filter_map(|(preset, name)| Some((preset, name.as_deref()?)))
            .collect()
    }

    /// The preset and the name of its place, where there is no command of one's own.
    pub(super) fn preset_and_name(&self) -> Option<(&'static Preset, &str)> {
        self.named_places().into_iter().next()
    }

    /// The words that lead to the place.
    pub(super) fn leading_words(&self) -> Vec<&str> {
        match self.preset_and_name() {
            Some((preset, name)) => [preset.before, &[name], preset.after].concat(),
            None => self.command.iter().map(String::as_str).collect(),
        }
    }

    /// The same as a person would type them.
    pub(super) fn way_in_words(&self) -> String {
        let words = self.leading_words().into_iter().map(str::to_owned);
        quote_words(&words.collect::<Vec<_>>())
    }

    /// True where the words go through a shell in there.
    pub(super) fn goes_through_shell(&self) -> bool {
        self.preset_and_name()
            .map_or(self.shell, |(preset, _)| preset.shell)
    }

    /// Directory of agents in there, where it is not the usual one.
    pub(super) fn cache_directory(&self) -> Option<&str> {
        let of_preset = || self.preset_and_name().and_then(|(preset, _)| preset.cache);
        self.cache.as_deref().or_else(of_preset)
    }

    /// Time for which a lost stream is made anew.
    pub(super) fn time_to_reconnect(&self) -> Duration {
        let wanted = self.reconnect.map(Duration::try_from);
        wanted.and_then(Result::ok).unwrap_or(RECONNECT)
    }

    /// The lines for somebody who runs a stranger's experiment: the command starts here, and the agent in the
    /// place.
    pub fn shown_lines(&self) -> Vec<(&'static str, String)> {
        let words = self.way_in_words();
        let way = match self.preset_and_name() {
            Some(_) => "in a place that is reached by",
            None => START,
        };
        let agent = self.agent.as_ref();
        let agent = agent.map(|path| (PROGRAM, path.display().to_string()));
        let address = self
            .address
            .map(|address| ("at the address", address.to_string()));
        std::iter::once((way, words))
            .chain(address)
            .chain(agent)
            .collect()
    }
}

impl From<&ExecSpec> for TargetSpec {
    fn from(exec: &ExecSpec) -> Self {
        TargetSpec::new(NAME, exec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn read(keys: &str) -> Result<ExecSpec, Invalid> {
        let keys = toml::de::ValueDeserializer::parse(keys).unwrap();
        let spec = ExecSpec::deserialize(keys).unwrap();
        spec.check()?;
        Ok(spec)
    }

    #[test]
    fn every_key_is_described_and_every_preset_has_one() {
        let described: BTreeSet<&str> = KEYS.iter().map(|key| key.name).collect();
        let read = model::key::accepted_keys::<ExecSpec>().iter().copied();
        assert_eq!(described, read.collect());
        let mut presets = PRESETS.iter().map(|preset| preset.key);
        assert!(presets.all(|key| described.contains(key)));
    }

    #[test]
    fn a_preset_leads_to_its_place_and_is_the_same_after_it_was_stored() {
        for preset in &PRESETS {
            let spec = read(&format!("{{{} = \"lab\"}}", preset.key)).unwrap();
            let (found, name) = spec.preset_and_name().unwrap();
            assert_eq!((found.key, name), (preset.key, "lab"));
            assert!(spec.leading_words().contains(&"lab"), "{spec:?}");
            assert_eq!(ExecSpec::from_target(&TargetSpec::from(&spec)), Ok(spec));
        }
        let pod = read("{kubectl = \"lab\", cache = \"/c\"}").unwrap();
        assert_eq!(pod.leading_words(), ["kubectl", "exec", "-i", "lab", "--"]);
        assert_eq!(pod.cache_directory(), Some("/c"));
    }

    #[test]
    fn what_leads_nowhere_is_refused_by_its_key() {
        for (keys, key, why) in [
            ("{}", "command", "no command"),
            (
                "{podman = \"a\", docker = \"b\"}",
                "command",
                "more than one",
            ),
            ("{command = [\"\"]}", "command", "no program"),
            (
                "{podman = \"--latest\"}",
                "podman",
                "no name of a container of Podman",
            ),
            ("{adb = \"a b\"}", "adb", "no name of a device"),
            ("{podman = \"a\", shell = true}", "shell", "of a `command`"),
            (
                "{podman = \"a\", address = \"0.0.0.0\"}",
                "address",
                "of no machine",
            ),
            ("{podman = \"a\", cache = \"c\"}", "cache", "begin with `/`"),
            (
                "{podman = \"a\", reconnect = \"-5s\"}",
                "reconnect",
                "not negative",
            ),
        ] {
            let error = read(keys).unwrap_err();
            assert_eq!(error.key, key, "{keys}");
            assert!(error.what.contains(why), "{keys}: {error}");
        }
    }

    #[test]
    fn a_command_that_a_stranger_brings_is_shown_as_one_that_starts() {
        let own = read("{command = [\"sh\", \"-c\", \"exec $0\"], agent = \"p\"}").unwrap();
        let shown = own.shown_lines();
        assert_eq!(shown[0], (START, "sh -c 'exec $0'".to_owned()));
        assert_eq!(shown[1].1, "p");
        assert_ne!(read("{podman = \"a\"}").unwrap().shown_lines()[0].0, START);
    }
}
