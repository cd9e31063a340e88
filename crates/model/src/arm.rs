//! An arm: one way to schedule, made of a kernel, a scheduler, a policy and tunables.

use crate::daemon::Daemon;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Logical tunable name (`base_slice`) to the value wanted, in the kernel's own
/// unit as text (nanoseconds for times): the text that is read back and compared.
pub type Tunables = BTreeMap<String, String>;

/// One thing under comparison.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// Name, unique in the experiment.
    pub name: String,
    /// Policy for the threads of the role `to`; `None` leaves the system's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// The role that the policy applies to.
    #[serde(default)]
    pub to: Role,
    /// Processes that the arm is for where `to` is [`Role::Daemon`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daemon: Option<Daemon>,
    /// Weight of the cgroups of the role of [`Arm::weighed_role`], 1 ..= 10000, in place of that of
    /// their placements; `None` leaves it as it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// Tunables of the kernel that the arm sets; all others stay as they are.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tunables: Tunables,
    /// Scheduler of sched_ext that runs in its trials; `None` is the kernel's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<Scheduler>,
    /// Kernel of this arm on a `vm` target; `None` is the target's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Extra work in each request of the `wakeup` load, in percent: a known
    /// effect, to find out what the judgement sees. Zero in real experiments.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub handicap_percent: f64,
    /// The place in a grid (`for-each`): each parameter with its value as written.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub grid: BTreeMap<String, String>,
    /// Names of the collectors of its trials, where they are not those of the experiment:
    /// arms that differ in this measure what collecting costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collect: Option<Vec<String>>,
    /// The other ingredients of the arm by their names, as they are stored: only their
    /// entries in the agent know more of them. Those above have fields because plans, runs
    /// and reports look at them too.
    #[serde(flatten)]
    pub ingredients: BTreeMap<String, Value>,
}

/// Ingredients without a field that are for a role and that a daemon takes.
const OF_ROLE: [&str; 2] = ["cpus", "quota"];

/// `base_slice=3ms, nr_migrate=8`.
fn pairs(table: &serde_json::Map<String, Value>) -> String {
    let pairs = table.iter().map(|(name, value)| match value {
        Value::String(text) => format!("{name}={text}"),
        value => format!("{name}={value}"),
    });
    pairs.collect::<Vec<_>>().join(", ")
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

impl Arm {
    /// An arm that changes nothing.
    pub fn unchanged(name: &str) -> Self {
        Arm {
            name: name.to_owned(),
            ..Arm::default()
        }
    }

    /// Role whose cgroups the weight of the arm is for: the antagonists or the daemon where the arm is
    /// theirs, and otherwise the server and the services, since the load has no cgroup with a weight.
    pub fn weighed_role(&self) -> Role {
        match self.to {
            Role::Antagonist | Role::Daemon => self.to.clone(),
            Role::Server | Role::Load => Role::Server,
        }
    }

    /// Weight that the arm gives the cgroups of a role.
    pub fn weight_of(&self, role: &Role) -> Option<u32> {
        self.weight.filter(|_| self.weighed_role() == *role)
    }

    /// The role that the arm is for, in words, or its daemon.
    pub fn describe_role(&self) -> String {
        let daemon = self.daemon.as_ref().map(Daemon::to_string);
        daemon.unwrap_or_else(|| self.to.name().to_owned())
    }

    /// Changes of the arm, in the words of the command line (`batch+nice=5`,
    /// `base_slice=1000000`), or `default`.
    pub fn summary(&self) -> String {
        let mut parts = Vec::new();
        if let Some(kernel) = &self.kernel {
            parts.push(format!("kernel={kernel}"));
        }
        if let Some(scheduler) = &self.scheduler {
            parts.push(scheduler.command_line());
        }
        if let Some(policy) = &self.policy {
            parts.push(match self.to {
                Role::Load => policy.to_string(),
                _ => format!("{policy} ({})", self.describe_role()),
            });
        }
        parts.extend(self.weight.map(|weight| match self.weighed_role() {
            Role::Antagonist | Role::Daemon => {
                format!("weight={weight} ({})", self.describe_role())
            }
            Role::Load | Role::Server => format!("weight={weight}"),
        }));
        parts.extend(self.tunables.iter().map(|(k, v)| format!("{k}={v}")));
        if self.handicap_percent != 0.0 {
            parts.push(format!("handicap={}%", self.handicap_percent));
        }
        parts.extend(self.ingredients.iter().map(|(k, v)| match v {
            Value::String(text) if self.daemon.is_some() && OF_ROLE.contains(&k.as_str()) => {
                format!("{k}={text} ({})", self.describe_role())
            }
            Value::String(text) => format!("{k}={text}"),
            Value::Object(table) => format!("{k} ({})", pairs(table)),
            value => format!("{k}={value}"),
        }));
        if let Some(collectors) = &self.collect {
            parts.push(format!("collect={}", collectors.join(",")));
        }
        if parts.is_empty() {
            return "default".to_owned();
        }
        parts.join(" + ")
    }
}

/// A part of a workload that runs as processes of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Processes that make the work and measure it.
    #[default]
    Load,
    /// Processes that are measured from outside, where a workload has such.
    Server,
    /// Processes that disturb.
    Antagonist,
    /// Processes that run on the target before the trial and after it ([`Arm::daemon`]).
    Daemon,
}

