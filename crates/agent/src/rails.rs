//! Lines that a load says of itself, a rail that was hit among them: the arm in force is taken back before anything
//! else is done.

use crate::collectors::trace;
use crate::stop::Stop;
use crate::trial::Trial;
use load::phase::{self, RailSeen};
use model::RailHit;
use std::time::Instant;

impl Trial<'_, '_> {
    /// Hears a line that is no step of the load's phases. A rail that was hit ends the trial.
    pub fn hear_line(&mut self, line: &str) -> Result<(), Stop> {
        match phase::find_rail(line) {
            Some(seen) => Err(self.heed_rail(seen)),
            None if line.starts_with(phase::FIGURES) => {
                self.so_far.hear_figures(line);
                Ok(())
            }
            None => {
                self.stage.collectors.hear_line(line);
                Ok(())
            }
        }
    }

    fn heed_rail(&mut self, seen: RailSeen) -> Stop {
        let taken_back = self.take_back();
        let since_ns = trace::now_ns().saturating_sub(seen.at_ns);
        let hit = RailHit {
            rail: seen.rail,
            seen: seen.seen,
            arm: self.in_force.arm.name.clone(),
            at_ns: self.since_start(Instant::now()).saturating_sub(since_ns),
            taken_back_ns: since_ns,
        };
        // What could not be taken back is tried again at the end of the trial, which says so.
        let stop = taken_back.err();
        let words = hit.in_words();
        self.rail = Some(hit);
        stop.unwrap_or(Stop::Failed(words))
    }
}
