//! Runs that are killed at random moments and resumed, over everything that a trial can
//! change: what is lost or left is counted.
//!
//! ```text
//! cargo build --release -p schedlab && cargo run --release -p kills -- [KILLS] [MECHANISM…]
//! ```

#![allow(clippy::disallowed_methods)]
#![allow(clippy::print_stderr, reason = "a program that prints")]

mod machine;
mod mechanism;
mod steps;
mod victim;

pub use mechanism::Mechanism;
pub use steps::{boot_entries, service_units};
pub use victim::Victim;

use machine::{Machine, Unlike, processes_of, threads_in_words};
use mechanism::Prepared;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use results::ResultSet;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tests::Bench;

/// A guard that has more to do than this has given up.
const LIMIT: Duration = Duration::from_secs(60);

/// Damage that kills have done. All of it should be 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Damage {
    /// Finished trials that were gone, or changed, after a kill.
    pub trials_lost: usize,
    /// Files of the kernel that had not the value from before.
    pub knobs_left: usize,
    /// Processes of a trial that still ran.
    pub processes_left: usize,
    /// Control groups of a trial that were still there.
    pub cgroups_left: usize,
    /// Runs that could not be restored or resumed, or whose plan was not complete.
    pub runs_stuck: usize,
}

impl std::ops::AddAssign for Damage {
    fn add_assign(&mut self, other: Self) {
        self.trials_lost += other.trials_lost;
        self.knobs_left += other.knobs_left;
        self.processes_left += other.processes_left;
        self.cgroups_left += other.cgroups_left;
        self.runs_stuck += other.runs_stuck;
    }
}

/// The figures of one mechanism.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    /// Runs that were killed.
    pub kills: usize,
    /// Trials that were whole on disk when their run was killed.
    pub finished: usize,
    /// Runs that came to their end, by `run --resume`.
    pub completed: usize,
    /// The longest time until all was put back.
    pub slowest: Duration,
    /// Sum of the damage of all kills.
    pub damage: Damage,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let d = &self.damage;
        write!(
            f,
            "{:>6} {:>9} {:>10} {:>9.1} s {:>7} {:>6} {:>10} {:>8} {:>6}",
            self.kills,
            self.finished,
            self.completed,
            self.slowest.as_secs_f64(),
            d.trials_lost,
            d.knobs_left,
            d.processes_left,
            d.cgroups_left,
            d.runs_stuck
        )
    }
}

/// The heading of the lines that [`Tally`] prints.
pub const HEADING: &str =
    " kills  finished  completed  put back    lost  knobs  processes  cgroups  stuck";

/// Runs of one mechanism's experiment, killed and resumed again and again.
#[derive(Debug)]
pub struct Campaign {
    mechanism: Mechanism,
    bench: Bench,
    prepared: Prepared,
    before: Machine,
    random: ChaCha8Rng,
    runs: usize,
    /// The trials that were whole after the last kill: their directories and texts.
    seen: BTreeMap<String, String>,
    /// Figures so far.
    pub tally: Tally,
}

/// The machine as far as trials of the mechanism change it.
fn machine_now(mechanism: Mechanism) -> Machine {
    match mechanism {
        Mechanism::Containers => Machine::now(None).with_containers(tests::own_containers()),
        _ => Machine::now(mechanism.knob()),
    }
}

impl Campaign {
    /// A campaign with its own state directory, or why there can be none here.
    pub fn new(mechanism: Mechanism, seed: u64) -> Result<Self, String> {
        let bench = Bench::default();
        let prepared = mechanism.prepare(&bench)?;
        if mechanism != Mechanism::Bisection {
            let mut check = bench.command(&["check", &prepared.experiment]);
            let output = check.envs(prepared.environment.clone()).output();
            tests::expect_code(&output.expect("schedlab starts"), 0);
        }
        Ok(Campaign {
            mechanism,
            bench,
            prepared,
            before: machine_now(mechanism),
            random: ChaCha8Rng::seed_from_u64(seed),
            runs: 0,
            seen: BTreeMap::new(),
            tally: Tally::default(),
        })
    }

