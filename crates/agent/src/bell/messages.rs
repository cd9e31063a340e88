//! A load on the controller: this agent does the rest of the trial, and the runner passes on when the
//! window of the load opens and closes.

use super::{Bell, FIRST_LOOK, find_next_look};
use crate::counters::Reading;
use crate::stop::Stop;
use crate::trial::Trial;
use collect::rusage::Usage;
use collect::tasks::Pid;
use model::{Edge, Phase, Reply, Request};
use std::path::Path;
use std::time::Instant;

pub struct Messages;

impl Bell for Messages {
    fn open(&mut self, trial: &mut Trial) -> Result<(), Stop> {
        trial.equip(None)?;
        trial.look_at_arm(Phase::Before, None);
        (trial.context.say)(Reply::Serving {
            services: trial.stage.roles.listening_ports(),
        });
        expect_request(trial, &Request::Window { edge: Edge::Opened })?;
        trial.open_window(Instant::now());
        trial.begin_counters(self);
        Ok(())
    }

    fn wait_for_close(&mut self, trial: &mut Trial) -> Result<(), Stop> {
        expect_request(trial, &Request::Window { edge: Edge::Closed })
    }

    /// The services stay for as long as the load is there.
    fn release(&mut self, trial: &mut Trial) -> Result<(), Stop> {
        trial.prove_roles()?;
        expect_request(trial, &Request::LoadEnded)
    }

    fn load(&self) -> Option<Pid> {
        None
    }

    fn read_counters(&mut self, root: &Path) -> Reading {
        Reading::of_machine(root, None, Usage::default())
    }
}

/// Waits for one request; inside the window, looks at the arm meanwhile.
fn expect_request(trial: &mut Trial, expected: &Request) -> Result<(), Stop> {
    let is_in_window = matches!(expected, Request::Window { edge: Edge::Closed });
    let mut next_look = Instant::now() + FIRST_LOOK;
    loop {
        let wake = trial.until.min(next_look);
        let wait = wake.saturating_duration_since(Instant::now());
        match (trial.context.hear)(wait) {
            Some(found) if found == *expected => return Ok(()),
            Some(Request::LoadEnded) => {
                return Err(Stop::Failed("the load ended too early".to_owned()));
            }
            Some(other) => {
                return Err(Stop::Failed(format!("a request out of turn: {other:?}")));
            }
            None if trial.context.interrupt.is_raised() => return Err(Stop::interrupted()),
            None => {
                trial.check_time()?;
                trial.check_beside()?;
                if is_in_window {
                    trial.look_within(None);
                }
                next_look = find_next_look(trial);
            }
        }
    }
}
