//! A command as the way to a place: the words behind it, and its end where the place is not there.

use super::NAME;
use super::spec::ExecSpec;
use crate::far::{Failure, Line, Sudo, quote_words};
use doors::started::{Agreed, named_command};
use model::printable::last_lines;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Exit status of podman(1) and docker(1) themselves.
const OF_ENGINE: i32 = 125;
/// Exit status of ssh(1) and of podman(1) where there is nothing to connect to; of a shell whose command
/// was killed it is this or more.
const KILLED: i32 = 128;
/// Beginnings of lines of programs that lead to places, about a place that is not there. The agent never
/// says so.
const NOT_THERE: [&str; 9] = [
    "Error response from daemon:",
    "Error from server",
    "Error: no such container",
    "Error: No such container",
    "Unable to connect to the server",
    "error: ",
    "Failed to ",
    "adb: ",
    "OCI runtime exec failed",
];
/// Words of them on what no second try changes.
const FINAL: [&str; 9] = [
    "no such container",
    "No such container",
    "no container with name or ID",
    "(NotFound)",
    "(Forbidden)",
    "No machine",
    "executable file not found",
    "permission denied",
    "Permission denied",
];

impl ExecSpec {
    /// Name of the place for people: the preset with its name, or the program of the command.
    fn place_name(&self) -> String {
        match self.preset_and_name() {
            Some((preset, name)) => format!("{} {name}", preset.key),
            None => self.way_in_words(),
        }
    }
}

impl Line for ExecSpec {
    fn kind(&self) -> &'static str {
        NAME
    }

    fn machine_name(&self) -> String {
        self.place_name()
    }

    fn agent_path(&self) -> Option<PathBuf> {
        self.agent.clone()
    }

    fn sudo(&self) -> Sudo {
        self.sudo
    }

    fn reconnect_time(&self) -> Duration {
        self.time_to_reconnect()
    }

    fn command(&self, words: &[String]) -> Command {
        let cache = self.cache_directory();
        let cache = cache.map(|directory| {
            let variable = format!("SCHEDLAB_CACHE_DIR={directory}");
            ["env".to_owned(), variable]
        });
        let words = [cache.as_ref().map_or(&[][..], |words| &words[..]), words].concat();
        let leading = self.leading_words();
        let (program, arguments) = leading.split_first().unwrap_or((&"", &[]));
        // Whoever runs an experiment was shown its command.
        let mut command = named_command(program, Agreed::by_command());
        command.args(arguments);
        match self.goes_through_shell() {
            true => command.arg(quote_words(&words)),
            false => command.args(&words),
        };
        command
    }

    fn is_lost(&self, code: Option<i32>, said: &str) -> bool {
        let says_so = || {
            let mut lines = said.lines();
            lines.any(|line| NOT_THERE.iter().any(|words| line.starts_with(words)))
        };
        match code {
            None => true,
            Some(0) => false,
            Some(code) => code == OF_ENGINE || code >= KILLED || says_so(),
        }
    }

    fn no_connection(&self, said: &str) -> Failure {
        let said = last_lines(said, 15, "\n");
        let what = match said.is_empty() {
            true => "the command gives no connection, and says nothing about it".to_owned(),
            false => said.clone(),
        };
        let problem = self.problem(what, &format!("try: {} true", self.trial_command()));
        match FINAL.iter().any(|words| said.contains(words)) {
            true => problem.into(),
            false => Failure::Connection(problem),
        }
    }

    fn trial_command(&self) -> String {
        self.way_in_words()
    }

    fn can_forward(&self) -> bool {
        false
    }

    // A variable of sshd(8) may come from where the command was started.
    fn network_address(&self, _seen: Option<IpAddr>) -> Option<IpAddr> {
        self.address
    }

    fn facts(&self) -> Vec<(String, String)> {
        vec![("exec.command".to_owned(), self.trial_command())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TargetError;

    fn words(command: &Command) -> Vec<String> {
        let program = std::iter::once(command.get_program());
        let words = program.chain(command.get_args());
        words
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }

    fn podman() -> ExecSpec {
        ExecSpec {
            podman: Some("lab".to_owned()),
            ..ExecSpec::default()
        }
    }

    #[test]
    fn the_words_come_behind_the_command_one_by_one_or_as_a_text_for_a_shell() {
        let asked = ["sh", "-c", "echo it's"].map(str::to_owned);
        assert_eq!(
            words(&podman().command(&asked)),
            ["podman", "exec", "-i", "lab", "sh", "-c", "echo it's"]
        );
        let phone = ExecSpec {
            adb: Some("emulator-5554".to_owned()),
            ..ExecSpec::default()
        };
        let found = words(&phone.command(&asked));
        assert_eq!(
            found[..5],
            ["adb", "-s", "emulator-5554", "shell", "-T"].map(str::to_owned)
        );
        let text = "env SCHEDLAB_CACHE_DIR=/data/local/tmp/schedlab sh -c 'echo it'\\''s'";
        assert_eq!(found[5..], [text]);
    }

    #[test]
    fn a_place_that_is_not_there_is_told_apart_from_an_agent_that_ended() {
        let line = podman();
        for (code, said) in [
            (None, ""),
            (Some(125), "Error: no such container lab"),
            (Some(137), ""),
            (Some(255), ""),
            (
                Some(1),
                "Error response from daemon: No such container: lab",
            ),
            (
                Some(1),
                "Error from server (NotFound): pods \"lab\" not found",
            ),
        ] {
            assert!(line.is_lost(code, said), "{code:?} {said}");
        }
        let busy = "a requirement is not met\nthis machine: another run is under way";
        assert!(!line.is_lost(Some(3), busy) && !line.is_lost(Some(0), ""));
        let Failure::Final(TargetError::Unmet(gone)) =
            line.no_connection("Error: no such container lab")
        else {
            panic!("a container that there is not is tried again");
        };
        assert!(gone.remedy.contains("podman exec -i lab true"), "{gone:?}");
        let stopped = "Error: can only create exec sessions on running containers";
        assert!(matches!(
            line.no_connection(stopped),
            Failure::Connection(_)
        ));
    }
}
