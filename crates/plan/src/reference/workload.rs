//! The tables of a workload and of the roles beside it.

use super::{TableDef, no_keys};
use model::KeyDef;

pub(super) const WORKLOAD: TableDef = TableDef {
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
            "load-way",
            "`tunnel` or `network`",
            "`tunnel`",
            "Way from a load on the controller to the services: forwarded ports, or the network between \
             the two. With `network` the server listens at the address of the target, beyond loopback.",
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
            "co-runner",
            "list of tables",
            "",
            "Loads that work and are measured in the same window.",
        ),
        KeyDef::new(
            "co-runners",
            "`together` or `each`",
            "`together`",
            "Either all loads are measured together only, or each of them is measured alone as well, in a cell of \
             its own.",
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

pub(super) const LOADS: TableDef = TableDef {
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

pub(super) const CLIENT: TableDef = TableDef {
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

pub(super) const SERVER: TableDef = TableDef {
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

pub(super) const SERVICE: TableDef = TableDef {
    header: "[[workload.service]]",
    text: "A service of the workload, with the keys of a role: a command, or a container of an image. \
           `{port}`, `{port.NAME}`, `{folder}`, `{container}` and `{SERVICE.PORT}` in its texts are filled in.",
    keys: &[
        KeyDef::new("name", "text", "needed", "Name of the service."),
        KeyDef::new(
            "command",
            "list of words",
            "needed, unless there is an image",
            "Program with its arguments; in a container, what follows the image.",
        ),
        KeyDef::new(
            "image",
            "name of an image",
            "",
            "Image that the engine has: the service is a container of it, new in each trial. Nothing is \
             fetched.",
        ),
        KeyDef::new(
            "engine",
            "`podman` or `docker`",
            "the first that is there",
            "Engine of the container.",
        ),
        KeyDef::new(
            "options",
            "list of words",
            "",
            "Options of the engine's `create`, such as `--memory=1g`.",
        ),
        KeyDef::new(
            "container-ports",
            "table of numbers",
            "",
            "Ports that the program listens on in a network of the container's own, by the names in \
             `ports`. Without it the container has the network of the machine, and the program listens \
             on `{port}`.",
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
            "the service's folder, or that of the image",
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

pub(super) const READY: TableDef = TableDef {
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

pub(super) const ANTAGONIST: TableDef = TableDef {
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

pub(super) const CO_RUNNER: TableDef = TableDef {
    header: "[[workload.co-runner]]",
    text: "A load that works and is measured in the window of the workload, with the keys of its kind. Its metrics \
           begin with its name: `web_request_p99`.",
    keys: &[
        KeyDef::new("kind", "kind of workload", "needed", "Kind of the load."),
        KeyDef::new("name", "text", "the kind", "Name of the co-runner."),
        KeyDef::new(
            "load",
            "load",
            "that of the kind",
            "Its load, the same in all trials.",
        ),
    ],
    more: no_keys,
};

pub(super) const ROLE: TableDef = TableDef {
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

pub(super) const PLACEMENT: TableDef = TableDef {
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
