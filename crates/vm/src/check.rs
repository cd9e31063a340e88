//! Problems of the host with an experiment in a guest, before anything is started.

use super::disk;
use super::failure::unmet_error;
use super::host;
use super::kernel::Kernel;
use super::view::USER_VARIABLE;
use super::{Forward, Topology, VmSpec, image_path, machine, qemu};
use crate::VmError;
use model::{Experiment, Problem, Severity, Warning, parse_cpu_list};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

/// Below this the kernel and the initramfs do not fit.
const SMALLEST_MEMORY: u64 = 256 << 20;
/// Virtual CPUs for each CPU of the host, at most.
const MOST_PER_HOST_CPU: usize = 8;

/// Everything but the kernels.
pub fn host(spec: &VmSpec) -> Vec<Problem> {
    let mut problems = Vec::new();
    let architecture = spec.architecture();
    if qemu::version(architecture).is_none() {
        problems.push(as_problem(
            "target vm",
            machine::not_installed(architecture),
        ));
    }
    if spec.cpus == 0 {
        let what = "a guest needs at least one CPU".to_owned();
        return vec![problem(what, "--cpus 2, or cores and threads")];
    }
    problems.extend(crowd(spec.cpus, host::usable_cpus().len()));
    problems.extend(memory(spec.memory_bytes, host::available_memory()));
    problems.extend(spec.topology.as_ref().and_then(|t| topology(spec.cpus, t)));
    problems.extend(
        spec.host_cpus
            .as_ref()
            .and_then(|list| pinning(list, &host::usable_cpus())),
    );
    problems.extend(spec.forwards.iter().filter_map(port));
    problems.extend(root(&spec.root));
    problems
}

/// The server is started before the snapshot, and so before any arm.
pub fn snapshot(spec: &VmSpec, experiment: &Experiment) -> Vec<Problem> {
    if !spec.reset.has_snapshot() {
        return Vec::new();
    }
    let key = |arm: &model::Arm| {
        let is_of_roles = arm.to != model::Role::Load;
        let mut given = ["quota", "env"].into_iter().filter(|_| is_of_roles);
        let given = given.find(|key| arm.ingredients.contains_key(*key));
        arm.weight.map(|_| "weight").or(given)
    };
    let problem = |arm: &model::Arm| {
        let key = key(arm)?;
        Some(Problem {
            object: format!("arm {}", arm.name),
            what: format!(
                "a server that goes on from a snapshot runs already, and the arm would set its {key}"
            ),
            remedy: format!("use reset = \"trial\" with `{key}`"),
        })
    };
    experiment
        .arms
        .iter()
        .find_map(problem)
        .into_iter()
        .collect()
}

fn problem(what: String, remedy: &str) -> Problem {
    Problem {
        object: "target vm".to_owned(),
        what,
        remedy: remedy.to_owned(),
    }
}

/// A guest with far more CPUs than the host has hardly comes up, and measures how they wait.
fn crowd(cpus: u32, of_host: usize) -> Option<Problem> {
    let most = MOST_PER_HOST_CPU.saturating_mul(of_host);
    (cpus as usize > most).then(|| {
        let what = format!("{cpus} CPUs are too many for a guest on the {of_host} of this host");
        problem(what, &format!("--cpus {most} or fewer"))
    })
}

fn memory(wanted: u64, available: Option<u64>) -> Option<Problem> {
    if wanted < SMALLEST_MEMORY {
        let what = format!("{} MiB of memory are too few for a guest", wanted >> 20);
        return Some(problem(what, "give it 512M or more"));
    }
    let available = available.filter(|available| wanted > *available)?;
    Some(problem(
        format!(
            "the guest is to have {} MiB of memory, and the host has {} MiB free",
            wanted >> 20,
            available >> 20
        ),
        "lower `memory`, or free some on the host",
    ))
}

fn topology(cpus: u32, t: &Topology) -> Option<Problem> {
    if t.cpus() != Some(cpus) {
        return Some(problem(
            format!(
                "{} sockets × {} llcs × {} cores × {} threads are not the {cpus} of `cpus`",
                t.sockets, t.llcs, t.cores, t.threads
            ),
            "make the product equal to `cpus`",
        ));
    }
    (t.numa_nodes > cpus).then(|| {
        let what = format!("{} NUMA nodes do not fit {cpus} CPUs", t.numa_nodes);
        problem(what, "give every node a CPU")
    })
}

