//! `schedlab load`: the process of a native generator, and its side of the
//! [`phase`](crate::phase) lines.
//!
//! A thread waits on standard input for the whole life of the process. It never
//! wakes up by itself; when the input ends, the agent is gone, and so is the load.

use crate::{Job, Launch, Output, Parsed, SELF, driver, phase, program, sys};
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum NativeError {
    #[error("read the job from standard input: {0}")]
    BadJob(String),
    #[error("standard input was closed: the agent is gone")]
    AgentGone,
    #[error("wait for `{expected}` on standard input: got {got:?}")]
    Unexpected { expected: &'static str, got: String },
    #[error("write to standard output: {0}")]
    Output(#[from] std::io::Error),
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
    program::succeeded(&what, output)?;
    let line = output
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix(phase::RESULT))
        .ok_or_else(|| program::garbage(&what, "a result line", output))?;
    serde_json::from_str(line).map_err(|e| format!("read the result of {what}: {e}"))
}

/// Runs one generator from its job line to its result line.
pub fn native_main(stdin: impl Read + Send + 'static, stdout: impl Write) -> Result<(), String> {
    run(stdin, stdout).map_err(|e| e.to_string())
}

fn run(stdin: impl Read + Send + 'static, stdout: impl Write) -> Result<(), NativeError> {
    let mut phases = Phases::new(stdin, stdout)?;
    let job = phases.next_line()?;
    let job: Job =
        serde_json::from_str(&job).map_err(|e| NativeError::BadJob(format!("{e}: {job:?}")))?;
    let driver = driver(&job.workload.kind).map_err(NativeError::BadJob)?;
    let parsed = driver.generate(&job, &mut phases)?;
    phases.result(&parsed)
}

#[derive(Debug)]
enum Input {
    Line(String),
    Closed,
}

/// What a generator says and waits for, in this order: [`Phases::ready`],
/// [`Phases::begin`], [`Phases::end`], [`Phases::seen`].
pub struct Phases<'a> {
    input: Receiver<Input>,
    output: Box<dyn Write + 'a>,
    seen: bool,
}

impl std::fmt::Debug for Phases<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Phases").finish_non_exhaustive()
    }
}

impl<'a> Phases<'a> {
    fn new(
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
        })
    }

    fn next_line(&self) -> Result<String, NativeError> {
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
    pub fn ready(&mut self) -> Result<(), NativeError> {
        self.say(phase::READY)?;
        let got = self.next_line()?;
        if got == phase::GO {
            return Ok(());
        }
        Err(NativeError::Unexpected {
            expected: phase::GO,
            got,
        })
    }

    /// Waits for the time at which the window opens, and says so.
    pub fn begin(&mut self, at_ns: u64) -> Result<(), NativeError> {
        self.wait_until(at_ns)?;
        self.say(phase::BEGIN)
    }

    /// Waits for the time at which the window closes, and says so.
    pub fn end(&mut self, at_ns: u64) -> Result<(), NativeError> {
        self.wait_until(at_ns)?;
        self.say(phase::END)
    }

    /// Waits until the agent has read what the threads used; they take it along when
    /// they end.
    pub fn seen(&mut self) -> Result<(), NativeError> {
        while !self.seen {
            self.seen = self.next_line()? == phase::SEEN;
        }
        Ok(())
    }

    /// Waits for a time while the agent is there.
    pub fn wait_until(&mut self, at_ns: u64) -> Result<(), NativeError> {
        loop {
            let left = at_ns.saturating_sub(sys::now_ns());
            match self.input.recv_timeout(Duration::from_nanos(left)) {
                Err(RecvTimeoutError::Timeout) if sys::now_ns() >= at_ns => return Ok(()),
                // A line that nobody asked for does not end a measurement.
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Input::Line(line)) => self.seen |= line == phase::SEEN,
                Ok(Input::Closed) | Err(RecvTimeoutError::Disconnected) => {
                    return Err(NativeError::AgentGone);
                }
            }
        }
    }

    fn result(&mut self, parsed: &Parsed) -> Result<(), NativeError> {
        let json =
            serde_json::to_string(parsed).map_err(|e| NativeError::Generator(e.to_string()))?;
        self.say(&format!("{}{json}", phase::RESULT))
    }
}

fn forward_lines(input: impl BufRead, sender: &Sender<Input>) {
    for line in input.lines().map_while(Result::ok) {
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

    fn run_with(input: &str) -> Result<(), NativeError> {
        run(std::io::Cursor::new(input.to_owned()), Vec::new())
    }

    #[test]
    fn input_that_ends_before_the_job_means_that_the_agent_is_gone() {
        assert!(matches!(run_with(""), Err(NativeError::AgentGone)));
    }

    #[test]
    fn a_job_that_is_not_json_is_quoted() {
        let error = run_with("make it so\n").unwrap_err().to_string();
        assert!(error.contains("make it so"), "{error}");
    }

    #[test]
    fn another_word_than_go_is_an_error() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut phases = Phases::new(reader, Vec::new()).unwrap();
        writer.write_all(b"gone\n").unwrap();
        let error = phases.ready().unwrap_err().to_string();
        assert!(error.contains("`go`") && error.contains("gone"), "{error}");
    }

    #[test]
    fn a_wait_ends_when_the_input_closes() {
        let (reader, writer) = std::io::pipe().unwrap();
        let mut phases = Phases::new(reader, Vec::new()).unwrap();
        drop(writer);
        let far = sys::now_ns() + 3_600_000_000_000;
        assert!(matches!(phases.begin(far), Err(NativeError::AgentGone)));
    }
}
