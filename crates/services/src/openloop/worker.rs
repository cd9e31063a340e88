//! A thread of the generator: sends requests when they are due, on whichever
//! connection has been free the longest, and takes answers: when the next request is
//! due, if the kernel keeps the times at which they came and nobody waits for the thread,
//! otherwise as they come.
//!
//! A request that is due while no connection is free waits in the schedule, which
//! is its own queue. From the gate to the end of the load nothing is allocated.

use super::config::Config;
use super::connection::{Connection, Received, State, own_limit};
use super::inbox::Inbox;
use super::poller::{self, Events, Poller, Wait};
use super::protocol::{Done, Fault, Protocol, Taken, Wrong};
use super::shape::Shaped;
use super::tally::{Failure, Tally, Times};
use load::gate::{Gate, Timing};
use load::pacing::Share;
use load::sys::{now_ns, sleep_until, thread_cpu_ns};
use rustix::event::epoll::{Event, EventFlags};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

/// Between two tries to reach a server that refuses connections.
const RETRY_NS: u64 = 10_000_000;

pub struct Worker<P: Protocol> {
    address: SocketAddr,
    protocol: P,
    poller: Poller,
    events: Events,
    /// There may be more than the list of events had room for.
    more_events: bool,
    inbox: Inbox,
    connections: Vec<Connection<P>>,
    /// The longest free one first.
    free: VecDeque<usize>,
    starts: Shaped,
    pub tally: Tally,
    timeout_ns: u64,
    sweep_every_ns: u64,
    cool_down_ns: u64,
    busy_poll: bool,
    /// May answers wait in the kernel until the next request is due? Not without the
    /// time at which they came.
    answers_wait: bool,
    /// Nor where somebody may wait for the thread: once an answer came in pieces or ended
    /// its connection, a request was not taken as a whole, or failed.
    as_they_come: bool,
    /// The limit of this side that kept a connection from being made: what failed then says
    /// nothing of the server.
    limit: Option<String>,
}

impl<P: Protocol> Worker<P> {
    /// Connects all connections.
    pub fn new(config: &Config, share: Share, protocol: P) -> Result<Self, String> {
        let poller = Poller::new().map_err(|e| format!("make an epoll instance: {e}"))?;
        let mut connections = Vec::new();
        for index in 0..share.size() as usize {
            let answer = protocol.answer();
            let connection = Connection::open(index, config.address, answer, &poller)
                .map_err(|e| not_connected(config.address, &e))?;
            connections.push(connection);
        }
        Ok(Worker {
            address: config.address,
            poller,
            events: poller::events(),
            more_events: false,
            inbox: Inbox::new(),
            answers_wait: false,
            as_they_come: false,
            limit: None,
            free: (0..connections.len()).collect(),
            connections,
            starts: config.schedule(share.index),
            tally: Tally::new(config.duration_ns, config.longest_ns())?
                .in_turns(config.turns.as_ref())
                .with_kinds(protocol.names(), config.longest_ns())?,
            timeout_ns: config.timeout_ns,
            sweep_every_ns: (config.timeout_ns / 16).clamp(1_000_000, 50_000_000),
            cool_down_ns: config.cool_down_ns(),
            busy_poll: config.busy_poll,
            protocol,
        })
    }

    /// From the gate to the end of the load.
    pub fn run(mut self, gate: &Gate) -> Result<Tally, String> {
        let Some(timing) = gate.wait() else {
            return Ok(self.tally);
        };
        self.tally.open(timing.window);
        let mut load = Load::new(&mut self, timing);
        load.run(gate)?;
        load.settle();
        match self.limit {
            Some(why) => Err(why),
            None => Ok(self.tally),
        }
    }
}

fn not_connected(address: SocketAddr, error: &io::Error) -> String {
    own_limit(address, error).unwrap_or_else(|| format!("connect to {address}: {error}"))
}