pub(crate) fn pinning(list: &str, usable: &[u32]) -> Option<Problem> {
    let remedy = format!("write a list such as 0-{}", usable.last().unwrap_or(&0));
    let Some(cpus) = parse_cpu_list(list).ok() else {
        return Some(problem(
            format!("`host-cpus` {list:?} is not a CPU list"),
            &remedy,
        ));
    };
    let missing = cpus.iter().find(|cpu| !usable.contains(cpu))?;
    Some(problem(
        format!("`host-cpus` names CPU {missing}, which this process may not use"),
        &remedy,
    ))
}

fn port(forward: &Forward) -> Option<Problem> {
    let error = TcpListener::bind((Ipv4Addr::LOCALHOST, forward.host_port)).err()?;
    Some(problem(
        format!(
            "port {} for {} cannot be bound: {error}",
            forward.host_port, forward.name
        ),
        "name another host port, or end what uses it",
    ))
}

fn root(root: &str) -> Option<Problem> {
    match image_path(root) {
        None if root == "host" => None,
        None => Some(problem(
            format!("`root` is {root:?}"),
            "write host or image:PATH",
        )),
        Some(path) => {
            let what = disk::problem(&path)?;
            let remedy = "make one with `schedlab image build`, or a raw one of this one: \
                          qemu-img convert -O raw";
            Some(problem(
                format!("the image {} {what}", path.display()),
                remedy,
            ))
        }
    }
}

/// The kernels of an experiment, each with the arms that need sched_ext of it.
pub fn kernels(spec: &VmSpec, experiment: &Experiment) -> BTreeMap<String, Vec<String>> {
    let mut kernels: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for arm in &experiment.arms {
        let name = arm.kernel.clone().unwrap_or_else(|| spec.kernel.clone());
        let needs = kernels.entry(name).or_default();
        if arm.scheduler.is_some() {
            needs.push(arm.name.clone());
        }
    }
    kernels
}

/// Problems of a kernel with the arms that attach a scheduler.
pub fn kernel(kernel: &Kernel, arms: &[String]) -> Vec<Problem> {
    if arms.is_empty() {
        return Vec::new();
    }
    let lacks = |known: Option<bool>, option: &str, remedy: &str| {
        (known == Some(false)).then(|| Problem {
            object: format!("kernel {}", kernel.name),
            what: format!(
                "{} has no {option}, which the arms need: {}",
                kernel.release,
                arms.join(", ")
            ),
            remedy: remedy.to_owned(),
        })
    };
    let other = "take debian:sid, or build a kernel with guest/kernel.config";
    lacks(kernel.sched_ext(), "CONFIG_SCHED_CLASS_EXT", other)
        .into_iter()
        .chain(lacks(kernel.btf(), "CONFIG_DEBUG_INFO_BTF", other))
        .collect()
}

/// A file that the experiment names, and the guest cannot read.
pub fn unreadable_problem(path: &Path, user: &str) -> Problem {
    Problem {
        object: path.display().to_string(),
        what: format!("the guest cannot read it: its QEMU runs as the user {user}"),
        remedy: format!(
            "make it readable (chmod -R o+rX), or call schedlab by sudo, so that QEMU runs as you, or \
             name a user who may read it: {USER_VARIABLE}=…"
        ),
    }
}

/// Problems with the files that are to be shown: they must be there.
pub fn check_exposed(paths: &[PathBuf]) -> Vec<Problem> {
    let lost = paths
        .iter()
        .filter_map(|path| Some((path, path.symlink_metadata().err()?)));
    lost.map(|(path, e)| {
        problem(
            format!("{} cannot be exposed to the guest: {e}", path.display()),
            "correct the path in `expose`, or leave it out",
        )
    })
    .collect()
}

/// The working directory is a home, or has homes in it, and so is not shown as a whole.
pub fn unseen_warning(directory: &Path) -> Warning {
    let directory = directory.display();
    Warning {
        severity: Severity::Caution,
        what: format!(
            "the working directory {directory} has private files: the guest sees nothing of it but what \
             the experiment names"
        ),
        remedy: "work in a directory for the experiment, or name what it needs in `expose`"
            .to_owned(),
    }
}

/// Something keeps QEMU from being started as it should be.
pub fn less_confined(why: &str) -> Warning {
    Warning {
        severity: Severity::Caution,
        what: format!("the guest is less confined than it should be: {why}"),
        remedy: "run nothing of a stranger's in it; in a container, CAP_SYS_ADMIN is what it takes"
            .to_owned(),
    }
}

