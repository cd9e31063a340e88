//! A service that runs on the target already: nothing is started or stopped, its processes are looked
//! at, and it is asked for its own figures.

mod exposition;
mod logs;
mod lookout;
mod metric;
mod moment;
mod query;
mod rail;
mod scrape;
mod usage;
mod windows;

use crate::command::{OwnMetric, Source};
use load::{
    Chosen, Driver, Job, Keys, KindDef, Launch, LoadForms, NativeError, Output, Params, Parsed,
    Phases, Usual, Window, Work, phase,
};
use logs::Place;
use metric::ScrapedMetric;
use model::{Daemon, Invalid, KeyDef, Load, MetricDef, Problem};
use rail::Rail;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const ROOT: &str = "/";
const EXAMPLE: &str = "to = { unit = \"nginx.service\" }, or cgroup, container, pid, name, port";

const KEYS: &[KeyDef] = &[
    KeyDef::new(
        "to",
        "table",
        "needed",
        "The service, as arms name a daemon: `{ unit = … }`, `{ cgroup = … }`, `{ container = … }`, \
         `{ pid = … }`, `{ name = … }` or `{ port = … }`. Arms that say nothing else are for it.",
    ),
    KeyDef::new(
        metric::KEY,
        "tables `[[workload.metric]]`",
        "",
        "Figures that the service shows of itself. Each has a `name`, `better` (`higher` or `lower`), \
         `prometheus` (an address that answers in Prometheus' text format) and `query` (`NAME` or \
         `NAME{label=\"value\"}`: a count becomes its increase a second, anything else its mean; \
         `histogram_quantile(0.99, NAME)`; `100 * PART / WHOLE` is a share in percent), further `unit`, `scale` and `smallest-effect`. \
         Or it is in lines that the service adds to a log or sends by StatsD: `from` (the path, or `statsd:127.0.0.1:8125`), `regex` or `csv`, and `pick`, as metrics of a \
         `command` that takes turns have them. They decide in place of `wait_per_run`, unless `metrics` names others.",
    ),
    KeyDef::new(
        rail::KEY,
        "words",
        "none",
        "Rails: conditions on metrics of the service that end the run, as `[\"errors > 5/s\", \"answer_p99 > 250ms \
         for 5s\"]`. The service is looked at twice a second, under all arms. When a rail is hit, or the service \
         gives no answer for three seconds, the arm in force is taken back at once.",
    ),
];

/// Name of the kind.
const NAME: &str = "attach";

/// The kind `attach`.
pub static KIND: KindDef = KindDef {
    name: NAME,
    aliases: &[],
    summary: "a service that runs already, by its own figures and those of its threads",
    loads: LoadForms::Counts,
    load_unit: "services",
    window: Window::Phased,
    usual: Usual {
        load: Load::One,
        duration_ns: 30_000_000_000,
        warmup_ns: 1_000_000_000,
        time_limit_ns: None,
    },
    keys: KEYS,
    work: Work::for_params::<Attach>(),
    client: false,
    metrics: METRICS,
    deciding: DECIDING,
    logs: &[],
    watched: &[],
    tasks: &[],
    programs: &[],
    handicap: false,
    turns: true,
};

/// Metrics of every service.
pub const METRICS: &[MetricDef] = &usage::METRICS;
/// Names of the metrics that decide when a cell stops.
pub const DECIDING: &[&str] = &["wait_per_run"];

/// A service that runs already.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attach {
    /// The service.
    pub to: Option<Daemon>,
    /// Figures that it shows of itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<ScrapedMetric>,
    /// Figures in logs to which it adds lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logged: Vec<OwnMetric>,
    /// Conditions that end the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rails: Vec<Rail>,
}

impl Params for Attach {
    fn read(keys: &mut Keys) -> Self {
        let written: Option<BTreeMap<String, serde_json::Value>> = keys.get("to");
        let to = match read_service(written.unwrap_or_default()) {
            Ok(daemon) => Some(daemon),
            Err(what) => {
                keys.refuse(Invalid::new("to", what).with_remedy(EXAMPLE));
                None
            }
        };
        let read = keys.tables(metric::KEY, Shown::read).unwrap_or_default();
        let (mut metrics, mut logged) = (Vec::new(), Vec::new());
        for shown in read {
            match shown {
                Shown::Scraped(metric) => metrics.push(metric),
                Shown::Logged(metric) => logged.push(metric),
            }
        }
        let written = keys.words(rail::KEY).unwrap_or_default().into_iter();
        let rails = written.enumerate().filter_map(|(index, text)| {
            let fault = match Rail::try_from(text) {
                Ok(rail) => return Some(rail),
                Err(fault) => fault,
            };
            keys.refuse(Invalid {
                key: format!("{}.{index}", rail::KEY),
                ..fault
            });
            None
        });
        Attach {
            to,
            rails: rails.collect(),
            metrics,
            logged,
        }
    }
}

