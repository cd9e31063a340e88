//! Descriptions of the tables of an experiment file, from which `docs/reference.md` is made.
//! Tests hold them against the structs and functions that read the tables: a key that is read
//! and not described here fails them.

use agent::arm::ingredient::INGREDIENTS;
use model::KeyDef;

/// A table of an experiment file.
#[derive(Debug, Clone, Copy)]
pub struct TableDef {
    /// Header of the table, as it is written in a file.
    pub header: &'static str,
    /// One or two sentences about the table.
    pub text: &'static str,
    /// Keys of the table.
    keys: &'static [KeyDef],
    /// Keys that entries of other tables bring.
    more: fn() -> Vec<KeyDef>,
}

impl TableDef {
    /// All keys of the table, in the order of their description.
    pub fn all_keys(&self) -> Vec<KeyDef> {
        [self.keys, &(self.more)()].concat()
    }
}

fn no_keys() -> Vec<KeyDef> {
    Vec::new()
}

/// All tables but those of a target and the keys of one kind of workload, server or antagonist.
pub const TABLES: &[TableDef] = &[
    EXPERIMENT, STOP, EVENT, ARM, POLICY, WORKLOAD, LOADS, CLIENT, SERVER, SERVICE, READY,
    ANTAGONIST, ROLE, PLACEMENT,
];

const EXPERIMENT: TableDef = TableDef {
    header: "",
    text: "Keys at the top of the file, before the first table, and the tables.",
    keys: &[
        KeyDef::new(
            "name",
            "text",
            "the name of the file",
            "Name of the experiment, which the directory of its results gets.",
        ),
        KeyDef::new(
            "question",
            "text",
            "",
            "Question that the reports put first.",
        ),
        KeyDef::new(
            "seed",
            "number",
            "`1`",
            "Seed of the order of trials and of the requests of generators.",
        ),
        KeyDef::new(
            "aa",
            "`true` or `false`",
            "`false`",
            "Measures the baseline a second time under another name, to show what this machine \
             makes of no difference.",
        ),
        KeyDef::new(
            "collect",
            "list of collectors",
            "those that are always used",
            "Collectors that run beside each trial.",
        ),
        KeyDef::new(
            "perf",
            "list of perf events",
            "",
            "Events that are counted in each trial, as perf list(1) names them.",
        ),
        KeyDef::new(
            "trace",
            "`worst`, or `worst:` with a kind of latency",
            "no trace",
            "Keeps the scheduling events around the worst latency of each arm in each cell, as a \
             Perfetto trace: of the first kind of latency that decides, or of this one.",
        ),
        KeyDef::new(
            "in-place",
            "`auto`, `always` or `never`",
            "`never`",
            "The same key of each workload that does not have it.",
        ),
        KeyDef::new(
            "pause",
            "duration",
            "no pause",
            "Time for which nothing is run between the trials of two cells, so that the machine cools \
             down and writes what is left.",
        ),
        KeyDef::new("stop", "table", "", "Rule that ends the run."),
        KeyDef::new(
            "event",
            "list of tables",
            "",
            "Rare events that are counted in each trial.",
        ),
        KeyDef::new(
            "target",
            "table",
            "this machine",
            "Machine that is measured.",
        ),
        KeyDef::new(
            "arm",
            "list of tables",
            "needed",
            "Arms, the first of which is the baseline.",
        ),
        KeyDef::new(
            "workload",
            "list of tables",
            "needed",
            "Workloads, each under every arm.",
        ),
    ],
    more: no_keys,
};

const EVENT: TableDef = TableDef {
    header: "[[event]]",
    text: "An event that should be rare, counted in each trial and compared by its rate. Choose its bound \
           before there are results.",
    keys: &[
        KeyDef::new(
            "when",
            "event",
            "needed",
            "`ejected` (the kernel threw the sched_ext scheduler out), `error_exit` (it ended by itself), \
             `request > 100ms`, `wakeup > 10ms`, `lateness > 5ms` (latencies of native loads), `stall > 100ms` \
             (a runnable task did not run for so long), `failed_request`, `oom_kill`, or \
             `kernel_log = REGEX` (a line of the kernel's log).",
        ),
        KeyDef::new("name", "text", "the text of `when`", "Name in reports."),
        KeyDef::new(
            "cluster",
            "duration",
            "`\"1s\"`",
            "Time after an event in which further ones belong to it.",
        ),
        KeyDef::new(
            "same-within",
            "number above 1",
            "",
            "Ratio of rates within which arms count as the same.",
        ),
        KeyDef::new(
            "same-below",
            "rate, `\"0.1/min\"`",
            "",
            "Rate below which arms count as the same, whatever the ratio.",
        ),
    ],
};

