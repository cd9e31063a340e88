//! One agent on the far machine: messages over its line, and the loss of the connection told
//! apart from the end of the agent.

use super::line::{Failure, Forwarding, Line};
use crate::child::ChildSession;
use crate::{Session, TargetError};
use model::{Fact, PROTOCOL_VERSION, Reply, Request};
use std::net::IpAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time for the first answer: an agent waits for the guard of the one before it.
const GREETING: Duration = Duration::from_secs(90);
const LOOK_UP: Duration = Duration::from_millis(200);
/// Exit status of an agent that found a requirement unmet: another run is under way.
const UNMET: i32 = 3;

#[derive(Debug)]
pub(super) struct FarSession {
    agent: ChildSession,
    line: Arc<dyn Line>,
    facts: Vec<Fact>,
    forwarding: Option<Forwarding>,
    address: Option<IpAddr>,
}

impl FarSession {
    /// Starts the agent and waits until it has answered once.
    pub fn start(
        command: Command,
        line: &Arc<dyn Line>,
        facts: Vec<Fact>,
        address: Option<IpAddr>,
        interrupted: &AtomicBool,
    ) -> Result<Self, Failure> {
        let agent = ChildSession::spawn_with_signs_of_life(command).map_err(Failure::Final)?;
        let mut session = FarSession {
            agent,
            line: Arc::clone(line),
            facts,
            forwarding: None,
            address,
        };
        let protocol = PROTOCOL_VERSION;
        let greeted = session.agent.send_request(&Request::Hello { protocol });
        greeted.map_err(|error| session.failure(error))?;
        let limit = Instant::now() + GREETING;
        while Instant::now() < limit {
            if interrupted.load(Ordering::Relaxed) {
                return Err(Failure::Final(TargetError::Interrupted));
            }
            match session.agent.receive_reply(LOOK_UP) {
                // Whoever talks to it greets it again, and judges its answer.
                Ok(Some(Reply::Hello { .. } | Reply::Refused { .. })) => return Ok(session),
                Ok(_) => {}
                Err(error) => return Err(session.failure(error)),
            }
        }
        let what = format!("its agent gave no answer for {} s", GREETING.as_secs());
        Err(line.problem(what, "look at the load of the machine").into())
    }

    /// Why there was no answer, by the exit status.
    fn failure(&mut self, error: TargetError) -> Failure {
        let TargetError::Gone { why, tail } = error else {
            return Failure::Final(error);
        };
        match self.agent.exit_code() {
            code if self.line.is_lost(code, &tail) => self.line.no_connection(&tail),
            Some(UNMET) => {
                let remedy = "`--wait` waits for its end";
                Failure::Busy(self.line.problem(requirement(&tail), remedy))
            }
            _ => Failure::Final(TargetError::Gone { why, tail }),
        }
    }

    fn explain(&mut self, error: TargetError) -> TargetError {
        let TargetError::Gone { why, tail } = error else {
            return error;
        };
        let why = match self.line.is_lost(self.agent.exit_code(), &tail) {
            true => format!("the connection to {} is lost", self.line.machine_name()),
            false => why,
        };
        TargetError::Gone { why, tail }
    }
}

/// The agent's words about the requirement, without the words around it and its remedy.
fn requirement(said: &str) -> String {
    let lines = said.lines().skip_while(|line| !line.contains("not met"));
    let lines = lines
        .skip(1)
        .filter(|line| !line.trim_start().starts_with('→') && !line.starts_with("srun: "));
    let text = lines.map(str::trim).collect::<Vec<_>>().join("\n");
    match text.strip_prefix("this machine: ") {
        Some(text) => text.to_owned(),
        None if text.is_empty() => said.to_owned(),
        None => text,
    }
}

impl Session for FarSession {
    fn send_request(&mut self, request: &Request) -> Result<(), TargetError> {
        let sent = self.agent.send_request(request);
        sent.map_err(|error| self.explain(error))
    }

    fn receive_reply(&mut self, wait: Duration) -> Result<Option<Reply>, TargetError> {
        let received = self.agent.receive_reply(wait);
        received.map_err(|error| self.explain(error))
    }

    fn machine_facts(&mut self) -> Vec<Fact> {
        self.facts.clone()
    }

    fn network_address(&self) -> Result<IpAddr, TargetError> {
        let unknown = || {
            let what = "its address in the network of this machine is not known".to_owned();
            self.line
                .problem(what, "name it: [target] address = \"10.0.0.7\"")
        };
        self.address.ok_or_else(|| TargetError::Unmet(unknown()))
    }

    fn forward_ports(&mut self, ports: &[u16]) -> Result<Vec<u16>, TargetError> {
        self.forwarding = None;
        let forwarding = self.line.forward_ports(ports)?;
        let here = forwarding.here.clone();
        self.forwarding = Some(forwarding);
        Ok(here)
    }
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
}
