//! A program that knows nothing of windows: its window is its life.

use super::{Bell, FIRST_LOOK, check_alive, find_next_look};
use crate::counters::Reading;
use crate::process::{Event, Process};
use crate::stop::Stop;
use crate::trial::Trial;
use collect::rusage::Usage;
use collect::tasks::Pid;
use load::Launch;
use model::{Phase, Role};
use std::path::Path;
use std::time::{Duration, Instant};

/// Time between two looks for new threads, which are given a policy that they cannot inherit.
const FOLLOW_EVERY: Duration = Duration::from_millis(20);

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
        let process = trial.start_load(self.launch)?;
        trial.open_window(process.started);
        trial.look_at_arm(Phase::Before, Some(process.pid));
        self.process = Some(process);
        Ok(())
    }

    fn wait_for_close(&mut self, trial: &mut Trial) -> Result<(), Stop> {
        let Some(process) = &mut self.process else {
            return Ok(());
        };
        let must_follow = trial.in_force.must_follow_threads(&Role::Load);
        let mut next_look = Instant::now() + FIRST_LOOK;
        loop {
            let wake = match must_follow {
                true => next_look.min(Instant::now() + FOLLOW_EVERY),
                false => next_look,
            };
            match process.wait(trial.context.interrupt, trial.until.min(wake)) {
                Event::Exited => return Ok(()),
                Event::Line(_) => {}
                Event::Interrupted => return Err(Stop::interrupted()),
                Event::Timeout => {
                    trial.check_time()?;
                    if must_follow {
                        let root = trial.context.root;
                        let equipped = &trial.in_force;
                        equipped.equip_threads(root, &Role::Load, process.pid)?;
                    }
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