/// A worker between the start and the end of the load.
struct Load<'a, P: Protocol> {
    worker: &'a mut Worker<P>,
    timing: Timing,
    /// The next intended start.
    next_ns: u64,
    next_sweep_ns: u64,
    /// When the clock of CPU time is read next: the window's begin, then its end.
    mark_ns: u64,
    cpu_at_begin_ns: u64,
    /// Sent requests of the window that have no answer yet.
    open_in_window: u64,
}

impl<'a, P: Protocol> Load<'a, P> {
    fn new(worker: &'a mut Worker<P>, timing: Timing) -> Self {
        let next_ns = timing.start_ns.saturating_add(worker.starts.advance());
        Load {
            next_ns,
            next_sweep_ns: timing.start_ns,
            mark_ns: timing.window.begin_ns,
            cpu_at_begin_ns: 0,
            open_in_window: 0,
            worker,
            timing,
        }
    }

    fn run(&mut self, gate: &Gate) -> Result<(), String> {
        loop {
            let mut now_ns = now_ns();
            self.mark(now_ns);
            now_ns = self.send_due(now_ns);
            self.sweep(now_ns);
            if self.is_over(now_ns) || gate.is_stopped() || self.worker.limit.is_some() {
                return Ok(());
            }
            match self.wait(now_ns) {
                Wait::Until(at_ns) if self.can_sleep() => {
                    sleep_until(at_ns);
                    // Before a request is sent into a connection that was closed meanwhile.
                    self.take_answers(Wait::Poll)?;
                }
                wait => self.take_answers(wait)?,
            }
        }
    }

    /// Is there nothing to do before the next request but to take answers that may wait?
    fn can_sleep(&self) -> bool {
        let worker = &*self.worker;
        worker.answers_wait
            && !worker.as_they_come
            && !worker.more_events
            && !worker.free.is_empty()
            && self.next_ns < self.timing.window.end_ns
    }

    fn take_answers(&mut self, wait: Wait) -> Result<(), String> {
        let worker = &mut *self.worker;
        let mut events = std::mem::take(&mut worker.events);
        let waited = worker.poller.wait(&mut events, wait);
        for event in &events {
            self.handle(event);
        }
        self.worker.more_events = events.len() == events.capacity();
        self.worker.events = events;
        waited.map_err(|e| format!("wait for answers: {e}"))
    }

    /// Reads the CPU time at both ends of the window.
    fn mark(&mut self, now_ns: u64) {
        if now_ns < self.mark_ns {
            return;
        }
        let cpu_ns = thread_cpu_ns();
        if self.mark_ns == self.timing.window.begin_ns {
            self.cpu_at_begin_ns = cpu_ns;
            self.mark_ns = self.timing.window.end_ns;
        } else {
            self.worker.tally.cpu_ns = cpu_ns - self.cpu_at_begin_ns;
            self.mark_ns = u64::MAX;
        }
    }

    /// The time after the last request was sent.
    fn send_due(&mut self, mut now_ns: u64) -> u64 {
        while self.next_ns <= now_ns {
            let Some(index) = self.worker.free.pop_front() else {
                return now_ns;
            };
            self.send(index, self.next_ns);
            self.next_ns = self
                .timing
                .start_ns
                .saturating_add(self.worker.starts.advance());
            now_ns = load::sys::now_ns();
        }
        now_ns
    }

    fn send(&mut self, index: usize, intended_ns: u64) {
        let worker = &mut *self.worker;
        let request = worker.protocol.next_request();
        let connection = &mut worker.connections[index];
        let sent_ns = now_ns();
        connection.times = Times {
            intended_ns,
            sent_ns,
            kind: worker.protocol.kind(request),
        };
        let possible_ns = intended_ns.max(connection.free_since_ns);
        let late_ns = sent_ns.saturating_sub(possible_ns);
        worker.tally.count_sent(connection.times, late_ns);
        self.open_in_window += u64::from(self.timing.window.contains(intended_ns));
        match connection.start(&mut worker.protocol, request, &worker.poller) {
            Ok(whole) => worker.as_they_come |= !whole,
            Err(_) => self.hung_up(index),
        }
    }

