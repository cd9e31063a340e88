//! Events that an experiment names (`perf`), counted in the process tree of each role within
//! the window, as `perf stat` counts them.
//!
//! They are opened while a process waits at its gate, so that nothing of it is missed, and read
//! at both ends of the window.

use super::prefix;
use collect::events::{Count, Event, Refusal, TreeCounter};
use collect::tasks::Pid;
use model::{Better, Invalid, Measurement, Problem, Role, Severity, Warning, find_nearest};
use std::path::Path;

const KEY: &str = "perf";
/// Each is an open file for each process of a role.
const MOST: usize = 64;

/// The names that [`check`] knows beside tracepoints (`subsystem:event`) and raw events (`r01c2`).
pub fn event_names() -> Vec<String> {
    collect::events::event_names()
}

/// Refuses names that perf list(1) does not have, and those that are there twice.
pub fn check(named: &[String]) -> Result<(), Invalid> {
    for (at, name) in named.iter().enumerate() {
        let key = format!("{KEY}.{at}");
        if named[..at].contains(name) {
            let what = format!("the event `{name}` is there twice");
            return Err(Invalid::new(&key, what).with_remedy("name each once"));
        }
        if Event::from_name(name).is_none() {
            let known = collect::events::event_names();
            let near = find_nearest(name, known.iter().map(String::as_str));
            let near = near
                .map(|near| format!("did you mean `{near}`? "))
                .unwrap_or_default();
            let what = format!("there is no perf event `{name}`");
            return Err(Invalid::new(&key, what).with_remedy(format!(
                "{near}perf list(1) and docs/reference.md have the names; tracepoints are \
                 \"sched:sched_wakeup\", raw events \"r01c2\""
            )));
        }
    }
    if named.len() > MOST {
        let what = format!("{} events are more than {MOST}", named.len());
        return Err(Invalid::new(KEY, what).with_remedy("leave some out: they take turns"));
    }
    Ok(())
}

/// Problems of this machine with the events.
pub fn require(root: &Path, named: &[String]) -> Vec<Problem> {
    let lack = |name: &String| {
        let event = Event::from_name(name)?;
        let (what, remedy) = said(&event, event.try_here(root).err()?);
        Some(Problem {
            object: "experiment".to_owned(),
            what: format!("perf {name}: {what}"),
            remedy,
        })
    };
    named.iter().filter_map(lack).collect()
}

fn said(event: &Event, refusal: Refusal) -> (String, String) {
    match refusal {
        Refusal::NotHere(error) => (
            format!("this machine has no {event}: {error}"),
            "leave it out; virtual machines often have no hardware events, and \
             context-switches, task-clock and tracepoints are there everywhere"
                .to_owned(),
        ),
        Refusal::NotAllowed(error) => (
            format!("{event} may not be counted by this user: {error}"),
            "run as root".to_owned(),
        ),
        Refusal::NoTracepoint(there) => {
            let (subsystem, wanted) = event.name().split_once(':').unwrap_or_default();
            let near = find_nearest(wanted, there.iter().map(String::as_str));
            let near = near.map(|near| format!("did you mean {subsystem}:{near}? "));
            let place = match there.is_empty() {
                true => "/sys/kernel/tracing/events".to_owned(),
                false => format!("/sys/kernel/tracing/events/{subsystem}"),
            };
            (
                "this kernel has no such tracepoint".to_owned(),
                format!("{}{place} has those that it has", near.unwrap_or_default()),
            )
        }
    }
}

/// The counters of all processes of a trial.
#[derive(Debug, Default)]
pub struct RoleEvents {
    events: Vec<Event>,
    trees: Vec<Tree>,
}

#[derive(Debug)]
struct Tree {
    role: Role,
    counters: Vec<TreeCounter>,
    /// A process that starts within the window has counted nothing when it opens.
    first: Vec<Count>,
    last: Vec<Count>,
}

impl RoleEvents {
    /// Names that are not known were refused by the check.
    pub fn new(named: &[String]) -> Self {
        RoleEvents {
            events: named
                .iter()
                .filter_map(|name| Event::from_name(name))
                .collect(),
            trees: Vec::new(),
        }
    }

    /// A process of a role waits at its gate. There is one load; what prepared for it counts
    /// no more.
    pub fn open(&mut self, root: &Path, role: &Role, pid: Pid) -> Result<(), String> {
        if *role == Role::Load {
            self.trees.retain(|tree| tree.role != Role::Load);
        }
        if self.events.is_empty() {
            return Ok(());
        }
        let open = |event: &Event| {
            let counter = event.on_exec(root, pid);
            counter.map_err(|e| format!("count the perf event {event}: {e}"))
        };
        let counters: Result<Vec<_>, _> = self.events.iter().map(open).collect();
        self.trees.push(Tree {
            role: role.clone(),
            counters: counters?,
            first: vec![Count::default(); self.events.len()],
            last: Vec::new(),
        });
        Ok(())
    }

    /// The window opens.
    pub fn begin_window(&mut self) {
        for tree in &mut self.trees {
            tree.first = tree.read();
        }
    }

