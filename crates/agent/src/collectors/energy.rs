//! Energy of the CPUs within the window, and for each request of the load (RAPL). It is that of
//! the whole machine: of all roles, and of whatever else runs.

use super::def::{At, Collected, Collecting, CollectorDef, Lack};
use collect::energy::{self, Domain, Zone};
use model::{Measurement, MetricDef, Severity, Warning};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const PER_REQUEST: MetricDef = MetricDef::explaining(
    "energy_per_request",
    "J",
    "Energy of the packages and their memory for each request of the load (RAPL).",
);
const POWER: MetricDef = MetricDef::explaining(
    "power_package",
    "W",
    "Mean power of the packages: processors with all that is on them (RAPL).",
);
const PACKAGE: MetricDef = MetricDef::explaining(
    "energy_package",
    "J",
    "Energy of the packages: processors with all that is on them (RAPL).",
);
const CORE: MetricDef = MetricDef::explaining(
    "energy_core",
    "J",
    "Energy of the cores, a part of that of the packages (RAPL).",
);
const UNCORE: MetricDef = MetricDef::explaining(
    "energy_uncore",
    "J",
    "Energy of what is beside the cores, such as graphics; a part of that of the packages (RAPL).",
);
const DRAM: MetricDef = MetricDef::explaining("energy_dram", "J", "Energy of the memory (RAPL).");
const PLATFORM: MetricDef = MetricDef::explaining(
    "energy_platform",
    "J",
    "Energy of the whole platform, where it has a counter (RAPL, psys).",
);

/// The rate of loads that send requests.
const REQUESTS: &str = "requests_per_sec";

pub const DEF: CollectorDef = CollectorDef {
    name: "energy",
    text: "energy of the processors and for each request (RAPL; on demand)",
    usual: false,
    metrics: &[PACKAGE, POWER, CORE, UNCORE, DRAM, PLATFORM, PER_REQUEST],
    logs: &[],
    limit: Duration::ZERO,
    missing,
    start: |at| Some(Box::new(Joules::new(energy::find_zones(at.root)))),
};

fn metric(domain: Domain) -> MetricDef {
    match domain {
        Domain::Package => PACKAGE,
        Domain::Core => CORE,
        Domain::Uncore => UNCORE,
        Domain::Dram => DRAM,
        Domain::Platform => PLATFORM,
    }
}

#[derive(Debug)]
struct Joules {
    zones: Vec<Zone>,
    /// Readings of the zones, and the time.
    first: Option<(Vec<u64>, Instant)>,
    last: Option<(Vec<u64>, Instant)>,
    error: Option<String>,
}

impl Joules {
    fn new(zones: Vec<Zone>) -> Self {
        Joules {
            zones,
            first: None,
            last: None,
            error: None,
        }
    }

    /// All or none.
    fn read(&mut self) -> Option<(Vec<u64>, Instant)> {
        let read: Result<Vec<u64>, _> = self.zones.iter().map(Zone::read).collect();
        match read {
            Ok(read) => Some((read, Instant::now())),
            Err(error) => {
                self.error = Some(error.to_string());
                None
            }
        }
    }

    /// Joules of a domain within the window; `None` where the machine does not count it.
    fn joules(&self, domain: Domain) -> Option<f64> {
        let ((first, _), (last, _)) = (self.first.as_ref()?, self.last.as_ref()?);
        let mut of_domain = self
            .zones
            .iter()
            .zip(first.iter().zip(last))
            .filter(|(zone, _)| zone.domain == domain)
            .peekable();
        of_domain.peek()?;
        let uj: u64 = of_domain
            .map(|(zone, (first, last))| zone.microjoules_between(*first, *last))
            .sum();
        Some(uj as f64 / 1e6)
    }

    fn seconds(&self) -> Option<f64> {
        let ((_, first), (_, last)) = (self.first.as_ref()?, self.last.as_ref()?);
        Some(last.duration_since(*first).as_secs_f64()).filter(|seconds| *seconds > 0.0)
    }
}

impl Collecting for Joules {
    fn begin_window(&mut self, _: &At) {
        self.first = self.read();
    }

    fn end_window(&mut self, _: &At) {
        self.last = self.read();
    }

