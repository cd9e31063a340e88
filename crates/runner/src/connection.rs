//! A conversation with one agent: question, answer, and the end of patience.

use crate::RunError;
use crate::check::Looked;
use machines::{Boot, Saved, Session, Target, TargetError};
use model::printable::last_lines;
use model::{
    Build, Calibration, Experiment, Fact, Measurement, PROTOCOL_VERSION, Problem, Reply, Request,
    Side, System,
};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time between two looks at whether a wait was interrupted. Inside a trial every wake-up
/// disturbs what is measured, so it is not more often than once a second.
pub(crate) const LOOK: Duration = Duration::from_secs(1);
/// An agent that is silent for so long hangs, or its machine does: beyond what the step
/// under way takes by its own limit, and where it only reads.
const PATIENCE: Duration = Duration::from_secs(60);
/// Boots of a machine until its agent answers the first questions.
const ATTEMPTS: u32 = 2;

pub(crate) struct Connection {
    session: Box<dyn Session>,
}

/// End of a calibration.
pub(crate) enum Calibrated {
    Found(Calibration),
    Interrupted,
}

/// Until when the agent must be heard again.
pub(crate) struct Patience {
    until: Instant,
    /// The step that the agent said it is doing.
    step: Option<String>,
}

impl Patience {
    pub(crate) fn starting_at(now: Instant) -> Self {
        Patience {
            until: now + PATIENCE,
            step: None,
        }
    }

    /// The agent said that this step may take so long.
    pub(crate) fn extend_limit(&mut self, now: Instant, step: &str, limit_ns: u64) {
        let limit = PATIENCE.saturating_add(Duration::from_nanos(limit_ns));
        // What is beyond the clock is a century.
        self.until = now.checked_add(limit).unwrap_or(self.until);
        self.step = Some(step.to_owned());
    }

    pub(crate) fn is_over(&self, now: Instant) -> bool {
        now >= self.until
    }

    pub(crate) fn in_words(&self) -> String {
        match &self.step {
            None => format!("the agent did not answer within {} s", PATIENCE.as_secs()),
            Some(step) => format!(
                "the agent was silent for {} s longer than its step may take: {step}",
                PATIENCE.as_secs()
            ),
        }
    }
}

/// What a machine lacks for its part of the experiment.
pub(crate) fn check_request(experiment: &Experiment, side: Side) -> Request {
    let experiment = Box::new(experiment.clone());
    Request::Check { experiment, side }
}

/// The machine, and the versions of those programs that the experiment names.
pub(crate) fn probe_request(experiment: &Experiment) -> Request {
    let experiment = Some(Box::new(experiment.clone()));
    Request::Probe { experiment }
}

impl Connection {
    /// Start an agent and see that it is the same build of schedlab as we are.
    pub fn open(target: &mut dyn Target, boot: &Boot, own: &Build) -> Result<Self, RunError> {
        let (connection, ()) = Connection::open_and_ask(target, boot, own, &[], |_| Ok(()))?;
        Ok(connection)
    }

    /// Starts an agent and asks it. A guest that was booted for it and hangs is booted once more: nothing
    /// was measured there yet. An emulated guest was seen to do that, and why is not known. The requests that
    /// are foreseen are those that `ask` makes and those that follow it, in any order.
    pub fn open_and_ask<T>(
        target: &mut dyn Target,
        boot: &Boot,
        own: &Build,
        foreseen: &[Request],
        ask: impl Fn(&mut Connection) -> Result<T, RunError>,
    ) -> Result<(Self, T), RunError> {
        let can = target.abilities();
        let mut left = match can.kernels && !can.reboots {
            true => ATTEMPTS - 1,
            false => 0,
        };
        loop {
            let mut connection = Connection {
                session: target.open_session(boot)?,
            };
            connection.session.foresee_requests(foreseen.to_vec());
            let asked = connection.hello(own).and_then(|()| ask(&mut connection));
            match asked {
                Err(RunError::Target(TargetError::Gone { why, tail })) if left > 0 => {
                    tracing::warn!("the agent is gone before its first trial, another boot: {why}");
                    tracing::warn!("the last that was seen of its machine:\n{tail}");
                    left -= 1;
                }
                asked => return Ok((connection, asked?)),
            }
        }
    }

