//! One event, as tracefs prints it.

/// One scheduling event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Time of CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// CPU on which it happened.
    pub cpu: u32,
    /// Thread that ran there.
    pub by: i32,
    /// The event itself.
    pub happened: Happened,
}

/// A thread in an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Name of the thread.
    pub comm: String,
    /// Its ID, as the first PID namespace counts; 0 is the idle thread of a CPU.
    pub pid: i32,
    /// Priority as the kernel counts: 120 is nice 0, below 100 is real time.
    pub prio: i32,
}

/// Kinds of events with their fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    /// A CPU went from one thread to another.
    Switch {
        /// Thread that ran.
        prev: Task,
        /// Its state as a letter: `S` sleeps, `R` and `R+` could run.
        state: String,
        /// Thread that runs now.
        next: Task,
    },
    /// A thread is to be woken; it happens on the CPU of the waker.
    Waking(Task, u32),
    /// A thread is runnable on the CPU that is given.
    Wakeup(Task, u32),
    /// The same, of a new thread.
    WakeupNew(Task, u32),
    /// A thread was moved from one CPU to another.
    Migrate(Task, u32, u32),
    /// A thread made another one: name and ID of both.
    Fork {
        /// Name and ID of the thread that called fork(2).
        parent: (String, i32),
        /// Name and ID of the new one.
        child: (String, i32),
    },
    /// A process runs another program.
    Exec {
        /// Path of the program.
        filename: String,
        /// Its thread.
        pid: i32,
        /// The thread that called execve(2).
        old_pid: i32,
    },
    /// A thread ended.
    Exit(Task),
}

impl Event {
    /// A line of the file `trace`; `None` if it is none of these events.
    pub(super) fn parse(line: &str) -> Option<Event> {
        // The name in front is the thread's latest and may hold anything.
        let at = line.find(": sched_")?;
        let (head, event) = (&line[..at], &line[at + 2..]);
        let (kind, fields) = event.split_once(": ")?;
        let (head, at) = head.rsplit_once(' ')?;
        let (task, place) = head.rsplit_once(" [")?;
        let by = task.trim_end().rsplit_once('-')?.1;
        Some(Event {
            at_ns: parse_time(at)?,
            cpu: place.split_once(']')?.0.parse().ok()?,
            by: by.parse().ok()?,
            happened: Happened::parse(kind, fields.trim_end())?,
        })
    }
}

impl Happened {
    fn parse(kind: &str, fields: &str) -> Option<Happened> {
        match kind {
            "sched_switch" => {
                let (prev, next) = fields.split_once(" ==> ")?;
                let (rest, state) = prev.rsplit_once(" prev_state=")?;
                Some(Happened::Switch {
                    prev: task(rest, "prev_")?,
                    state: state.to_owned(),
                    next: task(next, "next_")?,
                })
            }
            "sched_waking" => Some(Happened::Waking(task(fields, "")?, target(fields)?)),
            "sched_wakeup" => Some(Happened::Wakeup(task(fields, "")?, target(fields)?)),
            "sched_wakeup_new" => Some(Happened::WakeupNew(task(fields, "")?, target(fields)?)),
            "sched_migrate_task" => {
                let from = number(fields, " orig_cpu=")?;
                let to = number(fields, " dest_cpu=")?;
                Some(Happened::Migrate(task(fields, "")?, from, to))
            }
            "sched_process_fork" => {
                let (parent, child) = fields.rsplit_once(" child_comm=")?;
                let (child, child_pid) = child.rsplit_once(" child_pid=")?;
                let (parent, parent_pid) = parent.rsplit_once(" pid=")?;
                Some(Happened::Fork {
                    parent: (name(parent, "")?, parent_pid.parse().ok()?),
                    child: (child.to_owned(), child_pid.parse().ok()?),
                })
            }
            "sched_process_exec" => {
                let (rest, old) = fields.rsplit_once(" old_pid=")?;
                let (filename, pid) = rest.rsplit_once(" pid=")?;
                Some(Happened::Exec {
                    filename: filename.strip_prefix("filename=")?.to_owned(),
                    pid: pid.parse().ok()?,
                    old_pid: old.parse().ok()?,
                })
            }
            "sched_process_exit" => Some(Happened::Exit(task(fields, "")?)),
            _ => None,
        }
    }
}

