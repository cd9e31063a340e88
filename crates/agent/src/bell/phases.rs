//! A load that says when its window opens and closes.

use super::{Bell, FIRST_LOOK, check_alive, ended_early, find_next_look, find_wake};
use crate::counters::Reading;
use crate::process::{Event, Process};
use crate::stop::Stop;
use crate::trial::Trial;
use collect::tasks::Pid;
use load::phase;
use model::Phase;
use std::path::Path;
use std::time::Instant;

pub struct Phases<'a> {
    process: &'a mut Process,
}

impl<'a> Phases<'a> {
    /// The window of a load that was started and gets ready.
    pub fn new(process: &'a mut Process) -> Self {
        Phases { process }
    }
}

impl Bell for Phases<'_> {
    /// The load has made its threads when it is ready, and they are as many as the machine's CPUs ask
    /// for, so the arm is given to them only then.
    fn open(&mut self, trial: &mut Trial) -> Result<(), Stop> {
        expect_line(trial, self.process, phase::READY)?;
        trial.equip(self.load())?;
        trial.look_at_arm(Phase::Before, self.load());
        trial.begin_co_runners()?;
        self.process.say(phase::GO);
        expect_line(trial, self.process, phase::BEGIN)?;
        trial.open_window(Instant::now());
        trial.begin_counters(self);
        trial.open_co_runners()
    }

    fn wait_for_close(&mut self, trial: &mut Trial) -> Result<(), Stop> {
        expect_line(trial, self.process, phase::END)
    }

    fn release(&mut self, trial: &mut Trial) -> Result<(), Stop> {
        trial.prove_roles()?;
        self.process.say(phase::SEEN);
        Ok(())
    }

    fn load(&self) -> Option<Pid> {
        Some(self.process.pid)
    }

    fn read_counters(&mut self, root: &Path) -> Reading {
        Reading::of_tree(root, self.process.pid, self.process.counters.as_mut())
    }
}

/// Waits for one line of the load; inside the window, looks at the arm meanwhile.
pub fn expect_line(trial: &mut Trial, process: &mut Process, line: &str) -> Result<(), Stop> {
    let is_in_window = line == phase::END;
    // A native load has all its threads before its window.
    let must_follow = is_in_window && trial.has_programs_beside();
    let mut next_look = Instant::now() + FIRST_LOOK;
    loop {
        let wake = match must_follow {
            true => find_wake(trial, next_look),
            false => next_look,
        };
        match process.wait(trial.context.interrupt, trial.until.min(wake)) {
            Event::Line(found) if found == line => return Ok(()),
            Event::Line(other) => trial.hear_line(&other)?,
            Event::Interrupted => return Err(Stop::interrupted()),
            Event::Exited => return Err(ended_early(process, line)),
            Event::Timeout => {
                trial.check_time()?;
                if must_follow {
                    trial.follow_threads(None)?;
                }
                if Instant::now() < next_look {
                    continue;
                }
                check_alive(trial, process)?;
                if is_in_window {
                    trial.look_within(Some(process.pid));
                }
                next_look = find_next_look(trial);
            }
        }
    }
}
