//! One load from its threads to its figures.

use super::config::Config;
use super::cpu_lock::CpuLocks;
use super::figures::{self, Recorded};
use super::group::Group;
use super::message::{OpenLoop, closed_loop};
use super::shared::Shared;
use super::worker::{Records, Worker};
use load::Parsed;
use load::gate::Timing;
use load::pacing::{IntendedStarts, Share};
use load::phase::{NativeError, Phases};
use load::sys;
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::SystemTime;

/// Names of the threads, as the agent sees them in `/proc/PID/task/TID/comm`.
pub const MESSAGE_THREAD: &str = "wakeup-message";
/// Name of each worker thread.
pub const WORKER_THREAD: &str = "wakeup-worker";

/// Threads need little stack; a thousand of them must fit in a small guest.
const STACK_BYTES: usize = 256 * 1024;

/// Runs the load that `config` asks for, in the phases that the agent gives.
pub fn generate(config: &Config, phases: &mut Phases) -> Result<Parsed, NativeError> {
    if let Some(fault) = config.fault() {
        return Err(NativeError::Generator(format!("the wakeup load: {fault}")));
    }
    let threads = Threads::start(config).map_err(NativeError::Generator)?;
    let measured = measure(config, &threads.shared, phases);
    // Also when the agent is gone: then nobody joins, and the process ends at once.
    threads.shared.stop();
    let seen = measured.and_then(|opened| phases.wait_until_seen().map(|()| opened));
    threads.shared.release();
    let opened = seen?;
    let recorded = threads.join().map_err(NativeError::Generator)?;
    figures::compute_figures(config, recorded, opened).map_err(NativeError::Generator)
}

/// Waits through the phases. The wall-clock time at which the window opened.
fn measure(
    config: &Config,
    shared: &Shared,
    phases: &mut Phases,
) -> Result<SystemTime, NativeError> {
    phases.report_ready()?;
    let timing = Timing::from_now(config.warmup_ns, config.duration_ns);
    shared.gate.open(timing);
    if config.turns.is_some() {
        phases.announce_window(timing.window.begin_ns)?;
    }
    phases.begin_window(timing.window.begin_ns)?;
    let opened = SystemTime::now();
    phases.end_window(timing.window.end_ns)?;
    Ok(opened)
}

struct Threads {
    shared: Arc<Shared>,
    messages: Vec<JoinHandle<u64>>,
    workers: Vec<JoinHandle<Records>>,
}

impl Threads {
    /// Returns when all of them wait at the gate.
    fn start(config: &Config) -> Result<Self, String> {
        let groups = config.shares().map(|s| Group::new(s.size())).collect();
        let locks = config
            .params
            .cpu_lock
            .then(|| CpuLocks::new(sys::possible_cpus()));
        let mut threads = Threads {
            shared: Arc::new(Shared::new(groups, locks)),
            messages: Vec::new(),
            workers: Vec::new(),
        };
        let started = threads.start_all(config);
        if started.is_err() {
            threads.shared.stop();
            threads.shared.release();
        }
        started.map(|()| threads)
    }

    fn start_all(&mut self, config: &Config) -> Result<(), String> {
        for share in config.shares() {
            for index in 0..share.size() {
                let worker = Worker::new(config, share.index as usize, index)?;
                self.workers.push(spawn_worker(&self.shared, worker)?);
            }
            let schedule = config.schedule(share);
            self.messages
                .push(spawn_message(&self.shared, share, schedule)?);
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "threads that run: Linux has at most 4 million"
        )]
        let count = (self.workers.len() + self.messages.len()) as u32;
        self.shared.gate.gather(count)
    }

    fn join(self) -> Result<Recorded, String> {
        let offered = join_all(self.messages)?.into_iter().sum();
        let records = join_all(self.workers)?;
        Ok(Recorded { records, offered })
    }
}

fn join_all<T>(threads: Vec<JoinHandle<T>>) -> Result<Vec<T>, String> {
    threads
        .into_iter()
        .map(|t| {
            t.join()
                .map_err(|_| "a thread of the load panicked".to_owned())
        })
        .collect()
}

/// The thread stays until all are released, so that what it used can be read.
fn spawn<T: Send + 'static>(
    name: &str,
    shared: &Arc<Shared>,
    run: impl FnOnce(&Shared) -> T + Send + 'static,
) -> Result<JoinHandle<T>, String> {
    let shared = Arc::clone(shared);
    let run_and_stay = move || {
        let result = run(&shared);
        shared.wait_for_release();
        result
    };
    Builder::new()
        .name(name.to_owned())
        .stack_size(STACK_BYTES)
        .spawn(run_and_stay)
        .map_err(|e| format!("start a {name} thread: {e}; use fewer workers"))
}

fn spawn_worker(shared: &Arc<Shared>, worker: Worker) -> Result<JoinHandle<Records>, String> {
    spawn(WORKER_THREAD, shared, move |shared| worker.run(shared))
}

/// The thread returns the number of requests that were intended inside the window.
fn spawn_message(
    shared: &Arc<Shared>,
    share: Share,
    schedule: Option<IntendedStarts>,
) -> Result<JoinHandle<u64>, String> {
    spawn(MESSAGE_THREAD, shared, move |shared| {
        let group = &shared.groups[share.index as usize];
        let idle = VecDeque::with_capacity(group.workers() as usize);
        // Pacing is part of the instrument, not of the load.
        sys::precise_timers();
        match (shared.gate.wait(), schedule) {
            (None, _) => 0,
            (Some(_), None) => {
                closed_loop(shared, group);
                0
            }
            (Some(timing), Some(starts)) => {
                OpenLoop::new(shared, group, starts, idle, timing).run()
            }
        }
    })
}
