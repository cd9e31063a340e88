//! One trial: what its agents send until it ends, and how it ends.

use crate::RunError;
use crate::connection::{Connection, LOOK, Patience, of_lost_agent, out_of_turn};
use crate::death::OpenWindow;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use machines::TargetError;
use model::printable::last_lines;
use model::{Evidence, KeptPiece, Pace, Reply, Request, SoFar, TrialResult, TrialSpec, TrialState};
use results::TrialFiles;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// End of a trial, seen from here.
pub(crate) enum TrialEnd {
    Result {
        result: Box<TrialResult>,
        /// Results of all arms, where they took turns and the trial counts; `result` is the first.
        arms: Vec<TrialResult>,
        files: TrialFiles,
    },
    /// The agent is silent or gone; the connection is of no more use.
    Lost {
        why: String,
        files: TrialFiles,
        /// The window that was open, where deaths within it are counted.
        window: Option<OpenWindow>,
    },
    Interrupted,
}

/// Reason why an agent's part of a trial ended without its result.
pub(crate) enum Cut {
    Interrupted,
    /// Its connection is of no more use.
    Lost(String),
    /// It did not take the trial, and is there for another.
    Refused(String),
    Error(RunError),
}

impl From<RunError> for Cut {
    fn from(error: RunError) -> Self {
        Cut::Error(error)
    }
}

impl From<TargetError> for Cut {
    /// An agent or a machine that died voids the trial and is no error of the run.
    fn from(error: TargetError) -> Self {
        match of_lost_agent(error) {
            Ok(why) => Cut::Lost(why),
            Err(error) => Cut::Error(error),
        }
    }
}

pub(crate) type Ended = Result<Box<TrialResult>, Cut>;