/// `comm=NAME pid=N prio=N`, each with this prefix, and more behind.
fn task(fields: &str, prefix: &str) -> Option<Task> {
    let (comm, rest) = fields.rsplit_once(&format!(" {prefix}pid="))?;
    let (pid, rest) = rest.split_once(' ')?;
    let prio = rest.strip_prefix(&format!("{prefix}prio="))?;
    Some(Task {
        comm: name(comm, prefix)?,
        pid: pid.parse().ok()?,
        prio: prio.split(' ').next()?.parse().ok()?,
    })
}

fn name(text: &str, prefix: &str) -> Option<String> {
    let name = text.strip_prefix(prefix)?.strip_prefix("comm=")?;
    Some(name.to_owned())
}

fn target(fields: &str) -> Option<u32> {
    number(fields, " target_cpu=")
}

fn number(fields: &str, name: &str) -> Option<u32> {
    let (_, rest) = fields.rsplit_once(name)?;
    rest.split(' ').next()?.parse().ok()
}

/// Nanoseconds of `2196.745586`.
pub(super) fn parse_time(text: &str) -> Option<u64> {
    let (seconds, micros) = text.split_once('.')?;
    let (seconds, micros): (u64, u64) = (seconds.parse().ok()?, micros.parse().ok()?);
    seconds
        .checked_mul(1_000_000_000)?
        .checked_add(micros.checked_mul(1_000)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(kind: &str, fields: &str) -> Option<Happened> {
        let line = format!(" odd [3] : name-17      [001] d..2.     7.000042: {kind}: {fields}");
        let event = Event::parse(&line)?;
        assert_eq!((event.at_ns, event.cpu, event.by), (7_000_042_000, 1, 17));
        Some(event.happened)
    }

    fn task(comm: &str, pid: i32, prio: i32) -> Task {
        Task {
            comm: comm.to_owned(),
            pid,
            prio,
        }
    }

    #[test]
    fn names_may_have_blanks_and_signs() {
        let fields = "prev_comm=lto pid=7 x prev_pid=1596 prev_prio=120 prev_state=R+ ==> \
                      next_comm=migration/0 next_pid=18 next_prio=0";
        let expected = Happened::Switch {
            prev: task("lto pid=7 x", 1596, 120),
            state: "R+".to_owned(),
            next: task("migration/0", 18, 0),
        };
        assert_eq!(parse("sched_switch", fields), Some(expected));
    }

    #[test]
    fn wakings_say_where_to_also_as_older_kernels_print_them() {
        let expected = Some(Happened::Waking(task("a b", 5, 120), 3));
        let new = "comm=a b pid=5 prio=120 target_cpu=003";
        assert_eq!(parse("sched_waking", new), expected);
        let old = "comm=a b pid=5 prio=120 success=1 target_cpu=003";
        assert_eq!(parse("sched_waking", old), expected);
    }

    #[test]
    fn the_life_of_a_process_is_read() {
        let fork = "comm=bash pid=1597 child_comm=bash child_pid=1599";
        let expected = Happened::Fork {
            parent: ("bash".to_owned(), 1597),
            child: ("bash".to_owned(), 1599),
        };
        assert_eq!(parse("sched_process_fork", fork), Some(expected));
        let exec = "filename=/usr/bin/a b pid=1600 old_pid=1600";
        let expected = Happened::Exec {
            filename: "/usr/bin/a b".to_owned(),
            pid: 1600,
            old_pid: 1600,
        };
        assert_eq!(parse("sched_process_exec", exec), Some(expected));
        let exit = "comm=ls pid=1601 prio=120 group_dead=true";
        let expected = Happened::Exit(task("ls", 1601, 120));
        assert_eq!(parse("sched_process_exit", exit), Some(expected));
        let moved = "comm=ls pid=1601 prio=120 orig_cpu=0 dest_cpu=12";
        let expected = Happened::Migrate(task("ls", 1601, 120), 0, 12);
        assert_eq!(parse("sched_migrate_task", moved), Some(expected));
    }

    #[test]
    fn other_lines_are_none() {
        for line in ["", "# tracer: nop", "a-1 [0] d 1.0: sched_switch: torn"] {
            assert_eq!(Event::parse(line), None, "{line}");
        }
        assert_eq!(parse("sched_stat_runtime", "comm=a pid=1 runtime=5"), None);
    }
}
