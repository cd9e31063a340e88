//! Workloads and loads: the work that is measured, and how much of it.

use crate::Placement;
use crate::arm::Role;
use crate::service::{Antagonist, OpenLoopParams, Server};
use crate::stack::{ADDRESS, FOLDER, PORT, Service};
use crate::turns::{InPlace, Piloted};
use crate::units::{format_duration_ns, format_rate};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The work that is measured, with all its loads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Unique in the experiment; the kind's name unless given.
    pub name: String,
    /// Kind of the work, with its parameters.
    pub kind: Kind,
    /// Loads at which the work is measured, each in a cell of its own.
    pub loads: Vec<Load>,
    /// Measured window of one trial. Ignored by workloads that end by themselves.
    pub duration_ns: u64,
    /// Time for which the work runs before its window opens.
    pub warmup_ns: u64,
    /// Time for which the work runs before the window of the load after which the machine is saved, on
    /// a target that goes on from a snapshot; `None`: `warmup_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_warmup_ns: Option<u64>,
    /// A trial that has not ended this long after its start is failed.
    pub time_limit_ns: u64,
    /// Names of the metrics that decide when a cell stops; empty: the kind's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<String>,
    /// Who asks, where the work has a service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<OpenLoopParams>,
    /// Who answers, where the work has a service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Server>,
    /// Programs that are started before the server and the load, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<Service>,
    /// Who disturbs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub antagonists: Vec<Antagonist>,
    /// Further loads that work and are measured in the same window. Each has a name, a kind and one load, and
    /// asks no program but those of this workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub co_runners: Vec<Workload>,
    /// Texts of files in the load's folder, by name; they are there before the load starts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Files and folders of the load's folder that the trial keeps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<String>,
    /// The most that is kept of a trial; [`KEEP_LIMIT_BYTES`] unless it is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_limit_bytes: Option<u64>,
    /// The machine that the load runs on.
    #[serde(default, skip_serializing_if = "Place::is_target")]
    pub load_on: Place,
    /// The way from a load on the controller to its services.
    #[serde(default, skip_serializing_if = "Way::is_tunnel")]
    pub load_way: Way,
    /// Lengths of the windows of arms that take turns in one process; `None`: each trial is a
    /// process of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_place: Option<InPlace>,
    /// Reason for which each trial is a process of its own, where arms were to take turns if they
    /// can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole_because: Option<String>,
    /// Which of the cells of one table of the file it is, if that has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<Variant>,
}

/// The most that a trial keeps of files and folders.
pub const KEEP_LIMIT_BYTES: u64 = 32 << 20;

/// The machine that a load runs on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// The one whose scheduling is measured.
    #[default]
    Target,
    /// The one where schedlab was started, so that a generator takes no CPU from what it
    /// measures. On a target that is the same machine there is no difference.
    Controller,
}

impl Place {
    fn is_target(&self) -> bool {
        *self == Place::Target
    }
}

/// The way from a load on the controller to services on the target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// A port of the controller that leads to one of the target, by the target's own connection.
    /// Services listen on the loopback address.
    #[default]
    Tunnel,
    /// The network between the two. Services listen at the address of the target.
    Network,
}

impl Way {
    fn is_tunnel(&self) -> bool {
        *self == Way::Tunnel
    }
}

/// One surrounding of the same service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// The name that its variants share.
    pub of: String,
    /// Name of the placement; `None` where the file names no placements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<String>,
    /// The antagonist; `None`: alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
}

/// Kind of a workload, of a server or of an antagonist: its name, and parameters that only
/// the kind understands. So results of a kind that this version does not know can be read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kind {
    #[serde(rename = "kind")]
    name: String,
    #[serde(flatten)]
    params: Map<String, Value>,
}

impl Kind {
    /// Without parameters.
    pub fn new(name: &str) -> Self {
        Kind {
            name: name.to_owned(),
            params: Map::new(),
        }
    }

    /// The kind with one more parameter, or with a new value of the parameter of this name.
    pub fn with_param(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.params.insert(name.to_owned(), value.into());
        self
    }

    /// Name, as in the table of kinds.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Parameters as they are stored, by name.
    pub fn params(&self) -> &Map<String, Value> {
        &self.params
    }
}

