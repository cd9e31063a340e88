//! ssh(1) as the way to a far machine: its options, what it says where it gives no connection,
//! and ports that it forwards.

use super::NAME;
use super::spec::SshSpec;
use crate::far::{Failure, Forwarding, Line, Sudo, quote_words};
use crate::{By, TargetError};
use doors::read::{line_within, start_of};
use doors::started::tool_command;
use model::printable::last_lines;
use std::io::BufReader;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The most that is read of what ssh(1) says where it forwards ports.
const MOST_SAID: u64 = 64 << 10;
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

impl SshSpec {
    /// ssh(1) with what holds for every connection. It asks nothing, since nobody may be there
    /// to answer, and never changes how host keys are checked: that is the user's to say.
    fn ssh(&self) -> Command {
        let mut ssh = tool_command("ssh");
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

    /// Forwards ports of this machine to ports there, and says so in a line once it does; ends
    /// with its standard input.
    pub(super) fn forwarding_command(&self, ports: &[(u16, u16)]) -> Command {
        let mut ssh = self.ssh();
        ssh.args(["-o", "ExitOnForwardFailure=yes"]);
        for (here, there) in ports {
            ssh.args(["-L", &format!("127.0.0.1:{here}:127.0.0.1:{there}")]);
        }
        ssh.arg("--").arg(&self.host).arg("echo; cat");
        ssh
    }
}

impl Line for SshSpec {
    fn kind(&self) -> &'static str {
        NAME
    }

    fn machine_name(&self) -> String {
        self.host.clone()
    }

    fn agent_path(&self) -> Option<PathBuf> {
        self.agent.clone()
    }

    fn sudo(&self) -> Sudo {
        self.sudo
    }

    fn reboot_way(&self) -> Option<(By, Duration)> {
        self.reboots.map(|by| (by, self.time_to_reboot()))
    }

    fn reconnect_time(&self) -> Duration {
        self.time_to_reconnect()
    }

    /// These words of a command on the far side; any login shell there takes them.
    fn command(&self, words: &[String]) -> Command {
        let mut ssh = self.ssh();
        ssh.args(["-o", "ClearAllForwardings=yes"]);
        ssh.arg("--").arg(&self.host).arg(quote_words(words));
        ssh
    }

    fn is_lost(&self, code: Option<i32>, _said: &str) -> bool {
        matches!(code, None | Some(NO_CONNECTION))
    }

    /// ssh(1) said this and gave no connection.
    fn no_connection(&self, said: &str) -> Failure {
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

    fn trial_command(&self) -> String {
        format!("ssh {}", self.host)
    }

    fn forward_ports(&self, ports: &[u16]) -> Result<Forwarding, TargetError> {
        let failed = |step| {
            move |source| TargetError::Io {
                step,
                object: "ssh".to_owned(),
                source,
            }
        };
        let here = free_ports(ports.len()).map_err(failed("looking for free ports for"))?;
        let pairs: Vec<_> = here.iter().copied().zip(ports.iter().copied()).collect();
        let mut command = self.forwarding_command(&pairs);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut ssh = command.spawn().map_err(failed("starting"))?;
        let (stdout, stderr) = (ssh.stdout.take(), ssh.stderr.take());
        let forwarding = Forwarding { program: ssh, here };
        // ssh(1) listens before it runs the command there.
        let line = stdout.map(|stdout| line_within(&mut BufReader::new(stdout), MOST_SAID));
        if matches!(line, Some(Ok(Some(line))) if line.ends_with(b"\n")) {
            return Ok(forwarding);
        }
        let said = stderr.map(|stderr| start_of(stderr, MOST_SAID));
        let said = String::from_utf8_lossy(said.as_deref().unwrap_or_default()).into_owned();
        Err(not_forwarded(self.no_connection(&said)))
    }

    fn network_address(&self, seen: Option<IpAddr>) -> Option<IpAddr> {
        // A target that lies would lead the load to what this machine has for itself.
        let is_elsewhere = |at: &IpAddr| {
            let at = at.to_canonical();
            !at.is_loopback() && !at.is_unspecified() && !at.is_multicast()
        };
        self.address.or(seen.filter(is_elsewhere))
    }

    fn facts(&self) -> Vec<(String, String)> {
        vec![("ssh.host".to_owned(), self.host.clone())]
    }
}

/// Error of ports that are not forwarded. What another try may change, as a port that somebody took
/// just now, is no unmet requirement.
fn not_forwarded(failure: Failure) -> TargetError {
    match failure {
        Failure::Connection(problem) => TargetError::Io {
            step: "forward ports by",
            object: "ssh".to_owned(),
            source: std::io::Error::other(problem.what),
        },
        failure => failure.into(),
    }
}

/// Ports of the loopback address that nobody has now, each another.
fn free_ports(count: usize) -> std::io::Result<Vec<u16>> {
    let listeners = (0..count).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
    let listeners = listeners.collect::<std::io::Result<Vec<_>>>()?;
    let ports = listeners.iter().map(|l| Ok(l.local_addr()?.port()));
    ports.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> SshSpec {
        SshSpec {
            host: "kim@lab3".to_owned(),
            port: Some(2222),
            address: None,
            identity: None,
            config: None,
            agent: None,
            sudo: Sudo::Auto,
            reboots: None,
            reset: None,
            reboot_limit: None,
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
    fn a_target_that_says_an_address_of_this_machine_itself_is_not_believed() {
        let at = |text: &str| Some(text.parse().unwrap());
        assert_eq!(spec().network_address(at("10.0.0.7")), at("10.0.0.7"));
        for own in [
            "127.0.0.1",
            "::1",
            "::ffff:127.0.0.1",
            "0.0.0.0",
            "224.0.0.1",
        ] {
            assert_eq!(spec().network_address(at(own)), None, "{own}");
        }
        let named = SshSpec {
            address: at("127.0.0.1"),
            ..spec()
        };
        assert_eq!(named.network_address(at("10.0.0.7")), at("127.0.0.1"));
    }

    #[test]
    fn ssh_is_never_told_to_trust_a_key() {
        let command = spec().command(&["true".to_owned()]);
        let forwarding = spec().forwarding_command(&[(4000, 80)]);
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
    fn a_port_that_was_taken_just_now_is_no_unmet_requirement() {
        let taken = "bind [127.0.0.1]:4000: Address already in use\n\
                     Could not request local forwarding.";
        let error = not_forwarded(spec().no_connection(taken));
        assert!(matches!(error, TargetError::Io { .. }), "{error:?}");
        assert!(error.to_string().contains("4000: Address already in use"));
        let changed = "Host key verification failed.";
        let error = not_forwarded(spec().no_connection(changed));
        assert!(matches!(error, TargetError::Unmet(_)), "{error:?}");
    }

    #[test]
    fn free_ports_differ() {
        let ports = free_ports(3).unwrap();
        assert!(ports[0] != ports[1] && ports[1] != ports[2] && ports[0] != ports[2]);
    }
}
