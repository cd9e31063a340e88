//! Peak memory of the processes of a trial and of their cgroups.
//!
//! The kernel keeps the peak of each process by itself, so that reading it costs the window nothing:
//! while a process lives, in `VmHWM` of /proc/PID/status, and when it has ended, in `ru_maxrss` of
//! wait4(2). The latter also counts what the process had before it began its program, which is the
//! memory of the agent that forked it; what is not above that is not known.

use crate::collectors::prefix;
use collect::rusage::Usage;
use collect::tasks::{self, Pid};
use model::{Measurement, MetricDef, Role};
use std::path::Path;

pub const PEAK: MetricDef = MetricDef::explaining(
    "peak_memory",
    "bytes",
    "Largest resident memory of one process of the workload: of the native loads, of the server and of \
     antagonists (server_peak_memory, antagonist_peak_memory) from its start to the end of the window \
     (VmHWM of /proc/PID/status), of other programs until they have ended (ru_maxrss of wait4(2), \
     which is left out below some MiB, where it is that of the agent). Arms that take turns share \
     their processes and have none.",
);
pub const PEAK_OF_GROUP: MetricDef = MetricDef::explaining(
    "cgroup_peak_memory",
    "bytes",
    "Largest memory of the cgroup of the load, page cache included (memory.peak, Linux 5.19), where \
     the trial has such a cgroup and the memory controller comes down to it. Of others with \
     server_ and antagonist_ before its name.",
);

/// A process that leads a role, and the group of the role.
#[derive(Debug)]
pub struct Peaked<'a> {
    pub role: &'a Role,
    /// `None` where the process has ended.
    pub leader: Option<Pid>,
    pub group: Option<&'a Path>,
}

/// Differences that say nothing: the kernel adds up pages of each CPU only now and then.
const NOISE_BYTES: u64 = 1 << 20;

/// `ru_maxrss` of a process that began with memory of the agent's; 0 where it may be that.
pub fn known_peak(peak_bytes: u64, inherited_bytes: u64) -> u64 {
    match peak_bytes > inherited_bytes.saturating_add(NOISE_BYTES) {
        true => peak_bytes,
        false => 0,
    }
}

/// The peak of a load.
pub fn peak_of_load(usage: Usage) -> Option<Measurement> {
    let bytes = usage.peak_memory_bytes;
    (bytes > 0).then(|| PEAK.to_measurement(bytes as f64))
}

/// The largest peak of each role. Two antagonists are one role.
pub fn peaks(root: &Path, peaked: &[Peaked]) -> Vec<Measurement> {
    let figures = Role::ALL.iter().flat_map(|role| {
        let of_role = || peaked.iter().filter(|peaked| peaked.role == role);
        let processes = of_role().filter_map(|peaked| peak_of_tree(root, peaked.leader?));
        let groups = of_role().filter_map(|peaked| peak_of_group(peaked.group?));
        [(PEAK, processes.max()), (PEAK_OF_GROUP, groups.max())]
            .into_iter()
            .filter_map(|(def, bytes)| {
                let mut figure = def.to_measurement(bytes? as f64);
                figure
                    .metric
                    .insert_str(0, prefix(role).unwrap_or_default());
                Some(figure)
            })
    });
    figures.collect()
}

/// The largest of one process, which is what `ru_maxrss` is of a load.
fn peak_of_tree(root: &Path, leader: Pid) -> Option<u64> {
    let tree = tasks::process_tree(root, leader).into_iter();
    tree.filter_map(|pid| tasks::peak_memory_bytes(root, pid))
        .max()
}

fn peak_of_group(group: &Path) -> Option<u64> {
    collect::read_number(&group.join("memory.peak"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(kib: u64) -> String {
        format!("Name:\tx\nVmHWM:\t {kib} kB\n")
    }

    #[test]
    fn each_role_has_its_largest_process_and_group_and_what_is_not_there_is_left_out() {
        let root = ::tests::tree(&[
            ("proc/7/status", &status(100)),
            ("proc/8/status", &status(300)),
            ("proc/9/status", &status(200)),
            ("group/memory.peak", "8192\n"),
            ("v1/cpu.shares", "1024\n"),
        ]);
        let of = |role, leader, group: Option<&'static str>| (role, leader, group);
        let wanted = [
            of(&Role::Server, Some(7), None),
            of(&Role::Antagonist, Some(8), Some("v1")),
            of(&Role::Antagonist, Some(9), None),
            of(&Role::Load, None, Some("group")),
        ];
        let paths =
            wanted.map(|(role, leader, group)| (role, leader, group.map(|g| root.path().join(g))));
        let peaked: Vec<Peaked> = paths
            .iter()
            .map(|(role, leader, group)| Peaked {
                role,
                leader: *leader,
                group: group.as_deref(),
            })
            .collect();
        let found = peaks(root.path(), &peaked);
        let found: Vec<(&str, f64)> = found.iter().map(|m| (&*m.metric, m.value)).collect();
        assert_eq!(
            found,
            [
                ("cgroup_peak_memory", 8192.0),
                ("server_peak_memory", 102_400.0),
                ("antagonist_peak_memory", 307_200.0),
            ]
        );
    }

    #[test]
    fn what_a_process_had_from_the_agent_is_not_its_own_peak() {
        let mib = |n: u64| n << 20;
        assert_eq!(known_peak(mib(8), mib(8)), 0);
        assert_eq!(known_peak(mib(200), mib(8)), mib(200));
        assert_eq!(known_peak(mib(200), u64::MAX), 0, "nobody could read it");
    }

    #[test]
    fn a_load_without_a_known_peak_has_none() {
        assert_eq!(peak_of_load(Usage::default()), None);
    }
}
