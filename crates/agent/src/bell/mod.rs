//! Who says when the window of a turn opens and closes.

pub mod clock;
mod life;
mod messages;
mod phases;

pub use clock::Clock;
pub use life::Life;
pub use messages::Messages;
pub use phases::{Phases, expect_line};

use crate::counters::Reading;
use crate::process::{Event, Process};
use crate::stop::Stop;
use crate::trial::Trial;
use collect::tasks::Pid;
use model::Role;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time between two looks at the arm inside the window. A look takes about a fifth of a millisecond of a CPU that is
/// measured.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// The same where somebody watches, who has new figures with each, and where processes that come to a daemon are to have
/// the arm soon.
const SHORT_LOOK_EVERY: Duration = Duration::from_secs(1);
/// The first look after the window opened, so that short trials have one.
const FIRST_LOOK: Duration = Duration::from_millis(250);

/// The moments of one window. Between them the agent sleeps in poll(2), and wakes for its looks.
pub trait Bell {
    /// Gives threads what the arm has for them, looks at the arm, and returns when the window is open.
    fn open(&mut self, trial: &mut Trial) -> Result<(), Stop>;

    /// Returns when the window has closed.
    fn wait_for_close(&mut self, trial: &mut Trial) -> Result<(), Stop>;

    /// The window has been looked at: the load may go on to its end.
    fn release(&mut self, trial: &mut Trial) -> Result<(), Stop>;

    /// The process of the load, where it runs here.
    fn load(&self) -> Option<Pid>;

    /// Counters of the load and the machine at an end of the window.
    fn read_counters(&mut self, root: &Path) -> Reading;
}

/// Time between two looks for new threads, which are given a policy that they cannot inherit.
const FOLLOW_EVERY: Duration = Duration::from_millis(20);

/// The moment to wake for new threads, or for the next look at the arm if none must be followed.
fn find_wake(trial: &Trial, next_look: Instant) -> Instant {
    match trial.in_force.must_follow_threads(&Role::Load) {
        true => next_look.min(Instant::now() + FOLLOW_EVERY),
        false => next_look,
    }
}

/// The moment of the next look at the arm, if one is taken now.
fn find_next_look(trial: &Trial) -> Instant {
    let is_short = trial.spec.is_watched || trial.in_force.arm.daemon.is_some();
    let pause = match is_short {
        true => SHORT_LOOK_EVERY,
        false => LOOK_EVERY,
    };
    Instant::now() + pause
}

/// Waits for the end of a process without looking at it.
pub fn wait_for_exit(trial: &mut Trial, process: &mut Process) -> Result<(), Stop> {
    loop {
        let wake = trial.until.min(find_next_look(trial));
        match process.wait(trial.context.interrupt, wake) {
            Event::Exited => return Ok(()),
            Event::Line(line) => trial.hear_line(&line)?,
            Event::Interrupted => return Err(Stop::interrupted()),
            Event::Timeout => {
                trial.check_time()?;
                check_alive(trial, process)?;
            }
        }
    }
}

/// Ends a trial that cannot count any more.
fn check_alive(trial: &mut Trial, process: &Process) -> Result<(), Stop> {
    if process.prints_too_much() {
        return Err(Stop::Failed(
            "the workload printed more than 64 MiB".to_owned(),
        ));
    }
    trial.check_beside()
}

/// The stop of a load that ended before it said a line.
pub fn ended_early(process: &mut Process, line: &str) -> Stop {
    let errors = process.last_errors();
    Stop::Failed(format!(
        "the workload ended{} before it said `{line}`: {errors}",
        process.end_in_words()
    ))
}