impl Role {
    /// All roles whose processes a trial starts.
    pub const ALL: [Role; 3] = [Role::Load, Role::Server, Role::Antagonist];
    /// Those and the daemon.
    pub const WITH_DAEMON: [Role; 4] = [Role::Load, Role::Server, Role::Antagonist, Role::Daemon];

    /// Word for the role, as in experiment files.
    pub fn name(&self) -> &'static str {
        match self {
            Role::Load => "load",
            Role::Server => "server",
            Role::Antagonist => "antagonist",
            Role::Daemon => "daemon",
        }
    }
}

/// Scheduling policy of threads, see sched(7) and sched_setattr(2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Scheduling class; it decides which of the other fields have a meaning.
    pub class: Class,
    /// -20 ..= 19, for `other` and `batch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nice: Option<i32>,
    /// 1 ..= 99, for `fifo` and `rr`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// EEVDF slice request of `other` and `batch` (`sched_runtime`, Linux 6.12),
    /// 100 µs ..= 100 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_ns: Option<u64>,
    /// For `deadline`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_ns: Option<u64>,
    /// Relative deadline, for `deadline`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<u64>,
    /// Period, for `deadline`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_ns: Option<u64>,
}

impl Policy {
    /// Policy of a class, with all parameters left to the kernel.
    pub fn new(class: Class) -> Self {
        Policy {
            class,
            nice: None,
            priority: None,
            slice_ns: None,
            runtime_ns: None,
            deadline_ns: None,
            period_ns: None,
        }
    }
}

impl std::fmt::Display for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use crate::units::format_duration_ns as t;
        let mut parts = Vec::new();
        match self.class {
            Class::Other if self.nice.is_some() || self.slice_ns.is_some() => {}
            Class::Deadline => parts.push(format!(
                "deadline:{}/{}",
                t(self.runtime_ns.unwrap_or(0)),
                t(self.period_ns.or(self.deadline_ns).unwrap_or(0)),
            )),
            Class::Fifo | Class::Rr => parts.push(match self.priority {
                Some(p) => format!("{}:{p}", self.class.name()),
                None => self.class.name().to_owned(),
            }),
            class => parts.push(class.name().to_owned()),
        }
        parts.extend(self.nice.map(|n| format!("nice={n}")));
        parts.extend(self.slice_ns.map(|s| format!("slice={}", t(s))));
        f.write_str(&parts.join("+"))
    }
}