/// The schedule of intended starts in an open loop; both come from the trial's seed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Exponential gaps: requests of many users who know nothing of each other.
    #[default]
    Poisson,
    /// Equal gaps.
    Constant,
}

/// The level of a workload, in its own unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "unit", content = "value", rename_all = "kebab-case")]
pub enum Load {
    /// The workload has only one level.
    One,
    /// A number of threads, connections or the like; its unit is that of the kind.
    Count(u64),
    /// A number of threads or the like as a share of the CPUs: 100 is one for each of them.
    PercentOfCpus(f64),
    /// Requests a second, offered on a schedule.
    RatePerSec(f64),
    /// The highest rate that holds a service level: what is looked for, not offered.
    MaxRate(Slo),
    /// A share of the highest rate at which the baseline holds a service level.
    ShareOfMax(ShareOfMax),
}

/// A share of a highest rate that is found once, under the baseline, before the first block.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ShareOfMax {
    /// 100 is the highest rate itself.
    pub percent: f64,
    /// Service level of the highest rate, and where it is looked for.
    pub slo: Slo,
    /// True where whole trials look for it, since a process of the load has one rate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_trials: bool,
}

impl ShareOfMax {
    /// Rate that the share means, in requests a second.
    pub fn rate_per_sec(&self, max_per_sec: f64) -> f64 {
        self.percent / 100.0 * max_per_sec
    }
}

/// A service level, and where the highest rate that holds it is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Slo {
    /// The quantile of request latency, in thousandths: 990 is p99.
    pub permille: u32,
    /// Limit that it must stay below.
    pub below_ns: u64,
    /// Lower end of the search, in requests a second.
    pub from_per_sec: f64,
    /// Upper end of the search, in requests a second.
    pub to_per_sec: f64,
}

impl Slo {
    /// `p99`, `p99.9`.
    pub fn quantile_name(&self) -> String {
        format!("p{}", f64::from(self.permille) / 10.0)
    }
}

impl std::fmt::Display for Slo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let below = format_duration_ns(self.below_ns);
        write!(f, "{} < {below}", self.quantile_name())
    }
}

impl Load {
    /// The count that the load means on a machine with `cpus` CPUs, never below 1.
    /// `None` for a rate.
    pub fn resolve_count(self, cpus: u32) -> Option<u64> {
        match self {
            Load::One => Some(1),
            Load::Count(n) => Some(n.max(1)),
            Load::PercentOfCpus(p) => {
                Some(crate::truncate_to_u64((p / 100.0 * f64::from(cpus)).round()).max(1))
            }
            Load::RatePerSec(_) | Load::MaxRate(_) | Load::ShareOfMax(_) => None,
        }
    }

    /// Load that trials offer, where it follows from what was found before the first block.
    pub fn offered_load(self, found: &Calibration) -> Load {
        match (self, found.max_per_sec) {
            (Load::ShareOfMax(share), Some(max)) => Load::RatePerSec(share.rate_per_sec(max)),
            (load, _) => load,
        }
    }
}

impl std::fmt::Display for Load {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Load::One => f.write_str("-"),
            Load::Count(n) => write!(f, "{n}"),
            Load::PercentOfCpus(p) => write!(f, "{p}%"),
            Load::RatePerSec(r) => f.write_str(&format_rate(*r)),
            Load::MaxRate(slo) => write!(f, "max at {slo}"),
            Load::ShareOfMax(share) => write!(f, "{}% of max", share.percent),
        }
    }
}

/// Values that were found once, before the first trial, and then held for all arms.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Named whole numbers, such as `loops`.
    pub values: BTreeMap<String, u64>,
    /// True if the values hold for all loads of the workload, and are found at the first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_all_loads: bool,
    /// The highest rate of the baseline, in requests a second, of which the load is a share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_per_sec: Option<f64>,
    /// Finding of the pilot, where arms may take turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub piloted: Option<Piloted>,
    /// Bounds of events that the baseline said, in nanoseconds, by the name of the event.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bounds_ns: BTreeMap<String, u64>,
}

impl Calibration {
    /// Name of a value of a co-runner among those of a trial.
    pub fn name_beside(co_runner: &str, value: &str) -> String {
        format!("{co_runner}.{value}")
    }

