//! The keys of `[target]` with `kind = "slurm"`.

use super::NAME;
use crate::def::{OPTIONS, PROGRAM};
use crate::far::Sudo;
use jiff::SignedDuration;
use model::{Invalid, KeyDef, TargetSpec};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Nodes that a run may have at most: each has a thread and a program here.
const MOST_NODES: u32 = 1000;

/// Nodes of a cluster, as an experiment names them. Slurm(1) gives them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlurmSpec {
    /// Partition; `None`: the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// Features that nodes must have, as for `salloc --constraint`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraint: Option<String>,
    /// Number of nodes.
    #[serde(default = "one")]
    pub nodes: u32,
    /// This node and no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Time limit of the job; `None`: that of the partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<SignedDuration>,
    /// Feature that a node has while it runs a kernel, with `{kernel}` in place of the release; nodes
    /// are restarted for kernels of arms by Slurm. `None`: they are not.
    #[serde(
        rename = "kernel-feature",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub kernel_feature: Option<String>,
    /// Further options of salloc(1).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Build of schedlab for the nodes; `None`: this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<PathBuf>,
    /// Use of sudo(8) by a user who is not root.
    #[serde(default, skip_serializing_if = "Sudo::is_usual")]
    pub sudo: Sudo,
}

fn one() -> u32 {
    1
}

/// Keys of the table `[target]`.
pub const KEYS: &[KeyDef] = &[
    KeyDef::new(
        "partition",
        "text",
        "the default one",
        "Partition of the cluster.",
    ),
    KeyDef::new(
        "constraint",
        "text",
        "any node",
        "Features that nodes must have, as for `salloc --constraint`.",
    ),
    KeyDef::new(
        "nodes",
        "number",
        "`1`",
        "Nodes that measure at the same time, each of them whole blocks; others must not use them.",
    ),
    KeyDef::new("host", "text", "any node", "This node and no other."),
    KeyDef::new(
        "time",
        "duration",
        "that of the partition",
        "Time limit of the job. The run ends in order a minute before it.",
    ),
    KeyDef::new(
        "kernel-feature",
        "text with `{kernel}`",
        "nodes are not restarted",
        "Feature that a node has while it runs a kernel, such as `kernel_{kernel}`. Kernels of arms are \
         installed kernels of the nodes, by their releases; each is a job of its own with the feature \
         as constraint, for which Slurm restarts the node: for each kernel of a block, but not where a \
         block begins with the kernel that the one before ended with.",
    ),
    KeyDef::new(
        "options",
        "list of texts",
        "none",
        "Further options of salloc(1), such as `--account=NAME`.",
    ),
    KeyDef::new(
        "agent",
        "path",
        "this program, or `schedlab-MACHINE` beside it",
        "Build of the same schedlab for nodes of another architecture (`uname -m`).",
    ),
    KeyDef::new(
        "sudo",
        "`auto`, `yes` or `no`",
        "`auto`",
        "Use of sudo by a user who is not root, as with `ssh`.",
    ),
];

impl SlurmSpec {
    /// The nodes that the target of an experiment is.
    pub fn from_target(spec: &TargetSpec) -> Result<Self, Invalid> {
        let slurm: SlurmSpec = spec.read_keys()?;
        slurm.check()?;
        Ok(slurm)
    }

