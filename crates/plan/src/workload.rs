//! Workloads: the keys of `[[workload]]` that all kinds have, and the short form of the
//! command line (`wakeup`, `hackbench:4`, `wakeup:50%,200%`). The keys of a kind are read
//! by the kind itself, which the catalogue names.

use crate::client::{self, check_client};
use crate::co_runner::{check_co_runners, read_co_runners};
use crate::error::PlanError;
use crate::loads::Loads;
use crate::name::check_shows;
use crate::table::{Value, items, keys_of, no_fault, own_keys, split, take_key, unknown_kind};
use crate::{antagonist, server, stack, turns};
use load::units::{Duration, Size};
use load::{Asks, Keys, KindDef, LoadForms, Usual, Window};
use model::stack::{ADDRESS, FOLDER};
use model::turns::USUAL_WINDOW_NS;
use model::{InPlace, Kind, Load, OpenLoopParams, Place, Service, Way, Workload};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use toml::de::DeValue;

const SECOND_NS: u64 = 1_000_000_000;
/// Length of the shortest window.
pub(crate) const LEAST_DURATION_NS: u64 = SECOND_NS / 10;

/// Keys that every kind has.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct CommonKeys {
    name: Option<String>,
    loads: Option<Loads>,
    duration: Option<Duration>,
    warmup: Option<Duration>,
    snapshot_warmup: Option<Duration>,
    time_limit: Option<Duration>,
    metrics: Option<Vec<String>>,
    load_on: Option<Place>,
    load_way: Option<Way>,
    in_place: Option<Turning>,
    turn: Option<Duration>,
    washout: Option<Duration>,
    files: Option<BTreeMap<String, String>>,
    keep: Option<Vec<String>>,
    keep_limit: Option<Size>,
}

/// Whether arms take turns inside one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Turning {
    Auto,
    Always,
    Never,
}

/// The tables of the roles beside the load.
#[derive(Debug, Default)]
struct Roles<'i> {
    server: Option<Value<'i>>,
    services: Vec<Value<'i>>,
    antagonists: Vec<Value<'i>>,
    co_runners: Vec<Value<'i>>,
}

/// Keys that are taken out of the table of a workload before those that all kinds have.
pub(crate) const TAKEN: [&str; 7] = [
    "server",
    "service",
    "antagonist",
    "co-runner",
    "antagonists",
    "co-runners",
    "placement",
];

impl<'i> Roles<'i> {
    fn take(value: &mut Value<'i>) -> Result<Self, PlanError> {
        let DeValue::Table(table) = value.get_mut() else {
            return Ok(Roles::default());
        };
        Ok(Roles {
            server: take_key(table, "server"),
            services: items(take_key(table, "service"), "workload.service")?,
            antagonists: items(take_key(table, "antagonist"), "workload.antagonist")?,
            co_runners: items(take_key(table, "co-runner"), "workload.co-runner")?,
        })
    }
}

/// The parameters that the keys of a kind give, and those of its client, if it has one.
pub(crate) struct Own {
    pub kind: Kind,
    pub client: Option<OpenLoopParams>,
}

impl Own {
    /// Faults stay in the keys.
    fn read(def: &KindDef, keys: &mut Keys) -> Self {
        Own {
            kind: def.read(keys),
            client: def.client.then(|| client::client(keys)),
        }
    }
}

/// A workload from the table of its kind.
pub(crate) fn from_table(kind: &str, mut value: Value) -> Result<Workload, PlanError> {
    let def = find(kind)?;
    let roles = Roles::take(&mut value)?;
    let (own, common) = read_kind(def, value, &TAKEN)?;
    workload(def, own, common, roles)
}

/// What the keys of a kind give, and the other keys of its table. Some were taken out of that before.
pub(crate) fn read_kind<'i, T: Deserialize<'i>>(
    def: &KindDef,
    mut value: Value<'i>,
    taken: &[&'static str],
) -> Result<(Own, T), PlanError> {
    let mut keys = keys_of(&value)?;
    let own = Own::read(def, &mut keys);
    split(&mut value, keys.asked_keys());
    let taken: Vec<_> = [keys.asked_keys(), taken].concat();
    let others = own_keys(value, &taken)?;
    no_fault(keys)?;
    Ok((own, others))
}

/// The entry of the table of kinds.
pub(crate) fn find(kind: &str) -> Result<&'static KindDef, PlanError> {
    load::check_installed().map_err(PlanError::new)?;
    load::kind::find(kind).ok_or_else(|| {
        let error = unknown_kind("workload", kind, load::kind::names());
        match load::roles::SERVERS.find(kind) {
            Some(_) => error.with_help(format!(
                "a server answers a load: kind = \"http\" or \"memcached\", and \
                 [workload.server] with kind = \"{kind}\"; on the command line, \
                 -w http --server {kind}"
            )),
            None => error,
        }
    })
}