    /// Goes on with an agent that was saved, which has been greeted already.
    pub fn go_on(target: &mut dyn Target, boot: &Boot, saved: &Saved) -> Result<Self, RunError> {
        Ok(Connection {
            session: target.go_on(boot, saved)?,
        })
    }

    /// Saves the machine with its agent, which both end here.
    pub fn save_machine(self) -> Result<Saved, RunError> {
        Ok(self.session.save_machine()?)
    }

    fn hello(&mut self, own: &Build) -> Result<(), RunError> {
        let protocol = PROTOCOL_VERSION;
        match self.ask(&Request::Hello { protocol })? {
            Reply::Hello { build, .. } if build == *own => Ok(()),
            Reply::Hello { build, .. } => Err(RunError::OtherBuild {
                found: build.to_string(),
                expected: own.to_string(),
            }),
            other => Err(out_of_turn(&other)),
        }
    }

    /// The machine, and the versions of those programs that the experiment names.
    pub fn probe_system(&mut self, experiment: &Experiment) -> Result<System, RunError> {
        match self.ask(&probe_request(experiment))? {
            Reply::System { system } => Ok(*system),
            other => Err(out_of_turn(&other)),
        }
    }

    pub fn check_experiment(
        &mut self,
        experiment: &Experiment,
        side: Side,
    ) -> Result<Vec<Problem>, RunError> {
        Ok(self.find_problems(experiment, side)?.problems)
    }

    /// Requirements that are not met, and warnings that trials will give.
    pub fn find_problems(
        &mut self,
        experiment: &Experiment,
        side: Side,
    ) -> Result<Looked, RunError> {
        match self.ask(&check_request(experiment, side))? {
            Reply::Checked { problems, foreseen } => Ok(Looked { problems, foreseen }),
            other => Err(out_of_turn(&other)),
        }
    }

    /// The answer to a request for the calibration of a cell.
    pub fn calibrate_cell(
        &mut self,
        cell: &str,
        request: &Request,
        interrupted: &AtomicBool,
    ) -> Result<Calibrated, RunError> {
        self.session.send_request(request)?;
        let mut patience = Patience::starting_at(Instant::now());
        loop {
            if interrupted.load(Ordering::Relaxed) {
                return Ok(Calibrated::Interrupted);
            }
            match self.session.receive_reply(LOOK)? {
                Some(Reply::Progress { step, limit_ns }) => {
                    patience.extend_limit(Instant::now(), &step, limit_ns);
                }
                Some(Reply::Calibrated { calibration }) => {
                    return Ok(Calibrated::Found(calibration));
                }
                Some(Reply::Refused { why }) => {
                    return Err(RunError::Calibration {
                        cell: cell.to_owned(),
                        why,
                    });
                }
                Some(Reply::Unrestored { failed }) => return Err(RunError::Unrestored(failed)),
                Some(other) => return Err(out_of_turn(&other)),
                None if patience.is_over(Instant::now()) => return Err(self.silent(&patience)),
                None => {}
            }
        }
    }

    pub(crate) fn send_request(&mut self, request: &Request) -> Result<(), TargetError> {
        self.session.send_request(request)
    }

    pub(crate) fn receive_reply(&mut self, wait: Duration) -> Result<Option<Reply>, TargetError> {
        self.session.receive_reply(wait)
    }

    pub(crate) fn forward_ports(&mut self, ports: &[u16]) -> Result<Vec<u16>, TargetError> {
        self.session.forward_ports(ports)
    }

    pub(crate) fn network_address(&self) -> Result<IpAddr, TargetError> {
        self.session.network_address()
    }