    /// One start or resume of the run, and its violent end; `false` where the run ended before.
    pub fn kill(&mut self, victim: Victim) -> bool {
        // So many trials later, however slow the machine is; without any the kill comes
        // while the run starts.
        let trials = match self.mechanism {
            // Its steps are runs in directories of their own; trials of Xen take minutes.
            Mechanism::Bisection | Mechanism::Xen => 0,
            _ => self.seen.len() + self.random.random_range(0..4),
        };
        let moment = self.random.random_range(self.mechanism.moments());
        let mut runner = self.start();
        let enough = || whole_trials(&self.output()) >= trials;
        let killed = alive_until(&mut runner, enough) && {
            let moment = Instant::now() + moment;
            alive_until(&mut runner, || Instant::now() >= moment)
        };
        if killed {
            victim.kill(&runner, &self.directories());
            self.tally.kills += 1;
        }
        // A run that went on without its agent, or ended by itself, is ended here.
        let _ = runner.kill();
        let _ = runner.wait();
        self.check(!killed || victim.leaves_a_guard());
        if !killed {
            self.complete();
        }
        killed
    }

    /// Resumes what is not complete, and says what all the kills have done. One plan at least is
    /// completed, also where all kills came before the first trial had ended.
    pub fn finish(mut self) -> Tally {
        let has_none = self.tally.completed == 0;
        if has_none || !self.seen.is_empty() || self.mechanism == Mechanism::Bisection {
            self.complete();
        }
        self.tally
    }

    fn output(&self) -> PathBuf {
        self.bench.path(&format!("out-{}", self.runs))
    }

    fn command(&self) -> std::process::Command {
        let output = self.output().display().to_string();
        let experiment = &self.prepared.experiment;
        // A run that was killed before it had a manifest has nothing to go on with.
        let args = match self.output().join("manifest.json").exists() {
            _ if self.mechanism == Mechanism::Bisection => bisection(experiment, &output),
            true => vec!["run", "--resume", &output, "--wait"],
            false => vec!["run", experiment, "-o", &output, "--wait"],
        };
        let mut command = self.bench.command(&args);
        command.envs(self.prepared.environment.clone());
        command
    }

    fn start(&self) -> Child {
        let log = File::create(self.bench.path("runner.log")).expect("a log");
        let mut command = self.command();
        command.stdout(Stdio::null()).stderr(log);
        command.spawn().expect("schedlab starts")
    }

    fn directories(&self) -> Vec<&Path> {
        let others = self.prepared.directories.iter().map(PathBuf::as_path);
        others.chain([self.bench.dir.path()]).collect()
    }

    /// Counts what the kill has left: by itself where there is a guard, else after `restore`.
    fn check(&mut self, is_guarded: bool) {
        let started = Instant::now();
        let mut is_restored = true;
        if !is_guarded {
            is_restored = self.is_restored(started);
        }
        let unlike = self.what_stays(started);
        if is_guarded {
            is_restored = self.is_restored(Instant::now());
        }
        self.tally.slowest = self.tally.slowest.max(started.elapsed());
        let left = processes_of(&self.directories());
        let seen = trials(&self.output());
        let lost = self.seen.iter().filter(|(k, v)| seen.get(*k) != Some(v));
        let damage = Damage {
            trials_lost: lost.count(),
            knobs_left: unlike.knobs.len(),
            processes_left: left.len(),
            cgroups_left: unlike.cgroups.len(),
            runs_stuck: usize::from(!is_restored),
        };
        if damage != Damage::default() {
            let log = fs::read_to_string(self.bench.path("runner.log")).unwrap_or_default();
            eprintln!("{}: {damage:?} {unlike:?}\n{log}", self.mechanism);
            left.iter()
                .for_each(|pid| eprintln!("{}", threads_in_words(*pid)));
        }
        self.tally.finished += seen.len().saturating_sub(self.seen.len());
        self.tally.damage += damage;
        self.seen = seen;
    }