const STOP: TableDef = TableDef {
    header: "[stop]",
    text: "The rule that ends a run. A cell ends when its deciding metrics are decided.",
    keys: &[
        KeyDef::new(
            "budget",
            "duration",
            "",
            "Longest time of the run; it takes a tenth more where that is enough for the least number of blocks that can decide.",
        ),
        KeyDef::new(
            "confidence",
            "share below 1",
            "`0.95`",
            "One minus the rate of false findings of one comparison.",
        ),
        KeyDef::new(
            "smallest-effect",
            "percent",
            "`\"2%\"`",
            "Smallest change that matters; smaller ones count as the same.",
        ),
        KeyDef::new(
            "min-blocks",
            "number",
            "`3`",
            "Blocks before a cell may end.",
        ),
        KeyDef::new(
            "max-blocks",
            "number",
            "`40`",
            "Blocks after which a cell ends undecided.",
        ),
        KeyDef::new(
            "max-attempts",
            "number",
            "`3`",
            "Attempts at a trial that is void or fails.",
        ),
    ],
    more: no_keys,
};

const ARM: TableDef = TableDef {
    header: "[[arm]]",
    text: "One side of the comparison. An arm without changes runs the machine as it is.",
    keys: &[
        KeyDef::new("name", "text", "needed", "Name of the arm in all tables."),
        KeyDef::new(
            "baseline",
            "`true` or `false`",
            "the first arm",
            "Makes this the arm that the others are compared with.",
        ),
        KeyDef::new(
            "to",
            "`load`, `server`, `antagonist`, or a daemon: `{ unit = … }`, `{ cgroup = … }`, \
             `{ container = … }`, `{ pid = … }`, `{ name = … }`",
            "the server where every workload has one, else the load",
            "Role that policy, `cpus`, `quota`, `uclamp` and `env` are for, or the processes of the \
             target, running already, that policy and `cpus` are for, and `weight` and `quota` of \
             their cgroup.",
        ),
        KeyDef::new(
            "for-each",
            "table of lists",
            "",
            "Makes an arm for each combination of these parameters, which other keys name in \
             braces.",
        ),
        KeyDef::new(
            "where",
            "condition",
            "",
            "Leaves out the combinations for which it does not hold.",
        ),
        KeyDef::new(
            "collect",
            "list of collectors",
            "",
            "Old place of the experiment's `collect`; all arms must agree.",
        ),
    ],
    more: keys_of_ingredients,
};

fn keys_of_ingredients() -> Vec<KeyDef> {
    let ingredients = INGREDIENTS.iter();
    ingredients
        .flat_map(|ingredient| ingredient.keys())
        .copied()
        .collect()
}

const POLICY: TableDef = TableDef {
    header: "policy = { … }",
    text: "Scheduling policy of an arm or of a role, as `sched_setattr(2)` takes it.",
    keys: agent::arm::POLICY_KEYS,
    more: no_keys,
};

