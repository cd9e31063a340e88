//! A guest as an experiment describes it.

use crate::architecture::{AARCH64, Architecture, X86_64};
use crate::image_path;
use model::{Invalid, Reset, TargetSpec, choose_cpus, parse_cpu_list};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// More than any machine has, and few enough to list.
const MOST_CPUS: u32 = 4096;
const LEAST_MEMORY_BYTES: u64 = 1 << 20;
/// Xen itself and one small guest.
const LEAST_FOR_GUESTS_MIB: u64 = 512;
/// Capacity of the strongest CPU of a machine, as Linux counts it.
const STRONGEST: u32 = 1024;
/// 1 PiB.
const MOST_MEMORY_BYTES: u64 = 1 << 50;

/// A virtual machine with its own kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VmSpec {
    /// `debian:SUITE`, `debian:PACKAGE`, a bzImage, a built tree, or `host`.
    pub kernel: String,
    /// Architecture, as uname(2) calls it; `None`: that of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// Build of this program for that architecture; `None`: the one beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<PathBuf>,
    /// Guests of this description that measure at once, each on CPUs of the host that no other has.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub guests: u32,
    /// CPUs of the guest.
    pub cpus: u32,
    /// Memory of the guest, without what QEMU itself takes.
    pub memory_bytes: u64,
    /// `host` (read-only, under an overlay) or `image:PATH`.
    pub root: String,
    /// Times at which the guest is booted anew.
    pub reset: Reset,
    /// Name of the snapshot that guests go on from, or that a run saves them as; `None`: it is not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// `None`: try KVM, fall back to TCG.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accel: Option<String>,
    /// Layout of the CPUs; `None`: one socket of cores without siblings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
    /// Capacity of each CPU, of which the strongest has 1024; `None`: all are as strong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacities: Option<Vec<u32>>,
    /// Host CPUs that the vCPU threads are pinned to, in `taskset -c` form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_cpus: Option<String>,
    /// Added to the guest's kernel command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append: Option<String>,
    /// Files and directories of the host that the guest sees although they are private.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expose: Vec<String>,
    /// Xen below the kernel, which is dom0's then: `debian:SUITE`, or a directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hypervisor: Option<String>,
    /// Host port on loopback to guest port; user-mode network only if any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forwards: Vec<Forward>,
    /// Clock that the guest goes by.
    #[serde(default, skip_serializing_if = "Clock::is_of_host")]
    pub clock: Clock,
}

/// Clock of a guest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// Time of this machine.
    #[default]
    Host,
    /// Number of instructions that the guest has executed, on one emulated CPU.
    Virtual,
}

impl Clock {
    fn is_of_host(&self) -> bool {
        *self == Clock::Host
    }
}

impl VmSpec {
    /// CPUs of the host that `host-cpus` names; none where it says nothing, or is no list.
    pub(crate) fn pinned_cpus(&self) -> Vec<u32> {
        let list = self.host_cpus.as_deref().map(parse_cpu_list);
        list.and_then(Result::ok).unwrap_or_default()
    }

    /// Over the host's files, and otherwise as nothing else was asked for.
    pub fn new(kernel: &str, cpus: u32, memory_bytes: u64) -> Self {
        VmSpec {
            kernel: kernel.to_owned(),
            architecture: None,
            agent: None,
            guests: 1,
            cpus,
            memory_bytes,
            root: "host".to_owned(),
            reset: Reset::None,
            snapshot: None,
            accel: None,
            topology: None,
            capacities: None,
            host_cpus: None,
            append: None,
            expose: Vec::new(),
            hypervisor: None,
            forwards: Vec::new(),
            clock: Clock::Host,
        }
    }