    /// A port at which the agent listens until the next request; the inner error says why it does not.
    pub(crate) fn listen_at(
        &mut self,
        address: IpAddr,
        port: u16,
    ) -> Result<Result<u16, String>, RunError> {
        match self.ask(&Request::Listen { address, port })? {
            Reply::Listens { port } => Ok(Ok(port)),
            Reply::Refused { why } => Ok(Err(why)),
            other => Err(out_of_turn(&other)),
        }
    }

    pub fn read_console(&mut self) -> Option<String> {
        self.session.read_console()
    }

    pub fn is_machine_dead(&self) -> bool {
        self.session.is_machine_dead()
    }

    pub fn machine_facts(&mut self) -> Vec<Fact> {
        self.session.machine_facts()
    }

    pub fn host_readings(&mut self) -> Vec<Measurement> {
        self.session.host_readings()
    }

    fn ask(&mut self, request: &Request) -> Result<Reply, RunError> {
        self.session.send_request(request)?;
        let mut patience = Patience::starting_at(Instant::now());
        loop {
            match self.session.receive_reply(LOOK)? {
                Some(Reply::Progress { step, limit_ns }) => {
                    patience.extend_limit(Instant::now(), &step, limit_ns);
                }
                Some(reply) => return Ok(reply),
                None if patience.is_over(Instant::now()) => return Err(self.silent(&patience)),
                None => {}
            }
        }
    }

    fn silent(&mut self, patience: &Patience) -> RunError {
        let why = patience.in_words();
        let last = [self.read_console(), self.session.state_of_machine()];
        let said = last.into_iter().flatten().filter(|text| !text.is_empty());
        let tail = said.collect::<Vec<_>>().join("\n");
        TargetError::Gone { why, tail }.into()
    }
}

/// Why an agent is of no more use, where that is no error of the run.
pub(crate) fn of_lost_agent(error: TargetError) -> Result<String, RunError> {
    match error {
        TargetError::Gone { why, tail } => {
            Ok(with_last_lines(format!("the agent is gone: {why}"), &tail))
        }
        TargetError::Garbled(what) => Ok(format!("the agent's answer is no message: {what}")),
        other => Err(other.into()),
    }
}

/// The reason, followed by the last lines of the machine. No fewer lines than a target keeps of
/// a kernel's panic (`TAIL_LINES` of target's console.rs), of which the first ones tell most.
pub(crate) fn with_last_lines(why: String, text: &str) -> String {
    const LINES: usize = 40;
    match last_lines(text, LINES, "\n") {
        lines if lines.is_empty() => why,
        lines => format!("{why}\n{lines}"),
    }
}

pub(crate) fn out_of_turn(reply: &Reply) -> RunError {
    let text = format!("{reply:?}");
    RunError::OutOfTurn(text.chars().take(80).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_may_be_silent_for_as_long_as_its_step_may_take() {
        let start = Instant::now();
        let after = |minutes: u64| start + Duration::from_secs(60 * minutes);
        let mut patience = Patience::starting_at(start);
        assert!(patience.is_over(after(1)));
        let minutes = |n: u64| n * 60_000_000_000;
        patience.extend_limit(start, "preparing", minutes(9));
        assert!(!patience.is_over(after(9)));
        // From when it was said, not from the beginning of the trial.
        patience.extend_limit(after(9), "measuring", minutes(9));
        assert!(!patience.is_over(after(18)) && patience.is_over(after(19)));
        assert!(
            patience
                .in_words()
                .ends_with("its step may take: measuring")
        );
        patience.extend_limit(after(18), "starting the server", u64::MAX);
        assert!(!patience.is_over(after(1000)));
    }

    #[test]
    fn all_that_a_target_keeps_of_a_panic_is_kept() {
        let tail: Vec<String> = (0..40).map(|n| format!("line {n}")).collect();
        let why = with_last_lines("gone".to_owned(), &tail.join("\n"));
        assert!(why.starts_with("gone\nline 0\nline 1\n") && why.ends_with("line 39"));
        assert_eq!(with_last_lines("gone".to_owned(), " \n"), "gone");
    }
}
