//! Definition of a collector. [`super::table`] lists them.

use super::trace::Kept;
use crate::interrupt::Interrupt;
use crate::journal::Journal;
use crate::kept_files;
use crate::process::Origin;
use collect::tasks::Pid;
use load::Worst;
use model::{Measurement, MetricDef, Pace, Role, TrialFile, Warning};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A group of readings that are taken together, explain a trial, and can be left out. What
/// costs nothing inside the window (two readings of /proc/stat, of PSI, of the load's
/// times, switches and migrations in /proc) is always taken and is no collector.
#[derive(Debug)]
pub struct CollectorDef {
    /// Name in experiments and in lists.
    pub name: &'static str,
    /// A description of its source, for lists.
    pub text: &'static str,
    /// Taken unless an experiment says otherwise. The others are work at each switch of
    /// a task: counting the load's perf events makes wake-ups a tenth slower and more
    /// (docs/performance.md).
    pub usual: bool,
    /// Metrics that it gives, none of which is ever judged.
    pub metrics: &'static [MetricDef],
    /// The interval logs that some of its metrics come from.
    pub(crate) logs: &'static [&'static str],
    /// Time that starting it and reading it may take.
    pub(crate) limit: Duration,
    /// Why it cannot be had here; `None` where it can. Programs are on PATH or in the
    /// directories of installed ones.
    pub missing: fn(&Path, Vec<PathBuf>) -> Lack,
    /// `None` where this machine does not have it after all.
    pub(crate) start: fn(Start) -> Option<Box<dyn Collecting>>,
}

/// A lack, and what to do about it.
pub type Lack = Option<(String, String)>;

/// The parts of a trial that starting a collector needs.
#[derive(Debug)]
pub struct Start<'a> {
    pub root: &'a Path,
    pub origin: Origin<'a>,
    pub journal: &'a mut Journal,
    pub interrupt: &'a Interrupt,
    /// Directory for a folder of its own, whose name begins with the mark of the trial.
    pub folders: &'a Path,
    pub mark: &'a str,
}

/// One end of the window.
#[derive(Debug)]
pub struct At<'a> {
    pub root: &'a Path,
    /// The processes that lead the roles; the load is not among them if its process is
    /// the window.
    pub leaders: &'a [(Role, Pid)],
    pub interrupt: &'a Interrupt,
}

/// A collector in one trial.
pub trait Collecting: Send {
    /// The process of the load is there and has not run its program yet.
    fn before_exec(&mut self, _load: Pid) {}

    /// The window opens.
    fn begin_window(&mut self, at: &At);

    /// The window has closed; the processes are still there.
    fn end_window(&mut self, at: &At);

    /// Figures of the trial that runs, for those who watch.
    fn read_pace(&mut self, _at: &At) -> Option<Pace> {
        None
    }

    /// A line of the load within the window.
    fn hear_line(&mut self, _line: &str) {}

    fn collected_results(&self) -> Collected;

    /// Findings that need figures of the load, which are known when it has ended.
    fn with_load(&self, _load: &[Measurement]) -> Vec<Measurement> {
        Vec::new()
    }

    /// A trace of the worst latency of the trial with this label, which is one of the log `of`;
    /// `None` where it keeps none. It is asked before what it collected.
    fn keep_trace(&mut self, _worst: Option<&Worst>, _label: &str, _of: &str) -> Option<Kept> {
        None
    }

    /// CPU time of the server and the antagonists, where it knows that.
    fn run_ns_beside_load(&self) -> u64 {
        0
    }

    /// Its own process, while it runs.
    fn process(&self) -> Option<Pid> {
        None
    }

    /// Keeps the files that it wrote, when nobody writes any more, and removes their folder; the error says why
    /// that is still there.
    fn keep_files(&mut self, _kept: &mut kept_files::Kept) -> Result<(), String> {
        Ok(())
    }

    /// Ends that process, which a trial that ended early may have left, and takes away what it
    /// made; the error says what could not be.
    fn stop(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// The findings of a collector.
#[derive(Debug, Default)]
pub struct Collected {
    pub metrics: Vec<Measurement>,
    /// Distributions, for the trial's directory.
    pub files: Vec<TrialFile>,
    pub warnings: Vec<Warning>,
}

impl From<Vec<Measurement>> for Collected {
    fn from(metrics: Vec<Measurement>) -> Self {
        Collected {
            metrics,
            ..Collected::default()
        }
    }
}

/// For what every kernel has, or what is left out in silence where it is not there.
pub fn nothing_missing(_: &Path, _: Vec<PathBuf>) -> Lack {
    None
}
