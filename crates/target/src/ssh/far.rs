//! The far machine as ssh(1) shows it: commands on it, a first look, the copy of the agent.

use super::agent_file::AgentFile;
use super::look::{self, Look};
use super::spec::SshSpec;
use crate::TargetError;
use model::Problem;
use model::printable::last_lines;
use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// A connection that gives no answer is dead after three of these.
const ALIVE_SECONDS: u32 = 5;
const CONNECT_SECONDS: u32 = 15;
/// Exit status of ssh(1) itself, for a connection that was not made or was lost.
pub(super) const NO_CONNECTION: i32 = 255;
/// Words of ssh(1) on what no second try changes.
const FINAL: [&str; 6] = [
    "Host key verification failed",
    "Permission denied",
    "Could not resolve hostname",
    "Bad owner or permissions",
    "no such identity",
    "Too many authentication failures",
];

/// Why there is no agent on the far side.
#[derive(Debug)]
pub(super) enum Failure {
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

impl SshSpec {
    /// ssh(1) with what holds for every connection. It asks nothing, since nobody may be there
    /// to answer, and never changes how host keys are checked: that is the user's to say.
    fn ssh(&self) -> Command {
        let mut ssh = Command::new("ssh");
        ssh.args(["-T", "-o", "BatchMode=yes", "-o", "ControlPath=none"]);
        ssh.args(["-o", &format!("ServerAliveInterval={ALIVE_SECONDS}")]);
        ssh.args(["-o", "ServerAliveCountMax=3"]);
        ssh.args(["-o", &format!("ConnectTimeout={CONNECT_SECONDS}")]);
        if let Some(config) = &self.config {
            ssh.arg("-F").arg(config);
        }
        if let Some(port) = self.port {
            ssh.args(["-p", &port.to_string()]);
        }
        if let Some(identity) = &self.identity {
            ssh.arg("-i").arg(identity);
        }
        ssh
    }

    /// These words of a command on the far side; any login shell there takes them.
    pub(super) fn command(&self, words: &[String]) -> Command {
        let mut ssh = self.ssh();
        ssh.args(["-o", "ClearAllForwardings=yes"]);
        ssh.arg("--").arg(&self.host).arg(quoted(words));
        ssh
    }

    /// Forwards ports of this machine to ports there, and says so in a line once it does; ends
    /// with its standard input.
    pub(super) fn forwarding(&self, ports: &[(u16, u16)]) -> Command {
        let mut ssh = self.ssh();
        ssh.args(["-o", "ExitOnForwardFailure=yes"]);
        for (here, there) in ports {
            ssh.args(["-L", &format!("127.0.0.1:{here}:127.0.0.1:{there}")]);
        }
        ssh.arg("--").arg(&self.host).arg("echo; cat");
        ssh
    }

    pub(super) fn problem(&self, what: String, remedy: &str) -> Problem {
        Problem {
            object: format!("ssh:{}", self.host),
            what,
            remedy: remedy.to_owned(),
        }
    }

    /// ssh(1) said this and gave no connection.
    pub(super) fn no_connection(&self, said: &str) -> Failure {
        let said = last_lines(said, 15, "\n");
        let what = match said.is_empty() {
            true => "ssh gives no connection".to_owned(),
            false => said.clone(),
        };
        let ssh = format!("try: ssh {}", self.host);
        let remedy = match () {
            () if said.contains("HOST IDENTIFICATION HAS CHANGED") => {
                "find out why the machine has another key before you trust it"
            }
            () if said.contains("Host key verification failed") => {
                "log in once by hand and compare the fingerprint of its key"
            }
            () => &ssh,
        };
        let problem = self.problem(what, remedy);
        match FINAL.iter().any(|words| said.contains(words)) {
            true => problem.into(),
            false => Failure::Connection(problem),
        }
    }

    /// Runs a command there to its end, with `input` on its standard input.
    fn finish(&self, mut command: Command, input: &[u8]) -> Result<Output, Failure> {
        let failed = |source| {
            Failure::Final(TargetError::Io {
                step: "starting",
                object: "ssh".to_owned(),
                source,
            })
        };
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let stdin = child.stdin.take();
        let output = std::thread::scope(|scope| {
            if let Some(mut stdin) = stdin {
                // An end of the other side is told by its exit status.
                scope.spawn(move || stdin.write_all(input));
            }
            child.wait_with_output()
        });
        let output = output.map_err(failed)?;
        match output.status.code() {
            Some(NO_CONNECTION) | None => {
                Err(self.no_connection(&String::from_utf8_lossy(&output.stderr)))
            }
            Some(_) => Ok(output),
        }
    }

