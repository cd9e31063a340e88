//! The conversation with the runner: one JSON message a line, both ways.
//!
//! A thread of its own reads the input, so that its end is noticed in the middle of
//! a trial: then the runner is gone, the workload is stopped, and all is undone.

use crate::guard::{Guard, PATIENCE};
use crate::interrupt::Interrupt;
use crate::journal::Journal;
use crate::state::StateLock;
use crate::trial::{self, Context};
use crate::{AgentError, check};
use load::{Driver, Job};
use model::{Calibration, Kind, Load, PROTOCOL_VERSION, Reply, Request, Workload};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{BufRead, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

/// How an agent runs. The defaults are right for `schedlab agent`.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directory of the journal.
    pub state_dir: PathBuf,
    /// Where /proc and /sys are.
    pub root: PathBuf,
    /// The schedlab binary, for the guard and the native generators.
    pub executable: PathBuf,
    /// A guard outlives the agent and undoes what it leaves.
    pub guard: bool,
    pub version: String,
    /// Where the driver of a workload comes from; tests bring their own.
    pub drivers: fn(&Kind) -> Box<dyn Driver>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            state_dir: crate::state_dir(),
            root: "/".into(),
            // Also right after the file was replaced by a newer one.
            executable: "/proc/self/exe".into(),
            guard: true,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            drivers: load::driver,
        }
    }
}

/// Serve one runner until it says goodbye or its end of the stream is gone.
pub fn serve(
    input: impl BufRead + Send + 'static,
    output: impl Write,
    options: Options,
) -> Result<(), AgentError> {
    let mut agent = Agent::start(options)?;
    let (sender, incoming) = channel();
    // These threads end with the process: the input may never end.
    start_thread("agent-signals", {
        let (sender, interrupt) = (sender.clone(), agent.interrupt.clone());
        let signals = signals()?;
        move || read_signals(&signals, &sender, &interrupt)
    })?;
    let interrupt = agent.interrupt.clone();
    start_thread("agent-input", move || {
        read_requests(input, &sender, &interrupt)
    })?;
    agent.answer_all(&incoming, output)
}

fn start_thread(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), AgentError> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(run)
        .map(drop)
        .map_err(|e| AgentError::io("start the thread", Path::new(name), e))
}

enum Incoming {
    Request(Request),
    /// A line that is no message is answered, not ignored.
    Garbled(String),
    Signal,
    InputEnded,
}

fn read_requests(input: impl BufRead, incoming: &Sender<Incoming>, interrupt: &Interrupt) {
    for line in input.lines().map_while(Result::ok) {
        if line.trim().is_empty() {
            continue;
        }
        let request = match serde_json::from_str(&line) {
            Ok(request) => Incoming::Request(request),
            Err(error) => Incoming::Garbled(format!("not a message: {error}")),
        };
        if matches!(request, Incoming::Request(Request::Bye)) {
            interrupt.raise();
        }
        // Nobody listens any more: the process is about to end.
        let _ = incoming.send(request);
    }
    interrupt.raise();
    let _ = incoming.send(Incoming::InputEnded);
}

/// A pipe that SIGINT, SIGTERM and SIGHUP write to.
fn signals() -> Result<OwnedFd, AgentError> {
    let register = || -> std::io::Result<OwnedFd> {
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
        }
        Ok(read)
    };
    register().map_err(|e| AgentError::io("set up", Path::new("signals"), e))
}

fn read_signals(signals: &OwnedFd, incoming: &Sender<Incoming>, interrupt: &Interrupt) {
    let mut byte = [0u8];
    let read = rustix::io::retry_on_intr(|| rustix::io::read(signals, &mut byte));
    if matches!(read, Ok(1)) {
        interrupt.raise();
        let _ = incoming.send(Incoming::Signal);
    }
}

/// Fields are dropped in this order: the lock is free before the guard is let go.
struct Agent {
    journal: Journal,
    _lock: StateLock,
    guard: Option<Guard>,
    interrupt: Interrupt,
    options: Options,
}