/// A metric by where the service shows it.
enum Shown {
    Scraped(ScrapedMetric),
    Logged(OwnMetric),
}

impl Shown {
    /// One with `from` is in a log. Faults stay in the keys.
    fn read(keys: &mut Keys) -> Self {
        let from: Option<String> = keys.get("from");
        let Some(from) = from else {
            return Shown::Scraped(ScrapedMetric::read(keys));
        };
        let mut metric = OwnMetric::read(keys);
        metric.from = Source::from(from);
        Shown::Logged(metric)
    }
}

/// The service that one key and its value mean.
fn read_service(written: BTreeMap<String, serde_json::Value>) -> Result<Daemon, String> {
    let mut written = written.into_iter();
    let (Some((key, value)), None) = (written.next(), written.next()) else {
        return Err("the workload `attach` needs one word for its service".to_owned());
    };
    let text = match value {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    };
    let known = Daemon::from_key(&key, &text);
    known.ok_or_else(|| format!("no service is found by `{key}`"))?
}

impl Attach {
    fn service(&self) -> Result<&Daemon, String> {
        let service = self.to.as_ref();
        service.ok_or_else(|| "the workload does not say which service".to_owned())
    }

    /// Logs that have figures.
    fn logs(&self) -> impl Iterator<Item = &str> {
        self.logged.iter().filter_map(|metric| match &metric.from {
            Source::File(path) => Some(path.as_str()),
            Source::Stdout | Source::Stderr => None,
        })
    }
}

impl Driver for Attach {
    fn name(&self) -> Option<String> {
        let (_, text) = self.to.as_ref()?.key_and_text();
        Some(text.trim_end_matches(".service").to_owned())
    }

    fn check(&self) -> Result<(), Invalid> {
        let mut names = BTreeSet::new();
        for (index, metric) in self.metrics.iter().enumerate() {
            let place = format!("{}.{index}", metric::KEY);
            metric.check().map_err(|fault| fault.in_table(&place))?;
            if !names.insert(&metric.name) {
                let what = format!("there are two metrics `{}`", metric.name);
                return Err(Invalid::new("name", what)
                    .with_remedy("give one of them another name")
                    .in_table(&place));
            }
        }
        for metric in &self.logged {
            let of_it = |fault: Invalid| fault.in_table(metric::KEY);
            logs::check(metric).map_err(of_it)?;
            if !names.insert(&metric.name) {
                let twice =
                    Invalid::new("name", format!("there are two metrics `{}`", metric.name));
                return Err(of_it(twice.with_remedy("give one of them another name")));
            }
        }
        for (index, rail) in self.rails.iter().enumerate() {
            rail.check(self).map_err(|fault| Invalid {
                key: format!("{}.{index}", rail::KEY),
                ..fault
            })?;
        }
        Ok(())
    }

    fn own_metrics(&self) -> Vec<&str> {
        let scraped = self.metrics.iter().map(|m| m.name.as_str());
        let logged = self.logged.iter().map(|m| m.name.as_str());
        scraped.chain(logged).collect()
    }

    fn chosen_programs(&self) -> Vec<Chosen> {
        let addresses: BTreeSet<&String> = self.metrics.iter().map(|m| &m.prometheus).collect();
        let ask = |address: &String| Chosen::Address(format!("GET {address}"));
        let logs: BTreeSet<&str> = self.logs().collect();
        let logs = logs.into_iter().map(|from| Chosen::File(from.to_owned()));
        addresses.into_iter().map(ask).chain(logs).collect()
    }

    fn may_work_elsewhere(&self) -> bool {
        true
    }

    fn measured_daemon(&self) -> Option<&Daemon> {
        self.to.as_ref()
    }

    fn require(&self, job: &Job) -> Vec<Problem> {
        let service = self.service().and_then(|service| {
            let found = collect::daemon::find(Path::new(ROOT), service);
            found.map(drop).map_err(|e| e.to_string())
        });
        if let Err(what) = service {
            return vec![job.problem(what, "attach to a service that runs on the target")];
        }
        let scraper = scrape::Scraper::default();
        let asked = self.metrics.iter().filter_map(|metric| {
            let why = scraper.ask(&metric.prometheus).err()?;
            Some(job.problem(why, "correct `prometheus`, or start what shows the figures"))
        });
        let missing = self.logs().find_map(|from| match Place::parse(from) {
            Ok(place) => place.find_obstacle(),
            Err(what) => Some(what),
        });
        let remedy =
            "correct `from`, and have the service write there and nobody else listen there";
        let missing = missing.map(|what| job.problem(what, remedy));
        asked.take(1).chain(missing).collect()
    }

    fn launch(&self, job: &Job) -> Launch {
        phase::launch(job)
    }

    fn generate(&self, job: &Job, phases: &mut Phases) -> Result<Parsed, NativeError> {
        windows::watch(self, job, phases)
    }

    fn parse(&self, job: &Job, output: &Output) -> Result<Parsed, String> {
        phase::parse(job, output)
    }
}