/// Words of an agent on the way, for those who watch.
pub(crate) enum News<'a> {
    Step(&'a str),
    Pace(&'a Pace),
    /// Windows that are known while arms take turns.
    SoFar(&'a [SoFar]),
}

/// A trial under way, and what its agents have sent so far.
pub(crate) struct UnderWay<'a> {
    interrupted: &'a AtomicBool,
    /// True is the answer to windows so far that are enough.
    on_news: &'a mut dyn FnMut(News) -> bool,
    files: TrialFiles,
    /// Results of arms that took turns.
    arms: Vec<TrialResult>,
    began: (Instant, SystemTime),
    pub window: Option<OpenWindow>,
}

impl<'a> UnderWay<'a> {
    pub fn new(interrupted: &'a AtomicBool, on_news: &'a mut dyn FnMut(News) -> bool) -> Self {
        UnderWay {
            interrupted,
            on_news,
            files: TrialFiles::default(),
            arms: Vec::new(),
            began: (Instant::now(), SystemTime::now()),
            window: None,
        }
    }

    /// The trial as one agent does it alone.
    pub fn run_whole(&mut self, agent: &mut Connection, spec: TrialSpec) -> Ended {
        agent.send_request(&make_request(spec))?;
        self.receive_result(agent)
    }

    /// The end of the trial with the files that have arrived.
    pub fn finish_trial(self, ended: Ended) -> Result<TrialEnd, RunError> {
        let (files, began, window) = (self.files, self.began, self.window);
        match ended.map(|result| with_words_of_services(result, &files)) {
            Ok(result) => Ok(TrialEnd::Result {
                result,
                arms: self.arms,
                files,
            }),
            Err(Cut::Interrupted) => Ok(TrialEnd::Interrupted),
            Err(Cut::Refused(why)) => Ok(TrialEnd::Result {
                result: Box::new(void_result(why, began)),
                arms: Vec::new(),
                files,
            }),
            Err(Cut::Lost(why)) => Ok(TrialEnd::Lost { why, files, window }),
            Err(Cut::Error(error)) => Err(error),
        }
    }

    /// The result that an agent sends next.
    pub fn receive_result(&mut self, from: &mut Connection) -> Ended {
        match self.receive_reply(from, &mut Patience::starting_at(Instant::now()))? {
            Reply::Trial { results } if results.len() > 1 => {
                let first = Box::new(results[0].clone());
                self.arms = results;
                Ok(first)
            }
            Reply::Trial { results } => only_result(results),
            other => Err(out_of_turn(&other).into()),
        }
    }

    /// The next reply that is not the same in every part of a trial.
    pub fn receive_reply(
        &mut self,
        from: &mut Connection,
        patience: &mut Patience,
    ) -> Result<Reply, Cut> {
        loop {
            if let Some(reply) = self.poll_reply(from, LOOK, patience)? {
                return Ok(reply);
            }
        }
    }

    /// That reply, if it comes in time. An agent that is silent for too long loses the trial.
    pub fn poll_reply(
        &mut self,
        from: &mut Connection,
        wait: Duration,
        patience: &mut Patience,
    ) -> Result<Option<Reply>, Cut> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(Cut::Interrupted);
        }
        match from.receive_reply(wait)? {
            Some(Reply::File { file }) => self.files.texts.push(file),
            Some(Reply::Kept { piece }) => self.keep(piece)?,
            Some(Reply::Progress { step, limit_ns }) => {
                patience.extend_limit(Instant::now(), &step, limit_ns);
                (self.on_news)(News::Step(&step));
            }
            Some(Reply::Pace { pace }) => {
                (self.on_news)(News::Pace(&pace));
            }
            Some(Reply::SoFar { arms }) => {
                if (self.on_news)(News::SoFar(&arms)) {
                    from.send_request(&Request::Enough)?;
                }
            }
            Some(Reply::Refused { why }) => return Err(Cut::Refused(why)),
            Some(Reply::Unrestored { failed }) => return Err(RunError::Unrestored(failed).into()),
            Some(Reply::InWindow { opened }) => {
                self.window = opened.map(|opened| OpenWindow::new(*opened));
            }
            None if patience.is_over(Instant::now()) => {
                if let Some(window) = &mut self.window {
                    window.is_silent = true;
                }
                return Err(Cut::Lost(patience.in_words()));
            }
            reply => return Ok(reply),
        }
        Ok(None)
    }

    /// Adds a piece to its file.
    fn keep(&mut self, piece: KeptPiece) -> Result<(), RunError> {
        let bytes = BASE64_STANDARD.decode(&piece.base64);
        let bytes = bytes.map_err(|_| RunError::OutOfTurn(format!("{}, no base64", piece.path)))?;
        let kept = &mut self.files.kept;
        kept.entry(piece.path).or_default().extend(bytes);
        Ok(())
    }
}

/// The result of a trial that one arm had for itself.
pub(crate) fn only_result(mut results: Vec<TrialResult>) -> Ended {
    match results.pop().filter(|_| results.is_empty()) {
        Some(result) => Ok(Box::new(result)),
        None => Err(RunError::OutOfTurn("no result of one trial".to_owned()).into()),
    }
}

/// Lines of a log that stand behind the reason of a failed trial.
const LOG_LINES: usize = 6;

/// Characters of one of these lines, and of a line of the kernel.
const LINE_CHARS: usize = 300;
/// Length of a line that may be in any text by chance.
const FEW_BYTES: usize = 8;

fn shortened(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS) {
        Some((end, _)) => format!("{} …", &line[..end]),
        None => line.to_owned(),
    }
}

/// The result of a trial that failed, with the last lines of its services. What a load says of
/// them, that none of its requests was answered rightly, has its reason there.
fn with_words_of_services(mut result: Box<TrialResult>, files: &TrialFiles) -> Box<TrialResult> {
    if let TrialState::Failed { why } = &mut result.state {
        for file in files
            .texts
            .iter()
            .filter(|file| is_log_of_service(&file.name))
        {
            // A service that ended has said a part of it.
            let lines = last_lines(&file.text, LOG_LINES, "\n");
            let is_said = |line: &str| line.trim().len() > FEW_BYTES && why.contains(line.trim());
            let lines = lines.lines().filter(|line| !is_said(line));
            let lines: Vec<String> = lines.map(shortened).collect();
            if !lines.is_empty() {
                let name = &file.name;
                let text = format!("\nlast lines of {name}:\n{}", lines.join("\n"));
                why.push_str(&text);
            }
        }
    }
    result
}