    /// Refuses what Slurm would take for something else, and names the key.
    pub fn check(&self) -> Result<(), Invalid> {
        let plain = |c: char| !c.is_whitespace() && !c.is_control();
        let names = [
            ("partition", &self.partition),
            ("constraint", &self.constraint),
            ("host", &self.host),
            ("kernel-feature", &self.kernel_feature),
        ];
        for (key, name) in names {
            let is_wrong = |n: &String| n.is_empty() || n.starts_with('-') || !n.chars().all(plain);
            if let Some(name) = name.as_ref().filter(|name| is_wrong(name)) {
                return Err(Invalid::new(key, format!("`{name}` is no name")));
            }
        }
        if self
            .kernel_feature
            .as_ref()
            .is_some_and(|f| !f.contains(KERNEL))
        {
            let remedy = "kernel-feature = \"kernel_{kernel}\"";
            return Err(
                Invalid::new("kernel-feature", "it has no {kernel} in it").with_remedy(remedy)
            );
        }
        self.check_with_kernels()?;
        if self.host.as_ref().is_some_and(|h| h.contains(['[', ','])) {
            let remedy = "give the number of nodes, and name them in options = [\"--nodelist=…\"]";
            return Err(Invalid::new("host", "it is one node").with_remedy(remedy));
        }
        if !(1..=MOST_NODES).contains(&self.nodes) {
            let what = format!("from 1 to {MOST_NODES}, not {}", self.nodes);
            return Err(Invalid::new("nodes", what));
        }
        if self.host.is_some() && self.nodes > 1 {
            return Err(Invalid::new("nodes", "`host` is one node"));
        }
        if self.time.is_some_and(|time| time.as_secs() < 120) {
            let what = "a run ends a minute before the limit, so it must be two minutes or more";
            return Err(Invalid::new("time", what));
        }
        if let Some(word) = self.options.iter().find(|word| means("--no-shell", word)) {
            let what = format!("`{word}` would leave the job behind");
            return Err(Invalid::new("options", what));
        }
        let is_option = |word: &str| word.starts_with('-') && !["-", "--"].contains(&word);
        match self.options.iter().find(|word| !is_option(word)) {
            Some(word) => Err(Invalid::new("options", format!("`{word}` is no option"))
                .with_remedy("each with its value in one word: options = [\"--account=lab\"]")),
            None => Ok(()),
        }
    }

    /// Refuses what would keep the job of a kernel from its node and its feature.
    fn check_with_kernels(&self) -> Result<(), Invalid> {
        if self.kernel_feature.is_none() {
            return Ok(());
        }
        let constraint = self.constraint.as_deref().unwrap_or_default();
        if constraint.contains(['[', ']', '(', ')', '|', '*']) {
            let what = "Slurm takes only features joined by & beside those that it changes";
            return Err(Invalid::new("constraint", what));
        }
        let ours = ["-w", "-C", "-N", "--nodelist", "--constraint", "--nodes"];
        let taken = |word: &&String| ours.iter().any(|option| means(option, word));
        match self.options.iter().find(taken) {
            Some(word) => {
                let what = format!("`{word}` is said by each job of a kernel itself");
                Err(Invalid::new("options", what).with_remedy("use host, constraint, nodes"))
            }
            None => Ok(()),
        }
    }

    /// The same for one node of a job.
    pub fn on_node(&self, node: &str) -> Self {
        SlurmSpec {
            nodes: 1,
            host: Some(node.to_owned()),
            ..self.clone()
        }
    }

    /// The same where the node runs this kernel.
    pub fn with_kernel(&self, kernel: &str) -> Self {
        let Some(pattern) = &self.kernel_feature else {
            return self.clone();
        };
        let feature = kernel_feature(pattern, kernel);
        SlurmSpec {
            constraint: Some(match &self.constraint {
                Some(other) => format!("{other}&{feature}"),
                None => feature,
            }),
            ..self.clone()
        }
    }

    /// The lines for somebody who runs a stranger's experiment.
    pub fn shown_lines(&self) -> Vec<(&'static str, String)> {
        let partition = self.partition.as_deref().unwrap_or("the default partition");
        let nodes = format!("{partition}, {} node(s)", self.nodes);
        let agent = self.agent.as_ref().map(|path| path.display().to_string());
        let options = (!self.options.is_empty()).then(|| self.options.join(" "));
        let restarts = self.kernel_feature.clone();
        let more = [
            (OPTIONS, options),
            (PROGRAM, agent),
            ("which Slurm restarts for the features", restarts),
        ];
        let more = more
            .into_iter()
            .filter_map(|(what, text)| Some((what, text?)));
        std::iter::once(("by Slurm, on", nodes))
            .chain(more)
            .collect()
    }
}

/// Stands for the release of a kernel in the name of a feature.
const KERNEL: &str = "{kernel}";

/// Feature of a node that runs this kernel. Slurm gives `+`, `&` and others a meaning, and its helpers
/// take no `-` (helpers.conf(5) of 22.05 is read so), so that they are written as `_`.
pub fn kernel_feature(pattern: &str, release: &str) -> String {
    let plain = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' => c,
        _ => '_',
    };
    let release: String = release.chars().map(plain).collect();
    pattern.replace(KERNEL, &release)
}

