//! Descriptions of the tables of an experiment file, from which `docs/reference.md` is made.
//! Tests hold them against the structs and functions that read the tables: a key that is read
//! and not described here fails them.

mod workload;

use agent::arm::table::INGREDIENTS;
use model::KeyDef;
use workload::{
    ANTAGONIST, CLIENT, CO_RUNNER, LOADS, PLACEMENT, READY, ROLE, SERVER, SERVICE, WORKLOAD,
};

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
    EXPERIMENT, STOP, TUNE, EVENT, ARM, POLICY, WORKLOAD, LOADS, CLIENT, SERVER, SERVICE, READY,
    ANTAGONIST, CO_RUNNER, ROLE, PLACEMENT,
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
        KeyDef::new("tune", "table", "", "What `schedlab tune` varies."),
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
             `guest_death` (the guest panicked, hung or ended within a window), \
             `request > 100ms`, `wakeup > 10ms`, `lateness > 5ms` (latencies of native loads), \
             `request > p99.9 of the baseline`, `request > 3 x p99 of the baseline` (a bound that trials of the \
             baseline say before the first block), `stall > 100ms` \
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
            "decides",
            "`true` or `false`",
            "`false`",
            "Whether a cell goes on until there is a verdict on it, within the budget and the most blocks.",
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
        KeyDef::new(
            "cool-down",
            "duration",
            "`\"1s\"` of `ejected`, `error_exit` and `guest_death`",
            "Rest after a trial that such an event ended, before the next one.",
        ),
        KeyDef::new(
            "at-most",
            "number",
            "`100` of `ejected`, `error_exit` and `guest_death`",
            "Such ends of an arm in a cell after which it is measured there no more.",
        ),
    ],
    more: no_keys,
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
            "Blocks before a cell may end, decided or set aside.",
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
        KeyDef::new(
            "decided-by",
            "`metrics` or `events`",
            "`metrics`",
            "Whether a cell ends with the verdicts on its metrics, or with those on all its events and nothing \
             else, as in a hunt.",
        ),
    ],
    more: no_keys,
};

const TUNE: TableDef = TableDef {
    header: "[tune]",
    text: "What `schedlab tune` varies; a run passes over it.",
    keys: &[
        KeyDef::new(
            "vary",
            "list of texts",
            "",
            "Keys of arms with their values, as `--vary` has them: `slice=0.1ms..10ms log`.",
        ),
        KeyDef::new(
            "space",
            "list of names",
            "",
            "Ready spaces of schedulers, which `schedlab list spaces` shows.",
        ),
        KeyDef::new(
            "objective",
            "text",
            "all that decides",
            "Metrics to make better, and constraints as ratios to the baseline: \
             `minimise request_p99 where requests_per_sec >= 0.98`.",
        ),
        KeyDef::new(
            "must-not-worsen",
            "list of metrics",
            "",
            "Metrics that a winner must not make worse by more than the smallest effect.",
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        antagonist, arm, client, co_runner, event, file, grid, loads, placement, server, space,
        spread, stack,
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
        assert_described(&TUNE, key::accepted_keys::<space::Tuning>());
        assert_described(&LOADS, key::accepted_keys::<loads::Table>());
        let server = key::accepted_keys::<server::FileServer>();
        assert_described(&SERVER, server.iter().chain(&["kind"]));
        assert_described(&SERVICE, key::accepted_keys::<stack::FileService>());
        assert_described(&READY, key::accepted_keys::<stack::FileReady>());
        let antagonist = key::accepted_keys::<antagonist::FileAntagonist>();
        assert_described(&ANTAGONIST, antagonist.iter().chain(&["kind"]));
        let co_runner = key::accepted_keys::<co_runner::FileCoRunner>();
        assert_described(&CO_RUNNER, co_runner.iter().chain(&["kind"]));
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
