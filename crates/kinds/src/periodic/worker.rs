//! One worker: sleep until the release, work, look at the clock.

use super::{Periodic, overrun};
use crate::calibrate::{self, ROWS_PER_SEC};
use crate::matrices::Matrices;
use load::gate::{Gate, Timing};
use load::recording::{Recorder, Window};
use load::worst::At;
use load::{Job, crew, sys};

/// Name of the threads, as the agent sees it in `/proc/PID/task/TID/comm`.
pub const THREAD: &str = "periodic";

/// Observations of one worker in the window.
#[derive(Debug, Clone)]
pub struct Record {
    /// From the release until the worker runs.
    pub lateness: Recorder,
    /// From the release until the job is done.
    pub request: Recorder,
    pub jitter: Recorder,
    pub job_cpu: Recorder,
    /// Jobs with a deadline in the window.
    pub due: u64,
    /// Those of them that were done by then.
    pub in_time: u64,
    /// Overruns of the process at the first start in the window, and at the end of the last job;
    /// `None` where the worker was no deadline thread.
    pub overruns: Option<(u64, u64)>,
}

impl Record {
    fn new(job: &Job) -> Result<Self, String> {
        let workload = &job.workload;
        // No lateness is longer than the process lives.
        let whole_ns = workload.warmup_ns.saturating_add(job.measured_ns());
        let longest_ns = whole_ns.saturating_mul(2).max(1_000_000_000);
        let recorder = || {
            let recorder = Recorder::new(job.measured_ns(), longest_ns)?;
            Ok::<_, String>(recorder.in_turns(job.turns.as_ref()))
        };
        Ok(Record {
            lateness: recorder()?.watched_as("lateness", At::End),
            request: recorder()?.watched_as("request", At::End),
            jitter: recorder()?,
            job_cpu: recorder()?,
            due: 0,
            in_time: 0,
            overruns: None,
        })
    }

    fn open(&mut self, window: Window) {
        let all = [&mut self.lateness, &mut self.request];
        all.into_iter()
            .chain([&mut self.jitter, &mut self.job_cpu])
            .for_each(|recorder| recorder.open(window));
    }
}

struct Worker {
    params: Periodic,
    /// Time of its first release, from the start.
    offset_ns: u64,
    rows: u64,
    matrices: Matrices,
    record: Record,
}

/// The work of the worker with this number.
pub fn make_work(params: &Periodic, job: &Job, index: u64) -> crew::Work<Record> {
    let (params, job) = (params.clone(), job.clone());
    Box::new(move |gate| {
        let worker = Worker {
            offset_ns: params.offset_ns.saturating_mul(index),
            rows: rows(&params, &job),
            matrices: Matrices::new(params.footprint_bytes),
            record: Record::new(&job)?,
            params,
        };
        Ok(worker.run(gate))
    })
}

/// Work of one job.
fn rows(params: &Periodic, job: &Job) -> u64 {
    if params.runtime_ns == 0 {
        return 0;
    }
    let calibrated = job.calibration.values.get(ROWS_PER_SEC).copied();
    let per_sec = calibrated.unwrap_or_else(|| params.rows_per_sec());
    calibrate::rows_in(per_sec, params.runtime_ns)
}

impl Worker {
    fn run(mut self, gate: &Gate) -> Record {
        // The release is the instrument; 50 us of timer slack are not the scheduler's.
        sys::precise_timers();
        if let Some(timing) = gate.wait() {
            self.record.open(timing.window);
            let watched = overrun::watch();
            self.jobs(gate, timing, watched);
        }
        self.record
    }

    /// All jobs that are released before the end of the window.
    fn jobs(&mut self, gate: &Gate, timing: Timing, watched: bool) {
        let mut release_ns = timing.start_ns.saturating_add(self.offset_ns);
        let mut last_start_ns = None;
        while release_ns < timing.window.end_ns && !gate.is_stopped() {
            sys::sleep_until(release_ns);
            let start_ns = sys::now_ns();
            if start_ns < release_ns {
                // A signal.
                continue;
            }
            if start_ns >= timing.window.end_ns {
                break;
            }
            if watched && timing.window.contains(start_ns) {
                let at_first = self.record.overruns.map_or_else(overrun::count, |(n, _)| n);
                self.record.overruns = Some((at_first, overrun::count()));
            }
            let cpu_ns = sys::thread_cpu_ns();
            self.matrices.multiply_rows(self.rows);
            let cpu_ns = sys::thread_cpu_ns() - cpu_ns;
            let end_ns = sys::now_ns();
            let record = &mut self.record;
            record.lateness.record(start_ns, start_ns - release_ns);
            if let Some(last_ns) = last_start_ns.replace(start_ns) {
                let gap_ns = start_ns - last_ns;
                let jitter_ns = gap_ns.abs_diff(self.params.period_ns);
                record.jitter.record(start_ns, jitter_ns);
            }
            if end_ns < timing.window.end_ns {
                record.request.record(end_ns, end_ns - release_ns);
                record.job_cpu.record(end_ns, cpu_ns);
            }
            self.judge(release_ns, Some(end_ns), timing.window);
            release_ns += self.params.period_ns;
        }
        if let Some((_, at_last)) = &mut self.record.overruns {
            *at_last = overrun::count();
        }
        self.left_over(release_ns, timing.window);
    }

    /// Jobs that were never begun. They are as late as they are by the end of the window: to
    /// leave them out would make a worker that starves look punctual.
    fn left_over(&mut self, mut release_ns: u64, window: Window) {
        let last_ns = window.end_ns.saturating_sub(1);
        while release_ns < last_ns {
            let late_ns = last_ns - release_ns;
            self.record.lateness.record(last_ns, late_ns);
            self.record.request.record(last_ns, late_ns);
            self.judge(release_ns, None, window);
            release_ns += self.params.period_ns;
        }
    }

    /// Counts a job whose deadline is in the window.
    fn judge(&mut self, release_ns: u64, end_ns: Option<u64>, window: Window) {
        let deadline_ns = release_ns.saturating_add(self.params.deadline_ns());
        if window.contains(deadline_ns) {
            self.record.due += 1;
            let in_time = end_ns.is_some_and(|end_ns| end_ns <= deadline_ns);
            self.record.in_time += u64::from(in_time);
        }
    }
}
