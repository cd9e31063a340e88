//! One agent on the far machine: messages over ssh(1), the loss of the connection told apart
//! from the end of the agent, and ports that are forwarded.

use super::far::{Failure, NO_CONNECTION};
use super::spec::SshSpec;
use crate::child::ChildSession;
use crate::{Session, TargetError};
use model::{Fact, PROTOCOL_VERSION, Reply, Request};
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time for the first answer: an agent waits for the guard of the one before it.
const GREETING: Duration = Duration::from_secs(90);
const LOOK_UP: Duration = Duration::from_millis(200);
/// Exit status of an agent that found a requirement unmet: another run is under way.
const UNMET: i32 = 3;

#[derive(Debug)]
pub(super) struct SshSession {
    agent: ChildSession,
    spec: SshSpec,
    facts: Vec<Fact>,
    forwarding: Option<Forwarding>,
}

impl SshSession {
    /// Starts the agent and waits until it has answered once.
    pub fn start(
        command: Command,
        spec: &SshSpec,
        facts: Vec<Fact>,
        interrupted: &AtomicBool,
    ) -> Result<Self, Failure> {
        let agent = ChildSession::spawn_with_signs_of_life(command).map_err(Failure::Final)?;
        let mut session = SshSession {
            agent,
            spec: spec.clone(),
            facts,
            forwarding: None,
        };
        let protocol = PROTOCOL_VERSION;
        let greeted = session.agent.send(&Request::Hello { protocol });
        greeted.map_err(|error| session.failure(error))?;
        let limit = Instant::now() + GREETING;
        while Instant::now() < limit {
            if interrupted.load(Ordering::Relaxed) {
                return Err(Failure::Final(TargetError::Interrupted));
            }
            match session.agent.receive(LOOK_UP) {
                // Whoever talks to it greets it again, and judges its answer.
                Ok(Some(Reply::Hello { .. } | Reply::Refused { .. })) => return Ok(session),
                Ok(_) => {}
                Err(error) => return Err(session.failure(error)),
            }
        }
        let what = format!("its agent gave no answer for {} s", GREETING.as_secs());
        Err(spec.problem(what, "look at the load of the machine").into())
    }

    /// Why there was no answer, by the exit status.
    fn failure(&mut self, error: TargetError) -> Failure {
        let TargetError::Gone { why, tail } = error else {
            return Failure::Final(error);
        };
        match self.agent.exit_code() {
            Some(NO_CONNECTION) => self.spec.no_connection(&tail),
            Some(UNMET) => {
                let remedy = "`--wait` waits for its end";
                Failure::Busy(self.spec.problem(requirement(&tail), remedy))
            }
            _ => Failure::Final(TargetError::Gone { why, tail }),
        }
    }

    fn explain(&mut self, error: TargetError) -> TargetError {
        match error {
            TargetError::Gone { tail, .. } if self.agent.exit_code() == Some(NO_CONNECTION) => {
                TargetError::Gone {
                    why: format!("the connection to {} is lost", self.spec.host),
                    tail,
                }
            }
            other => other,
        }
    }
}

/// The agent's words about the requirement, without the words around it and its remedy.
fn requirement(said: &str) -> String {
    let lines = said.lines().skip_while(|line| !line.contains("not met"));
    let lines = lines
        .skip(1)
        .filter(|line| !line.trim_start().starts_with('→'));
    let text = lines.map(str::trim).collect::<Vec<_>>().join("\n");
    match text.strip_prefix("this machine: ") {
        Some(text) => text.to_owned(),
        None if text.is_empty() => said.to_owned(),
        None => text,
    }
}

impl Session for SshSession {
    fn send(&mut self, request: &Request) -> Result<(), TargetError> {
        let sent = self.agent.send(request);
        sent.map_err(|error| self.explain(error))
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<Reply>, TargetError> {
        let received = self.agent.receive(wait);
        received.map_err(|error| self.explain(error))
    }

    fn facts(&mut self) -> Vec<Fact> {
        self.facts.clone()
    }

    fn forward(&mut self, ports: &[u16]) -> Result<Vec<u16>, TargetError> {
        self.forwarding = None;
        let forwarding = Forwarding::start(&self.spec, ports)?;
        let here = forwarding.here.clone();
        self.forwarding = Some(forwarding);
        Ok(here)
    }
}

/// An ssh(1) of its own that forwards ports, until it is dropped.
#[derive(Debug)]
struct Forwarding {
    ssh: Child,
    here: Vec<u16>,
}

impl Forwarding {
    fn start(spec: &SshSpec, ports: &[u16]) -> Result<Self, TargetError> {
        let failed = |step| {
            move |source| TargetError::Io {
                step,
                object: "ssh".to_owned(),
                source,
            }
        };
        let here = free_ports(ports.len()).map_err(failed("looking for free ports for"))?;
        let pairs: Vec<_> = here.iter().copied().zip(ports.iter().copied()).collect();
        let mut command = spec.forwarding(&pairs);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut ssh = command.spawn().map_err(failed("starting"))?;
        let (stdout, stderr) = (ssh.stdout.take(), ssh.stderr.take());
        let forwarding = Forwarding { ssh, here };
        // ssh(1) listens before it runs the command there.
        let mut line = String::new();
        if let Some(stdout) = stdout {
            let _ = BufReader::new(stdout).read_line(&mut line);
        }
        if line.ends_with('\n') {
            return Ok(forwarding);
        }
        let mut said = String::new();
        if let Some(mut stderr) = stderr {
            let _ = stderr.read_to_string(&mut said);
        }
        Err(spec.no_connection(&said).into())
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        let _ = self.ssh.kill();
        let _ = self.ssh.wait();
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

    #[test]
    fn the_words_of_a_far_schedlab_become_a_problem_of_here() {
        let said = "WARN something\na requirement is not met\nthis machine: another run is under \
                    way on this machine (process 7)\n    schedlab agent --for kim@desk\n  → wait";
        assert_eq!(
            requirement(said),
            "another run is under way on this machine (process 7)\nschedlab agent --for kim@desk"
        );
        assert_eq!(requirement("sh: not found"), "sh: not found");
    }

    #[test]
    fn free_ports_differ() {
        let ports = free_ports(3).unwrap();
        assert!(ports[0] != ports[1] && ports[1] != ports[2] && ports[0] != ports[2]);
    }
}