/// Names of the kinds for which this is so.
pub(crate) fn kinds(is_so: impl Fn(&KindDef) -> bool) -> Vec<&'static str> {
    let kinds = load::KINDS.iter().filter(|def| is_so(def));
    kinds.map(|def| def.name).collect()
}

/// Names of the kinds with an open-loop client, as they are read out.
pub(crate) fn with_clients() -> String {
    let names = kinds(|def| def.client);
    format!("`{}`", names.join("` and `"))
}

fn workload(
    def: &KindDef,
    own: Own,
    keys: CommonKeys,
    roles: Roles,
) -> Result<Workload, PlanError> {
    let driver = load::driver(&own.kind).map_err(PlanError::new)?;
    let mut loads = keys.loads.map_or_else(|| vec![def.usual.load], |l| l.0);
    for load in &mut loads {
        if let Load::ShareOfMax(share) = load {
            share.by_trials = def.loads == LoadForms::RatesOfTrials;
        }
    }
    let usual = usual(def, &loads);
    let duration_ns = keys.duration.map_or(usual.duration_ns, |d| d.0);
    let warmup_ns = keys.warmup.map_or(usual.warmup_ns, |d| d.0);
    let time_limit_ns = keys.time_limit.map(|d| d.0).or(usual.time_limit_ns);
    let starts = loads.iter().map(|load| driver.starts_within(*load)).max();
    let starts_ns = starts.map_or(0, |s| u64::try_from(s.as_nanos()).unwrap_or(u64::MAX));
    let usual_limit_ns = usual_time_limit_ns(warmup_ns, duration_ns).saturating_add(starts_ns);
    let server = roles.server.map(server::server).transpose();
    let services = stack::services(roles.services)?;
    let usual_server = || match driver.request_receiver() {
        Asks::Server(program) if services.is_empty() => Some(server::usual_server(program)),
        _ => None,
    };
    let workload = Workload {
        name: keys
            .name
            .or_else(|| driver.name())
            .unwrap_or_else(|| def.name.to_owned()),
        kind: own.kind,
        time_limit_ns: time_limit_ns.unwrap_or(usual_limit_ns),
        loads,
        duration_ns,
        warmup_ns,
        snapshot_warmup_ns: keys.snapshot_warmup.map(|d| d.0),
        metrics: keys.metrics.unwrap_or_default(),
        client: own.client,
        server: server
            .map_err(|e| e.in_table("server"))?
            .or_else(usual_server),
        services,
        antagonists: antagonist::antagonists(roles.antagonists)?,
        co_runners: Vec::new(),
        files: keys.files.unwrap_or_default(),
        keep: keys.keep.unwrap_or_default(),
        keep_limit_bytes: keys.keep_limit.map(|size| size.0),
        load_on: keys.load_on.unwrap_or_default(),
        load_way: keys.load_way.unwrap_or_default(),
        in_place: in_place(keys.in_place, keys.turn, keys.washout)?,
        whole_because: None,
        variant: None,
    };
    Ok(Workload {
        co_runners: read_co_runners(roles.co_runners, &workload)?,
        ..workload
    })
}

/// Lengths of the windows of arms that take turns.
fn in_place(
    turning: Option<Turning>,
    turn: Option<Duration>,
    washout: Option<Duration>,
) -> Result<Option<InPlace>, PlanError> {
    if turning == Some(Turning::Auto) && turn.or(washout).is_none() {
        return Ok(Some(InPlace {
            pilot: true,
            ..InPlace::new(USUAL_WINDOW_NS)
        }));
    }
    if turning == Some(Turning::Always) {
        let mut lengths = InPlace::new(turn.map_or(USUAL_WINDOW_NS, |turn| turn.0));
        if let Some(washout) = washout {
            lengths.washout_ns = washout.0;
        }
        return Ok(Some(lengths));
    }
    let of_turns = [
        ("turn", turn, "the length of a window"),
        ("washout", washout, "the time before a window"),
    ];
    match of_turns.into_iter().find(|(_, value, _)| value.is_some()) {
        None => Ok(None),
        Some((key, _, what)) => {
            let chosen = match turning {
                Some(Turning::Auto) => "; a pilot chooses it where in-place is \"auto\"",
                _ => "",
            };
            Err(
                PlanError::new(format!("`{key}` is {what} of arms that take turns{chosen}"))
                    .with_help(format!("in-place = \"always\", or leave out {key}"))
                    .about_key(key),
            )
        }
    }
}