    fn handle(&mut self, event: &Event) {
        let Some(index) = poller::index(event) else {
            return;
        };
        let flags = event.flags;
        match self.worker.connections[index].state {
            State::Connecting => self.connected(index),
            State::Resending => self.send_again(index),
            State::Down { .. } => {}
            State::Free | State::Busy => {
                if flags.contains(EventFlags::OUT) {
                    self.send_rest(index);
                }
                if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
                    self.receive(index);
                }
            }
        }
    }

    fn connected(&mut self, index: usize) {
        let now_ns = now_ns();
        let worker = &mut *self.worker;
        let connection = &mut worker.connections[index];
        connection.finish_connect(&worker.poller, now_ns + RETRY_NS);
        if connection.state == State::Free {
            worker
                .tally
                .connected(connection.connecting_since_ns, now_ns);
            connection.free_since_ns = now_ns;
            worker.free.push_back(index);
        }
    }

    fn send_rest(&mut self, index: usize) {
        let worker = &mut *self.worker;
        let sent = worker.connections[index].has_room(&mut worker.protocol, &worker.poller);
        if sent.is_err() {
            self.hung_up(index);
        }
    }

    /// The connection ended before the first byte of an answer. A server may close one
    /// that is idle, and a request may be on its way by then: that costs a second sending,
    /// whose time counts, and is no failure of the server.
    fn hung_up(&mut self, index: usize) {
        let worker = &mut *self.worker;
        let connection = &mut worker.connections[index];
        let may_repeat = connection.can_repeat(&worker.protocol);
        if may_repeat && connection.resend(worker.address, &worker.poller) {
            worker.as_they_come = true;
            worker.tally.count_resent(connection.times);
        } else {
            self.fail(index, Failure::HangUp);
        }
    }

    fn send_again(&mut self, index: usize) {
        let worker = &mut *self.worker;
        let connection = &mut worker.connections[index];
        connection.finish_connect(&worker.poller, 0);
        if connection.state == State::Free {
            let since_ns = connection.connecting_since_ns;
            worker.tally.connected(since_ns, now_ns());
        }
        let sent = connection
            .request_again()
            .map(|request| connection.start(&mut worker.protocol, request, &worker.poller));
        if !matches!(sent, Some(Ok(_))) {
            self.fail(index, Failure::HangUp);
        }
    }

    fn receive(&mut self, index: usize) {
        let worker = &mut *self.worker;
        let connection = &mut worker.connections[index];
        let received = connection.receive(&mut worker.inbox);
        match (connection.state, received) {
            (_, Received::Nothing) => {}
            (
                State::Busy,
                Received::Answer {
                    progress,
                    arrived_ns,
                },
            ) => {
                worker.answers_wait = arrived_ns.is_some();
                worker.as_they_come |= !matches!(progress, Taken::Done(Done { keep: true, .. }));
                if let Taken::Done(done) = progress {
                    self.answered(index, done, arrived_ns);
                }
            }
            (State::Busy, Received::Fault(Fault::HangUp)) => self.hung_up(index),
            (State::Busy, Received::Fault(fault)) => self.fail(index, failure(fault)),
            // The server closed an idle connection, or speaks without being asked.
            (_, Received::Answer { .. } | Received::Fault(_)) => self.drop_idle(index),
        }
    }

    fn answered(&mut self, index: usize, done: Done, arrived_ns: Option<u64>) {
        let now_ns = now_ns();
        let connection = &mut self.worker.connections[index];
        let times = connection.times;
        // The clock of stamps may have been set since it was compared.
        let possible = |ns: &u64| (times.sent_ns..=now_ns).contains(ns);
        let at_ns = arrived_ns.filter(possible).unwrap_or(now_ns);
        match self.judge(index, done) {
            Ok(()) => self.worker.tally.count_answered(times, at_ns, done.hit),
            Err(wrong) => {
                let text = self.worker.connections[index].answer_text();
                self.worker.tally.count_wrong(times, at_ns, wrong, text);
            }
        }
        self.close(times);
        let connection = &mut self.worker.connections[index];
        if done.keep {
            connection.set_free(at_ns);
            self.worker.free.push_back(index);
        } else {
            self.reconnect(index, now_ns);
        }
        // Does not let a long list of answers delay what is due.
        self.send_due(now_ns);
    }

    fn judge(&mut self, index: usize, done: Done) -> Result<(), Wrong> {
        let worker = &mut *self.worker;
        worker.connections[index].judge(&mut worker.protocol, done)
    }

    fn fail(&mut self, index: usize, failure: Failure) {
        // The end of a connection has no time of arrival.
        self.worker.as_they_come = true;
        let now_ns = now_ns();
        let times = self.worker.connections[index].times;
        self.worker.tally.count_failed(times, now_ns, failure);
        self.close(times);
        self.reconnect(index, now_ns);
    }

    fn close(&mut self, times: Times) {
        self.open_in_window -= u64::from(self.timing.window.contains(times.intended_ns));
    }

    fn drop_idle(&mut self, index: usize) {
        self.worker.free.retain(|free| *free != index);
        self.reconnect(index, now_ns());
    }

    fn reconnect(&mut self, index: usize, now_ns: u64) {
        let worker = &mut *self.worker;
        let connection = &mut worker.connections[index];
        let limit = connection.reconnect(worker.address, &worker.poller, now_ns + RETRY_NS);
        if limit.is_some() {
            worker.limit = limit;
        }
    }

    /// Looks for time-outs and for connections to try again.
    fn sweep(&mut self, now_ns: u64) {
        if now_ns < self.next_sweep_ns {
            return;
        }
        self.next_sweep_ns = now_ns + self.worker.sweep_every_ns;
        self.worker.inbox.compare_clocks();
        for index in 0..self.worker.connections.len() {
            let connection = &self.worker.connections[index];
            match connection.state {
                State::Busy | State::Resending
                    if now_ns >= connection.times.sent_ns + self.worker.timeout_ns =>
                {
                    self.fail(index, Failure::Timeout);
                }
                State::Down { retry_ns } if now_ns >= retry_ns => self.reconnect(index, now_ns),
                _ => {}
            }
        }
    }

    fn wait(&self, now_ns: u64) -> Wait {
        let worker = &*self.worker;
        let mut until_ns = self.mark_ns;
        if !worker.free.is_empty() {
            until_ns = until_ns.min(self.next_ns);
        }
        if worker.free.len() < worker.connections.len() {
            until_ns = until_ns.min(self.next_sweep_ns);
        }
        if worker.busy_poll || until_ns <= now_ns {
            Wait::Poll
        } else {
            Wait::Until(until_ns)
        }
    }

    fn is_over(&self, now_ns: u64) -> bool {
        let end_ns = self.timing.window.end_ns;
        let nothing_left = self.next_ns >= end_ns && self.open_in_window == 0;
        let limit_ns = end_ns.saturating_add(self.worker.cool_down_ns);
        self.mark_ns == u64::MAX && (nothing_left || now_ns >= limit_ns)
    }

    /// Counts every request without an answer with the time that it has taken so far.
    fn settle(&mut self) {
        let now_ns = now_ns();
        for connection in &self.worker.connections {
            if matches!(connection.state, State::Busy | State::Resending) {
                let times = connection.times;
                self.worker
                    .tally
                    .count_failed(times, now_ns, Failure::Unanswered);
            }
        }
        while self.next_ns < self.timing.window.end_ns {
            let request = self.worker.protocol.next_request();
            let kind = self.worker.protocol.kind(request);
            self.worker.tally.count_unsent(kind, self.next_ns, now_ns);
            self.next_ns = self
                .timing
                .start_ns
                .saturating_add(self.worker.starts.advance());
        }
    }
}

fn failure(fault: Fault) -> Failure {
    match fault {
        Fault::HangUp => Failure::HangUp,
        Fault::HalfAnswer => Failure::HalfAnswer,
        Fault::Garbage => Failure::Garbage,
    }
}
