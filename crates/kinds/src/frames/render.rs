//! The render loop. A frame begins at a vblank, takes the input that is there, works, and is shown at
//! the first vblank at which it is done; the next one begins there.
//!
//! That is vertical sync with two buffers: while a finished frame waits for its vblank there is no
//! free buffer, and drawing goes on when the buffers have been exchanged.

use super::input::Events;
use super::screen::Screen;
use super::work::Works;
use crate::matrices::Matrices;
use load::Job;
use load::gate::{Gate, Timing};
use load::recording::{Recorder, Window};
use load::sys;
use load::worst::At;
use model::Turns;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Name of the thread, as the agent sees it in `/proc/PID/task/TID/comm`.
pub const THREAD: &str = "frames-render";

/// Figures of the render loop.
#[derive(Debug)]
pub struct Rendered {
    pub screen: Screen,
    pub window: Window,
    /// Vblanks at which new frames were shown, in order of time.
    pub shown: Vec<u64>,
    /// Time for which a picture stayed on the screen, recorded when the next one is shown.
    pub frame: Recorder,
    /// From the vblank at which a frame begins until it is done.
    pub render: Recorder,
    /// From an input event until its frame is shown.
    pub input: Recorder,
}

/// More work for the arms that have a handicap.
#[derive(Debug)]
pub struct Handicaps {
    percent: f64,
    of_arms: Vec<f64>,
    turns: Option<Turns>,
}

impl Handicaps {
    pub fn for_job(job: &Job) -> Self {
        Handicaps {
            percent: job.handicap_percent,
            of_arms: job.handicaps.clone(),
            turns: job.turns.clone(),
        }
    }

    /// Percent of a frame that begins at this time, where the window opens at that one.
    fn percent_at(&self, at_ns: u64, begin_ns: u64) -> f64 {
        let arm = self.turns.as_ref();
        let arm = arm.map(|turns| turns.arm_at(at_ns.saturating_sub(begin_ns)));
        let of_arm = arm.and_then(|arm| self.of_arms.get(arm)).copied();
        of_arm.unwrap_or(self.percent)
    }
}

/// The render thread with all that it needs, made before the load starts.
pub struct Renderer {
    pub interval_ns: u64,
    pub works: Works,
    pub handicaps: Handicaps,
    pub matrices: Matrices,
    pub events: Events,
    /// Number of events that the input thread has delivered.
    pub delivered: Arc<AtomicU64>,
    pub frame: Recorder,
    pub render: Recorder,
    pub input: Recorder,
    /// End of the window, once it is known.
    pub end_ns: u64,
}

impl Renderer {
    /// Recorders of a job: of frames, render times and input latencies.
    pub fn make_recorders(job: &Job) -> Result<[Recorder; 3], String> {
        let recorder = |log| Ok::<_, String>(super::make_recorder(job)?.watched_as(log, At::End));
        Ok([recorder("frame")?, recorder("render")?, recorder("input")?])
    }

    /// From the gate to the end of the window; `None` where there was no load.
    pub fn run(mut self, gate: &Gate) -> Option<Rendered> {
        // The vblank is the instrument; 50 us of timer slack are not the scheduler's.
        sys::precise_timers();
        let timing = gate.wait()?;
        let screen = Screen {
            start_ns: timing.start_ns,
            interval_ns: self.interval_ns,
        };
        self.frame.open(timing.window);
        self.render.open(timing.window);
        self.input.open(timing.window);
        self.events.begin_at(timing.start_ns);
        self.end_ns = timing.window.end_ns;
        let shown = self.render_frames(gate, timing, screen);
        Some(Rendered {
            screen,
            window: timing.window,
            shown,
            frame: self.frame,
            render: self.render,
            input: self.input,
        })
    }

    /// All frames that begin before the end of the window. Gives the vblanks at which they were shown.
    fn render_frames(&mut self, gate: &Gate, timing: Timing, screen: Screen) -> Vec<u64> {
        let end_ns = self.end_ns;
        let most = usize::try_from(screen.first_from(end_ns)).unwrap_or_default();
        let mut shown = Vec::with_capacity(most.saturating_add(1));
        let mut begin = 0;
        let mut due_ns = screen.time_ns(begin);
        while due_ns < end_ns && !gate.is_stopped() {
            sys::sleep_until(due_ns);
            let start_ns = sys::now_ns();
            if start_ns < due_ns {
                // A signal.
                continue;
            }
            if start_ns >= end_ns {
                break;
            }
            self.events.take(self.delivered.load(Ordering::Acquire));
            let more = self.handicaps.percent_at(start_ns, timing.window.begin_ns);
            let rows = self.works.rows_of(shown.len() as u64, more);
            self.matrices.multiply_rows(rows);
            let done_ns = sys::now_ns();
            if done_ns >= end_ns {
                break;
            }
            self.render.record(done_ns, done_ns - due_ns);
            // No frame is shown at the vblank at which it began, however fast a clock.
            begin = screen.first_from(done_ns).max(begin + 1);
            due_ns = screen.time_ns(begin);
            self.show(screen, shown.last().copied(), begin);
            shown.push(begin);
        }
        self.left_over(screen, &shown, due_ns, timing.window);
        shown
    }

    /// Records a frame that is shown at a vblank after the one before.
    fn show(&mut self, screen: Screen, before: Option<u64>, vblank: u64) {
        let shown_ns = screen.time_ns(vblank);
        if let Some(before) = before {
            let stay_ns = (vblank - before).saturating_mul(screen.interval_ns);
            self.frame.record(shown_ns, stay_ns);
        }
        // Those of a frame that is shown after the window are not shown yet.
        if shown_ns < self.end_ns {
            for event_ns in self.events.drain_shown() {
                self.input.record(shown_ns, shown_ns - event_ns);
            }
        }
    }

    /// A frame that was not done by the end of the window and is late already is as late as it is by then: to
    /// leave it out would make a loop that starves look smooth. One that is not late yet tells nothing.
    fn left_over(&mut self, screen: Screen, shown: &[u64], due_ns: u64, window: Window) {
        let last_ns = window.end_ns.saturating_sub(1);
        let interval_ns = screen.interval_ns;
        let record = |recorder: &mut Recorder, since_ns: u64, late_ns: u64| {
            let age_ns = last_ns.saturating_sub(since_ns);
            if age_ns > late_ns {
                recorder.record(last_ns, age_ns);
            }
        };
        let on_screen = shown.partition_point(|vblank| screen.time_ns(*vblank) <= last_ns);
        if let Some(vblank) = on_screen.checked_sub(1).and_then(|at| shown.get(at)) {
            record(&mut self.frame, screen.time_ns(*vblank), interval_ns);
        }
        record(&mut self.render, due_ns, interval_ns);
        // An event waits for a frame to begin, and for that to be shown: a frame each at most.
        for event_ns in self.events.drain_until(last_ns) {
            record(&mut self.input, event_ns, 2 * interval_ns);
        }
    }
}