    /// The values of a co-runner among those of a trial, as it has them alone.
    pub fn of_co_runner(&self, co_runner: &str) -> Calibration {
        let own = |(name, value): (&String, &u64)| {
            let name = name.strip_prefix(co_runner)?.strip_prefix('.')?;
            Some((name.to_owned(), *value))
        };
        Calibration {
            values: self.values.iter().filter_map(own).collect(),
            ..Calibration::default()
        }
    }
}

impl Workload {
    /// True if something of its own answers requests: the server, or a service with a port.
    pub fn can_answer(&self) -> bool {
        self.server.is_some() || self.services.iter().any(|s| !s.ports.is_empty())
    }

    /// True if its load and its services have folders: there are files for them, or a text of the load names
    /// its folder or the address of the target.
    pub fn has_folders(&self) -> bool {
        let has_files = !self.files.is_empty() || !self.keep.is_empty();
        has_files || !self.services.is_empty() || self.has_own_names()
    }

    /// True if a text of its keys names its folder or the address of the target.
    fn has_own_names(&self) -> bool {
        let keys = serde_json::Value::from(self.kind.params().clone()).to_string();
        [FOLDER, ADDRESS]
            .iter()
            .any(|name| keys.contains(&format!("{{{name}}}")))
            || self.co_runners.iter().any(Workload::has_own_names)
    }

    /// True if a text of its keys names something of one of these services.
    pub fn names_any(&self, services: &[Service]) -> bool {
        let keys = serde_json::Value::from(self.kind.params().clone()).to_string();
        services
            .iter()
            .any(|service| keys.contains(&format!("{{{}.", service.name)))
    }

    /// True if a text of its keys or files names this port of a service, by its name or as the first one.
    pub fn names_port(&self, service: &str, port: &str) -> bool {
        let keys = serde_json::Value::from(self.kind.params().clone()).to_string();
        let first = self.services.iter().find(|s| s.name == service);
        let is_first = first.is_some_and(|s| s.ports.first().is_some_and(|first| first == port));
        let short = is_first.then(|| format!("{{{service}.{PORT}}}"));
        let names = short
            .into_iter()
            .chain([format!("{{{service}.{PORT}.{port}}}")]);
        let mut texts = self.files.values().chain([&keys]);
        let names: Vec<String> = names.collect();
        texts.any(|text| names.iter().any(|name| text.contains(name)))
    }

