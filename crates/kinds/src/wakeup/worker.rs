//! Workers: wait for a message, sleep, take the lock of the CPU, multiply.

use super::config::Config;
use super::shared::Shared;
use crate::matrices::{Matrices, RowBudget};
use load::latency as m;
use load::recording::Recorder;
use load::stalls;
use load::sys;
use load::worst::At;
use model::Turns;

/// Recordings of one worker.
#[derive(Debug, Clone)]
pub struct Records {
    /// From the waker's stamp until the worker runs.
    pub wakeup: Recorder,
    /// Closed loop: as `service`. Open loop: from the intended start.
    pub request: Recorder,
    /// From when the worker runs to the end of the request; open loop only.
    pub service: Option<Recorder>,
}

impl Records {
    pub fn new(config: &Config) -> Result<Self, String> {
        let recorder = || {
            let recorder = Recorder::new(config.duration_ns, config.longest_ns())?;
            Ok::<_, String>(recorder.in_turns(config.turns.as_ref()))
        };
        Ok(Records {
            wakeup: recorder()?
                .told_as(m::WAKEUP, None)
                .with_stalls_from(stalls::WAKEUP_NS)
                .watched_as("wakeup", At::End),
            request: recorder()?
                .told_as(m::REQUEST, Some(m::REQUESTS_PER_SEC))
                .with_stalls_from(stalls::REQUEST_NS)
                .watched_as("request", At::End),
            service: config.rate_per_sec.map(|_| recorder()).transpose()?,
        })
    }

    fn open(&mut self, window: load::recording::Window) {
        self.wakeup.open(window);
        self.request.open(window);
        if let Some(service) = &mut self.service {
            service.open(window);
        }
    }
}

/// Work of a request: that of the arm whose turn it is when the request starts.
#[derive(Debug)]
struct Budgets {
    /// Work of each arm; one where no arms take turns.
    of_arms: Vec<RowBudget>,
    turns: Option<Turns>,
    /// Time at which the first turn begins.
    begin_ns: u64,
}

impl Budgets {
    fn new(config: &Config, rows: u64) -> Self {
        let budget = |percent| RowBudget::new(config.params.operations, rows, percent);
        let mut of_arms: Vec<RowBudget> = config.handicaps.iter().copied().map(budget).collect();
        if of_arms.is_empty() {
            of_arms.push(budget(config.handicap_percent));
        }
        Budgets {
            of_arms,
            turns: config.turns.clone(),
            begin_ns: u64::MAX,
        }
    }

    /// Before the first turn it is that of the first one.
    fn at(&mut self, at_ns: u64) -> &mut RowBudget {
        let arm = self
            .turns
            .as_ref()
            .map_or(0, |turns| turns.arm_at(at_ns.saturating_sub(self.begin_ns)));
        let last = self.of_arms.len() - 1;
        &mut self.of_arms[arm.min(last)]
    }
}

/// One worker with all that it needs, made before the load starts.
#[derive(Debug)]
pub struct Worker {
    group: usize,
    /// In its group.
    index: u32,
    sleep_ns: u64,
    budgets: Budgets,
    matrices: Matrices,
    records: Records,
}

impl Worker {
    pub fn new(config: &Config, group: usize, index: u32) -> Result<Self, String> {
        let matrices = Matrices::new(config.params.footprint_bytes);
        let budgets = Budgets::new(config, matrices.rows());
        Ok(Worker {
            group,
            index,
            sleep_ns: config.params.sleep_ns,
            budgets,
            matrices,
            records: Records::new(config)?,
        })
    }

    /// From the gate to the end of the load.
    pub fn run(mut self, shared: &Shared) -> Records {
        if let Some(timing) = shared.gate.wait() {
            self.records.open(timing.window);
            self.budgets.begin_ns = timing.window.begin_ns;
            while !shared.gate.is_stopped() {
                self.request(shared);
            }
        }
        self.records
    }

    fn request(&mut self, shared: &Shared) {
        let group = &shared.groups[self.group];
        group.offer(self.index);
        if shared.gate.is_stopped() {
            return;
        }
        group.slot(self.index).post.wait();
        let started_ns = sys::now_ns();
        if shared.gate.is_stopped() {
            return;
        }
        let message = group.message(self.index);
        let wakeup_ns = started_ns.saturating_sub(message.woken_ns);
        self.records.wakeup.record(started_ns, wakeup_ns);
        self.serve(shared, started_ns);
        self.record_request(started_ns, message.intended_ns, sys::now_ns());
    }

    fn serve(&mut self, shared: &Shared, started_ns: u64) {
        if self.sleep_ns > 0 {
            sys::sleep_ns(self.sleep_ns);
        }
        let rows = self.budgets.at(started_ns).next_request();
        let _held = shared.locks.as_ref().map(|locks| locks.lock_current());
        self.matrices.multiply_rows(rows);
    }

    fn record_request(&mut self, started_ns: u64, intended_ns: u64, ended_ns: u64) {
        let service_ns = ended_ns - started_ns;
        match &mut self.records.service {
            None => self.records.request.record(ended_ns, service_ns),
            Some(service) => {
                service.record(ended_ns, service_ns);
                let request_ns = ended_ns.saturating_sub(intended_ns);
                self.records.request.record(ended_ns, request_ns);
            }
        }
    }
}
