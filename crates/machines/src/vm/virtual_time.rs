//! An agent in virtual time: each request is a boot of its own, which is told it beforehand and
//! answers when it has ended. For the runner that is a session like any other.

use super::session;
use crate::{Session, TargetError};
use ::vm::scripted::{Answer, Running, Scripted};
use model::{Fact, PROTOCOL_VERSION, Reply, Request};
use std::collections::VecDeque;
use std::time::Duration;

/// Ingredient of arms of a Xen host: `credit`, `credit/timeslice=5ms`.
const HYPERVISOR_SCHEDULER: &str = "hypervisor-scheduler";
/// Seed of what is no trial: the same in every run.
const SEED: u64 = 1;
/// Wall time that a request may take which measures nothing.
const SHORT: Duration = Duration::from_secs(20 * 60);
/// Wall time that a second of the guest's time may take on a busy machine.
const SLOWEST: u64 = 200;

#[derive(Debug)]
pub struct VirtualSession {
    machine: Scripted,
    build_id: Option<String>,
    facts: Vec<Fact>,
    /// Place of what is read next.
    replies: VecDeque<Reply>,
    /// The machine as the first boot found it, which is every boot's.
    system: Option<Reply>,
    running: Option<Running>,
    /// Is the greeting of the agent under way an answer to the runner?
    greets: bool,
    console: String,
}

impl VirtualSession {
    pub fn new(machine: Scripted, build_id: Option<String>) -> Self {
        VirtualSession {
            machine,
            build_id,
            facts: Vec::new(),
            replies: VecDeque::new(),
            system: None,
            running: None,
            greets: false,
            console: String::new(),
        }
    }

    /// Boots a guest that answers a request.
    fn boot(&mut self, request: &Request) -> Result<(), TargetError> {
        let (seed, limit) = terms(request);
        let requests = script(request.clone());
        let mut lines = Vec::new();
        for request in &requests {
            serde_json::to_writer(&mut lines, request)
                .map_err(|e| TargetError::Garbled(e.to_string()))?;
            lines.push(b'\n');
        }
        // One guest at a time.
        self.running = None;
        self.running = Some(self.machine.start(&lines, seed, xen_scheduler(request))?);
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        self.replies = VecDeque::from([Reply::Progress {
            step: "in virtual time".to_owned(),
            limit_ns: limit,
        }]);
        Ok(())
    }

    /// Everything that the guest left, as replies to the one request.
    fn take(&mut self, answer: Answer, running: &Running) -> Result<(), TargetError> {
        self.facts =
            session::kernel_facts(&self.machine.kernel, self.build_id.clone(), &answer.ready);
        self.console = answer.console;
        let mut is_answered = false;
        for line in &answer.lines {
            let reply: Reply =
                serde_json::from_slice(line).map_err(|e| TargetError::Garbled(e.to_string()))?;
            match (reply, self.greets) {
                // They are about steps that are over.
                (Reply::Progress { .. } | Reply::Pace { .. } | Reply::SoFar { .. }, _) => {}
                (reply @ (Reply::File { .. } | Reply::Kept { .. }), _) => {
                    self.replies.push_back(reply);
                }
                (reply @ Reply::System { .. }, true) => self.system = Some(reply),
                // A greeting is answered by one, everything else by what follows it.
                (reply, greets) if greets == matches!(reply, Reply::Hello { .. }) => {
                    is_answered = true;
                    self.replies.push_back(reply);
                }
                _ => {}
            }
        }
        match is_answered {
            true => Ok(()),
            false => {
                let why = format!("the agent in the guest ended with {}", answer.agent);
                Err(running.gone_error(why).into())
            }
        }
    }
}

/// The request of a boot behind a greeting: the agent does nothing else.
fn script(request: Request) -> [Request; 2] {
    let hello = Request::Hello {
        protocol: PROTOCOL_VERSION,
    };
    [hello, request]
}

/// Seed and wall time of a request. A trial has its time limit beside: that of a load of many guests,
/// which boot one after the other, is longer.
fn terms(request: &Request) -> (u64, Duration) {
    let Request::Trial { spec } = request else {
        return (SEED, SHORT);
    };
    let workload = &spec.workload;
    let virtual_ns = workload.duration_ns.saturating_add(workload.warmup_ns);
    let wall_ns = virtual_ns
        .saturating_mul(SLOWEST)
        .saturating_add(workload.time_limit_ns);
    (
        spec.seed,
        SHORT.saturating_add(Duration::from_nanos(wall_ns)),
    )
}

/// The scheduler that a Xen host boots with for a trial. Its one CPU is in the pool of dom0, whose
/// scheduler cannot be changed later.
fn xen_scheduler(request: &Request) -> Option<String> {
    let Request::Trial { spec } = request else {
        return None;
    };
    let asked = spec.arm.ingredients.get(HYPERVISOR_SCHEDULER)?.as_str()?;
    // Parameters follow, and the agent sets them.
    asked.split('/').next().map(|name| name.trim().to_owned())
}

impl Session for VirtualSession {
    fn send_request(&mut self, request: &Request) -> Result<(), TargetError> {
        self.greets = matches!(request, Request::Hello { .. });
        match (request, &self.system) {
            (Request::Hello { .. }, _) => self.boot(&Request::Probe),
            (Request::Probe, Some(system)) => {
                self.replies = VecDeque::from([system.clone()]);
                Ok(())
            }
            (Request::Bye, _) => {
                self.running = None;
                self.replies = VecDeque::from([Reply::Bye]);
                Ok(())
            }
            // They are about loads elsewhere, which this target cannot have.
            (Request::Window { .. } | Request::LoadEnded | Request::Enough, _) => Ok(()),
            (request, _) => self.boot(request),
        }
    }

    fn receive_reply(&mut self, wait: Duration) -> Result<Option<Reply>, TargetError> {
        if let Some(reply) = self.replies.pop_front() {
            return Ok(Some(reply));
        }
        let Some(running) = self.running.take() else {
            std::thread::sleep(wait);
            return Ok(None);
        };
        match running.answer(wait)? {
            Some(answer) => self.take(answer, &running)?,
            None => self.running = Some(running),
        }
        Ok(self.replies.pop_front())
    }

    fn machine_facts(&mut self) -> Vec<Fact> {
        self.facts.clone()
    }

    fn read_console(&mut self) -> Option<String> {
        Some(std::mem::take(&mut self.console))
    }
}
