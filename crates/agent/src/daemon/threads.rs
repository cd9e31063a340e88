//! The policy and the CPUs of a daemon's threads: recorded, changed, put back.
//!
//! A thread is known by its ID and its start, so that another one that has the ID later is never
//! written. Threads and processes that a daemon starts while it is changed inherit the change. They are
//! in no record; what they have to go back to is what the process that started them had.

use crate::arm::{cpus, policy};
use collect::daemon::find;
use collect::sys::{RESET_ON_FORK, SchedAttr, sched_getattr};
use collect::tasks::{self, Pid};
use model::{Arm, Class, Daemon, Policy, Role};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

/// Looks for threads that came meanwhile.
const MOST_LOOKS: usize = 100;
/// Parents above parents.
const MOST_PARENTS: usize = 64;

/// The state that an arm gives the threads of a daemon.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// Policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// CPUs, in the form of the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
}

/// Parameters of sched_setattr(2) that a thread had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Attributes {
    policy: u32,
    resets_on_fork: bool,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

/// One thread before it was changed. `None`: it had inherited the change already.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Thread {
    pid: Pid,
    tid: Pid,
    start_ticks: u64,
    attributes: Option<Attributes>,
    cpus: Option<String>,
}

/// Threads of a daemon as they were before an arm changed them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    daemon: Daemon,
    given: Given,
    /// Threads that are not in the record and started no earlier have inherited what they have.
    since_ticks: u64,
    threads: Vec<Thread>,
}

impl Given {
    /// The state that the arm gives its daemon.
    pub fn from_arm(arm: &Arm) -> Self {
        let is_for_it = arm.to == Role::Daemon;
        let policy = arm.policy.as_ref().filter(|_| is_for_it);
        Given {
            policy: policy.map(policy::with_defaults),
            cpus: cpus::of_arm(arm)
                .filter(|_| is_for_it)
                .map(|of_arm| cpus::list(&of_arm)),
        }
    }

    /// True if threads stay as they are.
    pub fn is_nothing(&self) -> bool {
        *self == Given::default()
    }

    fn has_policy(&self, tid: Pid) -> bool {
        let wanted = self.policy.as_ref();
        wanted.is_none_or(|wanted| {
            collect::policy::read(tid).is_ok_and(|found| policy::is_as_wanted(wanted, &found))
        })
    }

    fn has_cpus(&self, tid: Pid) -> bool {
        self.cpus.is_none() || cpus::cpus_of(tid) == self.cpus
    }

    fn give(&self, tid: Pid) -> Result<(), String> {
        if let Some(policy) = &self.policy {
            match policy::apply_before_exec(tid, policy) {
                Ok(()) | Err(policy::PolicyError::Gone(_)) => {}
                Err(error) => return Err(format!("{error}; {}", error.remedy())),
            }
        }
        match &self.cpus {
            Some(list) => cpus::keep_thread_on(tid, list),
            None => Ok(()),
        }
    }
}

impl Attributes {
    fn read(tid: Pid) -> io::Result<Self> {
        let attr = sched_getattr(tid)?;
        let is_fair = !matches!(
            Class::from_number(attr.policy),
            Some(Class::Fifo | Class::Rr | Class::Deadline)
        );
        // The slice of the kernel itself, which a thread goes back to by asking for none.
        let is_usual = is_fair && sched_getattr(0)?.runtime_ns == attr.runtime_ns;
        Ok(Attributes {
            policy: attr.policy,
            resets_on_fork: attr.flags & RESET_ON_FORK != 0,
            nice: attr.nice,
            priority: attr.priority,
            runtime_ns: if is_usual { 0 } else { attr.runtime_ns },
            deadline_ns: attr.deadline_ns,
            period_ns: attr.period_ns,
        })
    }

    fn set(&self, tid: Pid) -> io::Result<()> {
        let attr = SchedAttr {
            policy: self.policy,
            flags: if self.resets_on_fork {
                RESET_ON_FORK
            } else {
                0
            },
            nice: self.nice,
            priority: self.priority,
            runtime_ns: self.runtime_ns,
            deadline_ns: self.deadline_ns,
            period_ns: self.period_ns,
            ..SchedAttr::default()
        };
        policy::set(tid, &attr)
    }
}