const WORKLOAD: TableDef = TableDef {
    header: "[[workload]]",
    text: "Keys that every kind of workload has, beside those of the kind.",
    keys: &[
        KeyDef::new(
            "kind",
            "kind of workload",
            "needed",
            "Kind of the workload.",
        ),
        KeyDef::new(
            "name",
            "text",
            "the kind",
            "Name of the workload in all tables.",
        ),
        KeyDef::new(
            "loads",
            "list or table of loads",
            "that of the kind",
            "Loads, each of which is a cell of its own.",
        ),
        KeyDef::new(
            "duration",
            "duration",
            "that of the kind",
            "Length of the window.",
        ),
        KeyDef::new(
            "warmup",
            "duration",
            "that of the kind",
            "Time under load before the window opens.",
        ),
        KeyDef::new(
            "snapshot-warmup",
            "duration",
            "`warmup`",
            "Warm-up of the load after which the guest is saved, with `reset = \"snapshot\"` or \
             `\"block-snapshot\"`: each snapshot costs it once, and \
             no trial does.",
        ),
        KeyDef::new(
            "time-limit",
            "duration",
            "that of the kind",
            "Time after which a trial fails.",
        ),
        KeyDef::new(
            "metrics",
            "list of metrics",
            "those of the kind that decide",
            "Metrics that decide when a cell ends.",
        ),
        KeyDef::new(
            "load-on",
            "`target` or `controller`",
            "`target`",
            "Machine that the load runs on. On the controller it takes no CPU of a guest.",
        ),
        KeyDef::new(
            "in-place",
            "`auto`, `always` or `never`",
            "that of the experiment, or `never`",
            "Whether the arms take turns in windows of one running process, which finds small \
             changes much sooner, or each trial is a process of its own. With `auto` they take \
             turns where they can, in windows that a pilot chooses.",
        ),
        KeyDef::new(
            "turn",
            "duration",
            "`\"200ms\"`",
            "Length of a window of arms that take turns. A metric needs enough requests in it: a \
             99th percentile a thousand.",
        ),
        KeyDef::new(
            "washout",
            "duration",
            "a tenth of the turn, at least `\"20ms\"`",
            "Time before each window that does not count. An arm must be proven to be in force \
             within its first half; a sched_ext scheduler needs a second or more to attach.",
        ),
        KeyDef::new(
            "files",
            "table of texts",
            "",
            "Files of the load's folder, by name. The folder is made for each trial; `{folder}` in \
             the texts of the workload's keys is its path.",
        ),
        KeyDef::new(
            "keep",
            "list of paths",
            "",
            "Files and folders of the load's folder that each trial keeps.",
        ),
        KeyDef::new(
            "keep-limit",
            "size",
            "`\"32MiB\"`",
            "Most that one trial keeps.",
        ),
        KeyDef::new(
            "server",
            "table",
            "",
            "Server that the load asks, in its short form.",
        ),
        KeyDef::new(
            "service",
            "list of tables",
            "",
            "Services, in the order of their start.",
        ),
        KeyDef::new("antagonist", "list of tables", "", "Programs that disturb."),
        KeyDef::new(
            "antagonists",
            "`together` or `each`",
            "`together`",
            "Either all antagonists run in every trial, or a workload is made without any and \
             one for each of them.",
        ),
        KeyDef::new(
            "placement",
            "list of tables",
            "",
            "CPUs of the roles, one workload each.",
        ),
    ],
    more: no_keys,
};

const LOADS: TableDef = TableDef {
    header: "loads = { … }",
    text: "A scan (`from`, `to`, `step`), a search in each trial for the highest rate that holds a \
           service level (`find`, `slo`), or shares of the highest rate of the baseline, which is \
           looked for once before the first block (`shares-of-max`, `slo`).",
    keys: &[
        KeyDef::new("from", "load", "`1k/s` in a search", "First load."),
        KeyDef::new("to", "load", "`1M/s` in a search", "Last load."),
        KeyDef::new("step", "load", "", "Step of a scan."),
        KeyDef::new("find", "`max`", "", "Begins a search."),
        KeyDef::new(
            "shares-of-max",
            "list of percentages",
            "",
            "Shares of the highest rate, one load each.",
        ),
        KeyDef::new(
            "slo",
            "`\"p99 < 1ms\"`",
            "",
            "Service level that the rate must hold.",
        ),
    ],
    more: no_keys,
};