/// Words of the kernel where it is the limit of a cgroup that was reached.
const OF_CGROUP: &str = "Memory cgroup out of memory";
/// Words of the kernel when it kills a process for want of memory.
const OUT_OF_MEMORY: &str = "ut of memory: Killed process";

/// Addition to the reason of a failed trial, that its machine ran out of memory, where the console says
/// so: of a program that was killed for that, nothing else tells.
pub(crate) fn add_out_of_memory(state: &mut TrialState, console: &str) {
    let killed = console.lines().rfind(|line| line.contains(OUT_OF_MEMORY));
    if let (TrialState::Failed { why }, Some(line)) = (state, killed) {
        // Printed by the kernel, and so with a time before it.
        let line = line.rsplit_once("] ").map_or(line, |(_, words)| words);
        let what = match line.contains(OF_CGROUP) {
            true => "a memory limit of a cgroup was reached",
            false => "the machine has too little memory",
        };
        why.push_str(&format!("\n{what}; its kernel says:\n{}", shortened(line)));
    }
}

/// Addition to the reason of a failed trial, that a guest does not see the files of this machine which
/// the reason names. It is in the first line, which is what reports show.
pub(crate) fn add_hidden(state: &mut TrialState, hidden: impl Fn(&str) -> Vec<PathBuf>) {
    const MOST: usize = 3;
    if let TrialState::Failed { why } = state {
        let hidden = hidden(why);
        let names = hidden.iter().take(MOST).map(|path| format!("{path:?}"));
        let names = names.collect::<Vec<_>>().join(", ");
        if !names.is_empty() {
            let end = why.find('\n').unwrap_or(why.len());
            let what = format!(" (hidden from the guest: show it by expose = [{names}])");
            why.insert_str(end, &what);
        }
    }
}

/// True for the names that the agent gives to logs of services and of the server.
fn is_log_of_service(name: &str) -> bool {
    name == "server.log" || (name.starts_with("service-") && name.ends_with(".log"))
}

pub(crate) fn make_request(spec: TrialSpec) -> Request {
    Request::Trial {
        spec: Box::new(spec),
    }
}

/// Tells the times of a trial by this machine's clock. The target's may be another, and that of a
/// guest which goes on from a snapshot stands at the time when it was saved.
pub fn by_our_clock(result: &mut TrialResult, arms: &mut [TrialResult], began: SystemTime) {
    let theirs = result.started_unix_ns;
    let ours = began.duration_since(SystemTime::UNIX_EPOCH);
    let ours = ours.map_or(theirs, model::whole_nanos);
    for one in std::iter::once(result).chain(arms) {
        let after = one.started_unix_ns.saturating_sub(theirs);
        one.started_unix_ns = ours.saturating_add(after);
    }
}