/// A search measures many rates in a trial, each of them shortly.
fn usual(def: &KindDef, loads: &[Load]) -> Usual {
    match loads.iter().any(|load| matches!(load, Load::MaxRate(_))) {
        true => Usual {
            duration_ns: 2 * SECOND_NS,
            warmup_ns: SECOND_NS / 5,
            time_limit_ns: Some(600 * SECOND_NS),
            ..def.usual
        },
        false => def.usual,
    }
}

/// Ten times the window, and a minute; lengths out of range are refused later.
fn usual_time_limit_ns(warmup_ns: u64, duration_ns: u64) -> u64 {
    let windows = duration_ns.saturating_mul(10);
    (60 * SECOND_NS)
        .saturating_add(warmup_ns)
        .saturating_add(windows)
}

/// Checks that the parser of one kind cannot make.
pub(crate) fn check_workload(workload: &Workload) -> Result<(), PlanError> {
    workload.check()?;
    let name = &workload.name;
    check_shows(name).map_err(|e| e.about_key("name"))?;
    let def = find(workload.kind.name())?;
    let driver = load::driver(&workload.kind).map_err(PlanError::new)?;
    workload
        .loads
        .iter()
        .try_for_each(|load| check_load(def, workload, load))
        .map_err(|e| e.about_key("loads"))?;
    if def.window != Window::Whole && workload.duration_ns < LEAST_DURATION_NS {
        return Err(PlanError::new(format!(
            "the workload `{name}` is measured for less than 100ms"
        ))
        .with_help("duration = \"2s\"")
        .about_key("duration"));
    }
    driver.check()?;
    check_own_metrics(&driver.own_metrics())?;
    check_co_runners(workload)?;
    check_metrics(workload)?;
    check_service(def, workload, &driver.request_receiver())?;
    check_place(workload).map_err(|e| e.about_key("load-on"))?;
    turns::check(def, workload)?;
    stack::check_files(&workload.files)?;
    stack::check_keep(&workload.keep)?;
    check_keep_limit(workload).map_err(|e| e.about_key("keep-limit"))?;
    workload.client.as_ref().map_or(Ok(()), check_client)
}

/// A load on the controller needs something on the target, and sees no files of it.
fn check_place(workload: &Workload) -> Result<(), PlanError> {
    let name = &workload.name;
    if workload.load_on == Place::Target {
        return match workload.load_way {
            Way::Tunnel => Ok(()),
            Way::Network => Err(PlanError::new(format!(
                "the load of `{name}` runs on the target, and needs no way to it"
            ))
            .with_help("load-on = \"controller\", or leave out load-way")),
        };
    }
    if !workload.is_served() {
        return Err(PlanError::new(format!(
            "nothing of the workload `{name}` would run on the target"
        ))
        .with_help("give it a [workload.server] or a [[workload.service]], or leave out load-on"));
    }
    let keys = serde_json::Value::from(workload.kind.params().clone()).to_string();
    let leads_here = |host: &&&str| keys.contains(&format!("{host}:{{"));
    let here = ["127.0.0.1", "localhost", "[::1]"];
    if let (Way::Network, Some(here)) = (workload.load_way, here.iter().find(leads_here)) {
        return Err(PlanError::new(format!(
            "{here} is the controller, on which the load of `{name}` runs, and its services are on the target"
        ))
        .with_help(format!("{{{ADDRESS}}} in place of {here}")));
    }
    let names_folder = |s: &&Service| keys.contains(&format!("{{{}.{FOLDER}}}", s.name));
    match workload.services.iter().find(names_folder) {
        None => Ok(()),
        Some(service) => Err(PlanError::new(format!(
            "the load of `{name}` names the folder of the service `{}`, which is on the target",
            service.name
        ))
        .with_help("leave out load-on, or let the load do without the folder")),
    }
}

/// Limit of kept files: they pass through the memory of schedlab.
fn check_keep_limit(workload: &Workload) -> Result<(), PlanError> {
    const MOST_BYTES: u64 = 256 << 20;
    match workload.keep_limit_bytes {
        Some(limit) if limit > MOST_BYTES => Err(PlanError::new(format!(
            "the workload `{}` keeps too much",
            workload.name
        ))
        .with_help("keep-limit = \"256MiB\" at most")),
        _ => Ok(()),
    }
}

