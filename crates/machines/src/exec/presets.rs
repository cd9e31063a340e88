//! Known programs that run commands in another place, by the word that names them.

use crate::def::Short;

/// A program that runs commands in a place of some kind, and how it says that the place is not there.
#[derive(Debug)]
pub(super) struct Preset {
    /// Key of `[target]`, and the word before the colon on a command line.
    pub key: &'static str,
    /// Name of its places, for people.
    pub place: &'static str,
    /// Words before the name of the place.
    pub before: &'static [&'static str],
    /// Words between the name and the command.
    pub after: &'static [&'static str],
    /// True where the command goes through a shell in there, as one text.
    pub shell: bool,
    /// Directory of agents in there, where the usual one cannot be written.
    pub cache: Option<&'static str>,
}

/// All of them. None asks for a terminal, which would change the bytes of a stream.
pub(super) static PRESETS: [Preset; 5] = [
    Preset {
        key: "podman",
        place: "a container of Podman",
        before: &["podman", "exec", "-i"],
        after: &[],
        shell: false,
        cache: None,
    },
    Preset {
        key: "docker",
        place: "a container of Docker",
        before: &["docker", "exec", "-i"],
        after: &[],
        shell: false,
        cache: None,
    },
    Preset {
        key: "kubectl",
        place: "a pod of Kubernetes",
        before: &["kubectl", "exec", "-i"],
        after: &["--"],
        shell: false,
        cache: None,
    },
    // machinectl(1) itself gives a terminal.
    Preset {
        key: "machinectl",
        place: "a container of systemd-nspawn",
        before: &[
            "systemd-run",
            "--quiet",
            "--pipe",
            "--wait",
            "--collect",
            "--service-type=exec",
            "--machine",
        ],
        after: &["--"],
        shell: false,
        cache: Some("/var/cache/schedlab"),
    },
    Preset {
        key: "adb",
        place: "a device of Android",
        before: &["adb", "-s"],
        after: &["shell", "-T"],
        shell: true,
        cache: Some("/data/local/tmp/schedlab"),
    },
];

/// Words of a command line.
pub(super) const SHORTS: &[Short] = &[
    Short {
        word: "podman",
        key: "podman",
        name: "container",
        summary: "a running container of Podman, by its name or ID",
    },
    Short {
        word: "docker",
        key: "docker",
        name: "container",
        summary: "a running container of Docker, by its name or ID",
    },
    Short {
        word: "kubectl",
        key: "kubectl",
        name: "pod",
        summary: "a running pod of Kubernetes, in the namespace that kubectl is set to",
    },
    Short {
        word: "machinectl",
        key: "machinectl",
        name: "machine",
        summary: "a container that systemd knows as a machine, such as one of systemd-nspawn",
    },
    Short {
        word: "adb",
        key: "adb",
        name: "serial",
        summary: "a device of Android, by its serial number",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_has_a_word_of_the_command_line() {
        let words: Vec<&str> = SHORTS.iter().map(|short| short.word).collect();
        let keys: Vec<&str> = PRESETS.iter().map(|preset| preset.key).collect();
        assert_eq!(words, keys);
        assert!(SHORTS.iter().all(|short| short.word == short.key));
    }
}
