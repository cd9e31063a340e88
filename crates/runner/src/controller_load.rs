//! A trial whose load runs on the controller, and all else of it on the target: one agent on
//! each side. What one says about its window the other is told.

use crate::connection::{Connection, LOOK, Patience, out_of_turn};
use crate::network;
use crate::trial::{Cut, Ended, UnderWay, make_request, only_result};
use machines::TargetError;
use model::{
    Arm, Happened, Listening, Measurement, Observe, Part, RareEvent, Reply, Request, TrialResult,
    TrialSpec, TrialState, Warning, When, Workload,
};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

/// The two agents of a trial.
pub(crate) struct Apart<'a, 'b> {
    pub trial: &'a mut UnderWay<'b>,
    pub target: &'a mut Connection,
    pub controller: &'a mut Connection,
    /// A load of the run reached its services before.
    pub was_reached: bool,
    /// The load runs still, so that the controller's agent must be started anew.
    pub load_is_left: bool,
}

impl Apart<'_, '_> {
    /// The result of both parts as one.
    pub fn run_both(&mut self, spec: TrialSpec) -> Ended {
        let address = match network::goes_over_network(&spec.workload) {
            true => self.target.network_address()?,
            false => Ipv4Addr::LOCALHOST.into(),
        };
        let beside = TrialSpec {
            part: Part::Beside { address },
            ..spec.clone()
        };
        self.target.send_request(&make_request(beside))?;
        // The target says once how long the measurement may take, before it serves.
        let mut of_target = Patience::starting_at(Instant::now());
        let services = match self.trial.receive_reply(self.target, &mut of_target)? {
            Reply::Serving { services } => services,
            // It ended before there was anything to ask.
            Reply::Trial { results } => return only_result(results),
            other => return Err(out_of_turn(&other).into()),
        };
        let (services, round_trip) = match network::goes_over_network(&spec.workload) {
            true => self.reached(&spec.workload, address, services)?,
            false => (self.forwarded(services)?, None),
        };
        let part = Part::Load { address, services };
        self.controller
            .send_request(&make_request(of_load(spec, part)))?;
        // Whatever ends this leaves the load running, unless it is the load itself.
        self.load_is_left = true;
        let load = match self.until_load_ended(of_target)? {
            Ok(load) => only_result(load)?,
            Err(results) => return only_result(results),
        };
        self.load_is_left = false;
        self.target.send_request(&Request::LoadEnded)?;
        let beside = self.trial.receive_result(self.target)?;
        let mut result = joined(*beside, *load);
        let round_trip = round_trip.filter(|_| result.state == TrialState::Ok);
        result.metrics.extend(round_trip);
        Ok(Box::new(result))
    }

    /// The services as they are, with the time of the way to them.
    fn reached(
        &mut self,
        workload: &Workload,
        address: IpAddr,
        services: Vec<Listening>,
    ) -> Result<(Vec<Listening>, Option<Measurement>), Cut> {
        match network::reach_services(workload, address, &services) {
            Ok(round_trip) => Ok((services, round_trip)),
            // No other try changes where a service listens, but one that listened there may end.
            Err((ErrorKind::ConnectionRefused, problem)) if !self.was_reached => {
                Err(TargetError::Unmet(problem).into())
            }
            Err((_, problem)) => Err(Cut::Lost(problem.what)),
        }
    }

    fn forwarded(&mut self, mut services: Vec<Listening>) -> Result<Vec<Listening>, Cut> {
        let ports: Vec<u16> = services.iter().map(|s| s.number).collect();
        let here = match self.target.forward_ports(&ports) {
            // Somebody took a port, say. The next attempt has a new session, and may have another port.
            Err(error @ TargetError::Io { .. }) => return Err(Cut::Lost(error.to_string())),
            forwarded => forwarded?,
        };
        for (service, number) in services.iter_mut().zip(here) {
            service.number = number;
        }
        Ok(services)
    }

