//! Distance between CPUs: threads of one core, cores of one last-level cache, CPUs of one node
//! (`/sys/devices/system/cpu/cpuN/{topology,cache}`, `/sys/devices/system/node`;
//! Documentation/admin-guide/cputopology.rst).

use crate::{read_number, read_trimmed};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The closest thing that two CPUs share, the closest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    /// Threads of one core.
    Core,
    /// Cores of one last-level cache.
    Cache,
    /// CPUs of one NUMA node.
    Node,
    /// Nothing: they are on different nodes.
    Far,
}

impl Distance {
    /// All distances, the closest first.
    pub const ALL: [Distance; 4] = [
        Distance::Core,
        Distance::Cache,
        Distance::Node,
        Distance::Far,
    ];
}

/// CPUs that share a core, a cache or a node.
pub type Group = BTreeSet<u32>;

/// The groups of every level, without groups of one CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Topology {
    groups: BTreeMap<Level, BTreeSet<Group>>,
    /// Online CPUs (`/sys/devices/system/cpu/online`).
    pub cpus: Group,
}

type Level = u8;

impl Topology {
    /// `None` where the kernel does not list its CPUs.
    pub fn read(root: &Path) -> Option<Self> {
        let cpus = list(&root.join("sys/devices/system/cpu/online"))?;
        let mut topology = Topology {
            groups: BTreeMap::new(),
            cpus,
        };
        for cpu in topology.cpus.clone() {
            let directory = root.join(format!("sys/devices/system/cpu/cpu{cpu}"));
            let core = list(&directory.join("topology/thread_siblings_list"));
            topology.add(Distance::Core, core);
            topology.add(Distance::Cache, last_level_cache(&directory.join("cache")));
        }
        for number in 0.. {
            let node = root.join(format!("sys/devices/system/node/node{number}/cpulist"));
            if !node.exists() {
                break;
            }
            topology.add(Distance::Node, list(&node));
        }
        Some(topology)
    }

    fn add(&mut self, distance: Distance, group: Option<Group>) {
        let online = group.map(|group| &group & &self.cpus);
        if let Some(group) = online.filter(|group| group.len() > 1) {
            self.groups
                .entry(distance as Level)
                .or_default()
                .insert(group);
        }
    }

    /// Groups of CPUs that are at most this far apart.
    pub fn groups_within(&self, distance: Distance) -> Vec<Group> {
        if distance == Distance::Far {
            return vec![self.cpus.clone()];
        }
        let groups = self.groups.get(&(distance as Level));
        groups.into_iter().flatten().cloned().collect()
    }

    /// Distances at which this machine has CPUs at all.
    pub fn distances(&self) -> Vec<Distance> {
        let mut closer: Vec<Group> = Vec::new();
        let mut found = Vec::new();
        for distance in Distance::ALL {
            let groups = self.groups_within(distance);
            let has_pairs = groups.iter().any(|g| g.len() > 1 && !closer.contains(g));
            if has_pairs {
                found.push(distance);
            }
            closer.extend(groups);
        }
        found
    }
}

/// CPUs of the cache with the highest level.
fn last_level_cache(directory: &Path) -> Option<Group> {
    let indexes = (0..).map(|index| directory.join(format!("index{index}")));
    indexes
        .take_while(|index| index.exists())
        .max_by_key(|index| read_number::<u32>(&index.join("level")))
        .and_then(|index| list(&index.join("shared_cpu_list")))
}

fn list(path: &Path) -> Option<Group> {
    let cpus = model::parse_cpu_list(&read_trimmed(path)?).ok()?;
    Some(cpus.into_iter().collect())
}

/// A machine for the tests of other modules.
#[cfg(test)]
pub mod testing {
    use super::*;

    /// Two nodes of two cores with two threads each: cores 0+1, 2+3, 4+5, 6+7.
    pub fn two_nodes() -> Topology {
        let group = |cpus: std::ops::Range<u32>| Some(cpus.collect::<Group>());
        let mut topology = Topology {
            groups: BTreeMap::new(),
            cpus: (0..8).collect(),
        };
        for first in [0, 2, 4, 6] {
            topology.add(Distance::Core, group(first..first + 2));
        }
        for first in [0, 4] {
            topology.add(Distance::Cache, group(first..first + 4));
            topology.add(Distance::Node, group(first..first + 4));
        }
        topology
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tests::tree;

    #[test]
    fn a_level_that_adds_nothing_is_no_distance() {
        let topology = testing::two_nodes();
        let expected = [Distance::Core, Distance::Cache, Distance::Far];
        assert_eq!(topology.distances(), expected);
    }

    #[test]
    fn the_topology_is_read_from_sysfs() {
        let cpu = |n: u32, file: &str| format!("sys/devices/system/cpu/cpu{n}/{file}");
        let mut files = vec![
            ("sys/devices/system/cpu/online".to_owned(), "0-1\n"),
            ("sys/devices/system/node/node0/cpulist".to_owned(), "0-1\n"),
        ];
        for (n, own) in [(0, "0\n"), (1, "1\n")] {
            files.push((cpu(n, "topology/thread_siblings_list"), own));
            files.push((cpu(n, "cache/index0/level"), "1\n"));
            files.push((cpu(n, "cache/index0/shared_cpu_list"), own));
            files.push((cpu(n, "cache/index1/level"), "3\n"));
            files.push((cpu(n, "cache/index1/shared_cpu_list"), "0-1\n"));
        }
        let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), *t)).collect();
        let root = tree(&files);
        let topology = Topology::read(root.path()).unwrap();
        assert_eq!(topology.distances(), [Distance::Cache]);
        assert!(topology.groups_within(Distance::Core).is_empty());
    }

    #[test]
    fn cpus_that_are_offline_are_in_no_group() {
        let root = tree(&[
            ("sys/devices/system/cpu/online", "0\n"),
            (
                "sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
                "0-1\n",
            ),
        ]);
        let topology = Topology::read(root.path()).unwrap();
        assert!(topology.distances().is_empty());
        assert_eq!(Topology::read(tree(&[]).path()), None);
    }
}
