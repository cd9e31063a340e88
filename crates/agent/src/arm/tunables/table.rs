//! The table of logical names. To add a tunable: one entry.

/// Form of a tunable's value, in the kernel's own unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A duration that the kernel keeps in nanoseconds.
    Nanoseconds,
    /// A duration that the kernel keeps in microseconds.
    Microseconds,
    /// A duration that the kernel keeps in milliseconds.
    Milliseconds,
    /// A plain whole number.
    Count,
    /// `on` or `off`.
    Switch,
    /// One word of the file's list.
    Word(&'static [&'static str]),
}

/// One logical name.
#[derive(Debug, Clone, Copy)]
pub struct Tunable {
    /// Name in experiments and on the command line.
    pub name: &'static str,
    /// Below the root, the first that is there is taken.
    pub candidates: &'static [&'static str],
    /// Form of the value.
    pub unit: Unit,
    /// Range of the number in the kernel's unit.
    pub range: (i64, i64),
    /// Tunable that a kernel without this one has instead.
    pub nearest: Option<&'static str>,
    /// Value in the kernel's form that a kernel without this one behaves as, if it is known.
    pub absent: Option<&'static str>,
    /// One sentence.
    pub text: &'static str,
}

/// A dependency between tunables. The last one is written after the members whenever one of them
/// is, in both directions, also where it keeps its value.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Tunables whose values the last one depends on.
    pub members: &'static [&'static str],
    /// Tunable that is written after them.
    pub last: &'static str,
    /// Value of the last one with which the kernel takes any value of the members. Else it refuses
    /// every write after which the last one would be above a member.
    pub free: Option<&'static str>,
}

/// All rules by which the kernel ties tunables to each other. To add one: one entry.
pub const RULES: &[Rule] = &[
    // sched_rt_global_validate in kernel/sched/rt.c.
    Rule {
        members: &["rt_period"],
        last: "rt_runtime",
        free: Some("-1"),
    },
    // sched_dl_sysctls in kernel/sched/deadline.c.
    Rule {
        members: &["deadline_period_max_us"],
        last: "deadline_period_min_us",
        free: Some("1"),
    },
    // sysctl_sched_uclamp_handler in kernel/sched/core.c.
    Rule {
        members: &["kernel.sched_util_clamp_max"],
        last: "kernel.sched_util_clamp_min",
        free: Some("0"),
    },
    // sched_update_scaling in kernel/sched/fair.c: from the slices as they are when the scaling is
    // written come those that the kernel sets when a CPU goes or comes.
    Rule {
        members: &[
            "base_slice",
            "latency",
            "min_granularity",
            "wakeup_granularity",
        ],
        last: "tunable_scaling",
        free: None,
    },
];

/// Tunables that the kernel sets to 0 when the first is written, and which take no 0.
pub const FORGOTTEN: &[(&str, &str)] = &[
    ("vm.dirty_bytes", "vm.dirty_ratio"),
    ("vm.dirty_ratio", "vm.dirty_bytes"),
    ("vm.dirty_background_bytes", "vm.dirty_background_ratio"),
    ("vm.dirty_background_ratio", "vm.dirty_background_bytes"),
];

const SECOND_NS: i64 = 1_000_000_000;