    /// The result of the load, or that of the target where it ended first. The load is
    /// listened to, so that the target learns of its window at once.
    fn until_load_ended(
        &mut self,
        mut of_target: Patience,
    ) -> Result<Result<Vec<TrialResult>, Vec<TrialResult>>, Cut> {
        let mut of_load = Patience::starting_at(Instant::now());
        loop {
            let polled = self.trial.poll_reply(self.controller, LOOK, &mut of_load);
            if polled.is_err() {
                // The end of the controller's agent is no death of the target.
                self.trial.window = None;
            }
            match polled? {
                Some(Reply::Window { edge }) => {
                    self.target.send_request(&Request::Window { edge })?
                }
                Some(Reply::Trial { results }) => return Ok(Ok(results)),
                Some(other) => return Err(out_of_turn(&other).into()),
                None => {}
            }
            let of_target = &mut of_target;
            match self
                .trial
                .poll_reply(self.target, Duration::ZERO, of_target)?
            {
                Some(Reply::Trial { results }) => return Ok(Err(results)),
                Some(other) => return Err(out_of_turn(&other).into()),
                None => {}
            }
        }
    }
}

/// The part of the controller: its load carries the arm's handicap, and nothing else of the
/// arm is for this machine. The collectors are the target's.
fn of_load(spec: TrialSpec, part: Part) -> TrialSpec {
    TrialSpec {
        part,
        stays: false,
        arm: Arm {
            handicap_percent: spec.arm.handicap_percent,
            ..Arm::unchanged(&spec.arm.name)
        },
        observe: Observe {
            perf: spec.observe.perf,
            events: of_requests(spec.observe.events),
            ..Observe::nothing()
        },
        // It starts when the services serve.
        rest_ns: 0,
        ..spec
    }
}

/// The events that the load tells. All others happen on the target.
fn of_requests(mut events: Vec<RareEvent>) -> Vec<RareEvent> {
    events.retain(|event| matches!(event.when, When::Latency { .. } | When::FailedRequest));
    events
}

/// An event of the load, which counts from its own start, by the clock of the other part: both have the same
/// window.
fn in_time_of(window_start_ns: u64, load_window_start_ns: u64, mut happened: Happened) -> Happened {
    for at_ns in &mut happened.at_ns {
        let within = at_ns.saturating_sub(load_window_start_ns);
        *at_ns = window_start_ns.saturating_add(within);
    }
    happened
}

/// One result of both parts. The proof and the window are the target's, and so is a figure
/// that both have: it explains the machine that is measured.
fn joined(beside: TrialResult, load: TrialResult) -> TrialResult {
    let here = |what: String| format!("the load, on the controller: {what}");
    let state = match load.state {
        TrialState::Ok => beside.state,
        // What the target says then is only that the load ended.
        TrialState::Failed { why } => TrialState::Failed { why: here(why) },
        TrialState::Void { why } => TrialState::Void { why: here(why) },
    };
    let known = |m: &Measurement| beside.metrics.iter().any(|own| own.metric == m.metric);
    let of_load: Vec<Measurement> = load.metrics.into_iter().filter(|m| !known(m)).collect();
    let counts = state == TrialState::Ok;
    let warnings = load.warnings.into_iter().map(|warning| Warning {
        what: here(warning.what),
        ..warning
    });
    let opened_ns = beside.window_start_ns;
    let of_requests = load.events.into_iter();
    let of_requests =
        of_requests.map(|happened| in_time_of(opened_ns, load.window_start_ns, happened));
    let events: Vec<Happened> = beside.events.into_iter().chain(of_requests).collect();
    TrialResult {
        state,
        elapsed_ns: beside.elapsed_ns,
        events: match counts {
            true => events,
            false => Vec::new(),
        },
        metrics: match counts {
            true => of_load.into_iter().chain(beside.metrics).collect(),
            false => Vec::new(),
        },
        warnings: warnings.chain(beside.warnings).collect(),
        for_good: load.for_good || beside.for_good,
        ..beside
    }
}
