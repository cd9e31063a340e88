//! Threads of a native load that each do the same for themselves, from the gate to the end of
//! the window.

use crate::Job;
use crate::gate::{Gate, Timing};
use crate::latch::Latch;
use crate::phase::{NativeError, Phases};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::Builder;
use std::time::SystemTime;

/// Threads need little stack; a thousand of them must fit in a small guest.
const STACK_BYTES: usize = 256 * 1024;

/// The work of one thread: it prepares, waits at the gate, works until the window is over, and
/// returns what it recorded. An error before the gate keeps the load from starting.
pub type Work<T> = Box<dyn FnOnce(&Gate) -> Result<T, String> + Send>;

/// Runs one thread for each work, in the phases that the agent gives. The wall-clock time at
/// which the window opened, and what the threads recorded, in no order.
pub fn run<T: Send + 'static>(
    name: &'static str,
    works: Vec<Work<T>>,
    job: &Job,
    phases: &mut Phases,
) -> Result<(SystemTime, Vec<T>), NativeError> {
    let named = works.into_iter().map(|work| (name, work));
    run_named(named.collect(), job, phases)
}

/// The same where each thread has a name of its own.
pub fn run_named<T: Send + 'static>(
    works: Vec<(&'static str, Work<T>)>,
    job: &Job,
    phases: &mut Phases,
) -> Result<(SystemTime, Vec<T>), NativeError> {
    let crew = Crew {
        gate: Arc::default(),
        stay: Arc::default(),
    };
    let done = crew.run(works, job, phases);
    crew.gate.stop();
    crew.stay.open();
    done
}

/// State that the threads share.
struct Crew {
    gate: Arc<Gate>,
    /// Holds threads that are done, so that what they used can be read.
    stay: Arc<Latch>,
}

impl Crew {
    fn run<T: Send + 'static>(
        &self,
        works: Vec<(&'static str, Work<T>)>,
        job: &Job,
        phases: &mut Phases,
    ) -> Result<(SystemTime, Vec<T>), NativeError> {
        let count = u32::try_from(works.len()).unwrap_or(u32::MAX);
        let records = self.start(works).map_err(NativeError::Generator)?;
        self.gate.gather(count).map_err(NativeError::Generator)?;
        phases.report_ready()?;
        let timing = Timing::from_now(job.workload.warmup_ns, job.measured_ns());
        self.gate.open(timing);
        if job.turns.is_some() {
            phases.announce_window(timing.window.begin_ns)?;
        }
        phases.begin_window(timing.window.begin_ns)?;
        let opened = SystemTime::now();
        phases.end_window(timing.window.end_ns)?;
        if phases.has_enough() {
            self.gate.stop();
        }
        phases.wait_until_seen()?;
        let panicked = |_| Err("a thread of the load panicked".to_owned());
        let records = (0..count).map(|_| records.recv().unwrap_or_else(panicked));
        let records: Result<Vec<T>, String> = records.collect();
        Ok((opened, records.map_err(NativeError::Generator)?))
    }

    fn start<T: Send + 'static>(
        &self,
        works: Vec<(&'static str, Work<T>)>,
    ) -> Result<Receiver<Result<T, String>>, String> {
        let (recorded, records) = channel();
        for (name, work) in works {
            let (gate, stay) = (Arc::clone(&self.gate), Arc::clone(&self.stay));
            let recorded = recorded.clone();
            let run = move || {
                let record = work(&gate);
                if let Err(why) = &record {
                    gate.fail(why.clone());
                }
                // Nobody waits for it any more if the load could not be measured.
                let _ = recorded.send(record);
                drop(recorded);
                stay.wait();
            };
            Builder::new()
                .name(name.to_owned())
                .stack_size(STACK_BYTES)
                .spawn(run)
                .map_err(|e| format!("start a {name} thread: {e}; use a smaller load"))?;
        }
        Ok(records)
    }
}