impl From<&SlurmSpec> for TargetSpec {
    fn from(slurm: &SlurmSpec) -> Self {
        TargetSpec::new(NAME, slurm)
    }
}

/// True if salloc takes a word for this option, as getopt_long(3) reads it: the beginning of a long one
/// stands for all of it, and a letter may come after others that have no value.
fn means(option: &str, word: &str) -> bool {
    const WITHOUT_VALUE: &str = "hHkOQsuvV";
    if let Some(begun) = word.strip_prefix("--") {
        let name = begun.split('=').next().unwrap_or(begun);
        let long = option.strip_prefix("--");
        return !name.is_empty() && long.is_some_and(|long| long.starts_with(name));
    }
    let letter = option.chars().nth(1).filter(|letter| *letter != '-');
    let mut letters = word.chars().skip(1);
    let said = letters.find(|letter| !WITHOUT_VALUE.contains(*letter));
    letter.is_some() && said == letter
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn read(keys: &str) -> Result<SlurmSpec, String> {
        let keys = toml::de::ValueDeserializer::parse(keys).map_err(|e| e.to_string())?;
        let spec = SlurmSpec::deserialize(keys).map_err(|e| e.to_string())?;
        spec.check().map_err(|e| e.to_string())?;
        Ok(spec)
    }

    #[test]
    fn every_key_is_described() {
        let described: BTreeSet<&str> = KEYS.iter().map(|key| key.name).collect();
        let read = model::key::accepted_keys::<SlurmSpec>().iter().copied();
        assert_eq!(described, read.collect());
    }

    #[test]
    fn keys_are_the_same_after_they_were_stored() {
        let keys = "{partition = \"lab\", nodes = 8, time = \"2h\", options = [\"--qos=low\"]}";
        let spec = read(keys).unwrap();
        assert_eq!(
            SlurmSpec::from_target(&TargetSpec::from(&spec)),
            Ok(spec.clone())
        );
        let node = spec.on_node("n7");
        assert_eq!((node.nodes, node.host.as_deref()), (1, Some("n7")));
        assert_eq!(read("{}").unwrap().nodes, 1);
    }

    #[test]
    fn a_kernel_is_a_feature_beside_the_others() {
        let spec = read("{constraint = \"rome\", kernel-feature = \"kernel_{kernel}\"}").unwrap();
        let with = spec.with_kernel("7.2.13+deb14-amd64");
        let wanted = "rome&kernel_7.2.13_deb14_amd64";
        assert_eq!(with.constraint.as_deref(), Some(wanted));
        assert_eq!(read("{}").unwrap().with_kernel("6.1").constraint, None);
    }

    #[test]
    fn what_slurm_would_take_for_something_else_is_refused() {
        for (keys, key) in [
            ("{partition = \"-x\"}", "partition"),
            ("{nodes = 0}", "nodes"),
            ("{nodes = 2, host = \"n1\"}", "nodes"),
            ("{host = \"n[1-3]\"}", "host"),
            ("{time = \"30s\"}", "time"),
            ("{options = [\"sh\"]}", "options"),
            ("{options = [\"--no-shell\"]}", "options"),
            ("{options = [\"--no-she\"]}", "options"),
            ("{options = [\"--no-s\"]}", "options"),
            ("{options = [\"--\"]}", "options"),
            ("{kernel-feature = \"kernel\"}", "kernel-feature"),
            ("{kernel-feature = \"a b {kernel}\"}", "kernel-feature"),
            (
                "{kernel-feature = \"{kernel}\", constraint = \"a|b\"}",
                "constraint",
            ),
        ] {
            let error = read(keys).unwrap_err();
            assert!(error.contains(key), "{keys}: {error}");
        }
        for (option, is_ours) in [
            ("-wn1", true),
            ("-Qwn1", true),
            ("--nodel=n1", true),
            ("--nodelist=n1", true),
            ("--node=2", true),
            ("--constr=x", true),
            ("--no-kill", false),
            ("-Alabwork", false),
            ("--qos=nodes", false),
        ] {
            let keys = format!("{{kernel-feature = \"{{kernel}}\", options = [\"{option}\"]}}");
            assert_eq!(read(&keys).is_err(), is_ours, "{option}");
        }
    }
}