    /// The architecture of the guest.
    pub fn architecture(&self) -> &'static Architecture {
        let named = Architecture::named(self.architecture.as_deref());
        // `check` has refused any other name.
        named.unwrap_or_else(|_| Architecture::of_this_machine())
    }

    /// True if the guest counts instructions.
    pub fn is_virtual(&self) -> bool {
        self.clock == Clock::Virtual
    }

    /// The guest that these keys describe, if they do.
    pub fn from_target(spec: &TargetSpec) -> Result<Self, Invalid> {
        let vm: VmSpec = spec.read_keys()?;
        vm.check()?;
        Ok(vm)
    }

    /// Refuses what no machine could be, and names the key.
    pub fn check(&self) -> Result<(), Invalid> {
        let cpus = self.cpus;
        let wrong = |key: &str, what: String| Err(Invalid::new(key, what));
        if self
            .topology
            .as_ref()
            .is_some_and(|t| t.cpus() != Some(cpus))
        {
            let what = format!("the topology does not make {cpus} CPUs");
            let remedy = "cpus must be sockets × llcs × cores × threads; or leave cpus out";
            return Err(Invalid::new("topology", what).with_remedy(remedy));
        }
        if cpus == 0 {
            let what = "a guest needs at least one CPU";
            return Err(Invalid::new("cpus", what).with_remedy("cpus = 2"));
        }
        if cpus > MOST_CPUS {
            let what = format!("a guest has at most {MOST_CPUS} CPUs, not {cpus}");
            return wrong("cpus", what);
        }
        if self.guests != 1 {
            self.check_guests()?;
        }
        Architecture::named(self.architecture.as_deref())?;
        if let Some(capacities) = &self.capacities {
            self.check_capacities(capacities)?;
        }
        if self.hypervisor.is_some() {
            self.check_xen()?;
        }
        if !(LEAST_MEMORY_BYTES..=MOST_MEMORY_BYTES).contains(&self.memory_bytes) {
            let bytes = self.memory_bytes;
            let what = format!("a guest does not run in {bytes} bytes of memory");
            return Err(Invalid::new("memory", what).with_remedy("memory = \"2G\""));
        }
        if self.is_virtual() {
            self.check_virtual()?;
        }
        if self.reset.has_snapshot() && image_path(&self.root).is_none() {
            let what = "QEMU cannot save a guest whose root is this machine's files";
            let remedy = "root = \"image:PATH\"; `schedlab image build` makes an image";
            return Err(Invalid::new("reset", what).with_remedy(remedy));
        }
        if let Some(name) = &self.snapshot
            && let Err(crate::VmError::Unmet(problem)) = crate::manage::check_name("snapshot", name)
        {
            let what = format!("{}: {}", problem.object, problem.what);
            return Err(Invalid::new("reset", what).with_remedy(problem.remedy));
        }
        match self
            .host_cpus
            .as_deref()
            .map(|list| choose_cpus(list, &[0]))
        {
            Some(Err(what)) => wrong("host-cpus", what),
            _ => Ok(()),
        }
    }

    /// Refuses capacities that the device tree of the guest cannot tell.
    fn check_capacities(&self, capacities: &[u32]) -> Result<(), Invalid> {
        let wrong =
            |what: &str, remedy: &str| Err(Invalid::new("capacities", what).with_remedy(remedy));
        if *self.architecture() != AARCH64 {
            let what = "only guests with a device tree have CPUs of several capacities";
            return wrong(what, "architecture = \"aarch64\"");
        }
        if capacities.len() != self.cpus as usize {
            return wrong(
                "there is not one for each CPU",
                "capacities = [1024, 512] with two CPUs",
            );
        }
        let known = 1..=STRONGEST;
        match capacities.iter().all(|capacity| known.contains(capacity)) {
            true => Ok(()),
            false => wrong("a capacity is from 1 to 1024", "give the strongest 1024"),
        }
    }

    /// Refuses what several guests at once cannot share.
    fn check_guests(&self) -> Result<(), Invalid> {
        let (key, what) = match () {
            () if self.guests == 0 => ("guests", "a run needs at least one guest"),
            () if self.is_virtual() => ("guests", "a guest in virtual time has no CPU for itself"),
            () if !self.forwards.is_empty() => {
                ("forwards", "a port leads to one of the guests only")
            }
            () if self.snapshot.is_some() => {
                ("reset", "each guest would save the snapshot of this name")
            }
            () => return Ok(()),
        };
        Err(Invalid::new(key, what).with_remedy("leave it out, or take one guest: guests = 1"))
    }

    /// Refuses what would let this machine's time in, or needs a second CPU.
    fn check_virtual(&self) -> Result<(), Invalid> {
        let refused = [
            (self.cpus != 1, "cpus", "one CPU", "cpus = 1"),
            (
                self.accel.as_deref() == Some("kvm"),
                "accel",
                "an emulated CPU",
                "leave it out",
            ),
            (
                self.topology.is_some(),
                "topology",
                "one CPU",
                "leave it out",
            ),
            (
                self.root != "host",
                "root",
                "the programs that the experiment names, in memory",
                "leave it out; `expose` packs further files",
            ),
            (
                !self.forwards.is_empty(),
                "forwards",
                "no network outside of the guest",
                "leave it out",
            ),
            (
                self.host_cpus.is_some(),
                "host-cpus",
                "no CPUs of its own",
                "leave it out",
            ),
            (
                !matches!(self.reset, Reset::None | Reset::Trial),
                "reset",
                "a boot for each trial",
                "leave it out",
            ),
        ];
        match refused.into_iter().find(|(is, ..)| *is) {
            None => Ok(()),
            Some((_, key, has, remedy)) => {
                let what = format!("a guest with clock = \"virtual\" has {has}");
                Err(Invalid::new(key, what).with_remedy(remedy))
            }
        }
    }

    /// Refuses a Xen host with no room for guests beside dom0.
    fn check_xen(&self) -> Result<(), Invalid> {
        if *self.architecture() != X86_64 {
            let what = format!("a Xen host is {} here", X86_64.name);
            return Err(Invalid::new("architecture", what).with_remedy("leave it out"));
        }
        if self.cpus < 2 && !self.is_virtual() {
            let what = "a Xen host needs a CPU beside that of dom0";
            return Err(Invalid::new("cpus", what).with_remedy("cpus = 2"));
        }
        let least_mib = super::qemu::DOM0_MIB + LEAST_FOR_GUESTS_MIB;
        if self.memory_bytes >> 20 < least_mib {
            let mib = self.memory_bytes >> 20;
            let what = format!("{mib} MiB are too few for dom0 and a guest of Xen");
            return Err(Invalid::new("memory", what).with_remedy("memory = \"4G\""));
        }
        if self.reset.has_snapshot() {
            let what = "a Xen host cannot be saved and put back";
            return Err(Invalid::new("reset", what).with_remedy("reset = \"trial\""));
        }
        Ok(())
    }

    /// Description of the guest for whoever is to agree to it: first what it is, then the
    /// private files that it sees.
    pub fn shown_lines(&self) -> Vec<(&'static str, String)> {
        let below = self.hypervisor.as_ref().map(|xen| format!("Xen {xen}, "));
        let of = self.architecture.as_ref().map(|name| format!("{name}, "));
        let several = (self.guests > 1).then(|| format!("{} at once, ", self.guests));
        let mut text = format!(
            "{}{}{}kernel {}, {} CPUs, root {}",
            several.unwrap_or_default(),
            of.unwrap_or_default(),
            below.unwrap_or_default(),
            self.kernel,
            self.cpus,
            self.root
        );
        if let Some(name) = &self.snapshot {
            text += &format!(", snapshot {name}");
        }
        if let Some(append) = &self.append {
            text += &format!(", kernel command line: {append}");
        }
        for forward in &self.forwards {
            text += &format!(", port {} to {}", forward.host_port, forward.guest_port);
        }
        let exposed = self.expose.iter().cloned();
        let exposed = exposed.map(|path| ("which sees, although it is private", path));
        let agent = self.agent.iter().map(|path| path.display().to_string());
        std::iter::once(("in a guest", text))
            .chain(agent.map(|path| ("which runs the program", path)))
            .chain(exposed)
            .collect()
    }
}