/// Threads of processes, with their processes and their starts.
fn threads_of(root: &Path, processes: &[Pid]) -> Vec<(Pid, Pid, u64)> {
    let mut found = Vec::new();
    for pid in processes {
        for tid in tasks::list_threads(root, *pid) {
            if let Some(stat) = tasks::read_stat(root, tid) {
                found.push((*pid, tid, stat.start_ticks));
            }
        }
    }
    found
}

/// Gives the threads of a daemon what the arm has for them, also those that come meanwhile, each after
/// `record` was told how it was. Those that are `known` were changed before. Says how many it changed.
pub fn change_threads(
    root: &Path,
    daemon: &Daemon,
    given: &Given,
    known: &mut Vec<Before>,
    mut record: impl FnMut(&Before) -> Result<(), String>,
) -> Result<usize, String> {
    let mut changed = 0;
    for _ in 0..MOST_LOOKS {
        let found = find(root, daemon).map_err(|e| e.to_string())?;
        let before = Before::of(root, daemon, given, &found.processes, known);
        if before.threads.is_empty() {
            break;
        }
        record(&before)?;
        let tids: Vec<Pid> = before.threads.iter().map(|thread| thread.tid).collect();
        known.push(before);
        changed += tids.len();
        tids.into_iter().try_for_each(|tid| given.give(tid))?;
    }
    Ok(changed)
}

/// Clock ticks since boot, as the starts of processes are counted.
fn now_ticks() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let hz = rustix::param::clock_ticks_per_second();
    let [seconds, ns] = [now.tv_sec, now.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    seconds * hz + ns * hz / 1_000_000_000
}

impl Before {
    /// The threads that are in no record yet. Once there is one, those that have inherited all are
    /// left out.
    fn of(
        root: &Path,
        daemon: &Daemon,
        given: &Given,
        processes: &[Pid],
        known: &[Before],
    ) -> Self {
        let now = now_ticks();
        let recorded: BTreeSet<(Pid, u64)> = known.iter().flat_map(Before::keys).collect();
        let is_first = known.is_empty();
        let threads = threads_of(root, processes).into_iter();
        let new = threads.filter(|(_, tid, start)| !recorded.contains(&(*tid, *start)));
        let threads = new.filter_map(|(pid, tid, start_ticks)| {
            let has = (
                !is_first && given.has_policy(tid),
                !is_first && given.has_cpus(tid),
            );
            if has == (true, true) {
                return None;
            }
            // One that ended meanwhile has neither.
            let attributes = Attributes::read(tid).ok()?;
            let cpus = cpus::cpus_of(tid)?;
            Some(Thread {
                pid,
                tid,
                start_ticks,
                attributes: (!has.0).then_some(attributes),
                cpus: (!has.1).then_some(cpus),
            })
        });
        let threads: Vec<Thread> = threads.collect();
        let youngest = threads.iter().map(|thread| thread.start_ticks).max();
        Before {
            daemon: daemon.clone(),
            given: given.clone(),
            // Processes in a cgroup may have started others that are elsewhere and older than the
            // record. Otherwise all are in it, and what is younger than all of them came later: so
            // turn after turn has the same record, which the journal keeps once.
            since_ticks: youngest.filter(|_| !daemon.is_cgroup()).unwrap_or(now),
            threads,
        }
    }

    fn keys(&self) -> impl Iterator<Item = (Pid, u64)> {
        self.threads
            .iter()
            .map(|thread| (thread.tid, thread.start_ticks))
    }

    /// Puts all threads back that are there still, and those that inherited the change. Gives their
    /// number and what could not be put back.
    pub fn put_back(&self, root: &Path) -> (usize, Vec<String>) {
        let mut changed = 0;
        for _ in 0..MOST_LOOKS {
            let (of_look, errors) = self.put_back_once(root);
            changed += of_look;
            // A thread that was not put back yet may have started another one.
            if of_look == 0 || !errors.is_empty() {
                return (changed, errors);
            }
        }
        (changed, Vec::new())
    }

