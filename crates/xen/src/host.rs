//! The host: its CPUs and memory, as `xl info` has them, and the schedulers that its hypervisor was
//! built with.

use crate::scheduler::{SCHEDULERS, Scheduler};
use crate::toolstack::{XenError, run_xl};
use std::path::Path;

/// A Xen host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Version of the hypervisor.
    pub version: String,
    /// Physical CPUs.
    pub cpus: u32,
    /// One more than the highest ID of a CPU, which may be offline.
    pub cpu_ids: u32,
    /// Memory that no domain has, in MiB.
    pub free_mib: u64,
}

impl Host {
    /// The host of this dom0.
    pub fn read() -> Result<Self, XenError> {
        parse(&run_xl(&["info"])?)
            .ok_or_else(|| XenError::State("`xl info` has no CPUs and memory".to_owned()))
    }

    /// IDs of all its CPUs, where none is offline.
    pub fn all_cpus(&self) -> Vec<u32> {
        (0..self.cpus).collect()
    }
}

fn parse(text: &str) -> Option<Host> {
    let field = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = lines.find(|(key, _)| key.trim() == name)?;
        Some(value.trim())
    };
    let cpus = field("nr_cpus")?.parse().ok()?;
    let highest = field("max_cpu_id").and_then(|id| id.parse::<u32>().ok());
    Some(Host {
        version: field("xen_version").unwrap_or_default().to_owned(),
        cpus,
        cpu_ids: highest.map_or(cpus, |id| id.saturating_add(1).max(cpus)),
        free_mib: field("free_memory")?.parse().ok()?,
    })
}

/// The schedulers that a hypervisor of this version was built with, by the configuration that
/// distributions put beside it; `None` where there is none.
pub fn find_schedulers(root: &Path, version: &str) -> Option<Vec<Scheduler>> {
    let series: Vec<&str> = version.split('.').take(2).collect();
    let prefix = format!("xen-{}", series.join("."));
    let entries = std::fs::read_dir(root.join("boot")).ok()?;
    let mut configurations = entries.flatten().map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let rest = name.strip_prefix(&prefix);
        rest.is_some_and(|rest| rest.starts_with(['-', '.']) && rest.ends_with(".config"))
    });
    let text = doors::read::small_file_text(configurations.next()?).ok()?;
    Some(built_in(&text))
}

fn built_in(configuration: &str) -> Vec<Scheduler> {
    let has = |scheduler: &Scheduler| {
        let line = format!("CONFIG_SCHED_{}=y", scheduler.name().to_uppercase());
        configuration.lines().any(|found| found == line)
    };
    SCHEDULERS.into_iter().filter(has).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_memory_and_version_are_read() {
        let text = "nr_cpus                : 2\nmax_cpu_id             : 1\n\
                    free_memory            : 1256\nxen_version            : 4.17.7\n";
        let host = parse(text).unwrap();
        assert_eq!(
            (host.cpus, host.free_mib, host.version.as_str()),
            (2, 1256, "4.17.7")
        );
        assert_eq!(parse("nr_cpus : two"), None);
    }

    #[test]
    fn the_configuration_beside_the_hypervisor_names_its_schedulers() {
        let root = tempfile::tempdir().unwrap();
        let boot = root.path().join("boot");
        std::fs::create_dir(&boot).unwrap();
        assert_eq!(find_schedulers(root.path(), "4.17.7"), None);
        let text =
            "CONFIG_SCHED_CREDIT=y\nCONFIG_SCHED_CREDIT2=y\n# CONFIG_SCHED_RTDS is not set\n";
        std::fs::write(boot.join("xen-4.17-amd64.config"), text).unwrap();
        std::fs::write(boot.join("xen-4.1-amd64.config"), "").unwrap();
        let found = find_schedulers(root.path(), "4.17.7");
        assert_eq!(found, Some(vec![Scheduler::Credit, Scheduler::Credit2]));
    }
}
