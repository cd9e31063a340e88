//! A trial whose load runs on the controller: this agent does the rest, and is told when the
//! window of the load opens and closes.

use crate::collectors::def::At;
use crate::counters::Reading;
use crate::stop::Stop;
use crate::trial::Trial;
use crate::window::{FIRST_SAMPLE, SAMPLE_EVERY, interrupted_stop};
use model::{Edge, Measurement, Phase, Reply, Request};
use std::time::Instant;

impl Trial<'_, '_> {
    /// The figures of this machine within the window of the load.
    pub fn attend_load(&mut self) -> Result<Vec<Measurement>, Stop> {
        self.follow_roles()?;
        self.observe(Phase::Before, None);
        (self.context.say)(Reply::Serving {
            services: self.roles.listening_ports(),
        });
        let root = self.context.root;
        self.hear(&Request::Window { edge: Edge::Opened }, false)?;
        self.window_ns.0 = self.since_start(Instant::now());
        let first = Reading::at_start(root);
        let leaders = self.leaders(None);
        let at = At {
            root,
            leaders: &leaders,
            interrupt: self.context.interrupt,
        };
        self.collectors.begin_window(&at);
        self.roles.begin_window(root);
        self.events.begin_window();
        self.hear(&Request::Window { edge: Edge::Closed }, true)?;
        self.window_ns.1 = self.since_start(Instant::now());
        let last = Reading::at_start(root);
        self.events.end_window();
        self.collectors.end_window(&at);
        self.observe(Phase::After, None);
        self.prove_roles()?;
        // The services stay for as long as the load is there.
        self.hear(&Request::LoadEnded, false)?;
        Ok(last.of_machine_since(&first))
    }

    /// Waits for one request; inside the window, takes samples meanwhile.
    fn hear(&mut self, expected: &Request, in_window: bool) -> Result<(), Stop> {
        let mut next_sample = Instant::now() + FIRST_SAMPLE;
        loop {
            let wake = self.until.min(next_sample);
            let wait = wake.saturating_duration_since(Instant::now());
            match (self.context.hear)(wait) {
                Some(found) if found == *expected => return Ok(()),
                Some(Request::LoadEnded) => {
                    return Err(Stop::Failed("the load ended too early".to_owned()));
                }
                Some(other) => {
                    return Err(Stop::Failed(format!("a request out of turn: {other:?}")));
                }
                None if self.context.interrupt.is_raised() => return Err(interrupted_stop()),
                None => {
                    self.check_time()?;
                    self.check_beside()?;
                    if in_window {
                        self.observe(Phase::During, None);
                    }
                    next_sample = Instant::now() + SAMPLE_EVERY;
                }
            }
        }
    }
}