/// All tunables by name, in the order in which they are listed.
pub const TABLE: &[Tunable] = &[
    Tunable {
        name: "base_slice",
        candidates: &["sys/kernel/debug/sched/base_slice_ns"],
        unit: Unit::Nanoseconds,
        range: (100_000, SECOND_NS),
        nearest: Some("min_granularity"),
        absent: None,
        text: "How long a task may run before EEVDF looks for another (Linux 6.6).",
    },
    Tunable {
        name: "latency",
        candidates: &[
            "proc/sys/kernel/sched_latency_ns",
            "sys/kernel/debug/sched/latency_ns",
        ],
        unit: Unit::Nanoseconds,
        range: (100_000, SECOND_NS),
        nearest: Some("base_slice"),
        absent: None,
        text: "Period in which CFS runs every task once (before Linux 6.6).",
    },
    Tunable {
        name: "min_granularity",
        candidates: &[
            "proc/sys/kernel/sched_min_granularity_ns",
            "sys/kernel/debug/sched/min_granularity_ns",
        ],
        unit: Unit::Nanoseconds,
        range: (100_000, SECOND_NS),
        nearest: Some("base_slice"),
        absent: None,
        text: "The shortest slice of CFS (before Linux 6.6).",
    },
    Tunable {
        name: "idle_min_granularity",
        candidates: &["sys/kernel/debug/sched/idle_min_granularity_ns"],
        unit: Unit::Nanoseconds,
        range: (100_000, SECOND_NS),
        nearest: Some("base_slice"),
        absent: None,
        text: "The shortest slice of SCHED_IDLE tasks in CFS (Linux 5.15 to 6.5).",
    },
    Tunable {
        name: "wakeup_granularity",
        candidates: &[
            "proc/sys/kernel/sched_wakeup_granularity_ns",
            "sys/kernel/debug/sched/wakeup_granularity_ns",
        ],
        unit: Unit::Nanoseconds,
        range: (0, SECOND_NS),
        nearest: Some("base_slice"),
        absent: None,
        text: "How far behind a woken task must be to preempt in CFS (before Linux 6.6).",
    },
    Tunable {
        name: "migration_cost",
        candidates: &[
            "proc/sys/kernel/sched_migration_cost_ns",
            "sys/kernel/debug/sched/migration_cost_ns",
        ],
        unit: Unit::Nanoseconds,
        range: (0, SECOND_NS),
        nearest: None,
        absent: None,
        text: "Time after its run for which a task counts as cache-hot and is not migrated.",
    },
    Tunable {
        name: "nr_migrate",
        candidates: &[
            "proc/sys/kernel/sched_nr_migrate",
            "sys/kernel/debug/sched/nr_migrate",
        ],
        unit: Unit::Count,
        range: (1, 4096),
        nearest: None,
        absent: None,
        text: "How many tasks one step of load balancing looks at.",
    },
    Tunable {
        name: "tunable_scaling",
        candidates: &[
            "proc/sys/kernel/sched_tunable_scaling",
            "sys/kernel/debug/sched/tunable_scaling",
        ],
        unit: Unit::Count,
        range: (0, 2),
        nearest: None,
        absent: None,
        text: "Growth of slices with the number of CPUs: 0 none, 1 logarithmic, 2 linear.",
    },
    Tunable {
        name: "preempt",
        candidates: &["sys/kernel/debug/sched/preempt"],
        unit: Unit::Word(&["none", "voluntary", "full", "lazy"]),
        range: (0, 0),
        nearest: None,
        absent: None,
        text: "The preemption model of a kernel with PREEMPT_DYNAMIC.",
    },
    Tunable {
        name: "autogroup",
        candidates: &["proc/sys/kernel/sched_autogroup_enabled"],
        unit: Unit::Switch,
        range: (0, 1),
        nearest: None,
        absent: Some("0"),
        text: "Whether every session is a scheduling group of its own.",
    },
    Tunable {
        name: "bore",
        candidates: &["proc/sys/kernel/sched_bore"],
        unit: Unit::Switch,
        range: (0, 1),
        nearest: None,
        absent: Some("0"),
        text: "Whether a kernel that is patched with BORE uses it.",
    },
    Tunable {
        name: "burst_inherit_type",
        candidates: &["proc/sys/kernel/sched_burst_inherit_type"],
        unit: Unit::Count,
        range: (0, 2),
        nearest: None,
        absent: None,
        text: "From whom a new task has its burst score under BORE: 0 nobody, 1 its parent, 2 an ancestor.",
    },
    Tunable {
        name: "burst_smoothness",
        candidates: &["proc/sys/kernel/sched_burst_smoothness"],
        unit: Unit::Count,
        range: (0, 3),
        nearest: None,
        absent: None,
        text: "How slowly the burst score of a task follows its bursts under BORE.",
    },
    Tunable {
        name: "burst_penalty_offset",
        candidates: &["proc/sys/kernel/sched_burst_penalty_offset"],
        unit: Unit::Count,
        range: (0, 64),
        nearest: None,
        absent: None,
        text: "Up to how many bits of nanoseconds a burst costs nothing under BORE.",
    },
    Tunable {
        name: "burst_penalty_scale",
        candidates: &["proc/sys/kernel/sched_burst_penalty_scale"],
        unit: Unit::Count,
        range: (0, 4095),
        nearest: None,
        absent: None,
        text: "How steeply the burst score grows with bursts under BORE, in 1024ths.",
    },
    Tunable {
        name: "burst_cache_lifetime",
        candidates: &["proc/sys/kernel/sched_burst_cache_lifetime"],
        unit: Unit::Nanoseconds,
        range: (0, 4_294_967_295),
        nearest: None,
        absent: None,
        text: "For how long BORE keeps the burst scores that new tasks have from others.",
    },
    Tunable {
        name: "cfs_bandwidth_slice",
        candidates: &["proc/sys/kernel/sched_cfs_bandwidth_slice_us"],
        unit: Unit::Microseconds,
        range: (1, 1_000_000),
        nearest: None,
        absent: None,
        text: "How much of a cgroup's CPU quota a CPU takes at a time.",
    },
    Tunable {
        name: "rr_timeslice",
        candidates: &["proc/sys/kernel/sched_rr_timeslice_ms"],
        unit: Unit::Milliseconds,
        range: (1, 10_000),
        nearest: None,
        absent: None,
        text: "The slice of SCHED_RR.",
    },
    Tunable {
        name: "rt_period",
        candidates: &["proc/sys/kernel/sched_rt_period_us"],
        unit: Unit::Microseconds,
        range: (1, 2_147_483_647),
        nearest: None,
        absent: None,
        text: "The period over which real-time tasks are limited.",
    },
    Tunable {
        name: "rt_runtime",
        candidates: &["proc/sys/kernel/sched_rt_runtime_us"],
        unit: Unit::Microseconds,
        range: (-1, 2_147_483_647),
        nearest: None,
        absent: None,
        text: "How much of rt_period real-time tasks may use; -1 for all.",
    },
    Tunable {
        name: "deadline_period_min_us",
        candidates: &["proc/sys/kernel/sched_deadline_period_min_us"],
        unit: Unit::Microseconds,
        range: (1, 4_194_304),
        nearest: None,
        absent: None,
        text: "The shortest period that SCHED_DEADLINE accepts.",
    },
    Tunable {
        name: "deadline_period_max_us",
        candidates: &["proc/sys/kernel/sched_deadline_period_max_us"],
        unit: Unit::Microseconds,
        range: (1, 4_294_967_295),
        nearest: None,
        absent: None,
        text: "The longest period that SCHED_DEADLINE accepts.",
    },
    Tunable {
        name: "numa_balancing",
        candidates: &["proc/sys/kernel/numa_balancing"],
        unit: Unit::Count,
        range: (0, 3),
        nearest: None,
        absent: None,
        text: "Automatic NUMA balancing: 0 off, 1 on, 2 memory tiering.",
    },
    Tunable {
        name: "schedstats",
        candidates: &["proc/sys/kernel/sched_schedstats"],
        unit: Unit::Switch,
        range: (0, 1),
        nearest: None,
        absent: None,
        text: "Scheduler statistics of the kernel, which cost time themselves.",
    },
];