    /// All loads of a trial, this one first, each as a workload that may ask the server and the services.
    pub fn list_loads(&self) -> impl Iterator<Item = Cow<'_, Workload>> {
        let beside = self.co_runners.iter().map(|co_runner| {
            Cow::Owned(Workload {
                server: self.server.clone(),
                services: self.services.clone(),
                ..co_runner.clone()
            })
        });
        std::iter::once(Cow::Borrowed(self)).chain(beside)
    }

    /// Name of a metric of this workload where it is a co-runner.
    pub fn name_beside(&self, metric: &str) -> String {
        format!("{}_{metric}", self.name)
    }

    /// True if it has programs of the role server.
    pub fn is_served(&self) -> bool {
        self.server.is_some() || !self.services.is_empty()
    }

    /// Places of the server, the services and the antagonists, in this order.
    pub fn placements(&self) -> impl Iterator<Item = &Placement> {
        let served = self.placements_of(&Role::Server);
        served.chain(self.placements_of(&Role::Antagonist))
    }

    /// Places of the programs of a role. The load has none.
    pub fn placements_of<'a>(
        &'a self,
        role: &Role,
    ) -> impl Iterator<Item = &'a Placement> + use<'a> {
        let (answers, disturbs) = (*role == Role::Server, *role == Role::Antagonist);
        let server = self.server.iter().filter(move |_| answers);
        let services = self.services.iter().filter(move |_| answers);
        let antagonists = self.antagonists.iter().filter(move |_| disturbs);
        server
            .map(|server| &server.placement)
            .chain(services.map(|service| &service.placement))
            .chain(antagonists.map(|antagonist| &antagonist.placement))
    }

    /// Places of [`Workload::placements`], to be changed.
    pub fn placements_mut(&mut self) -> impl Iterator<Item = &mut Placement> {
        let server = self.server.iter_mut().map(|server| &mut server.placement);
        let services = self.services.iter_mut();
        let services = services.map(|service| &mut service.placement);
        let antagonists = self.antagonists.iter_mut();
        let antagonists = antagonists.map(|antagonist| &mut antagonist.placement);
        server.chain(services).chain(antagonists)
    }

    /// One load, measured from start to end for a minute at most, with nobody beside it.
    pub fn new(kind: Kind) -> Self {
        Workload {
            name: kind.name().to_owned(),
            kind,
            loads: vec![Load::One],
            duration_ns: 0,
            warmup_ns: 0,
            snapshot_warmup_ns: None,
            time_limit_ns: 60_000_000_000,
            metrics: Vec::new(),
            client: None,
            server: None,
            services: Vec::new(),
            antagonists: Vec::new(),
            co_runners: Vec::new(),
            files: BTreeMap::new(),
            keep: Vec::new(),
            keep_limit_bytes: None,
            load_on: Place::Target,
            load_way: Way::Tunnel,
            in_place: None,
            whole_because: None,
            variant: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_co_runner_have_its_name_before_them() {
        let values = [("loops", 7), ("web.unit_ps", 3), ("web2.unit_ps", 4)];
        let all = Calibration {
            values: values.map(|(name, value)| (name.to_owned(), value)).into(),
            ..Calibration::default()
        };
        let own = all.of_co_runner("web");
        assert_eq!(own.values, [("unit_ps".to_owned(), 3)].into());
        assert_eq!(Calibration::name_beside("web", "unit_ps"), "web.unit_ps");
    }

    #[test]
    fn a_share_is_offered_as_a_rate_once_the_highest_rate_is_known() {
        let slo = Slo {
            permille: 950,
            below_ns: 500_000_000,
            from_per_sec: 20.0,
            to_per_sec: 400.0,
        };
        let percent = 80.0;
        let share = Load::ShareOfMax(ShareOfMax {
            percent,
            slo,
            by_trials: false,
        });
        assert_eq!(share.to_string(), "80% of max");
        let found = Calibration {
            max_per_sec: Some(120.0),
            ..Calibration::default()
        };
        assert_eq!(share.offered_load(&found), Load::RatePerSec(96.0));
        assert_eq!(share.offered_load(&Calibration::default()), share);
        assert_eq!(Load::Count(4).offered_load(&found), Load::Count(4));
        let stored = serde_json::to_string(&share).unwrap();
        assert_eq!(serde_json::from_str::<Load>(&stored).unwrap(), share);
    }

    #[test]
    fn windows_of_a_pilot_have_a_length_that_is_none_of_a_forgery() {
        let of = |window_ns| Calibration {
            piloted: Some(Piloted::Turns {
                lengths: InPlace::new(window_ns),
            }),
            ..Calibration::default()
        };
        of(100_000_000).check().unwrap();
        for window_ns in [0, 9_999_999, u64::MAX] {
            assert!(of(window_ns).check().is_err(), "{window_ns}");
        }
        let stored = serde_json::to_string(&of(100_000_000)).unwrap();
        let read: Calibration = serde_json::from_str(&stored).unwrap();
        assert_eq!(read, of(100_000_000));
    }

    #[test]
    fn a_client_is_read_beside_the_kind() {
        let file = |client: &str| {
            let text = format!(
                r#"{{"name":"w","kind":{{"kind":"http","url":"/","method":"GET"}}{client},
                    "loads":[],"duration_ns":1,"warmup_ns":0,"time_limit_ns":1}}"#
            );
            serde_json::from_str::<Workload>(&text).unwrap()
        };
        let client = r#","client":{"connections":8,"threads":2,"timeout_ns":1,"load_cpus":"1"}"#;
        let read = file(client);
        assert_eq!(read.client.as_ref().map(|c| c.threads), Some(2));
        assert_eq!(file("").client, None);
        let kind = Kind::new("http")
            .with_param("url", "/")
            .with_param("method", "GET");
        assert_eq!(read.kind, kind);
        let written = serde_json::to_string(&read).unwrap();
        assert_eq!(serde_json::from_str::<Workload>(&written).unwrap(), read);
    }
}
