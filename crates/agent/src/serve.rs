//! The conversation with the runner: one JSON message a line, both ways.
//!
//! A thread of its own reads the input, so that its end is noticed in the middle of
//! a trial: then the runner is gone, the workload is stopped, and all is undone.

use crate::arm::policy::foreseen_warnings;
use crate::calibrate::calibrate;
use crate::context::Context;
use crate::error::AgentError;
use crate::guard::{GuardKeeper, PATIENCE};
use crate::interrupt::Interrupt;
use crate::journal::Journal;
use crate::roles::stack::FOLDERS;
use crate::stage::LeftStage;
use crate::state::StateLock;
use crate::{check, files, processes, trial, turns};
use doors::read::lines_within;
use model::{Build, PROTOCOL_VERSION, Reply, Request, Side, TrialSpec};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::collections::VecDeque;
use std::io::{BufRead, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Options of an agent.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directory of the journal.
    pub state_dir: PathBuf,
    /// Directory above /proc and /sys.
    pub root: PathBuf,
    /// The schedlab binary, for the guard and the native generators.
    pub executable: PathBuf,
    /// A guard outlives the agent and undoes what it leaves.
    pub guard: bool,
    /// Version and commit that the agent greets the runner with.
    pub build: Build,
}

impl Options {
    /// The options of `schedlab agent`.
    pub fn of_this_process() -> Result<Self, AgentError> {
        Ok(Options {
            state_dir: crate::state::state_dir()?,
            root: "/".into(),
            // Also right after the file was replaced by a newer one.
            executable: "/proc/self/exe".into(),
            guard: true,
            build: Build::default(),
        })
    }
}

/// Time that the last replies may wait for a runner that does not read, or is stopped.
const FAREWELL: Duration = Duration::from_secs(5);
/// Until what an earlier trial left is undone.
const CLEANING: Duration = Duration::from_secs(60);

/// Serve one runner until it says goodbye or its end of the stream is gone.
pub fn serve(
    input: impl BufRead + Send + 'static,
    output: impl Write + Send + 'static,
    options: Options,
) -> Result<(), AgentError> {
    let mut agent = Agent::start(options)?;
    let (sender, incoming) = channel();
    // These threads end with the process: the input may never end, and nobody may read
    // the output. A runner that was stopped (Ctrl-Z) must not keep an arm in force.
    start_thread("agent-signals", {
        let (sender, interrupt) = (sender.clone(), agent.interrupt.clone());
        let signals = signals()?;
        move || read_signals(&signals, &sender, &interrupt)
    })?;
    let (replies, waiting) = channel();
    let (said_all, all_said) = channel();
    start_thread("agent-output", {
        let (sender, interrupt) = (sender.clone(), agent.interrupt.clone());
        move || {
            if write_replies(output, &waiting).is_err() {
                interrupt.raise();
                let _ = sender.send(Incoming::OutputEnded);
            }
            let _ = said_all.send(());
        }
    })?;
    let interrupt = agent.interrupt.clone();
    start_thread("agent-input", move || {
        read_requests(input, &sender, &interrupt)
    })?;
    agent.answer_all(&mut Inbox::new(incoming), &replies);
    drop(agent);
    drop(replies);
    match all_said.recv_timeout(FAREWELL) {
        Err(RecvTimeoutError::Timeout) => tracing::warn!("the runner did not take all replies"),
        Ok(()) | Err(RecvTimeoutError::Disconnected) => {}
    }
    Ok(())
}

fn write_replies(mut output: impl Write, replies: &Receiver<Reply>) -> std::io::Result<()> {
    for reply in replies {
        let mut line = serde_json::to_string(&reply)?;
        line.push('\n');
        output.write_all(line.as_bytes())?;
        output.flush()?;
    }
    Ok(())
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
    OutputEnded,
}

/// The most of a request: the longest is a trial, with all that its programs are given.
const MOST_LINE_BYTES: u64 = 64 << 20;