    fn machine(&self) -> Machine {
        machine_now(self.mechanism)
    }

    /// Until nothing is left, or the limit.
    fn what_stays(&self, since: Instant) -> Unlike {
        let mut unlike = self.machine().unlike(&self.before);
        self.wait_until(since, |campaign| {
            campaign.prepared.make_room();
            processes_of(&campaign.directories()).is_empty()
        });
        loop {
            unlike.keep(&self.machine().unlike(&self.before));
            if unlike.is_nothing() || since.elapsed() > LIMIT {
                return unlike;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn is_restored(&self, since: Instant) -> bool {
        self.wait_until(since, |campaign| {
            campaign.prepared.make_room();
            campaign.restore().status.code() == Some(0)
        })
    }

    fn restore(&self) -> std::process::Output {
        let mut command = self.bench.command(&["restore"]);
        command.envs(self.prepared.environment.clone());
        command.output().expect("schedlab starts")
    }

    fn wait_until(&self, since: Instant, holds: impl Fn(&Self) -> bool) -> bool {
        while !holds(self) {
            if since.elapsed() > LIMIT {
                return false;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        true
    }

    /// The rest of the plan, undisturbed; the next kill meets a new run.
    fn complete(&mut self) {
        let output = self.command().output().expect("schedlab starts");
        self.check(true);
        // Exit code 4: a kill inside of a trial voided it, and it was repeated.
        let ended = matches!(output.status.code(), Some(0 | 4));
        let is_complete = match self.mechanism {
            Mechanism::Bisection => tests::stdout(&output).contains("change 5"),
            _ => self.plan_is_complete(),
        };
        if ended && is_complete {
            self.tally.completed += 1;
        } else {
            eprintln!("{}: {}", self.mechanism, tests::stderr(&output));
            self.tally.damage.runs_stuck += 1;
        }
        self.runs += 1;
        self.seen = BTreeMap::new();
    }

    /// True if each place of the plan has exactly one trial that counts.
    fn plan_is_complete(&self) -> bool {
        let Ok(set) = ResultSet::read(&self.output()) else {
            return false;
        };
        let counted = set.trials.iter().filter(|t| t.trial.is_ok());
        let mut places: Vec<u32> = counted.map(|t| t.trial.place.index).collect();
        places.sort_unstable();
        // The pilot of turns says how many processes there are.
        let planned = match self.mechanism {
            Mechanism::Turns if !places.is_empty() => {
                u32::try_from(places.len()).unwrap_or_default()
            }
            _ => self.prepared.places,
        };
        places == (0..planned).collect::<Vec<u32>>()
    }
}

/// The bisection of the program, which goes on where there is a directory of it.
fn bisection<'a>(experiment: &'a str, output: &'a str) -> Vec<&'a str> {
    let what = [
        "bisect",
        "bin/count",
        "--build",
        "sh build.sh",
        "--repository",
        "r",
    ];
    let between = ["--good", "v0", "--bad", "v8", "--budget", "20s"];
    [&what[..], &between, &[experiment, "-o", output]].concat()
}

/// True if the process still runs when that holds.
fn alive_until(child: &mut Child, holds: impl Fn() -> bool) -> bool {
    while !holds() {
        if child.try_wait().expect("it is our child").is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

fn whole_trials(output: &Path) -> usize {
    let entries = fs::read_dir(output.join("trials"));
    let names = entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.file_name());
    names
        .filter(|name| !name.to_string_lossy().starts_with('.'))
        .count()
}

/// Every trial that is there, with its text. One without is half a trial.
fn trials(output: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(output.join("trials"));
    let entries = entries.into_iter().flatten().flatten();
    let each = entries.map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let text = fs::read_to_string(entry.path().join("trial.json"));
        (name, text.unwrap_or_default())
    });
    each.filter(|(name, _)| !name.starts_with('.')).collect()
}
