//! A program that knows nothing of windows: its window is its life.

use super::{Bell, FIRST_LOOK, check_alive, find_next_look, find_wake};
use crate::counters::Reading;
use crate::load_process::Purpose;
use crate::process::{Event, Process};
use crate::stop::Stop;
use crate::trial::Trial;
use collect::rusage::Usage;
use collect::tasks::Pid;
use load::Launch;
use model::Phase;
use std::path::Path;
use std::time::Instant;

pub struct Life<'a> {
    launch: &'a Launch,
    /// `None` before its window.
    process: Option<Process>,
}

impl<'a> Life<'a> {
    /// The life of a program that is not started yet.
    pub fn new(launch: &'a Launch) -> Self {
        Life {
            launch,
            process: None,
        }
    }

    /// The process, if it was started. It is still to be reaped.
    pub fn into_process(self) -> Option<Process> {
        self.process
    }
}

impl Bell for Life<'_> {
    /// Counters begin before the program does, which has what the arm gives it before its first
    /// instruction.
    fn open(&mut self, trial: &mut Trial) -> Result<(), Stop> {
        trial.equip(None)?;
        trial.begin_counters(self);
        trial.begin_co_runners()?;
        trial.open_co_runners()?;
        let process = trial.start_process(self.launch, Purpose::Load)?;
        trial.open_window(process.started);
        trial.look_at_arm(Phase::Before, Some(process.pid));
        self.process = Some(process);
        Ok(())
    }

    fn wait_for_close(&mut self, trial: &mut Trial) -> Result<(), Stop> {
        let Some(process) = &mut self.process else {
            return Ok(());
        };
        let mut next_look = Instant::now() + FIRST_LOOK;
        loop {
            let wake = find_wake(trial, next_look);
            match process.wait(trial.context.interrupt, trial.until.min(wake)) {
                Event::Exited => return Ok(()),
                Event::Line(_) => {}
                Event::Interrupted => return Err(Stop::interrupted()),
                Event::Timeout => {
                    trial.check_time()?;
                    trial.follow_threads(Some(process.pid))?;
                    if Instant::now() >= next_look {
                        check_alive(trial, process)?;
                        trial.look_within(Some(process.pid));
                        next_look = find_next_look(trial);
                    }
                }
            }
        }
    }

    fn release(&mut self, trial: &mut Trial) -> Result<(), Stop> {
        trial.prove_roles()
    }

    fn load(&self) -> Option<Pid> {
        self.process.as_ref().map(|process| process.pid)
    }

    /// CPU time and memory of the process are known when it has been reaped.
    fn read_counters(&mut self, root: &Path) -> Reading {
        let process = self.process.as_mut();
        let perf = process.and_then(|process| process.counters.as_mut());
        Reading::of_machine(root, perf, Usage::default())
    }
}
