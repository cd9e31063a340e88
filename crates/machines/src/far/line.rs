//! The way to a far machine: commands on it, a first look, the copy of the agent.

use super::agent_file::AgentFile;
use super::look::{self, Look};
use crate::{By, TargetError};
use doors::read::{Asked, NoOutput, output_within};
use model::Problem;
use model::printable::last_lines;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Output};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time for a first look at a machine, which may have to wake up.
const LOOK: Duration = Duration::from_secs(60);
/// Time for the copy of the agent, over a slow line.
const COPYING: Duration = Duration::from_secs(3600);
/// The most that a command there says on one of its streams: a first look has some lines.
const MOST_BYTES: u64 = 1 << 20;

/// Why there is no agent on the far side.
#[derive(Debug)]
pub enum Failure {
    /// No connection, which may come back.
    Connection(Problem),
    /// Another run is under way there.
    Busy(Problem),
    /// No second try changes it.
    Final(TargetError),
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Failure::Final(TargetError::Unmet(problem))
    }
}

impl From<Failure> for TargetError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Connection(problem) | Failure::Busy(problem) => TargetError::Unmet(problem),
            Failure::Final(error) => error,
        }
    }
}

/// Use of sudo(8) by a user who is not root.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sudo {
    /// Where an arm changes something and sudo asks for no password.
    #[default]
    Auto,
    /// Always; an error where it asks for a password.
    Yes,
    /// Never.
    No,
}

impl Sudo {
    /// True for what holds where the keys say nothing.
    pub fn is_usual(&self) -> bool {
        *self == Sudo::Auto
    }
}

/// Ports of the loopback address here that lead to the far machine, while the program runs.
#[derive(Debug)]
pub struct Forwarding {
    /// Program that forwards them.
    pub program: Child,
    /// Ports here, in the order of those there.
    pub here: Vec<u16>,
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// A program that runs commands on another machine and carries their standard streams.
pub trait Line: Debug + Send + Sync {
    /// Name of the target.
    fn kind(&self) -> &'static str;

    /// Name of the machine, for people.
    fn machine_name(&self) -> String;

    /// Build of schedlab for the machine; `None`: this one.
    fn agent_path(&self) -> Option<PathBuf>;

    /// Use of sudo(8) there.
    fn sudo(&self) -> Sudo;

    /// Time for which a lost connection is made anew.
    fn reconnect_time(&self) -> Duration;

    /// True where a first connection that fails is tried again, too.
    fn is_patient(&self) -> bool {
        false
    }

    /// Directory of what an agent without root has to undo, where the machines share its usual one.
    fn state_dir(&self, _cache: &str) -> Option<String> {
        None
    }

    /// The way to other kernels and the time within which the machine is back, where it may be
    /// restarted.
    fn reboot_way(&self) -> Option<(By, Duration)> {
        None
    }

    /// These words as a command on the far side.
    fn command(&self, words: &[String]) -> Command;

    /// True where the program has ended so since the connection was not made or was lost, and
    /// not since the command there ended so. `code` is `None` after a signal.
    fn is_lost(&self, code: Option<i32>, said: &str) -> bool;

    /// Why there is no connection, from what the program said.
    fn no_connection(&self, said: &str) -> Failure;

    /// A command by which a person sees whether the machine answers.
    fn trial_command(&self) -> String;

    /// Makes ports there reachable here.
    fn forward_ports(&self, _ports: &[u16]) -> Result<Forwarding, TargetError> {
        let what = "no ports are forwarded from it".to_owned();
        Err(TargetError::Unmet(self.problem(what, "leave out load-on")))
    }

    /// False where no ports there can be made reachable here.
    fn can_forward(&self) -> bool {
        true
    }

    /// Address of the machine in the network of this one, where it is known. `seen` is the one at which sshd(8) took
    /// the connection, or what a shell there has from elsewhere.
    fn network_address(&self, _seen: Option<IpAddr>) -> Option<IpAddr> {
        None
    }

    /// Facts for `system.json`.
    fn facts(&self) -> Vec<(String, String)>;

    /// A problem with the machine.
    fn problem(&self, what: String, remedy: &str) -> Problem {
        Problem {
            object: format!("{}:{}", self.kind(), self.machine_name()),
            what,
            remedy: remedy.to_owned(),
        }
    }
}

impl dyn Line {
    /// Runs a command there to its end, with `input` on its standard input. Where the way there hangs,
    /// `interrupted` or the limit ends it.
    pub(super) fn run_to_end(
        &self,
        mut command: Command,
        input: &[u8],
        limit: Duration,
        interrupted: &AtomicBool,
    ) -> Result<Output, Failure> {
        let program = command.get_program().to_string_lossy().into_owned();
        let asked = Asked {
            time: limit,
            most_bytes: MOST_BYTES,
            input,
            interrupted: Some(interrupted),
            with_us: false,
        };
        let output = output_within(&mut command, asked).map_err(|error| match error {
            NoOutput::NotStarted(source) => Failure::Final(TargetError::Io {
                step: "starting",
                object: program,
                source,
            }),
            NoOutput::Interrupted => Failure::Final(TargetError::Interrupted),
            NoOutput::Late(_) => {
                let what = format!("no answer in {} s", limit.as_secs());
                let remedy = format!("try: {} true", self.trial_command());
                Failure::Connection(self.problem(what, &remedy))
            }
            NoOutput::TooMuch(_) => {
                let most = MOST_BYTES >> 20;
                let what = format!("it says more than {most} MiB where a few lines are waited for");
                let remedy = format!(
                    "find out what its login shell prints without being asked: {} true",
                    self.trial_command()
                );
                self.problem(what, &remedy).into()
            }
        })?;
        let said = String::from_utf8_lossy(&output.stderr);
        match self.is_lost(output.status.code(), &said) {
            true => Err(self.no_connection(&said)),
            false => Ok(output),
        }
    }