impl Agent {
    /// Undoes first what an earlier agent left.
    fn start(options: Options) -> Result<Self, AgentError> {
        let directory = &options.state_dir;
        let lock = StateLock::acquire(directory, PATIENCE)?;
        let mut journal = Journal::open(directory)?;
        let restored = journal.replay()?;
        if !restored.is_nothing() {
            tracing::warn!(?restored, "undid what an earlier run left");
        }
        let guard = match options.guard {
            true => Some(Guard::start(&options.executable, directory)?),
            false => None,
        };
        let own = Path::new("agent");
        let interrupt = Interrupt::new().map_err(|e| AgentError::io("set up", own, e))?;
        // Orphans of a workload come to us, so that they can be found and reaped.
        rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(
            std::process::id() as i32
        ))
        .map_err(|e| AgentError::io("set up", own, e.into()))?;
        Ok(Agent {
            journal,
            _lock: lock,
            guard,
            interrupt,
            options,
        })
    }

    fn answer_all(
        &mut self,
        incoming: &Receiver<Incoming>,
        mut output: impl Write,
    ) -> Result<(), AgentError> {
        for incoming in incoming {
            let mut broken = None;
            let mut say = |reply: Reply| {
                if broken.is_none() {
                    broken = send(&mut output, &reply).err();
                }
            };
            let goes_on = match incoming {
                Incoming::Request(request) => self.answer(request, &mut say),
                Incoming::Garbled(why) => {
                    say(Reply::Refused { why });
                    true
                }
                Incoming::Signal | Incoming::InputEnded => false,
            };
            if let Some(error) = broken {
                return Err(AgentError::io("write to", Path::new("the runner"), error));
            }
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// `false` after the last request.
    fn answer(&mut self, request: Request, say: &mut dyn FnMut(Reply)) -> bool {
        let goodbye = matches!(request, Request::Bye);
        let reply = match request {
            Request::Hello { protocol } => self.hello(protocol),
            Request::Probe => Reply::System {
                system: Box::new(collect::system::probe(&self.options.root)),
            },
            Request::Check { experiment } => Reply::Checked {
                problems: check::check(&self.options.root, &experiment, self.options.drivers),
            },
            Request::Calibrate { workload, load } => self.calibrate(&workload, load),
            Request::Trial { spec } => Reply::Trial {
                result: Box::new(trial::run(&mut self.context(say), &spec)),
            },
            Request::Bye => Reply::Bye,
        };
        say(reply);
        !goodbye
    }

    fn hello(&self, protocol: u32) -> Reply {
        if protocol == PROTOCOL_VERSION {
            return Reply::Hello {
                protocol: PROTOCOL_VERSION,
                version: self.options.version.clone(),
            };
        }
        Reply::Refused {
            why: format!(
                "the runner speaks protocol {protocol}, the agent {PROTOCOL_VERSION}; use the same \
                 schedlab on both sides"
            ),
        }
    }

    fn calibrate(&self, workload: &Workload, load: Load) -> Reply {
        let job = Job {
            workload,
            load,
            calibration: &Calibration::default(),
            cpus: collect::system::usable_cpus(),
            seed: 0,
            handicap_percent: 0.0,
            server: None,
        };
        match (self.options.drivers)(&workload.kind).calibrate(&job) {
            Ok(calibration) => Reply::Calibrated { calibration },
            Err(why) => Reply::Refused { why },
        }
    }

    fn context<'a>(&'a mut self, say: &'a mut dyn FnMut(Reply)) -> Context<'a> {
        Context {
            root: &self.options.root,
            executable: &self.options.executable,
            journal: &mut self.journal,
            interrupt: &self.interrupt,
            drivers: self.options.drivers,
            keep: self.guard.iter().map(Guard::pid).collect(),
            say,
        }
    }
}

fn send(output: &mut impl Write, reply: &Reply) -> std::io::Result<()> {
    let mut line = serde_json::to_string(reply)?;
    line.push('\n');
    output.write_all(line.as_bytes())?;
    output.flush()
}