    fn put_back_once(&self, root: &Path) -> (usize, Vec<String>) {
        let recorded: BTreeMap<(Pid, u64), &Thread> = self.keys().zip(&self.threads).collect();
        let (mut changed, mut errors) = (0, Vec::new());
        for (pid, tid, start) in threads_of(root, &self.processes(root)) {
            let own = recorded.get(&(tid, start)).copied();
            let inherits = own.is_none() && start >= self.since_ticks;
            let of_origin = |is_inherited: bool| is_inherited.then(|| self.origin(root, pid));
            let attributes = own.and_then(|own| own.attributes.as_ref()).or_else(|| {
                let is = (inherits || own.is_some()) && self.given.has_policy(tid);
                of_origin(is)?.and_then(|origin| origin.attributes.as_ref())
            });
            let cpus = own.and_then(|own| own.cpus.as_ref()).or_else(|| {
                let is = (inherits || own.is_some()) && self.given.has_cpus(tid);
                of_origin(is)?.and_then(|origin| origin.cpus.as_ref())
            });
            let cpus = cpus.filter(|_| self.given.cpus.is_some());
            let attributes = attributes.filter(|_| self.given.policy.is_some());
            match put_back(tid, attributes, cpus) {
                Ok(was_changed) => changed += usize::from(was_changed),
                Err(why) => errors.push(format!("thread {tid} of {}: {why}", self.daemon)),
            }
        }
        (changed, errors)
    }

    /// The processes that have or may have inherited the change: those that are found as the daemon
    /// now, those of the record, and what they started.
    fn processes(&self, root: &Path) -> Vec<Pid> {
        let there = |thread: &&Thread| {
            tasks::read_stat(root, thread.tid)
                .is_some_and(|stat| stat.start_ticks == thread.start_ticks)
        };
        let of_record: BTreeSet<Pid> = self.threads.iter().filter(there).map(|t| t.pid).collect();
        let mut all: BTreeSet<Pid> = of_record
            .iter()
            .flat_map(|pid| tasks::process_tree(root, *pid))
            .collect();
        if let Ok(found) = find(root, &self.daemon) {
            all.extend(found.processes);
        }
        all.into_iter().collect()
    }

    /// The thread whose state others of a process inherited: the first of the process or of the nearest
    /// one above it that is in the record, and otherwise the first of all.
    fn origin(&self, root: &Path, pid: Pid) -> Option<&Thread> {
        let whole = |thread: &&Thread| thread.attributes.is_some() && thread.cpus.is_some();
        let mut next = Some(pid);
        for _ in 0..MOST_PARENTS {
            let Some(pid) = next else { break };
            let mut of_process = self.threads.iter().filter(|thread| thread.pid == pid);
            if let Some(first) = of_process.find(whole) {
                return Some(first);
            }
            next = tasks::read_stat(root, pid).map(|stat| stat.parent);
        }
        self.threads.iter().find(whole)
    }

    /// `3 threads of unit mysqld.service`.
    pub fn in_words(&self, threads: usize) -> String {
        let plural = if threads == 1 { "" } else { "s" };
        format!(
            "policy and CPUs of {threads} thread{plural} of {}",
            self.daemon
        )
    }
}

/// Puts one thread back. True if it had something else; one that is gone is fine.
fn put_back(
    tid: Pid,
    attributes: Option<&Attributes>,
    cpus: Option<&String>,
) -> Result<bool, String> {
    let mut changed = false;
    let now = cpus::cpus_of(tid);
    if let Some(list) = cpus.filter(|list| now.as_ref().is_some_and(|now| now != *list)) {
        cpus::keep_thread_on(tid, list)?;
        changed = true;
    }
    let now = Attributes::read(tid).ok();
    if let Some(wanted) = attributes.filter(|wanted| now.as_ref().is_some_and(|now| now != *wanted))
    {
        match wanted.set(tid) {
            Err(e) if e.raw_os_error() != Some(libc::ESRCH) => {
                return Err(format!("put back its policy: {e}"));
            }
            _ => changed = true,
        }
    }
    Ok(changed)
}

#[cfg(test)]
mod tests;
