//! The protocol of a phased process: lines between it and the agent, on its standard streams.
//!
//! The process: `ready` (threads exist, nothing measured yet), waits for `go` on
//! standard input, warms up, says `begin` when the window opens, within it `worse` and `settled`
//! where the worst latency is watched ([`crate::worst`]), and `end` when it
//! has closed, waits for `seen` on standard input with all threads in place, then says
//! one line `result JSON` ([`Parsed`]) and exits with 0.
//!
//! All native generators speak it: [`launch`] and [`parse`] are the agent's side of one,
//! [`Phases`] is its own. A thread waits on standard input for the whole life of the
//! process. It never wakes up by itself; when the input ends, the agent is gone, and so is
//! the load.

use crate::worst::{self, LOOK, Lookout};
use crate::{Job, Launch, Output, Parsed, SELF, closed_windows, program, sys};
use doors::read::Lines;
use model::Turns;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Line of the process: its threads exist, and nothing is measured yet.
pub const READY: &str = "ready";
/// Prefix of a line of the process, where arms take turns: the first turn begins at this time of
/// CLOCK_MONOTONIC, in nanoseconds. It comes before the warm-up, so that nothing needs to be said
/// while the turns run.
pub const OPENS: &str = "opens ";
/// Line of the agent: the load may start.
pub const GO: &str = "go";
/// Line of the process: the window opens.
pub const BEGIN: &str = "begin";
/// Line of the process: the window has closed, and all threads are still there.
pub const END: &str = "end";
/// Usage of the threads has been read, and they may end.
pub const SEEN: &str = "seen";
/// Prefix of a line of the process, where a rail was hit ([`RailSeen`] as JSON): the arm in force is to be taken
/// back at once.
pub const RAIL: &str = "rail ";
/// Prefix of a line of the process, where arms take turns: figures of the windows since the last such line
/// ([`Parsed`] as JSON).
pub const FIGURES: &str = "figures ";
/// Line of the agent: no further turn is taken, and the window has closed.
pub const ENOUGH: &str = "enough";
/// Prefix of the last line of the process, before the figures as JSON.
pub const RESULT: &str = "result ";

/// Rail that the process saw hit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RailSeen {
    /// The rail as it was written.
    pub rail: String,
    /// Finding in words.
    pub seen: String,
    /// The time of CLOCK_MONOTONIC then, in nanoseconds.
    pub at_ns: u64,
}

/// The rail that a line of a process is about; `None` for any other line.
pub fn find_rail(line: &str) -> Option<RailSeen> {
    serde_json::from_str(line.strip_prefix(RAIL)?).ok()
}

/// Error that ends a native generator.
#[derive(Debug, thiserror::Error)]
pub enum NativeError {
    /// The first line of standard input is no job.
    #[error("read the job from standard input: {0}")]
    BadJob(String),
    /// Standard input ended.
    #[error("standard input was closed: the agent is gone")]
    AgentGone,
    /// The agent sent another line than the one that was due.
    #[error("wait for `{expected}` on standard input: got {got:?}")]
    Unexpected {
        /// Line that was due.
        expected: &'static str,
        /// Line that came.
        got: String,
    },
    /// A line could not be written to standard output.
    #[error("write to standard output: {0}")]
    Output(#[from] std::io::Error),
    /// The load itself failed, for the reason given.
    #[error("{0}")]
    Generator(String),
}

/// Starts this binary as a generator, which is told its job in the first line.
pub fn launch(job: &Job) -> Launch {
    // Numbers and text only: serialization cannot fail, and an empty line would be refused.
    let line = serde_json::to_string(job).unwrap_or_default();
    Launch {
        stdin: line + "\n",
        phased: true,
        ..Launch::new(vec![SELF.to_owned(), "load".to_owned()])
    }
}

/// The result line of a generator that has ended.
pub fn parse(job: &Job, output: &Output) -> Result<Parsed, String> {
    let what = format!("the {} load", job.workload.kind.name());
    program::check_success(&what, output)?;
    let line = output
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix(RESULT))
        .ok_or_else(|| program::garbage(&what, "a result line", output))?;
    serde_json::from_str(line).map_err(|e| format!("read the result of {what}: {e}"))
}

