//! Recordings that perf(1) makes of all CPUs within the window: samples, or the scheduler's events. The file that perf
//! writes is kept as it is, for `perf report` and `perf sched`.

use super::def::{At, Collected, Collecting, CollectorDef, Lack, Start};
use crate::files::remove_folder;
use crate::interrupt::Interrupt;
use crate::journal::Undo;
use crate::kept_files::Kept;
use crate::process::{Event, Process};
use collect::tasks::Pid;
use doors::written;
use load::Launch;
use model::{Severity, Warning};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const PROGRAM: &str = "perf";
const FILE: &str = "perf.data";
/// perf opens an event on each CPU before it answers, and writes what it knows of all files at its end.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// Recording that perf is asked for.
#[derive(Debug)]
struct Recording {
    name: &'static str,
    arguments: &'static [&'static str],
}

const SAMPLES: Recording = Recording {
    name: "perf-record",
    // Not in step with what runs a hundred times a second.
    arguments: &["record", "-a", "-g", "-F", "99"],
};
const EVENTS: Recording = Recording {
    name: "perf-sched",
    arguments: &["sched", "record"],
};

pub const SAMPLES_DEF: CollectorDef = CollectorDef {
    name: SAMPLES.name,
    text: "what ran, with its callers, 99 times a second on each CPU: perf.data of `perf record` (on demand)",
    usual: false,
    metrics: &[],
    logs: &[],
    limit: ANSWER_LIMIT.saturating_mul(3),
    missing: |root, _| find_lack(root),
    start: |at| Some(Box::new(Recorder::start(&SAMPLES, at))),
};

pub const EVENTS_DEF: CollectorDef = CollectorDef {
    name: EVENTS.name,
    text: "switches, wake-ups and migrations of the whole machine: perf.data of `perf sched record` (on demand)",
    usual: false,
    metrics: &[],
    logs: &[],
    limit: ANSWER_LIMIT.saturating_mul(3),
    missing: |root, _| find_lack(root),
    start: |at| Some(Box::new(Recorder::start(&EVENTS, at))),
};

/// The lack that keeps perf from recording all CPUs here.
fn find_lack(root: &Path) -> Lack {
    let lack = |what: &str, remedy: &str| Some((what.to_owned(), remedy.to_owned()));
    if !rustix::process::geteuid().is_root() {
        return lack("it needs root", "run as root, or in a VM: --vm debian:sid");
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|dir| dir.join(PROGRAM).is_file());
    if !is_there {
        return lack(
            "perf is not installed",
            "install it: apt install linux-perf",
        );
    }
    match collect::sched_trace::find_obstacle(root) {
        Some(why) => lack(
            &format!("tracefs cannot be used: {why}"),
            "mount it: mount -t tracefs tracefs /sys/kernel/tracing; or use a VM: --vm debian:sid",
        ),
        None => None,
    }
}

/// perf, which records while it is told to.
#[derive(Debug)]
struct Recorder {
    recording: &'static Recording,
    folder: PathBuf,
    process: Option<Process>,
    /// Why there is no recording.
    failed: Option<String>,
}

impl Recorder {
    /// Starts perf with its events off.
    fn start(recording: &'static Recording, at: Start) -> Self {
        let mut recorder = Recorder {
            recording,
            folder: at.folders.join(format!("{}-{}", at.mark, recording.name)),
            process: None,
            failed: None,
        };
        if let Err(why) = recorder.begin(at) {
            recorder.give_up(why);
        }
        recorder
    }

