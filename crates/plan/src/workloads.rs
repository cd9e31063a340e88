//! Workloads: the keys of `[[workload]]` by kind, their defaults, and the short
//! form of the command line (`wakeup`, `hackbench:4`, `wakeup:50%,200%`).

use crate::arms::check_shows;
use crate::check::{check_argv, check_client, check_count};
use crate::error::PlanError;
use crate::loads::Loads;
use crate::services::{self, ClientKeys, FileAntagonist, FileServer};
use crate::units::{Duration, Percent, Rate, Size, WrittenSizes, parse_load};
use load::{KindDef, LoadForms, Window};
use model::workload::Arrivals;
use model::{
    CommandParams, HackbenchParams, HackbenchTransport, HttpParams, Kind, Load, MemcachedParams,
    OpenLoopParams, SchbenchParams, ServerProgram, Sizes, WakeupParams, Workload,
};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

const SECOND_NS: u64 = 1_000_000_000;

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
                        usual
                            .time_limit_ns
                            .unwrap_or_else(|| usual_time_limit_ns(warmup_ns, duration_ns)),
                        |d| d.0,
                    ),
                    metrics: self.metrics.unwrap_or_default(),
                    client: None,
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

/// Ten times the window, and a minute; lengths out of range are refused later.
fn usual_time_limit_ns(warmup_ns: u64, duration_ns: u64) -> u64 {
    let windows = duration_ns.saturating_mul(10);
    (60 * SECOND_NS)
        .saturating_add(warmup_ns)
        .saturating_add(windows)
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
    match find(kind)?.name {
        "wakeup" => wakeup(WakeupKeys::deserialize(table)?),
        "schbench" => schbench(SchbenchKeys::deserialize(table)?),
        "hackbench" => hackbench(HackbenchKeys::deserialize(table)?),
        "command" => command(CommandKeys::deserialize(table)?),
        "http" => http(HttpKeys::deserialize(table)?),
        "memcached" => memcached(MemcachedKeys::deserialize(table)?),
        _ => Err(unknown_kind(kind)),
    }
}

/// The entry of the table of kinds.
fn find(kind: &str) -> Result<&'static KindDef, PlanError> {
    load::kind::find(kind).ok_or_else(|| unknown_kind(kind))
}

fn unknown_kind(kind: &str) -> PlanError {
    let help = match crate::nearest(kind, load::kind::names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("one of {}", kinds(|_| true).join(", ")),
    };
    PlanError::new(format!("there is no workload `{kind}`")).with_help(help)
}

/// Names of the kinds for which this is so.
pub(crate) fn kinds(is_so: fn(&KindDef) -> bool) -> Vec<&'static str> {
    let kinds = load::KINDS.iter().filter(|def| is_so(def));
    kinds.map(|def| def.name).collect()
}

/// Names of the kinds with an open-loop client, as they are read out.
pub(crate) fn with_clients() -> String {
    let names = kinds(|def| def.client);
    format!("`{}`", names.join("` and `"))
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
    let message_bytes = keys.message_size.take().map_or(100, |s| s.0);
    let params = HackbenchParams {
        threads: keys.threads.take().unwrap_or(false),
        transport: keys.transport.take().unwrap_or(HackbenchTransport::Socket),
        message_bytes: u32::try_from(message_bytes).map_err(|_| {
            PlanError::new("`message-size` is at most 4294967295 bytes").about("message-size")
        })?,
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
    };
    let client = services::client(keys.client());
    let usual = usual_service("http", keys.loads.as_ref());
    let echo = ServerProgram::Echo { threads: 1 };
    let server = params.url.starts_with('/').then_some(echo);
    let workload = keys.into_workload(Kind::Http(params), usual)?;
    Ok(served(workload, client, server))
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
    };
    let client = services::client(keys.client());
    let usual = usual_service("memcached", keys.loads.as_ref());
    let memcached = ServerProgram::Memcached {
        threads: 1,
        args: Vec::new(),
    };
    let server = params.address.is_none().then_some(memcached);
    let workload = keys.into_workload(Kind::Memcached(params), usual)?;
    Ok(served(workload, client, server))
}