fn read_requests(input: impl BufRead, incoming: &Sender<Incoming>, interrupt: &Interrupt) {
    for line in lines_within(input, MOST_LINE_BYTES).map_while(Result::ok) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let request = match serde_json::from_slice(&line) {
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

/// All that comes from outside, in its order.
struct Inbox {
    incoming: Receiver<Incoming>,
    /// Came while a trial ran, and is not part of it.
    later: VecDeque<Incoming>,
}

impl Inbox {
    fn new(incoming: Receiver<Incoming>) -> Self {
        Inbox {
            incoming,
            later: VecDeque::new(),
        }
    }

    fn next(&mut self) -> Option<Incoming> {
        let later = self.later.pop_front();
        later.or_else(|| self.incoming.recv().ok())
    }

    /// A request for the trial under way. Whatever else comes ends the wait, for it ends the
    /// trial, and is answered after it.
    fn within_trial(&mut self, wait: Duration) -> Option<Request> {
        match self.incoming.recv_timeout(wait).ok()? {
            Incoming::Request(
                request @ (Request::Window { .. } | Request::LoadEnded | Request::Enough),
            ) => Some(request),
            other => {
                self.later.push_back(other);
                None
            }
        }
    }
}

/// Fields are dropped in this order: the lock is free before the guard is let go.
struct Agent {
    /// The name of this agent and no other; the marks of its trials begin with it.
    name: String,
    /// Trials and calibrations so far.
    count: u64,
    journal: Journal,
    /// `None` only while another takes its place.
    lock: Option<StateLock>,
    guard: GuardKeeper,
    interrupt: Interrupt,
    options: Options,
    /// Processes that the last trial left for the next.
    stage: Option<LeftStage>,
    /// Takes connections for a try, until the next request.
    tried: Option<TcpListener>,
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
        // What the journal of an earlier boot named.
        let folders = files::remove_folder(&directory.join(FOLDERS));
        folders.unwrap_or_else(|error| tracing::warn!(error));
        let name = new_name();
        let mut guard = GuardKeeper::new(&options, &name);
        guard.ensure_guard(&journal)?;
        let own = Path::new("agent");
        let interrupt = Interrupt::new().map_err(|e| AgentError::io("set up", own, e))?;
        // Orphans of a workload come to us, so that they can be found and reaped.
        rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(
            std::process::id() as i32
        ))
        .map_err(|e| AgentError::io("set up", own, e.into()))?;
        Ok(Agent {
            name,
            count: 0,
            journal,
            lock: Some(lock),
            guard,
            interrupt,
            options,
            stage: None,
            tried: None,
        })
    }

    fn answer_all(&mut self, inbox: &mut Inbox, replies: &Sender<Reply>) {
        // Nobody listens any more: the process is about to end.
        let mut say = |reply| drop(replies.send(reply));
        while let Some(incoming) = inbox.next() {
            let goes_on = match incoming {
                Incoming::Request(request) => self.answer(request, inbox, &mut say),
                Incoming::Garbled(why) => {
                    say(Reply::Refused { why });
                    true
                }
                Incoming::Signal | Incoming::InputEnded | Incoming::OutputEnded => false,
            };
            if !goes_on {
                break;
            }
        }
    }

    /// `false` after the last request.
    fn answer(&mut self, request: Request, inbox: &mut Inbox, say: &mut dyn FnMut(Reply)) -> bool {
        let goodbye = matches!(request, Request::Bye);
        self.tried = None;
        let reply = match request {
            Request::Hello { protocol } => self.hello(protocol),
            Request::Probe { experiment } => {
                let programs = match experiment {
                    Some(experiment) => load::programs_of(&experiment),
                    None => load::all_programs(),
                };
                let system = collect::system::probe_system(&self.options.root, &programs);
                Reply::System {
                    system: Box::new(system),
                }
            }
            Request::Check { experiment, side } => Reply::Checked {
                problems: check::check(&self.options.root, &experiment, side),
                foreseen: match side {
                    Side::Controller => Vec::new(),
                    Side::Target | Side::Both => foreseen_warnings(&self.options.root, &experiment),
                },
            },
            Request::Calibrate {
                workload,
                load,
                known,
            } => self.on_a_clean_machine(inbox, say, |context| {
                let calibration = calibrate(context, &workload, load, &known)?;
                Ok(match calibration {
                    Ok(calibration) => Reply::Calibrated { calibration },
                    Err(why) => Reply::Refused { why },
                })
            }),
            Request::Trial { spec } => self.trial(&spec, inbox, say),
            // Its trial has ended, and with it what this was about.
            Request::Window { .. } | Request::LoadEnded | Request::Enough => return true,
            Request::Listen { address, port } => self.listen((address, port).into()),
            Request::Bye => Reply::Bye,
        };
        say(reply);
        !goodbye
    }

    /// The kernel takes connections for whoever listens, so nobody needs to accept them.
    fn listen(&mut self, address: SocketAddr) -> Reply {
        let listener = TcpListener::bind(address);
        match listener.and_then(|listener| Ok((listener.local_addr()?.port(), listener))) {
            Ok((port, listener)) => {
                self.tried = Some(listener);
                Reply::Listens { port }
            }
            Err(error) => Reply::Refused {
                why: error.to_string(),
            },
        }
    }

    fn hello(&self, protocol: u32) -> Reply {
        if protocol == PROTOCOL_VERSION {
            return Reply::Hello {
                protocol: PROTOCOL_VERSION,
                build: self.options.build.clone(),
            };
        }
        Reply::Refused {
            why: format!(
                "the runner speaks protocol {protocol}, the agent {PROTOCOL_VERSION}; use the same \
                 schedlab on both sides"
            ),
        }
    }

    /// A trial, on what the last one left if it left something.
    fn trial(&mut self, spec: &TrialSpec, inbox: &mut Inbox, say: &mut dyn FnMut(Reply)) -> Reply {
        if let Err(error) = self.look_after_undoing() {
            return unrestored(error);
        }
        let spec = turns::resolve_arms(spec);
        let mut left = None;
        let mut measure = |context: &mut Context, stage: Option<LeftStage>| {
            let (results, stage) = trial::run(context, &spec, stage)?;
            left = stage;
            Ok(Reply::Trial { results })
        };
        let reply = match self.stage.take() {
            Some(stage) => {
                let mut hear = |wait| inbox.within_trial(wait);
                let context = &mut self.context(say, &mut hear);
                measure(context, Some(stage)).unwrap_or_else(unrestored)
            }
            None => self.on_a_clean_machine(inbox, say, |context| measure(context, None)),
        };
        self.stage = left;
        reply
    }

    /// Nothing is measured while something of an earlier trial is in force.
    fn on_a_clean_machine(
        &mut self,
        inbox: &mut Inbox,
        say: &mut dyn FnMut(Reply),
        measure: impl FnOnce(&mut Context) -> Result<Reply, AgentError>,
    ) -> Reply {
        // Its processes are remains like others.
        self.stage = None;
        let mut hear = |wait| inbox.within_trial(wait);
        let looked = self.look_after_undoing();
        let cleaned = looked.and_then(|()| self.clean(say));
        let cleaned = cleaned.and_then(|failed| match failed.as_slice() {
            [] => measure(&mut self.context(say, &mut hear)),
            _ => Ok(Reply::Unrestored { failed }),
        });
        cleaned.unwrap_or_else(unrestored)
    }

    /// Nothing is put in force that nobody would undo: there are a journal that others find, and a
    /// guard.
    fn look_after_undoing(&mut self) -> Result<(), AgentError> {
        if self.journal.length()? == 0 && !self.journal.has_its_name()? {
            let directory = &self.options.state_dir;
            self.lock = None;
            self.lock = Some(StateLock::acquire(directory, PATIENCE)?);
            self.journal = Journal::open(directory)?;
            self.guard.warn(
                format!("the journal in {} was removed", directory.display()),
                "Leave the state directory alone while schedlab runs.",
            );
        }
        self.guard.ensure_guard(&self.journal)
    }

    /// Remains of an earlier trial that cannot be undone or ended.
    fn clean(&mut self, say: &mut dyn FnMut(Reply)) -> Result<Vec<String>, AgentError> {
        let keep = self.guard.processes();
        let strays = || processes::descendants(&keep);
        let mut failed = Vec::new();
        if self.journal.length()? > 0 || !strays().is_empty() {
            let mut hear = |_| None;
            let mut context = self.context(say, &mut hear);
            context.progress("undoing what an earlier trial left", CLEANING);
            failed.extend(self.journal.replay()?.failed);
            if failed.is_empty() {
                failed.extend(processes::kill_until_gone(strays).err());
            }
        }
        Ok(failed)
    }

    fn context<'a>(
        &'a mut self,
        say: &'a mut dyn FnMut(Reply),
        hear: &'a mut dyn FnMut(Duration) -> Option<Request>,
    ) -> Context<'a> {
        self.count += 1;
        Context {
            root: &self.options.root,
            executable: &self.options.executable,
            journal: &mut self.journal,
            interrupt: &self.interrupt,
            folders: self.options.state_dir.join(FOLDERS),
            mark: format!("{}-{}", self.name, self.count),
            guard: &mut self.guard,
            say,
            hear,
        }
    }
}

/// The journal cannot be read or written: what is not in it is not done.
fn unrestored(error: AgentError) -> Reply {
    Reply::Unrestored {
        failed: vec![error.to_string()],
    }
}

/// The process id alone is used again by later processes.
fn new_name() -> String {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_ns = since_epoch.map_or(0, |time| time.as_nanos());
    format!("{}-{now_ns}", std::process::id())
}
