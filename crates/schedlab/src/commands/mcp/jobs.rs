//! Work that takes long: a process of this program, one at a time, which ends in order.

use doors::read::{Heard, start_reading};
use doors::started::own_command;
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that are kept of what a job prints.
const MOST_BYTES: u64 = 4 << 20;
/// Time beyond its budget after which a job is told to end: booting, and a block that is under way.
const GRACE: Duration = Duration::from_secs(180);
/// Time that an orderly end takes at most.
const END: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);
/// Time below which nothing more is begun.
const LEAST: Duration = Duration::from_secs(2);

/// The purpose of a job.
#[derive(Debug, Clone, PartialEq)]
pub enum Purpose {
    /// A question of the ledger.
    Compare,
    /// A race of settings, whose confirmation is a question of the ledger.
    Tune,
    /// A search for the commit that made something worse, which is one question of the ledger.
    Bisect,
    /// A pilot, which says how long a question will take.
    Plan,
}

/// One process, running or ended.
#[derive(Debug)]
pub struct Job {
    pub number: u64,
    pub purpose: Purpose,
    /// Words of the experiment.
    pub words: Vec<String>,
    /// Directory of all that it leaves.
    pub dir: PathBuf,
    pub budget: Duration,
    began: Instant,
    is_cancelled: AtomicBool,
    ended: Mutex<Option<Ended>>,
}

/// End of a job.
#[derive(Debug, Clone)]
pub struct Ended {
    pub code: Option<i32>,
    pub took: Duration,
    pub output: String,
    pub errors: String,
}

impl Job {
    /// The end, where it has come.
    pub fn find_end(&self) -> Option<Ended> {
        self.lock_end().clone()
    }

    pub fn is_running(&self) -> bool {
        self.lock_end().is_none()
    }

    /// Time since the start, or that it took.
    pub fn elapsed(&self) -> Duration {
        self.find_end().map_or(self.began.elapsed(), |end| end.took)
    }

    /// Results of what it says.
    pub fn results_dir(&self) -> PathBuf {
        match self.purpose {
            Purpose::Tune => self.dir.join("confirmation"),
            Purpose::Bisect => crate::commands::bisect::results_dir(&self.dir),
            Purpose::Compare | Purpose::Plan => self.dir.clone(),
        }
    }

    /// Asks for an orderly end.
    pub fn cancel_work(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    fn lock_end(&self) -> MutexGuard<'_, Option<Ended>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the process. It is told to end once where somebody asks or its time is over, and killed
    /// where that is not enough.
    fn follow(&self, mut child: Child, streams: [Heard; 2]) {
        let mut told: Option<Instant> = None;
        let status = loop {
            match child.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) => break status.code(),
                Err(_) => break None,
            }
            let is_late = self.began.elapsed() > self.budget + GRACE;
            let is_over = is_late || self.is_cancelled.load(Ordering::Relaxed);
            if is_over && told.is_none() {
                told = Some(Instant::now());
                send_signal(&child, Signal::INT);
            }
            if told.is_some_and(|told| told.elapsed() > END) {
                send_signal(&child, Signal::KILL);
            }
            thread::sleep(LOOK);
        };
        let text = |heard: &Heard| {
            let bytes = heard.read_until(Instant::now() + END);
            bytes.map_or_else(
                |e| e.to_string(),
                |b| String::from_utf8_lossy(&b).into_owned(),
            )
        };
        let [output, errors] = streams;
        *self.lock_end() = Some(Ended {
            code: status,
            took: self.began.elapsed(),
            output: text(&output),
            errors: text(&errors),
        });
    }
}

/// The child was not waited for yet, so its number is still its own.
fn send_signal(child: &Child, signal: Signal) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// All jobs of a session.
#[derive(Debug)]
pub struct Jobs {
    budget: Duration,
    all: Mutex<Vec<Arc<Job>>>,
}

impl Jobs {
    pub fn new(budget: Duration) -> Jobs {
        Jobs {
            budget,
            all: Mutex::default(),
        }
    }

    fn lock_all(&self) -> MutexGuard<'_, Vec<Arc<Job>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time of all measuring, and what is left of it.
    pub fn time_left(&self) -> (Duration, Duration) {
        let spent: Duration = self.lock_all().iter().map(|job| job.elapsed()).sum();
        (self.budget, self.budget.saturating_sub(spent))
    }

    /// The job of this number.
    pub fn find_job(&self, number: u64) -> Option<Arc<Job>> {
        let all = self.lock_all();
        all.iter().find(|job| job.number == number).cloned()
    }

    /// All of them in their order.
    pub fn list_jobs(&self) -> Vec<Arc<Job>> {
        self.lock_all().clone()
    }

    /// Starts `schedlab WORDS…`. `words_for` is given the results directory and the time that it may
    /// take.
    pub fn start_job(
        &self,
        purpose: Purpose,
        experiment: Vec<String>,
        dir: &Path,
        wanted: Duration,
        words_for: impl FnOnce(&Path, Duration) -> Vec<String>,
    ) -> Result<Arc<Job>, String> {
        let (whole, left) = self.time_left();
        let mut all = self.lock_all();
        if let Some(running) = all.iter().find(|job| job.is_running()) {
            return Err(format!(
                "refused: job {0} is running, and two at once would disturb each other; ask `status` \
                 of job {0}, or `cancel` it",
                running.number
            ));
        }
        if left < LEAST {
            return Err(format!(
                "refused: the {} s of this session are used up (--budget)",
                whole.as_secs()
            ));
        }
        let number = all.len() as u64 + 1;
        let dir = dir.join(format!("job-{number}"));
        let budget = wanted.min(left);
        let mut command = own_command(Path::new("/proc/self/exe"));
        command
            .args(words_for(&dir, budget))
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("starting it: {e}"))?;
        let streams = [
            start_reading(child.stdout.take(), MOST_BYTES),
            start_reading(child.stderr.take(), MOST_BYTES),
        ];
        let job = Arc::new(Job {
            number,
            purpose,
            words: experiment,
            dir,
            budget,
            began: Instant::now(),
            is_cancelled: AtomicBool::new(false),
            ended: Mutex::default(),
        });
        let followed = Arc::clone(&job);
        thread::spawn(move || followed.follow(child, streams));
        all.push(Arc::clone(&job));
        Ok(job)
    }

    /// Ends what runs, and waits for it: everything that it changed is undone then.
    pub fn end_all(&self) {
        let all = self.list_jobs();
        all.iter().for_each(|job| job.cancel_work());
        while all.iter().any(|job| job.is_running()) {
            thread::sleep(LOOK);
        }
    }
}
