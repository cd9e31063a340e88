//! Workloads: the keys of `[[workload]]` by kind, their defaults, and the short
//! form of the command line (`wakeup`, `hackbench:4`, `wakeup:50%,200%`).

use crate::error::PlanError;
use crate::loads::Loads;
use crate::services::{self, ClientKeys, FileAntagonist, FileServer};
use crate::units::{Duration, Percent, Rate, Size, WrittenSizes, parse_load};
use model::workload::Arrivals;
use model::{
    CommandParams, HackbenchParams, HackbenchTransport, HttpParams, Kind, Load, MemcachedParams,
    SchbenchParams, ServerProgram, Sizes, WakeupParams, Workload,
};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

const SECOND_NS: u64 = 1_000_000_000;

/// Kinds that `kind = "…"` knows.
pub const KINDS: &[&str] = &[
    "wakeup",
    "hackbench",
    "schbench",
    "command",
    "http",
    "memcached",
];

/// Keys that every kind has.
macro_rules! keys {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident : $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
        pub(crate) struct $name {
            name: Option<String>,
            loads: Option<Loads>,
            duration: Option<Duration>,
            warmup: Option<Duration>,
            time_limit: Option<Duration>,
            metrics: Option<Vec<String>>,
            server: Option<Spanned<FileServer>>,
            antagonist: Option<Vec<Spanned<FileAntagonist>>>,
            // Taken out before (crate::spread); here for the nearest key.
            #[serde(rename = "antagonists")]
            _antagonists: Option<()>,
            #[serde(rename = "placement")]
            _placement: Option<()>,
            $($(#[$field_doc])* $field: Option<$type>,)*
        }

        impl $name {
            fn into_workload(self, kind: Kind, usual: Usual) -> Result<Workload, PlanError> {
                let duration_ns = self.duration.map_or(usual.duration_ns, |d| d.0);
                let warmup_ns = self.warmup.map_or(usual.warmup_ns, |d| d.0);
                Ok(Workload {
                    name: self.name.unwrap_or_else(|| usual.name.to_owned()),
                    loads: match self.loads {
                        Some(loads) => loads.0,
                        None => vec![usual.load],
                    },
                    duration_ns,
                    warmup_ns,
                    time_limit_ns: self.time_limit.map_or(
                        usual.time_limit_ns.unwrap_or(60 * SECOND_NS + warmup_ns + 10 * duration_ns),
                        |d| d.0,
                    ),
                    metrics: self.metrics.unwrap_or_default(),
                    server: self
                        .server
                        .map(services::server)
                        .transpose()
                        .map_err(|e| e.within("server"))?,
                    antagonists: services::antagonists(self.antagonist.unwrap_or_default())?,
                    variant: None,
                    kind,
                })
            }
        }
    };
}

/// What holds where the file says nothing.
struct Usual {
    name: String,
    load: Load,
    duration_ns: u64,
    warmup_ns: u64,
    time_limit_ns: Option<u64>,
}

keys!(WakeupKeys {
    message_threads: u32,
    workers: u32,
    rate: Rate,
    arrivals: Arrivals,
    sleep: Duration,
    operations: u32,
    footprint: Size,
    cpu_lock: bool,
});

keys!(SchbenchKeys {
    message_threads: u32,
    args: Vec<String>,
});

keys!(HackbenchKeys {
    threads: bool,
    transport: HackbenchTransport,
    message_size: Size,
    fds: u32,
    loops: u64,
});

keys!(CommandKeys {
    command: Vec<String>,
    directory: String,
    prepare: Vec<String>,
});

/// Keys that both open-loop loads of services have.
macro_rules! client_keys {
    ($name:ident { $($field:ident : $type:ty),* $(,)? }) => {
        keys!($name {
            connections: u32,
            threads: u32,
            arrivals: Arrivals,
            timeout: Duration,
            load_cpus: String,
            busy_poll: bool,
            allow_remote: bool,
            $($field: $type,)*
        });

        impl $name {
            fn client(&mut self) -> ClientKeys {
                ClientKeys {
                    connections: self.connections,
                    threads: self.threads,
                    arrivals: self.arrivals,
                    timeout: self.timeout,
                    load_cpus: self.load_cpus.take(),
                    busy_poll: self.busy_poll,
                    allow_remote: self.allow_remote,
                }
            }
        }
    };
}

client_keys!(HttpKeys {
    url: String,
    method: String,
    headers: BTreeMap<String, String>,
    body: String,
});

client_keys!(MemcachedKeys {
    address: String,
    gets: Percent,
    keys: u64,
    key_size: WrittenSizes,
    value_size: WrittenSizes,
    preload: bool,
});

/// A workload from the table of its kind.
pub(crate) fn from_table<'de, D>(kind: &str, table: D) -> Result<Workload, PlanError>
where
    D: serde::Deserializer<'de, Error = toml::de::Error>,
{
    match kind {
        "wakeup" => wakeup(WakeupKeys::deserialize(table)?),
        "schbench" => schbench(SchbenchKeys::deserialize(table)?),
        "hackbench" | "messaging" => hackbench(HackbenchKeys::deserialize(table)?),
        "command" => command(CommandKeys::deserialize(table)?),
        "http" => http(HttpKeys::deserialize(table)?),
        "memcached" => memcached(MemcachedKeys::deserialize(table)?),
        _ => Err(unknown_kind(kind)),
    }
}

fn unknown_kind(kind: &str) -> PlanError {
    let help = match crate::nearest(kind, KINDS.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("one of {}", KINDS.join(", ")),
    };
    PlanError::new(format!("there is no workload `{kind}`")).with_help(help)
}

/// schbench sleeps 100 us and multiplies 5 times over 256 KiB; a smaller footprint
/// makes requests short enough for a 99th percentile in a trial of two seconds.
fn wakeup(mut keys: WakeupKeys) -> Result<Workload, PlanError> {
    let params = WakeupParams {
        message_threads: keys.message_threads.take().unwrap_or(1),
        workers: keys.workers.take(),
        rate_per_sec: keys.rate.take().map(|r| r.0),
        arrivals: keys.arrivals.take().unwrap_or_default(),
        sleep_ns: keys.sleep.take().map_or(100_000, |d| d.0),
        operations: keys.operations.take().unwrap_or(5),
        footprint_bytes: keys.footprint.take().map_or(32 << 10, |s| s.0),
        cpu_lock: keys.cpu_lock.take().unwrap_or(true),
    };
    let usual = Usual {
        name: "wakeup".to_owned(),
        load: Load::PercentOfCpus(100.0),
        duration_ns: 2 * SECOND_NS,
        warmup_ns: SECOND_NS / 2,
        time_limit_ns: None,
    };
    keys.into_workload(Kind::Wakeup(params), usual)
}

fn schbench(mut keys: SchbenchKeys) -> Result<Workload, PlanError> {
    let params = SchbenchParams {
        message_threads: keys.message_threads.take().unwrap_or(1),
        args: keys.args.take().unwrap_or_default(),
    };
    let usual = Usual {
        name: "schbench".to_owned(),
        load: Load::PercentOfCpus(100.0),
        duration_ns: 5 * SECOND_NS,
        warmup_ns: SECOND_NS,
        time_limit_ns: None,
    };
    keys.into_workload(Kind::Schbench(params), usual)
}

fn hackbench(mut keys: HackbenchKeys) -> Result<Workload, PlanError> {
    let params = HackbenchParams {
        threads: keys.threads.take().unwrap_or(false),
        transport: keys.transport.take().unwrap_or(HackbenchTransport::Socket),
        message_bytes: keys.message_size.take().map_or(100, |s| s.0 as u32),
        fds: keys.fds.take().unwrap_or(20),
        loops: keys.loops.take(),
    };
    let usual = Usual {
        name: "hackbench".to_owned(),
        load: Load::Count(1),
        duration_ns: SECOND_NS,
        warmup_ns: 0,
        time_limit_ns: Some(120 * SECOND_NS),
    };
    keys.into_workload(Kind::Hackbench(params), usual)
}

fn command(mut keys: CommandKeys) -> Result<Workload, PlanError> {
    let argv = keys.command.take().unwrap_or_default();
    if argv.is_empty() {
        return Err(PlanError::new("the workload `command` needs its command")
            .with_help("command = [\"make\", \"-j8\"]"));
    }
    let params = CommandParams {
        directory: keys.directory.take(),
        prepare: keys.prepare.take().unwrap_or_default(),
        argv,
    };
    let usual = Usual {
        name: program_name(&params.argv),
        load: Load::One,
        duration_ns: 0,
        warmup_ns: 0,
        time_limit_ns: Some(600 * SECOND_NS),
    };
    keys.into_workload(Kind::Command(params), usual)
}

fn http(mut keys: HttpKeys) -> Result<Workload, PlanError> {
    let params = HttpParams {
        url: keys.url.take().unwrap_or_else(|| "/".to_owned()),
        method: keys.method.take().unwrap_or_else(|| "GET".to_owned()),
        headers: keys.headers.take().unwrap_or_default(),
        body: keys.body.take().unwrap_or_default(),
        client: services::client(keys.client()),
    };
    let usual = usual_service("http", keys.loads.as_ref());
    let echo = ServerProgram::Echo { threads: 1 };
    let server = params.url.starts_with('/').then_some(echo);
    let workload = keys.into_workload(Kind::Http(params), usual)?;
    Ok(served(workload, server))
}

/// Keys, values and mix are those of Facebook's pool ETC unless the file says otherwise.
fn memcached(mut keys: MemcachedKeys) -> Result<Workload, PlanError> {
    let params = MemcachedParams {
        address: keys.address.take(),
        // 30 gets for a set.
        gets_percent: keys.gets.take().map_or(100.0 * 30.0 / 31.0, |p| p.0),
        keys: keys.keys.take().unwrap_or(10_000),
        key_size: keys.key_size.take().map_or(Sizes::Etc, |s| s.0),
        value_size: keys.value_size.take().map_or(Sizes::Etc, |s| s.0),
        preload: keys.preload.take().unwrap_or(true),
        client: services::client(keys.client()),
    };
    let usual = usual_service("memcached", keys.loads.as_ref());
    let memcached = ServerProgram::Memcached {
        threads: 1,
        args: Vec::new(),
    };
    let server = params.address.is_none().then_some(memcached);
    let workload = keys.into_workload(Kind::Memcached(params), usual)?;
    Ok(served(workload, server))
}

/// With what answers where the file names neither a server nor an address.
fn served(mut workload: Workload, usual: Option<ServerProgram>) -> Workload {
    let server = workload.server.take();
    workload.server = server.or_else(|| usual.map(services::usual_server));
    workload
}

/// A search measures many rates in a trial, each of them shortly.
fn usual_service(name: &str, loads: Option<&Loads>) -> Usual {
    let searches = loads.is_some_and(|l| l.0.iter().any(|l| matches!(l, Load::MaxRate(_))));
    let (duration_ns, warmup_ns) = match searches {
        true => (2 * SECOND_NS, SECOND_NS / 5),
        false => (5 * SECOND_NS, SECOND_NS),
    };
    Usual {
        name: name.to_owned(),
        load: Load::RatePerSec(1_000.0),
        duration_ns,
        warmup_ns,
        time_limit_ns: searches.then_some(600 * SECOND_NS),
    }
}

fn program_name(argv: &[String]) -> String {
    let program = argv.first().map_or("command", String::as_str);
    program.rsplit('/').next().unwrap_or(program).to_owned()
}

/// `KIND` or `KIND:LOAD,LOAD`.
pub fn parse_workload(text: &str) -> Result<Workload, PlanError> {
    let (kind, loads) = text
        .split_once(':')
        .map_or((text, None), |(k, l)| (k, Some(l)));
    let mut workload = match kind {
        "wakeup" => wakeup(WakeupKeys::default())?,
        "schbench" => schbench(SchbenchKeys::default())?,
        "hackbench" => hackbench(HackbenchKeys::default())?,
        "http" => http(HttpKeys::default())?,
        "memcached" => memcached(MemcachedKeys::default())?,
        "command" => {
            return Err(PlanError::new("a command is not given with -w")
                .with_help("write it after two dashes: schedlab run -a default -- make -j4"));
        }
        _ => return Err(unknown_kind(kind)),
    };
    if let Some(loads) = loads {
        workload.loads = loads
            .split(',')
            .map(|l| parse_load(l).map_err(PlanError::new))
            .collect::<Result<_, _>>()?;
    }
    Ok(workload)
}

/// Any command line as a workload.
pub fn command_workload(argv: &[String]) -> Result<Workload, PlanError> {
    command(CommandKeys {
        command: Some(argv.to_vec()),
        ..CommandKeys::default()
    })
}

/// What the parser of one kind cannot see.
pub(crate) fn check_workload(workload: &Workload) -> Result<(), PlanError> {
    let name = &workload.name;
    if workload.loads.is_empty() {
        return Err(
            PlanError::new(format!("the workload `{name}` has no loads"))
                .with_help("loads = [1]")
                .about("loads"),
        );
    }
    let service = matches!(&workload.kind, Kind::Http(_) | Kind::Memcached(_));
    let rate_makes_sense = service || matches!(&workload.kind, Kind::Wakeup(_));
    for load in &workload.loads {
        if matches!(load, Load::RatePerSec(_)) && !rate_makes_sense {
            return Err(PlanError::new(format!(
                "the workload `{name}` has no rate, but a load of {load}"
            ))
            .with_help("give a number or a percentage of the CPUs")
            .about("loads"));
        }
        if matches!(load, Load::MaxRate(_)) && !service {
            return Err(PlanError::new(format!(
                "the workload `{name}` cannot look for its highest rate"
            ))
            .with_help("only `http` and `memcached` can; give loads as a list")
            .about("loads"));
        }
        if service && !matches!(load, Load::RatePerSec(_) | Load::MaxRate(_)) {
            return Err(PlanError::new(format!(
                "the load {load} of the workload `{name}` is not a rate"
            ))
            .with_help("loads = [\"1k/s\", \"5k/s\"]")
            .about("loads"));
        }
    }
    let windowed = rate_makes_sense || matches!(&workload.kind, Kind::Schbench(_));
    if windowed && workload.duration_ns < SECOND_NS / 10 {
        return Err(PlanError::new(format!(
            "the workload `{name}` is measured for less than 100ms"
        ))
        .with_help("duration = \"2s\"")
        .about("duration"));
    }
    services::check_service(workload)?;
    check_params(workload)
}

fn check_params(workload: &Workload) -> Result<(), PlanError> {
    let zero = |key: &str| {
        Err(PlanError::new(format!(
            "`{key}` of the workload `{}` must be at least 1",
            workload.name
        ))
        .about(key))
    };
    match &workload.kind {
        Kind::Wakeup(p) if p.message_threads == 0 => zero("message-threads"),
        Kind::Wakeup(p) if p.workers == Some(0) => zero("workers"),
        Kind::Schbench(p) if p.message_threads == 0 => zero("message-threads"),
        Kind::Hackbench(p) if p.fds == 0 => zero("fds"),
        Kind::Hackbench(p) if p.message_bytes == 0 => zero("message-size"),
        Kind::Hackbench(p) if p.loops == Some(0) => zero("loops"),
        Kind::Http(model::HttpParams { client, .. })
        | Kind::Memcached(model::MemcachedParams { client, .. }) => match client {
            client if client.connections == 0 => zero("connections"),
            client if client.threads == 0 => zero("threads"),
            client => check_cpus("load-cpus", client.load_cpus.as_ref()),
        },
        _ => Ok(()),
    }
}

/// A list of CPUs, or a part of those that there are.
pub(crate) fn check_cpus(key: &str, list: Option<&String>) -> Result<(), PlanError> {
    match list.map(|list| model::choose_cpus(list, &[0])) {
        Some(Err(what)) => Err(PlanError::new(what).about(key)),
        _ => Ok(()),
    }
}
