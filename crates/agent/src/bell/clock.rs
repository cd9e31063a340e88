//! A window of one of several arms inside one process: load and agent go by the same clock, so nothing
//! passes between them.

use super::phases::expect_line;
use super::{Bell, ended_early};
use crate::collectors::trace;
use crate::counters::Reading;
use crate::process::{Event, Process};
use crate::stop::Stop;
use crate::trial::Trial;
use collect::rusage::Usage;
use collect::tasks::Pid;
use load::phase;
use model::Phase;
use std::path::Path;
use std::time::{Duration, Instant};

pub struct Clock<'a> {
    process: &'a mut Process,
    start: Instant,
    end: Instant,
    /// Why the arm is not in force.
    pub refused: Option<Stop>,
    /// From the start of the turn until the arm was read back on every thread.
    pub change_ns: u64,
}

impl<'a> Clock<'a> {
    /// The turn from `start` to `end` of an arm that was put in force, unless that was `refused`.
    pub fn new(
        process: &'a mut Process,
        [start, end]: [Instant; 2],
        refused: Option<Stop>,
    ) -> Self {
        Clock {
            process,
            start,
            end,
            refused,
            change_ns: 0,
        }
    }
}

impl Bell for Clock<'_> {
    /// The window opens by itself after the washout. Counters of the kernel are of the whole process,
    /// and so they do not begin.
    fn open(&mut self, trial: &mut Trial) -> Result<(), Stop> {
        if self.refused.is_none() {
            self.refused = trial.equip(self.load()).err();
        }
        trial.look_at_arm(Phase::Before, self.load());
        self.change_ns = model::whole_nanos(self.start.elapsed());
        // Within the washout, so that no window has it.
        trial.tell_pace(self.load());
        Ok(())
    }

    fn wait_for_close(&mut self, trial: &mut Trial) -> Result<(), Stop> {
        wait_until(trial, self.process, self.end)
    }

    fn release(&mut self, _: &mut Trial) -> Result<(), Stop> {
        Ok(())
    }

    fn load(&self) -> Option<Pid> {
        Some(self.process.pid)
    }

    fn read_counters(&mut self, root: &Path) -> Reading {
        Reading::of_machine(root, None, Usage::default())
    }
}

/// Starts the clock: gives the moment at which the first turn begins, which the load says when its
/// warm-up begins.
pub fn start_clock(trial: &mut Trial, process: &mut Process) -> Result<Instant, Stop> {
    expect_line(trial, process, phase::READY)?;
    trial.equip(Some(process.pid))?;
    // A process that is gone is noticed while waiting for its next line.
    let _ = process.send(&format!("{}\n", phase::GO));
    loop {
        match process.wait(trial.context.interrupt, trial.until) {
            Event::Line(line) => {
                let at_ns = line.strip_prefix(phase::OPENS).map(str::parse::<u64>);
                if let Some(Ok(at_ns)) = at_ns {
                    let left = at_ns.saturating_sub(trace::now_ns());
                    return Ok(Instant::now() + Duration::from_nanos(left));
                }
                trial.hear_line(&line)?;
            }
            Event::Interrupted => return Err(Stop::interrupted()),
            Event::Exited => return Err(ended_early(process, "opens")),
            Event::Timeout => trial.check_time()?,
        }
    }
}

/// Waits for a moment at which the workload has to be there still.
pub fn wait_until(trial: &mut Trial, process: &mut Process, until: Instant) -> Result<(), Stop> {
    loop {
        match process.wait(trial.context.interrupt, until) {
            Event::Line(line) => trial.hear_line(&line)?,
            Event::Interrupted => return Err(Stop::interrupted()),
            Event::Exited => return Err(ended_early(process, phase::END)),
            Event::Timeout => {
                trial.check_time()?;
                let interrupt = trial.context.interrupt;
                return trial.stage.roles.check_alive(interrupt);
            }
        }
    }
}
