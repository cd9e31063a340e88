//! Audio: at the end of each period the device plays the next one, and the thread fills the one after
//! that. Not filled by the end of the period that is played, it is an underrun.
//!
//! Two periods are a buffer. After an underrun the stream stops, and starts again with a full buffer
//! when the thread is back (`SND_PCM_STATE_XRUN`, `snd_pcm_prepare`), so a long stall is one underrun.

use crate::matrices::Matrices;
use load::gate::{Gate, Timing};
use load::recording::Recorder;
use load::sys;

/// Name of the thread, as the agent sees it in `/proc/PID/task/TID/comm`.
pub const THREAD: &str = "frames-audio";

/// Figures of the audio thread.
#[derive(Debug)]
pub struct Heard {
    /// From the end of a period until the next one is filled.
    pub filled: Recorder,
    /// Moments of the underruns.
    pub underruns: Vec<u64>,
}

/// The audio thread with all that it needs, made before the load starts.
pub struct Player {
    pub period_ns: u64,
    /// Work of one period.
    pub rows: u64,
    pub matrices: Matrices,
    pub heard: Heard,
}

impl Player {
    /// From the gate to the end of the window.
    pub fn run(mut self, gate: &Gate) -> Heard {
        sys::precise_timers();
        if let Some(timing) = gate.wait() {
            self.heard.filled.open(timing.window);
            self.periods(gate, timing);
        }
        self.heard
    }

    fn periods(&mut self, gate: &Gate, timing: Timing) {
        let end_ns = timing.window.end_ns;
        let mut ended_ns = timing.start_ns.saturating_add(self.period_ns);
        while ended_ns < end_ns && !gate.is_stopped() {
            sys::sleep_until(ended_ns);
            if sys::now_ns() < ended_ns {
                // A signal.
                continue;
            }
            self.matrices.multiply_rows(self.rows);
            let filled_ns = sys::now_ns();
            ended_ns = self.heard.fill(ended_ns, filled_ns, self.period_ns, end_ns);
        }
    }
}

impl Heard {
    /// A period had ended, and then the next one was filled. Gives the end of the period that is played
    /// then.
    fn fill(&mut self, ended_ns: u64, filled_ns: u64, period_ns: u64, end_ns: u64) -> u64 {
        let deadline_ns = ended_ns.saturating_add(period_ns);
        let last_ns = end_ns.saturating_sub(1);
        if filled_ns > deadline_ns && deadline_ns < end_ns {
            self.underruns.push(deadline_ns);
        }
        // One that was not filled by the end of the window is as late as it is by then.
        if filled_ns <= last_ns || last_ns > deadline_ns {
            let at_ns = filled_ns.min(last_ns);
            self.filled.record(at_ns, at_ns - ended_ns);
        }
        match filled_ns > deadline_ns {
            true => filled_ns.saturating_add(period_ns),
            false => deadline_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::recording::{Recording, Window};

    const END: u64 = 1_000;

    fn heard() -> Heard {
        let mut filled = Recorder::new(END, 1_000_000_000).unwrap();
        filled.open(Window {
            begin_ns: 0,
            end_ns: END,
        });
        Heard {
            filled,
            underruns: Vec::new(),
        }
    }

    #[test]
    fn a_period_that_is_filled_late_is_an_underrun_and_starts_the_stream_again() {
        let mut heard = heard();
        assert_eq!(heard.fill(100, 120, 100, END), 200);
        assert_eq!(heard.fill(200, 300, 100, END), 300);
        // Due at 400; played again from 650 on.
        assert_eq!(heard.fill(300, 650, 100, END), 750);
        assert_eq!(heard.underruns, [400]);
        let filled = Recording::merge([heard.filled]).unwrap();
        assert_eq!((filled.count(), filled.max_ns()), (3, Some(350)));
    }

    #[test]
    fn a_period_that_is_late_at_the_end_of_the_window_counts_and_one_that_is_not_tells_nothing() {
        let mut late = heard();
        late.fill(700, 5_000, 100, END);
        assert_eq!(late.underruns, [800]);
        assert_eq!(Recording::merge([late.filled]).unwrap().max_ns(), Some(299));
        let mut early = heard();
        early.fill(950, 5_000, 100, END);
        assert!(early.underruns.is_empty());
        assert_eq!(Recording::merge([early.filled]).unwrap().count(), 0);
    }
}