#[derive(Debug)]
enum Input {
    Line(String),
    Closed,
}

/// Marks that a generator sets and waits for, in this order: [`Phases::report_ready`],
/// [`Phases::begin_window`], [`Phases::end_window`], [`Phases::seen`].
pub struct Phases<'a> {
    input: Receiver<Input>,
    output: Box<dyn Write + 'a>,
    seen: bool,
    enough: bool,
    told: Option<Told>,
    opens_ns: u64,
}

/// Turns of which it is told, and the metrics that are wanted.
struct Told {
    turns: Turns,
    wanted: Vec<String>,
}

impl std::fmt::Debug for Phases<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Phases").finish_non_exhaustive()
    }
}

impl<'a> Phases<'a> {
    /// The phases of a process with these streams.
    pub fn new(
        stdin: impl Read + Send + 'static,
        output: impl Write + 'a,
    ) -> Result<Self, NativeError> {
        let (sender, input) = channel();
        std::thread::Builder::new()
            .name("load-input".to_owned())
            .spawn(move || forward_lines(BufReader::new(stdin), &sender))?;
        Ok(Phases {
            input,
            output: Box::new(output),
            seen: false,
            enough: false,
            told: None,
            opens_ns: 0,
        })
    }

    /// Tells these figures of the turns while they are taken.
    pub(crate) fn tell_of(&mut self, turns: &Turns, wanted: &[String]) {
        self.told = Some(Told {
            turns: turns.clone(),
            wanted: wanted.to_vec(),
        });
    }

    /// Has the agent seen turns enough?
    pub fn has_enough(&self) -> bool {
        self.enough
    }

    /// The next line of the agent.
    pub(crate) fn next_line(&self) -> Result<String, NativeError> {
        match self.input.recv() {
            Ok(Input::Line(line)) => Ok(line),
            Ok(Input::Closed) | Err(_) => Err(NativeError::AgentGone),
        }
    }

    fn say(&mut self, line: &str) -> Result<(), NativeError> {
        writeln!(self.output, "{line}")?;
        Ok(self.output.flush()?)
    }

    /// All threads exist: says so, and waits until the load shall start.
    pub fn report_ready(&mut self) -> Result<(), NativeError> {
        self.say(READY)?;
        let got = self.next_line()?;
        if got == GO {
            return Ok(());
        }
        Err(NativeError::Unexpected { expected: GO, got })
    }

    /// Says beforehand when the window opens.
    pub fn announce_window(&mut self, at_ns: u64) -> Result<(), NativeError> {
        self.opens_ns = at_ns;
        self.say(&format!("{OPENS}{at_ns}"))
    }

    /// Waits for the time at which the window opens, and says so.
    pub fn begin_window(&mut self, at_ns: u64) -> Result<(), NativeError> {
        self.wait_until(at_ns)?;
        self.say(BEGIN)
    }

    /// Waits for the time at which the window closes, and says so. Where the worst latency is
    /// watched, it says meanwhile when there is a worse one.
    pub fn end_window(&mut self, at_ns: u64) -> Result<(), NativeError> {
        if let Some(told) = self.told.take() {
            self.tell_turns(&told)?;
        }
        let mut lookout = Lookout::default();
        while let Some(worst_ns) =
            worst::worst_so_far().filter(|_| !self.enough && sys::now_ns() < at_ns)
        {
            if let Some(line) = lookout.due_line(worst_ns) {
                self.say(line)?;
            }
            let next_ns = sys::now_ns().saturating_add(model::whole_nanos(LOOK));
            self.wait_until(next_ns.min(at_ns))?;
        }
        self.wait_until(at_ns)?;
        self.say(END)
    }