    /// A first look at the machine; nothing but an empty directory is made there.
    pub(super) fn look(&self, hash: &str, ask_sudo: bool) -> Result<Look, Failure> {
        let script = look::script(hash, ask_sudo);
        let before = unix_now();
        let command = self.command(&["sh".to_owned(), "-s".to_owned()]);
        let output = self.finish(command, script.as_bytes())?;
        let clock = before + (unix_now().saturating_sub(before)) / 2;
        let said = String::from_utf8_lossy(&output.stdout);
        Look::read(&said, clock).ok_or_else(|| {
            let errors = String::from_utf8_lossy(&output.stderr);
            let said = last_lines(&format!("{said}\n{errors}"), 5, "\n");
            let what = format!("the machine runs no commands of sh: {said}");
            self.problem(what, &format!("try: ssh {} uname -a", self.host))
                .into()
        })
    }

    /// Puts the agent where the look did not find it, and has its hash compared there.
    pub(super) fn copy(&self, agent: &AgentFile, look: &Look) -> Result<(), Failure> {
        let words = ["sh", "-c", COPY, "sh", &look.cache, &agent.hash];
        let command = self.command(&words.map(str::to_owned));
        let output = self.finish(command, &agent.bytes)?;
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
/// whole. Programs that nobody has used for a month go. In one line, for any login shell.
const COPY: &str = "umask 077; new=$1/.agent-$2.$$; trap 'rm -f \"$new\"' EXIT; \
    mkdir -p \"$1\" && cat > \"$new\" && set -- \"$1\" \"$2\" $(sha256sum \"$new\") && \
    { [ \"$2\" = \"$3\" ] || { echo what came is not what was sent >&2; false; }; } && \
    chmod 700 \"$new\" && mv \"$new\" \"$1/agent-$2\" && \
    find \"$1\" -maxdepth 1 -name \"agent-*\" -mtime +30 -exec rm -f {} +";

/// The words as one text for a login shell.
fn quoted(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quote(word)).collect();
    words.join(" ")
}

/// Single quotes mean the same to every shell.
fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

fn unix_now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.ok()
        .and_then(|time| i64::try_from(time.as_secs()).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> SshSpec {
        SshSpec {
            host: "kim@lab3".to_owned(),
            port: Some(2222),
            identity: None,
            config: None,
            agent: None,
            sudo: super::super::spec::Sudo::Auto,
            reconnect: None,
        }
    }

    fn words(command: &Command) -> String {
        let words: Vec<_> = command
            .get_args()
            .map(|word| word.to_string_lossy())
            .collect();
        words.join(" ")
    }

    #[test]
    fn ssh_is_never_told_to_trust_a_key() {
        let command = spec().command(&["true".to_owned()]);
        let forwarding = spec().forwarding(&[(4000, 80)]);
        for command in [&command, &forwarding] {
            let words = words(command);
            assert!(words.contains("BatchMode=yes"), "{words}");
            for weaker in ["StrictHostKeyChecking", "KnownHosts", "CheckHostIP"] {
                assert!(!words.contains(weaker), "{words}");
            }
        }
        assert!(words(&command).ends_with("-p 2222 -o ClearAllForwardings=yes -- kim@lab3 true"));
        assert!(words(&forwarding).contains("-L 127.0.0.1:4000:127.0.0.1:80"));
    }

    #[test]
    fn words_reach_the_far_side_as_they_are() {
        let said = ["a b", "it's", "", "$HOME", "plain-1.2/x"].map(str::to_owned);
        let script = format!("printf '%s|' {}", quoted(&said));
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(text, "a b|it's||$HOME|plain-1.2/x|");
    }

    #[test]
    fn a_changed_key_is_final_and_a_refused_connection_is_not() {
        let changed = "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\n\
                       Host key verification failed.";
        let Failure::Final(TargetError::Unmet(problem)) = spec().no_connection(changed) else {
            panic!("a changed key is tried again");
        };
        assert!(problem.remedy.contains("another key"), "{problem:?}");
        let refused = "ssh: connect to host lab3 port 22: Connection refused";
        assert!(matches!(
            spec().no_connection(refused),
            Failure::Connection(_)
        ));
    }

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