/// Record of a trial whose agent or machine died.
pub fn void_result(why: String, (started, at): (Instant, SystemTime)) -> TrialResult {
    let unix = at.duration_since(SystemTime::UNIX_EPOCH);
    TrialResult {
        state: TrialState::Void { why },
        started_unix_ns: unix.map(model::whole_nanos).unwrap_or(0),
        elapsed_ns: model::whole_nanos(started.elapsed()),
        window_start_ns: 0,
        window_end_ns: 0,
        evidence: Evidence::default(),
        metrics: Vec::new(),
        warnings: Vec::new(),
        for_good: false,
        trace: None,
        windows: None,
        events: Vec::new(),
        rail: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::TrialFile;
    use std::time::Duration;

    fn said(state: TrialState) -> TrialState {
        let text = |name: &str, text: &str| TrialFile {
            name: name.to_owned(),
            text: text.to_owned(),
        };
        let files = TrialFiles {
            texts: vec![
                text(
                    "service-app.log",
                    "one\ntwo\n\n3\n4\n5\n6\nno ink left\nlast\n",
                ),
                text("service-quiet.log", "\n"),
                text("server.log", "served\n"),
                text("console.log", "of the guest\n"),
            ],
            ..TrialFiles::default()
        };
        let began = (Instant::now(), SystemTime::UNIX_EPOCH);
        let mut result = void_result(String::new(), began);
        result.state = state;
        with_words_of_services(Box::new(result), &files).state
    }

    #[test]
    fn a_hidden_file_is_told_in_the_first_line_of_a_reason() {
        let failed = |why: &str| TrialState::Failed {
            why: why.to_owned(),
        };
        let mut state = failed("cat: /x: No such file\nmore");
        add_hidden(&mut state, |_| Vec::new());
        assert_eq!(state, failed("cat: /x: No such file\nmore"));
        add_hidden(&mut state, |_| vec!["/x".into()]);
        let said =
            "cat: /x: No such file (hidden from the guest: show it by expose = [\"/x\"])\nmore";
        assert_eq!(state, failed(said));
    }

    #[test]
    fn a_failed_trial_has_the_last_lines_of_its_services_and_no_line_twice() {
        let why = "service-app ended: no ink left".to_owned();
        let expected = "service-app ended: no ink left\nlast lines of service-app.log:\n\
                        3\n4\n5\n6\nlast\nlast lines of server.log:\nserved";
        match said(TrialState::Failed { why }) {
            TrialState::Failed { why } => assert_eq!(why, expected),
            other => panic!("{other:?}"),
        }
        assert_eq!(said(TrialState::Ok), TrialState::Ok);
        let why = "the generator was late".to_owned();
        let void = TrialState::Void { why };
        assert_eq!(said(void.clone()), void);
    }

    #[test]
    fn a_long_line_is_cut_at_a_character() {
        assert_eq!(shortened("ä"), "ä");
        let cut = shortened(&"ä".repeat(LINE_CHARS + 1));
        assert_eq!(cut.chars().count(), LINE_CHARS + 2);
        assert!(cut.ends_with("ä …"), "{cut}");
    }

    #[test]
    fn a_machine_without_memory_is_told_of_where_the_console_says_so() {
        let console = "[    4.0] python3 invoked oom-killer: order=0\n\
                       [    4.1] Out of memory: Killed process 107 (python3) total-vm:303560kB\n\
                       [    5.0] more\n";
        let said = |why: &str, console: &str| {
            let mut state = TrialState::Failed {
                why: why.to_owned(),
            };
            add_out_of_memory(&mut state, console);
            state.why().unwrap().to_owned()
        };
        assert_eq!(
            said("it ended (signal 9)", console),
            "it ended (signal 9)\nthe machine has too little memory; its kernel says:\n\
             Out of memory: Killed process 107 (python3) total-vm:303560kB"
        );
        assert_eq!(said("it ended", "[    4.0] all is well\n"), "it ended");
        let of_cgroup = "[    4.1] Memory cgroup out of memory: Killed process 107 (python3)\n";
        let why = said("it ended", of_cgroup);
        assert!(
            why.contains("a memory limit of a cgroup was reached"),
            "{why}"
        );
    }

    #[test]
    fn times_of_a_guest_whose_clock_stands_are_those_of_this_machine() {
        let at = |started_ns| {
            let started = SystemTime::UNIX_EPOCH + Duration::from_nanos(started_ns);
            void_result(String::new(), (Instant::now(), started))
        };
        let (mut whole, mut arms) = (at(70), [at(70), at(75)]);
        let began = SystemTime::UNIX_EPOCH + Duration::from_nanos(1_000);
        by_our_clock(&mut whole, &mut arms, began);
        assert_eq!(whole.started_unix_ns, 1_000);
        assert_eq!(arms.map(|arm| arm.started_unix_ns), [1_000, 1_005]);
    }
}