    /// The window has closed.
    pub fn end_window(&mut self) {
        for tree in &mut self.trees {
            tree.last = tree.read();
        }
    }

    /// The counts of each role, named after event and role.
    pub fn figures(&self) -> Vec<Measurement> {
        let roles = Role::ALL.iter();
        roles.flat_map(|role| self.figures_of(role)).collect()
    }

    /// A note where hardware had too few counters.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut shared: Vec<String> = Vec::new();
        for (at, event) in self.events.iter().enumerate() {
            let all: Vec<Count> = Role::ALL.iter().filter_map(|r| self.count(r, at)).collect();
            let share = all
                .iter()
                .map(|count| count.counted_share())
                .fold(1.0, f64::min);
            if share < 1.0 {
                shared.push(format!("{event} {:.0} %", share * 100.0));
            }
        }
        if shared.is_empty() {
            return Vec::new();
        }
        vec![Warning {
            severity: Severity::Note,
            what: format!(
                "perf events took turns on the counters of the CPU and were scaled up; they were \
                 counted in this share of the time: {}",
                shared.join(", ")
            ),
            remedy: "name fewer hardware and cache events in `perf`".to_owned(),
        }]
    }

    fn figures_of(&self, role: &Role) -> Vec<Measurement> {
        let name = |event: &Event| format!("{}perf_{event}", prefix(role).unwrap_or_default());
        let of_event = |(at, event): (usize, &Event)| {
            Some(Measurement {
                metric: name(event),
                unit: event.unit().to_owned(),
                better: Better::Neither,
                value: self.count(role, at)?.scaled_count()?,
                own: None,
            })
        };
        self.events
            .iter()
            .enumerate()
            .filter_map(of_event)
            .collect()
    }

    /// The sum over the processes of a role; `None` if it has none, or one was not read.
    fn count(&self, role: &Role, event: usize) -> Option<Count> {
        let mut trees = self
            .trees
            .iter()
            .filter(|tree| tree.role == *role)
            .peekable();
        trees.peek()?;
        let within = |tree: &Tree| Some(tree.last.get(event)?.count_since(*tree.first.get(event)?));
        trees.map(within).sum()
    }
}

impl Tree {
    /// All or none.
    fn read(&mut self) -> Vec<Count> {
        let read: Result<Vec<_>, _> = self.counters.iter_mut().map(TreeCounter::read).collect();
        read.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(|name| (*name).to_owned()).collect()
    }

    fn count(count: u64, enabled_ns: u64, running_ns: u64) -> Count {
        Count {
            count,
            enabled_ns,
            running_ns,
        }
    }

    fn tree(role: Role, first: Count, last: Count) -> Tree {
        Tree {
            role,
            counters: Vec::new(),
            first: vec![first],
            last: vec![last],
        }
    }

    #[test]
    fn a_misspelt_event_is_answered_with_the_nearest() {
        let error = check(&names(&["cycles", "LLC-load-mises"])).unwrap_err();
        let remedy = error.remedy;
        assert!(remedy.contains("`LLC-load-misses`"), "{remedy}");
        assert!(check(&names(&["cs", "cs"])).is_err());
        assert!(check(&names(&["cs", "sched:sched_switch", "r01c2", "cycles:u"])).is_ok());
    }

    #[test]
    fn a_tracepoint_that_the_kernel_lacks_is_a_problem_with_the_nearest() {
        let root = ::tests::tree(&[("sys/kernel/tracing/events/sched/sched_wakeup/id", "1\n")]);
        let problems = require(root.path(), &names(&["sched:sched_wakup"]));
        let [problem] = problems.as_slice() else {
            panic!("{problems:?}");
        };
        assert!(
            problem.remedy.contains("did you mean sched:sched_wakeup?"),
            "{problem:?}"
        );
    }

    #[test]
    fn counts_are_those_of_the_window_by_role_and_two_antagonists_are_one() {
        let events = RoleEvents {
            events: vec![Event::from_name("cycles").unwrap()],
            trees: vec![
                tree(Role::Load, Count::default(), count(5, 10, 10)),
                tree(Role::Antagonist, count(10, 100, 100), count(30, 200, 150)),
                tree(Role::Antagonist, count(1, 100, 100), count(11, 200, 200)),
            ],
        };
        let figures = events.figures();
        let found: Vec<(&str, f64)> = figures
            .iter()
            .map(|m| (m.metric.as_str(), m.value))
            .collect();
        assert_eq!(
            found,
            [("perf_cycles", 5.0), ("antagonist_perf_cycles", 40.0)]
        );
        let warnings = events.warnings();
        assert!(warnings[0].what.ends_with("cycles 75 %"), "{warnings:?}");
    }

    #[test]
    fn an_event_that_was_never_counted_has_no_figure() {
        let never = tree(Role::Load, Count::default(), count(0, 100, 0));
        let events = RoleEvents {
            events: vec![Event::from_name("cycles").unwrap()],
            trees: vec![never],
        };
        assert!(events.figures().is_empty());
        assert_eq!(events.warnings().len(), 1);
    }
}