const CLIENT: TableDef = TableDef {
    header: "[[workload]] with kind http or memcached",
    text: "Keys of the open-loop generator, which asks at intended times.",
    keys: &[
        KeyDef::new(
            "connections",
            "number",
            "`32`",
            "Connections to the server.",
        ),
        KeyDef::new("threads", "number", "`1`", "Threads of the generator."),
        KeyDef::new(
            "arrivals",
            "`poisson` or `constant`",
            "`poisson`",
            "Distribution of the time between requests.",
        ),
        KeyDef::new(
            "timeout",
            "duration",
            "`\"1s\"`",
            "Time after which a request has failed.",
        ),
        KeyDef::new("load-cpus", "CPUs", "", "CPUs of the generator's threads."),
        KeyDef::new(
            "busy-poll",
            "`true` or `false`",
            "`false`",
            "Looks for answers without sleep, which takes a whole CPU for each thread.",
        ),
        KeyDef::new(
            "allow-remote",
            "`true` or `false`",
            "`false`",
            "Permits a server on another machine.",
        ),
    ],
    more: no_keys,
};

const SERVER: TableDef = TableDef {
    header: "[workload.server]",
    text: "The server that the load asks, with the keys of a role and those of its kind.",
    keys: &[
        KeyDef::new(
            "kind",
            "kind of server",
            "needed",
            "Kind of the program that answers.",
        ),
        KeyDef::new(
            "ready-limit",
            "duration",
            "`\"10s\"`",
            "Longest time until it is ready.",
        ),
    ],
    more: no_keys,
};

const SERVICE: TableDef = TableDef {
    header: "[[workload.service]]",
    text: "A service of the workload, with the keys of a role. `{port}`, `{port.NAME}`, \
           `{folder}` and `{SERVICE.PORT}` in its texts are filled in.",
    keys: &[
        KeyDef::new("name", "text", "needed", "Name of the service."),
        KeyDef::new(
            "command",
            "list of words",
            "needed",
            "Program with its arguments.",
        ),
        KeyDef::new(
            "env",
            "table of texts",
            "",
            "Variables of the environment, beside those that schedlab has.",
        ),
        KeyDef::new(
            "directory",
            "path",
            "the service's folder",
            "Working directory.",
        ),
        KeyDef::new(
            "files",
            "table of texts",
            "",
            "Files of the service's folder, by name.",
        ),
        KeyDef::new(
            "before-start",
            "list of commands",
            "",
            "Commands before the service starts, each of which must succeed.",
        ),
        KeyDef::new(
            "when-ready",
            "list of commands",
            "",
            "Commands when the service is ready, each of which must succeed.",
        ),
        KeyDef::new(
            "ports",
            "list of names",
            "",
            "Ports of the loopback address, chosen among the free ones. The first is the main \
             one.",
        ),
        KeyDef::new(
            "ready",
            "table `ready`",
            "all ports take connections",
            "Sign that the service is ready.",
        ),
        KeyDef::new(
            "ready-limit",
            "duration",
            "`\"1m\"`",
            "Longest time until it is ready, and of each of its commands.",
        ),
        KeyDef::new(
            "stop-signal",
            "`TERM`, `INT`, `QUIT` or `KILL`",
            "`TERM`",
            "Signal that asks it to end.",
        ),
        KeyDef::new(
            "stop-limit",
            "duration",
            "`\"10s\"`",
            "Time after that signal until it is killed.",
        ),
        KeyDef::new(
            "keep",
            "list of paths",
            "",
            "Files and folders of its folder that each trial keeps.",
        ),
    ],
    more: no_keys,
};

const READY: TableDef = TableDef {
    header: "ready = { … }",
    text: "The sign that a service is ready: one of `path`, `command` and `log`.",
    keys: &[
        KeyDef::new(
            "path",
            "path of a URL",
            "",
            "HTTP request to the main port.",
        ),
        KeyDef::new("status", "number", "`200`", "Status of its answer."),
        KeyDef::new("command", "list of words", "", "Command that succeeds."),
        KeyDef::new("log", "text", "", "Text that the service prints."),
    ],
    more: no_keys,
};

const ANTAGONIST: TableDef = TableDef {
    header: "[[workload.antagonist]]",
    text: "A program that disturbs through the whole window, with the keys of a role and those \
           of its kind.",
    keys: &[
        KeyDef::new(
            "kind",
            "kind of antagonist",
            "needed",
            "Kind of the program that disturbs.",
        ),
        KeyDef::new("name", "text", "the kind", "Name of the antagonist."),
    ],
    more: no_keys,
};