    fn begin(&mut self, at: Start) -> Result<(), String> {
        let undo = Undo::RemoveFolder {
            path: self.folder.clone(),
        };
        at.journal.record(undo).map_err(|e| e.to_string())?;
        written::make_directory(&self.folder).map_err(|e| e.to_string())?;
        // Its cache of programs, below the home of root, stays as it is.
        let rest = [
            "--no-buildid-cache",
            "--control",
            "fd:0,1",
            "--delay",
            "-1",
            "--output",
            FILE,
        ];
        let words = [PROGRAM]
            .iter()
            .chain(self.recording.arguments)
            .chain(&rest);
        let launch = Launch {
            phased: true,
            directory: Some(self.folder.clone()),
            ..Launch::new(words.map(|word| (*word).to_owned()).collect())
        };
        let started = Process::start(&launch, at.origin, at.journal, |_| Ok(()));
        self.process = Some(started.map_err(|e| e.to_string())?);
        self.ask("ping", at.interrupt)
    }

    /// perf acknowledges each request by a line, which it ends with a NUL as well.
    fn ask(&mut self, request: &str, interrupt: &Interrupt) -> Result<(), String> {
        let process = self.process.as_mut().ok_or("it had ended")?;
        let sent = process.send(&format!("{request}\n"));
        sent.map_err(|e| format!("perf does not listen: {e}: {}", process.last_errors()))?;
        match process.wait(interrupt, Instant::now() + ANSWER_LIMIT) {
            Event::Line(line) if line.trim_matches('\0') == "ack" => Ok(()),
            Event::Line(line) => Err(format!("perf said {line:?} to {request}")),
            Event::Exited => Err(format!("perf ended: {}", process.last_errors())),
            Event::Interrupted => Err("interrupted".to_owned()),
            Event::Timeout => Err(format!("perf was silent for {} s", ANSWER_LIMIT.as_secs())),
        }
    }

    /// The window has closed: perf writes its file and ends.
    fn end(&mut self, interrupt: &Interrupt) -> Result<(), String> {
        self.ask("disable", interrupt)?;
        self.ask("stop", interrupt)?;
        let process = self.process.as_mut().ok_or("it had ended")?;
        let until = Instant::now() + ANSWER_LIMIT;
        while let Event::Line(_) = process.wait(interrupt, until) {}
        match process.exit_code() {
            Some(0) => Ok(()),
            _ => Err(format!(
                "perf did not write its file: {}",
                process.last_errors()
            )),
        }
    }

    fn give_up(&mut self, why: String) {
        self.failed = Some(why);
        self.end_process();
    }

    fn end_process(&mut self) {
        if let Some(process) = self.process.take() {
            let _ = process.kill_session();
            let _ = process.reap();
        }
    }
}

impl Collecting for Recorder {
    fn begin_window(&mut self, at: &At) {
        if self.process.is_some()
            && let Err(why) = self.ask("enable", at.interrupt)
        {
            self.give_up(why);
        }
    }

    fn end_window(&mut self, at: &At) {
        if self.process.is_none() {
            return;
        }
        match self.end(at.interrupt) {
            Ok(()) => self.end_process(),
            Err(why) => self.give_up(why),
        }
    }

    fn collected_results(&self) -> Collected {
        let name = self.recording.name;
        let warning = |why: &String| Warning {
            severity: Severity::Caution,
            what: format!("{name} has no recording: {why}"),
            remedy: format!("leave \"{name}\" out of `collect`, or see what perf lacks here"),
        };
        Collected {
            warnings: self.failed.iter().map(warning).collect(),
            ..Collected::default()
        }
    }

    fn process(&self) -> Option<Pid> {
        self.process.as_ref().map(|process| process.pid)
    }

    fn stop(&mut self) -> Result<(), String> {
        self.end_process();
        Ok(())
    }

    fn keep_files(&mut self, kept: &mut Kept) -> Result<(), String> {
        if self.failed.is_none() {
            kept.keep_files(self.recording.name, &self.folder, FILE);
        }
        remove_folder(&self.folder)
    }
}

/// A trial that ends early never comes to the end of its window.
impl Drop for Recorder {
    fn drop(&mut self) {
        self.end_process();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_tracefs_is_told_what_it_lacks() {
        let root = tempfile::tempdir().unwrap();
        let (what, remedy) = find_lack(root.path()).unwrap();
        assert!(!what.is_empty() && !remedy.is_empty());
    }
}