pub fn warnings(spec: &VmSpec, host_cpus: usize) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let caution = |what: String, remedy: &str| Warning {
        severity: Severity::Caution,
        what,
        remedy: remedy.to_owned(),
    };
    let cpus = spec.cpus as usize;
    if cpus > host_cpus {
        warnings.push(caution(
            format!("the guest has {cpus} CPUs and the host only {host_cpus}: they take turns"),
            "give the guest no more CPUs than the host has",
        ));
    }
    let pinned = spec
        .host_cpus
        .as_deref()
        .and_then(|list| parse_cpu_list(list).ok());
    if let Some(set) = pinned.filter(|set| set.len() < cpus) {
        warnings.push(caution(
            format!(
                "{cpus} vCPUs are pinned to {} CPUs: they take turns",
                set.len()
            ),
            "name as many CPUs in `host-cpus` as the guest has",
        ));
    }
    warnings
}

/// Errors that have a remedy keep it.
pub fn as_problem(object: &str, error: VmError) -> Problem {
    match error {
        VmError::Unmet(problem) => problem,
        other => match unmet_error(object, &other.to_string(), "see the message") {
            VmError::Unmet(problem) => problem,
            _ => problem(other.to_string(), "see the message"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> VmSpec {
        VmSpec {
            architecture: None,
            agent: None,
            guests: 1,
            kernel: "debian:sid".to_owned(),
            cpus: 4,
            memory_bytes: 1 << 30,
            root: "host".to_owned(),
            reset: Default::default(),
            snapshot: None,
            accel: None,
            topology: None,
            capacities: None,
            host_cpus: None,
            append: None,
            expose: Vec::new(),
            hypervisor: None,
            forwards: Vec::new(),
            clock: crate::Clock::Host,
        }
    }

    #[test]
    fn far_more_cpus_than_the_host_has_are_refused() {
        assert_eq!(crowd(16, 2), None);
        let problem = crowd(200, 2).unwrap();
        assert!(
            problem.what.starts_with("200 CPUs are too many"),
            "{problem:?}"
        );
        assert_eq!(problem.remedy, "--cpus 16 or fewer");
    }

    #[test]
    fn memory_must_be_there_and_be_enough() {
        assert_eq!(memory(1 << 30, Some(2 << 30)), None);
        let problem = memory(4 << 30, Some(2 << 30)).unwrap();
        assert!(problem.what.contains("4096 MiB") && problem.what.contains("2048 MiB"));
        assert!(memory(64 << 20, None).is_some());
    }

    #[test]
    fn a_topology_must_give_the_number_of_cpus() {
        let fits = Topology {
            sockets: 2,
            llcs: 1,
            cores: 1,
            threads: 2,
            numa_nodes: 2,
        };
        assert_eq!(topology(4, &fits), None);
        assert!(topology(8, &fits).unwrap().what.contains("are not the 8"));
        let many = Topology {
            numa_nodes: 9,
            ..fits
        };
        assert!(topology(4, &many).unwrap().what.contains("NUMA"));
    }

    #[test]
    fn pinning_names_cpus_that_may_be_used() {
        assert_eq!(pinning("0-1", &[0, 1]), None);
        assert!(pinning("0-2", &[0, 1]).unwrap().what.contains("CPU 2"));
        assert!(
            pinning("x", &[0, 1])
                .unwrap()
                .what
                .contains("not a CPU list")
        );
    }

    #[test]
    fn a_port_that_is_taken_is_a_problem() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let forward = Forward {
            name: "http".to_owned(),
            host_port: taken.local_addr().unwrap().port(),
            guest_port: 80,
        };
        assert!(port(&forward).unwrap().what.contains("cannot be bound"));
        drop(taken);
        assert_eq!(port(&forward), None);
    }

    #[test]
    fn more_vcpus_than_cpus_is_a_warning() {
        assert_eq!(warnings(&spec(), 4).len(), 0);
        assert!(warnings(&spec(), 2)[0].what.contains("only 2"));
        let pinned = VmSpec {
            host_cpus: Some("0".to_owned()),
            ..spec()
        };
        assert!(warnings(&pinned, 4)[0].what.contains("pinned to 1"));
    }

    #[test]
    fn a_kernel_without_sched_ext_is_a_problem_only_for_arms_that_need_it() {
        let plain = Kernel {
            architecture: &crate::architecture::X86_64,
            name: "debian:trixie".to_owned(),
            release: "6.12.107".to_owned(),
            version: None,
            vmlinuz: Default::default(),
            modules_dir: None,
            config_file: Some("config".into()),
            config: crate::kernel::config::Config::parse("CONFIG_DEBUG_INFO_BTF=y\n"),
            origin: String::new(),
        };
        assert_eq!(kernel(&plain, &[]), []);
        let problems = kernel(&plain, &["rusty".to_owned()]);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].what.contains("SCHED_CLASS_EXT") && problems[0].what.contains("rusty"));
    }
}