/// The `SCHED_*` classes of `<linux/sched.h>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// `SCHED_OTHER`: the fair scheduler, which is the default.
    Other,
    /// `SCHED_BATCH`: fair, and without preemption on wakeup.
    Batch,
    /// `SCHED_IDLE`: runs where nothing else wants the CPU.
    Idle,
    /// `SCHED_FIFO`: real time, until the task waits or yields.
    Fifo,
    /// `SCHED_RR`: real time, in turns with others of its priority.
    Rr,
    /// `SCHED_DEADLINE`: a runtime in each period, until a deadline.
    Deadline,
    /// `SCHED_EXT`: a task that only a partial-switch sched_ext scheduler runs.
    Ext,
}

impl Class {
    /// All classes.
    pub const ALL: [Class; 7] = [
        Class::Other,
        Class::Batch,
        Class::Idle,
        Class::Fifo,
        Class::Rr,
        Class::Deadline,
        Class::Ext,
    ];

    /// Word for the class, as in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            Class::Other => "other",
            Class::Batch => "batch",
            Class::Idle => "idle",
            Class::Fifo => "fifo",
            Class::Rr => "rr",
            Class::Deadline => "deadline",
            Class::Ext => "ext",
        }
    }

    /// The number in `<linux/sched.h>`.
    pub fn kernel_number(self) -> u32 {
        match self {
            Class::Other => 0,
            Class::Fifo => 1,
            Class::Rr => 2,
            Class::Batch => 3,
            Class::Idle => 5,
            Class::Deadline => 6,
            Class::Ext => 7,
        }
    }

    /// Class of a number of `<linux/sched.h>`; `None` for one that is not known.
    pub fn from_number(number: u32) -> Option<Class> {
        Class::ALL.into_iter().find(|c| c.kernel_number() == number)
    }
}

/// A sched_ext scheduler: a program that attaches while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheduler {
    /// A name (looked up on PATH and among the installed schedulers) or a path.
    pub program: String,
    /// Arguments, without the program itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Longest time until it is in force; `None`: two minutes, for the verification of a large
    /// scheduler on emulated CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attach_limit_ns: Option<u64>,
    /// Commit of a repository that the program was built from, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub built_from: Option<Revision>,
}

/// A commit of a git repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    /// Path or URL of the repository.
    pub repository: String,
    /// Name of the commit as it was asked for; `None`: the one that the repository was at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// Commit with its 40 digits.
    pub commit: String,
}

/// Characters of an argument that are shown; the layers of scx_layered have hundreds.
const SHOWN_CHARS: usize = 40;

impl Scheduler {
    /// Words before the release of a kernel that does not load its program, in messages.
    pub const DOES_NOT_LOAD: &str = "does not load on Linux";

    /// Name of the program without its directory.
    pub fn name(&self) -> &str {
        self.program.rsplit('/').next().unwrap_or(&self.program)
    }

    /// The program as an experiment names it: one of a repository by its commit, so that it can be
    /// built again elsewhere.
    pub fn pinned_name(&self) -> String {
        match &self.built_from {
            Some(of) => format!("{}@git:{}#{}", self.name(), of.repository, of.commit),
            None => self.program.clone(),
        }
    }

    /// Program and arguments with blanks between them, to be shown and not to be run: a long
    /// argument is cut.
    pub fn command_line(&self) -> String {
        let mut line = match &self.built_from {
            Some(revision) => {
                let shown = revision.asked.as_deref();
                let short = revision.commit.get(..12).unwrap_or(&revision.commit);
                format!("{}@{}", self.name(), shown.unwrap_or(short))
            }
            None => self.program.clone(),
        };
        for arg in &self.args {
            line.push(' ');
            line.extend(arg.chars().take(SHOWN_CHARS));
            if arg.chars().nth(SHOWN_CHARS).is_some() {
                line.push('…');
            }
        }
        line
    }
}