impl From<&VmSpec> for TargetSpec {
    fn from(vm: &VmSpec) -> Self {
        match vm.hypervisor {
            Some(_) => TargetSpec::new(super::XEN, vm),
            None => TargetSpec::new(super::NAME, vm),
        }
    }
}

/// Layout of a guest's CPUs: the product of sockets, caches, cores and threads is their number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    /// Number of sockets.
    pub sockets: u32,
    /// Last-level caches of a socket, each shared by `cores` cores.
    #[serde(default = "one")]
    pub llcs: u32,
    /// Cores of a last-level cache.
    pub cores: u32,
    /// Hardware threads of a core.
    pub threads: u32,
    /// NUMA nodes, among which CPUs and memory are divided evenly.
    pub numa_nodes: u32,
}

impl Topology {
    /// `None` where it is more than can be counted.
    pub fn cpus(&self) -> Option<u32> {
        [self.llcs, self.cores, self.threads]
            .into_iter()
            .try_fold(self.sockets, u32::checked_mul)
    }
}

fn one() -> u32 {
    1
}

fn is_one(number: &u32) -> bool {
    *number == 1
}

/// A port of the guest that this machine forwards to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forward {
    /// Name of the forward, for people only.
    pub name: String,
    /// Port of this machine's loopback address.
    pub host_port: u16,
    /// Port of the guest.
    pub guest_port: u16,
}
