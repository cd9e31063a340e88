//! Turns of the machine: which tests run at the same time.
//!
//! `make test` gives the harness many threads, most of which wait here. A test that needs the machine for
//! itself goes when no other test waits for its turn, so that the machine is emptied for such tests once
//! and not for each of them.

use crate::add_line;
use std::cell::Cell;
use std::num::NonZero;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;
use std::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Alone,
    WithLockOfRuns,
    Beside,
    /// Commands of a test that has no turn.
    Commands,
}

/// Who has a turn, and who waits for one.
#[derive(Debug)]
struct Machine {
    is_taken: bool,
    has_lock_of_runs: bool,
    beside: usize,
    commands: usize,
    waiting: usize,
    /// Of those the long ones: with the lock, and beside others.
    long_with_lock: usize,
    long_beside: usize,
}

static MACHINE: Mutex<Machine> = Mutex::new(Machine {
    is_taken: false,
    has_lock_of_runs: false,
    beside: 0,
    commands: 0,
    waiting: 0,
    long_with_lock: 0,
    long_beside: 0,
});
static CHANGED: Condvar = Condvar::new();

thread_local! {
    /// Turn of the test on this thread.
    static OWN: Cell<Option<Kind>> = const { Cell::new(None) };
}

fn machine() -> MutexGuard<'static, Machine> {
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tests that run experiments at once, beside the one that has schedlab's lock: they keep two CPUs busy, and more of
/// them only make each other late. One less as long as the file that SCHEDLAB_UNIT_TESTS names says that unit tests
/// run.
fn most_beside() -> usize {
    let cpus = available_parallelism().map_or(2, NonZero::get);
    let others =
        std::env::var_os("SCHEDLAB_UNIT_TESTS").is_some_and(|file| Path::new(&file).exists());
    cpus + usize::from(!others)
}

/// Modules whose tests take longest: most of them boot guests. They go before the others, so that no long test is the
/// last, beside a CPU that has nothing to do.
const LONG: [&str; 8] = [
    "confinement::",
    "gatling::",
    "kills::",
    "package::",
    "presets::",
    "slurm::",
    "tune::",
    "vm::",
];

/// Is the test of this thread a long one?
fn is_long() -> bool {
    let thread = std::thread::current();
    thread
        .name()
        .is_some_and(|test| LONG.iter().any(|module| test.starts_with(module)))
}

impl Machine {
    fn admits(&self, kind: Kind, is_long: bool) -> bool {
        match kind {
            Kind::Alone => {
                let others = self.beside + self.commands + self.waiting;
                !self.is_taken && !self.has_lock_of_runs && others == 0
            }
            Kind::WithLockOfRuns => {
                let is_first = is_long || self.long_with_lock == 0;
                !self.is_taken && !self.has_lock_of_runs && is_first
            }
            Kind::Beside => {
                let is_first = is_long || self.long_beside == 0;
                !self.is_taken && self.beside < most_beside() && is_first
            }
            // Also while another thread of its own test has the machine alone.
            Kind::Commands => self.commands < most_beside(),
        }
    }

    fn note(&mut self, kind: Kind, begins: bool) {
        let counted = match kind {
            Kind::Alone => return self.is_taken = begins,
            Kind::WithLockOfRuns => return self.has_lock_of_runs = begins,
            Kind::Beside => &mut self.beside,
            Kind::Commands => &mut self.commands,
        };
        *counted = if begins { *counted + 1 } else { *counted - 1 };
    }

    /// Counts one who begins to wait, or does not wait any more.
    fn note_waiting(&mut self, kind: Kind, is_long: bool, begins: bool) {
        let count = |number: &mut usize| *number = if begins { *number + 1 } else { *number - 1 };
        match kind {
            Kind::Alone => return,
            Kind::WithLockOfRuns if is_long => count(&mut self.long_with_lock),
            Kind::Beside if is_long => count(&mut self.long_beside),
            Kind::WithLockOfRuns | Kind::Beside | Kind::Commands => {}
        }
        count(&mut self.waiting);
    }
}

fn wait_for(kind: Kind) {
    let is_long = is_long();
    let mut machine = machine();
    machine.note_waiting(kind, is_long, true);
    let mut machine = CHANGED
        .wait_while(machine, |machine| !machine.admits(kind, is_long))
        .unwrap_or_else(PoisonError::into_inner);
    machine.note_waiting(kind, is_long, false);
    machine.note(kind, true);
    drop(machine);
    // Who waited for the long ones to be no longer waiting.
    CHANGED.notify_all();
}

fn give_back(kind: Kind) {
    machine().note(kind, false);
    CHANGED.notify_all();
}

/// A turn of the machine, until it is dropped. Its seconds go to the file that SCHEDLAB_TURNS names.
#[derive(Debug)]
pub struct Turn {
    kind: Kind,
    began: Instant,
}

impl Turn {
    #[track_caller]
    fn take(kind: Kind) -> Turn {
        if OWN.get() == Some(Kind::Commands) {
            // Its turn takes their place.
            give_back(Kind::Commands);
            OWN.set(None);
        }
        assert_eq!(OWN.get(), None, "a test has one turn at a time");
        wait_for(kind);
        OWN.set(Some(kind));
        Turn {
            kind,
            began: Instant::now(),
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        OWN.set(None);
        give_back(self.kind);
        let how = match self.kind {
            Kind::Alone => "alone",
            Kind::WithLockOfRuns => "with lock",
            Kind::Beside | Kind::Commands => "beside others",
        };
        let thread = std::thread::current();
        let test = thread.name().unwrap_or("a thread of a test");
        let seconds = self.began.elapsed().as_secs();
        add_line("SCHEDLAB_TURNS", &format!("{seconds:4} s  {how}  {test}\n"));
    }
}

/// The machine for a test that judges times or shares of CPUs, or looks at all that a run changes: no other
/// test that runs experiments is there.
#[track_caller]
pub fn alone() -> Turn {
    Turn::take(Kind::Alone)
}

/// The machine for a test that judges no time, but needs what a kernel has once: schedlab's lock of the
/// machine, a tunable, a daemon, a port. Only one such test runs at once, beside those of [`beside_others`].
#[track_caller]
pub fn with_lock_of_runs() -> Turn {
    Turn::take(Kind::WithLockOfRuns)
}

/// The machine for a test that runs experiments and judges no time, in guests or with figures that a command
/// only prints: several such tests run at once. A [`crate::Bench`] has a lock of its own unless its test is
/// [`alone`] or [`with_lock_of_runs`].
#[track_caller]
pub fn beside_others() -> Turn {
    Turn::take(Kind::Beside)
}

/// True while no other test uses schedlab's lock of the machine.
pub(crate) fn has_lock_of_runs() -> bool {
    matches!(OWN.get(), Some(Kind::Alone | Kind::WithLockOfRuns))
}

/// Commands of a test that has no turn: few such tests run at once. It ends with the bench of the test, or
/// where the test takes a turn.
#[derive(Debug)]
pub(crate) struct Commands(());

impl Commands {
    /// `None` for a test that has a turn, or another bench.
    pub fn wait_for_few() -> Option<Commands> {
        if OWN.get().is_some() {
            return None;
        }
        wait_for(Kind::Commands);
        OWN.set(Some(Kind::Commands));
        Some(Commands(()))
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        if OWN.get() == Some(Kind::Commands) {
            give_back(Kind::Commands);
            OWN.set(None);
        }
    }
}