const ROLE: TableDef = TableDef {
    header: "Keys of every role",
    text: "Placement of a server, a service or an antagonist. Each is read back and proven.",
    keys: &[
        KeyDef::new("cpus", "CPUs", "", "CPUs that its threads run on."),
        KeyDef::new(
            "weight",
            "1 to 10000",
            "",
            "Weight of a cgroup of its own (`cpu.weight`).",
        ),
        KeyDef::new(
            "quota",
            "percent of one CPU",
            "",
            "CPU time of a cgroup of its own (`cpu.max`).",
        ),
        KeyDef::new("nice", "-20 to 19", "", "Nice value."),
        KeyDef::new(
            "policy",
            "table `policy`",
            "",
            "Scheduling policy of its threads.",
        ),
        KeyDef::new(
            "memory-node",
            "number",
            "",
            "NUMA node that its memory comes from.",
        ),
    ],
    more: no_keys,
};

const PLACEMENT: TableDef = TableDef {
    header: "[[workload.placement]]",
    text: "CPUs of the roles in place of their own; each placement makes a workload.",
    keys: &[
        KeyDef::new(
            "name",
            "text",
            "needed",
            "Name that the workload gets beside its own.",
        ),
        KeyDef::new("load-cpus", "CPUs", "", "CPUs of the load."),
        KeyDef::new("server-cpus", "CPUs", "", "CPUs of the server."),
        KeyDef::new("antagonist-cpus", "CPUs", "", "CPUs of the antagonists."),
    ],
    more: no_keys,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        antagonist, arm, client, event, file, grid, loads, placement, server, spread, stack,
    };
    use crate::{stop, workload};
    use load::Keys;
    use model::{Arm, key};
    use std::collections::BTreeSet;

    /// The keys that are described are these, and each is described once.
    fn assert_described<'a>(table: &TableDef, read: impl IntoIterator<Item = &'a &'a str>) {
        let described: Vec<&str> = table.all_keys().iter().map(|key| key.name).collect();
        let named: BTreeSet<&str> = described.iter().copied().collect();
        let read: BTreeSet<&str> = read.into_iter().copied().collect();
        assert_eq!(named, read, "{}", table.header);
        assert_eq!(
            described.len(),
            named.len(),
            "{}: one is there twice",
            table.header
        );
    }

    fn no_table() -> Keys {
        Keys::new(serde_json::Map::new())
    }

    #[test]
    fn every_key_of_a_struct_is_described() {
        let own = key::accepted_keys::<file::FileExperiment>();
        assert_described(&EXPERIMENT, own.iter().chain(&file::TAKEN));
        assert_described(&EVENT, key::accepted_keys::<event::FileEvent>());
        assert_described(&STOP, key::accepted_keys::<stop::FileStop>());
        assert_described(&LOADS, key::accepted_keys::<loads::Table>());
        let server = key::accepted_keys::<server::FileServer>();
        assert_described(&SERVER, server.iter().chain(&["kind"]));
        assert_described(&SERVICE, key::accepted_keys::<stack::FileService>());
        assert_described(&READY, key::accepted_keys::<stack::FileReady>());
        let antagonist = key::accepted_keys::<antagonist::FileAntagonist>();
        assert_described(&ANTAGONIST, antagonist.iter().chain(&["kind"]));
        assert_described(&PLACEMENT, key::accepted_keys::<spread::FilePlacement>());
    }

    #[test]
    fn every_key_that_is_read_beside_a_struct_is_described() {
        let common = key::accepted_keys::<workload::CommonKeys>();
        let taken = workload::TAKEN.iter().chain(&["kind"]);
        assert_described(&WORKLOAD, common.iter().chain(taken));

        let mut keys = no_table();
        for ingredient in INGREDIENTS.iter() {
            ingredient.read(&mut keys, &mut Arm::default());
        }
        let own = key::accepted_keys::<arm::FileArm>();
        assert_described(&ARM, keys.asked_keys().iter().chain(&grid::KEYS).chain(own));

        let mut keys = no_table();
        client::client(&mut keys);
        assert_described(&CLIENT, keys.asked_keys());
        let mut keys = no_table();
        placement::placement(&mut keys);
        assert_described(&ROLE, keys.asked_keys());
    }
}