    /// A first look at the machine; nothing but an empty directory is made there.
    pub(super) fn look_at_machine(
        &self,
        hash: &str,
        ask_sudo: bool,
        interrupted: &AtomicBool,
    ) -> Result<Look, Failure> {
        let script = look::make_script(hash, ask_sudo);
        let before = unix_now();
        let command = self.command(&["sh".to_owned(), "-s".to_owned()]);
        let output = self.run_to_end(command, script.as_bytes(), LOOK, interrupted)?;
        let clock = before + (unix_now().saturating_sub(before)) / 2;
        let said = String::from_utf8_lossy(&output.stdout);
        Look::parse(&said, clock).ok_or_else(|| {
            let errors = String::from_utf8_lossy(&output.stderr);
            let said = last_lines(&format!("{said}\n{errors}"), 5, "\n");
            let what = format!("the machine runs no commands of sh: {said}");
            self.problem(what, &format!("try: {} uname -a", self.trial_command()))
                .into()
        })
    }

    /// Puts the agent where the look did not find it, and has its hash compared there.
    pub(super) fn copy_agent(
        &self,
        agent: &AgentFile,
        look: &Look,
        interrupted: &AtomicBool,
    ) -> Result<(), Failure> {
        let words = ["sh", "-c", COPY, "sh", &look.cache, &agent.hash];
        let command = self.command(&words.map(str::to_owned));
        let output = self.run_to_end(command, &agent.bytes, COPYING, interrupted)?;
        if output.status.success() {
            return Ok(());
        }
        let said = last_lines(&String::from_utf8_lossy(&output.stderr), 5, "; ");
        let what = format!("the agent could not be copied to {}: {said}", look.cache);
        let mib = (agent.bytes.len() >> 20) + 1;
        let remedy = format!(
            "it needs {mib} MiB in a directory of your own, from where programs may run; \
             XDG_CACHE_HOME there names another"
        );
        Err(self.problem(what, &remedy).into())
    }
}

/// `sh -c COPY sh DIRECTORY HASH`: the program from standard input, in place only when it is
/// whole. Machines may share the directory and copy at once: one that another has put there stays, since it
/// may run. Programs that nobody has used for a month go. In one line, for any login shell.
const COPY: &str = "umask 077; mkdir -p \"$1\" && new=$(mktemp -p \"$1\") || exit 1; \
    trap 'rm -f \"$new\"' EXIT; \
    cat > \"$new\" && set -- \"$1\" \"$2\" $(sha256sum \"$new\") && \
    { [ \"$2\" = \"$3\" ] || { echo what came is not what was sent >&2; false; }; } && \
    chmod 700 \"$new\" && { ln \"$new\" \"$1/agent-$2\" 2>/dev/null || \
    sha256sum < \"$1/agent-$2\" 2>/dev/null | grep -q \"^$2\" || mv \"$new\" \"$1/agent-$2\"; } && \
    find \"$1\" -maxdepth 1 -name \"agent-*\" -mtime +30 -exec rm -f {} +";

fn unix_now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.ok()
        .and_then(|time| i64::try_from(time.as_secs()).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::Stdio;

    #[test]
    fn a_copy_that_is_not_whole_is_not_put_in_place() {
        let directory = tempfile::tempdir().unwrap();
        let cache = directory.path().join("a cache");
        let copy = |text: &str, hash: &str| {
            let mut shell = Command::new("sh")
                .args(["-c", COPY, "sh"])
                .arg(&cache)
                .arg(hash)
                .stdin(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            shell
                .stdin
                .take()
                .unwrap()
                .write_all(text.as_bytes())
                .unwrap();
            shell.wait_with_output().unwrap()
        };
        // sha256sum of "abc", as FIPS 180-2 gives it.
        let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let cut = copy("ab", hash);
        assert!(!cut.status.success());
        assert!(String::from_utf8_lossy(&cut.stderr).contains("not what was sent"));
        let left = || std::fs::read_dir(&cache).unwrap().count();
        assert_eq!(left(), 0);
        assert!(copy("abc", hash).status.success());
        assert_eq!(left(), 1);
        let text = std::fs::read_to_string(cache.join(format!("agent-{hash}")));
        assert_eq!(text.unwrap(), "abc");
    }
}