    fn collected_results(&self) -> Collected {
        let of = |domain| Some(metric(domain).to_measurement(self.joules(domain)?));
        let mut metrics: Vec<Measurement> = Domain::ALL.into_iter().filter_map(of).collect();
        if let (Some(joules), Some(seconds)) = (self.joules(Domain::Package), self.seconds()) {
            metrics.push(POWER.to_measurement(joules / seconds));
        }
        let warning = |error: &String| Warning {
            severity: Severity::Caution,
            what: format!("energy was not collected: {error}"),
            remedy: "run as root, or leave \"energy\" out of `collect`".to_owned(),
        };
        Collected {
            metrics,
            warnings: self.error.iter().map(warning).collect(),
            ..Collected::default()
        }
    }

    fn with_load(&self, load: &[Measurement]) -> Vec<Measurement> {
        let per_request = || {
            let rate = load.iter().find(|m| m.metric == REQUESTS)?.value;
            let requests = rate * self.seconds()?;
            let memory = self.joules(Domain::Dram).unwrap_or(0.0);
            let joules = self.joules(Domain::Package)? + memory;
            (requests > 0.0).then(|| PER_REQUEST.to_measurement(joules / requests))
        };
        per_request().into_iter().collect()
    }
}

fn missing(root: &Path, _: Vec<PathBuf>) -> Lack {
    let zones = energy::find_zones(root);
    if zones.is_empty() {
        return Some((
            "this machine has no energy counters (/sys/class/powercap/intel-rapl:*)".to_owned(),
            "leave it out; virtual machines have none".to_owned(),
        ));
    }
    let error = zones.iter().find_map(|zone| zone.read().err())?;
    let what = format!("the energy counters cannot be read: {error}");
    Some((what, "run as root".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tests::tree;
    use model::Better;

    const PACKAGE_0: &str = "sys/class/powercap/intel-rapl:0";
    const DRAM_0: &str = "sys/class/powercap/intel-rapl:0:0";

    fn machine() -> tempfile::TempDir {
        let file = |zone: &str, name: &str| format!("{zone}/{name}");
        let files = [
            (file(PACKAGE_0, "name"), "package-0\n"),
            (file(PACKAGE_0, "energy_uj"), "9000000\n"),
            (file(PACKAGE_0, "max_energy_range_uj"), "10000000\n"),
            (file(DRAM_0, "name"), "dram\n"),
            (file(DRAM_0, "energy_uj"), "0\n"),
            (file(DRAM_0, "max_energy_range_uj"), "10000000\n"),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, *text)).collect();
        tree(&files)
    }

    fn value(metrics: &[Measurement], name: &str) -> Option<f64> {
        metrics.iter().find(|m| m.metric == name).map(|m| m.value)
    }

    #[test]
    fn joules_are_those_of_the_window_and_of_each_request() {
        let root = machine();
        let mut joules = Joules::new(energy::find_zones(root.path()));
        let begun = Instant::now();
        joules.first = joules.read().map(|(read, _)| (read, begun));
        let write = |zone: &str, text: &str| {
            std::fs::write(root.path().join(zone).join("energy_uj"), text).unwrap();
        };
        write(PACKAGE_0, "2000000\n");
        write(DRAM_0, "1000000\n");
        let ended = begun + Duration::from_secs(2);
        joules.last = joules.read().map(|(read, _)| (read, ended));
        let metrics = joules.collected_results().metrics;
        assert_eq!(value(&metrics, "energy_package"), Some(3.0));
        assert_eq!(value(&metrics, "energy_dram"), Some(1.0));
        assert_eq!(value(&metrics, "power_package"), Some(1.5));
        assert_eq!(value(&metrics, "energy_core"), None);
        let rate = Measurement {
            metric: REQUESTS.to_owned(),
            unit: "1/s".to_owned(),
            better: Better::Higher,
            value: 4.0,
            own: None,
        };
        let load = joules.with_load(&[rate]);
        assert_eq!(value(&load, "energy_per_request"), Some(0.5));
        assert!(joules.with_load(&[]).is_empty());
    }

    #[test]
    fn a_machine_without_counters_says_so() {
        let (what, _) = missing(tree(&[]).path(), Vec::new()).unwrap();
        assert!(what.contains("no energy counters"), "{what}");
        assert_eq!(missing(machine().path(), Vec::new()), None);
        let root = machine();
        std::fs::remove_file(root.path().join(DRAM_0).join("energy_uj")).unwrap();
        let (what, remedy) = missing(root.path(), Vec::new()).unwrap();
        assert!(
            what.contains("cannot be read") && remedy == "run as root",
            "{what}"
        );
    }
}