/// Checks that a load has a form that the kind knows.
pub(crate) fn check_load(def: &KindDef, workload: &Workload, load: &Load) -> Result<(), PlanError> {
    if def.loads.has_form(load) {
        return Ok(());
    }
    let name = &workload.name;
    let (message, help) = match load {
        Load::MaxRate(_) | Load::ShareOfMax(_) => {
            let able = kinds(|def| def.loads.has_form(load)).join("`, `");
            let shares = match def.loads {
                LoadForms::RatesOfTrials => ", or shares-of-max in place of find",
                _ => "",
            };
            (
                format!("the workload `{name}` cannot look for its highest rate"),
                format!("only `{able}` can; give loads as a list{shares}"),
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

/// Check of the deciding metrics: only a metric that the workload measures can decide when its
/// cells stop.
fn check_metrics(workload: &Workload) -> Result<(), PlanError> {
    let beside = workload.co_runners.iter().flat_map(list_metrics_beside);
    let known: Vec<String> = list_metrics(workload).into_iter().chain(beside).collect();
    let unknown = |metric: &&String| !known.contains(metric);
    let mut metrics = workload.metrics.iter().enumerate();
    let Some((at, metric)) = metrics.find(|(_, metric)| unknown(metric)) else {
        return Ok(());
    };
    let all = "`schedlab list metrics` has all";
    let help = match model::find_nearest(metric, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`? {all}"),
        None => all.to_owned(),
    };
    let name = &workload.name;
    Err(
        PlanError::new(format!("the workload `{name}` has no metric `{metric}`"))
            .with_help(help)
            .about_key(&format!("metrics.{at}")),
    )
}

/// Index of the first of these names that is one of schedlab's own metrics.
pub(crate) fn find_built_in(names: &[impl AsRef<str>]) -> Option<usize> {
    if names.is_empty() {
        return None;
    }
    let of_kinds = load::metric_defs().into_iter().map(|(_, metric)| metric);
    let of_trials = agent::METRICS.iter().chain(agent::SURROUNDINGS).copied();
    let all = of_kinds.chain(of_trials).chain(agent::collector_metrics());
    let built_in: BTreeSet<&str> = all.map(|metric| metric.name).collect();
    names.iter().map(AsRef::as_ref).position(|name| {
        // Metrics of tasks are there for each role.
        let roles = ["server_", "antagonist_"];
        let of_role = roles.iter().find_map(|role| name.strip_prefix(role));
        built_in.contains(name) || of_role.is_some_and(|name| built_in.contains(name))
    })
}

/// Names that the metrics of a co-runner have in the trial.
pub(crate) fn list_metrics_beside(co_runner: &Workload) -> Vec<String> {
    let own = list_metrics(co_runner);
    own.iter().map(|name| co_runner.name_beside(name)).collect()
}

/// Names of the metrics of a load: those of its kind, and its own.
pub(crate) fn list_metrics(workload: &Workload) -> Vec<String> {
    let of_kind = load::kind::find(workload.kind.name()).map_or(&[][..], |def| def.metrics);
    let driver = load::driver(&workload.kind).ok();
    let own = driver.as_deref().map(|driver| driver.own_metrics());
    let own = own.into_iter().flatten();
    let all = of_kind.iter().map(|metric| metric.name).chain(own);
    all.map(str::to_owned).collect()
}

/// A metric that the experiment defines has a name of its own: results have one meaning for
/// each.
pub(crate) fn check_own_metrics(own: &[&str]) -> Result<(), PlanError> {
    match find_built_in(own) {
        None => Ok(()),
        Some(at) => Err(
            PlanError::new(format!("schedlab itself has a metric `{}`", own[at]))
                .with_help("give yours another name; `schedlab list metrics` has those of schedlab")
                .about_key(&format!("metric.{at}.name")),
        ),
    }
}

/// Who asks, and whom, must fit.
fn check_service(def: &KindDef, workload: &Workload, asks: &Asks) -> Result<(), PlanError> {
    let name = &workload.name;
    if def.client != workload.client.is_some() {
        let has = if def.client { "no client" } else { "a client" };
        return Err(PlanError::new(format!(
            "the workload `{name}` has {has}, but is of the kind `{}`",
            def.name
        )));
    }
    match (asks, &workload.server) {
        (Asks::Elsewhere, Some(_)) => Err(PlanError::new(format!(
            "the workload `{name}` has a server, but sends its requests elsewhere"
        ))
        .with_help("leave out the address, or the server")),
        (Asks::Nobody, Some(_)) if workload.services.is_empty() => Err(PlanError::new(format!(
            "the workload `{name}` has a server, but nothing asks it"
        ))
        .with_help(format!(
            "leave out the server; {} and others send requests",
            with_clients()
        ))),
        _ => Ok(()),
    }
}