    /// Tells the figures of some windows at a time, in the washout after them.
    fn tell_turns(&mut self, told: &Told) -> Result<(), NativeError> {
        let mut from = 0;
        for look in told.turns.looks() {
            let after_ns = told.turns.lengths.turn_ns().saturating_mul(look as u64);
            self.wait_until(self.opens_ns.saturating_add(after_ns))?;
            let figures = closed_windows::figures_of(&told.turns, from..look, &told.wanted);
            let Some(figures) = figures.filter(|_| !self.enough) else {
                break;
            };
            from = look;
            self.say_json(FIGURES, &figures)?;
        }
        Ok(())
    }

    fn say_json(&mut self, prefix: &str, what: &impl Serialize) -> Result<(), NativeError> {
        let json =
            serde_json::to_string(what).map_err(|e| NativeError::Generator(e.to_string()))?;
        self.say(&format!("{prefix}{json}"))
    }

    /// Says that a rail was hit.
    pub fn report_rail(&mut self, rail: &str, seen: &str) -> Result<(), NativeError> {
        let seen = RailSeen {
            rail: rail.to_owned(),
            seen: seen.to_owned(),
            at_ns: sys::now_ns(),
        };
        self.say_json(RAIL, &seen)
    }

    /// Waits until the agent has read what the threads used; they take it along when
    /// they end.
    pub fn wait_until_seen(&mut self) -> Result<(), NativeError> {
        while !self.seen {
            self.seen = self.next_line()? == SEEN;
        }
        Ok(())
    }

    /// Waits for a time while the agent is there, unless it has enough.
    pub fn wait_until(&mut self, at_ns: u64) -> Result<(), NativeError> {
        while !self.enough {
            let left = at_ns.saturating_sub(sys::now_ns());
            match self.input.recv_timeout(Duration::from_nanos(left)) {
                Err(RecvTimeoutError::Timeout) if sys::now_ns() >= at_ns => return Ok(()),
                // A line that nobody asked for does not end a measurement.
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Input::Line(line)) => {
                    self.seen |= line == SEEN;
                    self.enough |= line == ENOUGH;
                }
                Ok(Input::Closed) | Err(RecvTimeoutError::Disconnected) => {
                    return Err(NativeError::AgentGone);
                }
            }
        }
        Ok(())
    }

    /// Says the figures, which is the last line.
    pub(crate) fn result(&mut self, parsed: &Parsed) -> Result<(), NativeError> {
        self.say_json(RESULT, parsed)
    }
}

/// The most that is read of a line of the agent.
const MOST_LINE_BYTES: usize = 16 << 20;

fn forward_lines(input: impl BufRead, sender: &Sender<Input>) {
    for line in Lines::with_limit(input, MOST_LINE_BYTES) {
        if sender.send(Input::Line(line)).is_err() {
            return;
        }
    }
    // The receiver is gone when the load has ended by itself.
    let _ = sender.send(Input::Closed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_word_than_go_is_an_error() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut phases = Phases::new(reader, Vec::new()).unwrap();
        writer.write_all(b"gone\n").unwrap();
        let error = phases.report_ready().unwrap_err().to_string();
        assert!(error.contains("`go`") && error.contains("gone"), "{error}");
    }

    #[test]
    fn a_window_closes_when_the_agent_has_enough() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut phases = Phases::new(reader, Vec::new()).unwrap();
        writer.write_all(b"enough\n").unwrap();
        let far = sys::now_ns() + 3_600_000_000_000;
        phases.end_window(far).unwrap();
        assert!(phases.has_enough());
    }

    #[test]
    fn a_wait_ends_when_the_input_closes() {
        let (reader, writer) = std::io::pipe().unwrap();
        let mut phases = Phases::new(reader, Vec::new()).unwrap();
        drop(writer);
        let far = sys::now_ns() + 3_600_000_000_000;
        assert!(matches!(
            phases.begin_window(far),
            Err(NativeError::AgentGone)
        ));
    }
}