/// With who asks, and who answers where the file names neither a server nor an address.
fn served(workload: Workload, client: OpenLoopParams, usual: Option<ServerProgram>) -> Workload {
    let usual = || usual.map(services::usual_server);
    Workload {
        client: Some(client),
        server: workload.server.or_else(usual),
        ..workload
    }
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
    let mut workload = match find(kind)?.name {
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
    workload.check()?;
    let name = &workload.name;
    check_shows(name).map_err(|e| e.about("name"))?;
    let def = find(workload.kind.name())?;
    workload
        .loads
        .iter()
        .try_for_each(|load| check_load(def, workload, load))
        .map_err(|e| e.about("loads"))?;
    if def.window != Window::Whole && workload.duration_ns < SECOND_NS / 10 {
        return Err(PlanError::new(format!(
            "the workload `{name}` is measured for less than 100ms"
        ))
        .with_help("duration = \"2s\"")
        .about("duration"));
    }
    check_metrics(def, workload)?;
    services::check_service(workload)?;
    workload.client.as_ref().map_or(Ok(()), check_client)?;
    check_params(workload)
}

fn check_load(def: &KindDef, workload: &Workload, load: &Load) -> Result<(), PlanError> {
    if def.loads.has(load) {
        return Ok(());
    }
    let name = &workload.name;
    let (message, help) = match load {
        Load::MaxRate(_) => {
            let able = kinds(|def| def.loads == LoadForms::Rates).join("`, `");
            (
                format!("the workload `{name}` cannot look for its highest rate"),
                format!("only `{able}` can; give loads as a list"),
            )
        }
        Load::RatePerSec(_) => (
            format!("the workload `{name}` has no rate, but a load of {load}"),
            "give a number or a percentage of the CPUs".to_owned(),
        ),
        Load::One | Load::Count(_) | Load::PercentOfCpus(_) => (
            format!("the load {load} of the workload `{name}` is not a rate"),
            "loads = [\"1k/s\", \"5k/s\"]".to_owned(),
        ),
    };
    Err(PlanError::new(message).with_help(help))
}

/// Only what a workload measures can decide when its cells stop.
fn check_metrics(def: &KindDef, workload: &Workload) -> Result<(), PlanError> {
    let known = || def.metrics.iter().map(|metric| metric.name);
    let unknown = |metric: &&String| !known().any(|name| name == metric.as_str());
    let mut metrics = workload.metrics.iter().enumerate();
    let Some((at, metric)) = metrics.find(|(_, metric)| unknown(metric)) else {
        return Ok(());
    };
    let all = "`schedlab list metrics` has all";
    let help = match crate::nearest(metric, known()) {
        Some(near) => format!("did you mean `{near}`? {all}"),
        None => all.to_owned(),
    };
    let name = &workload.name;
    Err(
        PlanError::new(format!("the workload `{name}` has no metric `{metric}`"))
            .with_help(help)
            .about(&format!("metrics.{at}")),
    )
}

fn check_params(workload: &Workload) -> Result<(), PlanError> {
    match &workload.kind {
        Kind::Wakeup(p) => {
            check_count("message-threads", p.message_threads.into())?;
            check_count("workers", p.workers.unwrap_or(1).into())?;
            check_size("footprint", p.footprint_bytes)
        }
        Kind::Schbench(p) => check_count("message-threads", p.message_threads.into()),
        Kind::Hackbench(p) => {
            check_count("fds", p.fds.into())?;
            check_size("message-size", p.message_bytes.into())?;
            match p.loops {
                Some(0) => check_count("loops", 0),
                _ => Ok(()),
            }
        }
        Kind::Command(p) => {
            check_argv(&p.argv)?;
            match p.prepare.is_empty() {
                true => Ok(()),
                false => check_argv(&p.prepare).map_err(|e| e.about("prepare")),
            }
        }
        Kind::Http(_) => Ok(()),
        Kind::Memcached(p) => {
            if !(0.0..=100.0).contains(&p.gets_percent) {
                return Err(PlanError::new("`gets` is 0% to 100%").about("gets"));
            }
            if p.keys == 0 || p.keys > MOST_KEYS {
                return Err(PlanError::new(format!("`keys` is 1 to {MOST_KEYS}")).about("keys"));
            }
            check_sizes("key-size", p.key_size)?;
            check_sizes("value-size", p.value_size)
        }
    }
}

/// What fits into the memory of a generator.
const MOST_KEYS: u64 = 100_000_000;
/// What one part of a load may take: 1 TiB.
const MOST_SIZE_BYTES: u64 = 1 << 40;

fn check_size(key: &str, bytes: u64) -> Result<(), PlanError> {
    match bytes {
        0 => check_count(key, 0),
        1..=MOST_SIZE_BYTES => Ok(()),
        _ => Err(PlanError::new(format!("`{key}` is at most 1TiB")).about(key)),
    }
}

fn check_sizes(key: &str, sizes: Sizes) -> Result<(), PlanError> {
    let largest = match sizes {
        Sizes::Fixed { bytes } => bytes,
        Sizes::Uniform {
            low_bytes,
            high_bytes,
        } if low_bytes > high_bytes => {
            return Err(PlanError::new(format!("`{key}` ends before it begins")).about(key));
        }
        Sizes::Uniform { high_bytes, .. } => high_bytes,
        Sizes::Etc => return Ok(()),
    };
    match largest {
        0..=MOST_SIZE_BYTES => Ok(()),
        _ => Err(PlanError::new(format!("`{key}` is at most 1TiB")).about(key)),
    }
}
