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
    /// Requests that follow the greeting and are answered by its boot.
    foreseen: Vec<Request>,
    /// What that boot answered to them. Every boot with the same requests would answer the same.
    answered: Vec<(Request, Reply)>,
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
            foreseen: Vec::new(),
            answered: Vec::new(),
            running: None,
            greets: false,
            console: String::new(),
        }
    }

    /// Boots a guest that answers a request. The agent in it is greeted, and does nothing else.
    fn boot(&mut self, request: &Request) -> Result<(), TargetError> {
        let (seed, limit) = terms(request);
        let hello = Request::Hello {
            protocol: PROTOCOL_VERSION,
        };
        let others = match self.greets {
            true => &self.foreseen[..],
            false => std::slice::from_ref(request),
        };
        let mut lines = Vec::new();
        for request in std::iter::once(&hello).chain(others) {
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
        let mut foreseen = std::mem::take(&mut self.foreseen).into_iter();
        for line in &answer.lines {
            let reply: Reply =
                serde_json::from_slice(line).map_err(|e| TargetError::Garbled(e.to_string()))?;
            match (reply, self.greets) {
                // They are about steps that are over.
                (Reply::Progress { .. } | Reply::Pace { .. } | Reply::SoFar { .. }, _) => {}
                (reply @ (Reply::File { .. } | Reply::Kept { .. }), _) => {
                    self.replies.push_back(reply);
                }
                // A greeting is answered by one, everything else by what follows it.
                (reply, greets) if greets == matches!(reply, Reply::Hello { .. }) => {
                    is_answered = true;
                    self.replies.push_back(reply);
                }
                (reply, true) => self.answered.extend(foreseen.next().zip(Some(reply))),
                (_, false) => {}
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
    fn foresee_requests(&mut self, requests: Vec<Request>) {
        self.foreseen = requests;
    }

    fn send_request(&mut self, request: &Request) -> Result<(), TargetError> {
        self.greets = matches!(request, Request::Hello { .. });
        let known = self.answered.iter().find(|(asked, _)| asked == request);
        if let Some((_, reply)) = known {
            self.replies = VecDeque::from([reply.clone()]);
            return Ok(());
        }
        match request {
            Request::Bye => {
                self.running = None;
                self.replies = VecDeque::from([Reply::Bye]);
                Ok(())
            }
            // They are about loads elsewhere, which this target cannot have.
            Request::Window { .. } | Request::LoadEnded | Request::Enough => Ok(()),
            request => self.boot(request),
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
        // Nothing is measured yet, and the guest ends with what is dropped here.
        if self.greets && self.machine.is_interrupted() {
            return Err(TargetError::Interrupted);
        }
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
