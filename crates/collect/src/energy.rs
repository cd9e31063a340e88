//! Energy counters of the CPUs, as powercap has them for RAPL
//! (Documentation/power/powercap/powercap.rst): `/sys/class/powercap/intel-rapl:*`, which
//! processors of AMD have under the same name. From Linux 5.10 on only root may read them.

use std::io;
use std::path::{Path, PathBuf};

const FOLDER: &str = "sys/class/powercap";
const PREFIX: &str = "intel-rapl:";

/// The part of the machine that a zone measures. Zones of cores, of graphics and of memory controllers are parts of
/// their package; that of the whole machine has all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Domain {
    /// A processor with all that is on it.
    Package,
    /// Its cores.
    Core,
    /// All else on it, such as graphics.
    Uncore,
    /// Memory beside a processor.
    Dram,
    /// The whole platform (`psys`).
    Platform,
}

impl Domain {
    /// All domains.
    pub const ALL: [Domain; 5] = [
        Domain::Package,
        Domain::Core,
        Domain::Uncore,
        Domain::Dram,
        Domain::Platform,
    ];

    fn named(name: &str) -> Option<Self> {
        match name {
            "core" => Some(Domain::Core),
            "uncore" => Some(Domain::Uncore),
            "dram" => Some(Domain::Dram),
            "psys" => Some(Domain::Platform),
            name if name.starts_with("package-") => Some(Domain::Package),
            _ => None,
        }
    }
}

/// A counter, which begins anew when it has reached its range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    /// Domain that it counts for.
    pub domain: Domain,
    path: PathBuf,
    range_uj: u64,
}

/// The zones of this machine, in the order of their names; none where there are no counters.
pub fn find_zones(root: &Path) -> Vec<Zone> {
    let entries = std::fs::read_dir(root.join(FOLDER)).into_iter().flatten();
    let paths = entries.flatten().map(|entry| entry.path());
    let is_rapl = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(PREFIX))
    };
    let mut paths: Vec<PathBuf> = paths.filter(is_rapl).collect();
    paths.sort();
    let zone = |path: PathBuf| {
        let name = crate::read_trimmed(&path.join("name"))?;
        Some(Zone {
            domain: Domain::named(&name)?,
            range_uj: crate::read_number(&path.join("max_energy_range_uj"))?,
            path,
        })
    };
    paths.into_iter().filter_map(zone).collect()
}

impl Zone {
    /// The counter now, in microjoules.
    pub fn read(&self) -> io::Result<u64> {
        let text = doors::read::kernel_text(self.path.join("energy_uj"))?;
        text.trim()
            .parse()
            .map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// Microjoules from one reading to a later one, between which the counter may have begun
    /// anew once.
    pub fn microjoules_between(&self, first: u64, last: u64) -> u64 {
        match last.checked_sub(first) {
            Some(energy) => energy,
            None => (last + self.range_uj).saturating_sub(first),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tests::tree;

    fn files(zone: &str, name: &str, energy: &str) -> [(String, String); 3] {
        let file =
            |file: &str, text: &str| (format!("{FOLDER}/{zone}/{file}"), format!("{text}\n"));
        [
            file("name", name),
            file("energy_uj", energy),
            file("max_energy_range_uj", "262143328850"),
        ]
    }

    fn machine() -> tempfile::TempDir {
        let all = [
            files("intel-rapl:0", "package-0", "1000"),
            files("intel-rapl:0:0", "core", "600"),
            files("intel-rapl:0:1", "dram", "200"),
            files("intel-rapl:1", "package-1", "3000"),
            files("intel-rapl:2", "psys", "9000"),
            files("intel-rapl-mmio:0", "package-0", "1000"),
        ];
        let all: Vec<(&str, &str)> = all
            .iter()
            .flatten()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        tree(&all)
    }

    #[test]
    fn every_zone_has_its_domain_and_the_same_counter_is_not_read_twice() {
        let root = machine();
        let zones = find_zones(root.path());
        let found: Vec<(Domain, u64)> = zones
            .iter()
            .map(|zone| (zone.domain, zone.read().unwrap()))
            .collect();
        let expected = [
            (Domain::Package, 1000),
            (Domain::Core, 600),
            (Domain::Dram, 200),
            (Domain::Package, 3000),
            (Domain::Platform, 9000),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_counter_may_begin_anew_within_the_window() {
        let root = machine();
        let zone = &find_zones(root.path())[0];
        assert_eq!(zone.microjoules_between(1000, 5000), 4000);
        assert_eq!(zone.microjoules_between(262_143_328_000, 150), 1000);
    }

    #[test]
    fn a_machine_without_counters_has_no_zones() {
        assert_eq!(find_zones(tree(&[]).path()), []);
    }
}
