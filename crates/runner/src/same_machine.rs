//! Properties that must be the same in all starts of a run, or its trials cannot be compared:
//! the build of schedlab, and the kernel and CPUs that each boot finds.

use crate::network;
use model::{
    Build, Experiment, Machine, Measurement, Problem, SchedulerBinary, Start, System, Trial,
};
use std::collections::{BTreeMap, BTreeSet};

/// Facts by name that change what a trial measures and are known before the first one.
const FACTS: &[&str] = &[
    "cpu.microcode",
    "cpu.online",
    "cpu.smt",
    network::WAY,
    "vm.accel",
    "vm.cpus",
    "vm.memory",
    "vm.qemu",
];

const REMEDY: &str = "start a new run; or add --anyway, and the report will say that the two are \
                      mixed";

/// Another build of schedlab than that of the start before.
pub fn other_build(earlier: &[Start], now: &Build) -> Option<Problem> {
    let before = earlier.last()?;
    difference(
        "schedlab itself",
        &before.build.to_string(),
        &now.to_string(),
    )
}

/// Differences from the machine that this kernel found when it came up before.
pub fn other_machine(earlier: &[Start], now: &Machine) -> Vec<Problem> {
    let mut before = earlier.iter().rev().flat_map(|start| &start.machines);
    let Some(before) = before.find(|machine| machine.kernel == now.kernel) else {
        return Vec::new();
    };
    let whose = match &now.kernel {
        Some(kernel) => format!(" with {kernel}"),
        None => String::new(),
    };
    let (before, now) = (described(&before.system), described(&now.system));
    let both = before.iter().zip(&now);
    both.filter_map(|((what, before), (_, now))| difference(&format!("{what}{whose}"), before, now))
        .collect()
}

fn difference(object: &str, before: &str, now: &str) -> Option<Problem> {
    let what = || {
        format!(
            "was {} for the trials so far and is {}",
            text(before),
            text(now)
        )
    };
    (before != now).then(|| Problem {
        object: object.to_owned(),
        what: what(),
        remedy: REMEDY.to_owned(),
    })
}

/// The scheduler of an arm must be one and the same program in all its trials.
pub fn other_scheduler(before: &[Trial], now: &Trial) -> Vec<Problem> {
    let binary = |trial: &Trial| trial.result.evidence.scheduler_binary.clone();
    let counted = before.iter().filter(|t| t.is_ok() && t.arm == now.arm);
    let Some(earlier) = counted.filter_map(binary).next_back() else {
        return Vec::new();
    };
    let other = binary(now).filter(|now| now.sha256 != earlier.sha256);
    let described = |binary: &SchedulerBinary| {
        let version = binary.version.as_deref().unwrap_or("an unknown version");
        let hash: String = binary.sha256.chars().take(12).collect();
        format!("{version} with sha256 {hash}…")
    };
    let problem = |now: SchedulerBinary| Problem {
        what: format!(
            "was {} for the trials so far and is {}",
            described(&earlier),
            described(&now)
        ),
        object: now.path,
        remedy: REMEDY.to_owned(),
    };
    other.map(problem).into_iter().collect()
}

/// Why a figure of a program's own does not belong to the same metric as one of an earlier trial under
/// the same workload: one has a unit that the other has not.
pub fn other_unit<'t>(
    before: impl Iterator<Item = &'t Trial> + Clone,
    now: &Trial,
) -> Option<String> {
    let quote = |measured: &Measurement| measured.own.as_ref()?.quote.clone();
    now.result.metrics.iter().find_map(|measured| {
        let now = quote(measured)?;
        let mut counted = before.clone().filter(|trial| trial.is_ok());
        let earlier = counted.find_map(|trial| quote(trial.metric(&measured.metric)?))?;
        let why = earlier.find_conflict(&now)?;
        Some(format!("the metric `{}`: {why}", measured.metric))
    })
}

/// Cell and number of the blocks in which some trials count and others are missing, or
/// which two starts share. Their trials are no neighbours in time once the rest is
/// measured, so all of them are measured again.
pub fn half_done(done: &[Trial], experiment: &Experiment) -> BTreeSet<(usize, u32)> {
    let mut blocks: BTreeMap<(usize, u32), BTreeMap<usize, u32>> = BTreeMap::new();
    let mut tried: BTreeMap<(usize, usize), bool> = BTreeMap::new();
    for trial in done {
        let place = &trial.place;
        *tried.entry((place.cell, place.arm)).or_default() |= trial.is_ok();
        if trial.is_ok() {
            let block = blocks.entry((place.cell, place.block)).or_default();
            block.insert(place.arm, trial.start);
        }
    }
    // An arm that was tried in vain is missing in every block.
    let is_wanted = |cell, arm: &usize| tried.get(&(cell, *arm)) != Some(&false);
    let is_whole = |cell, arms: &BTreeMap<usize, u32>| {
        let starts: BTreeSet<&u32> = arms.values().collect();
        let all = 0..experiment.arms.len();
        starts.len() == 1
            && all
                .filter(|arm| is_wanted(cell, arm))
                .all(|arm| arms.contains_key(&arm))
    };
    blocks.retain(|(cell, _), arms| !is_whole(*cell, arms));
    blocks.into_keys().collect()
}

fn text(value: &str) -> &str {
    match value {
        "" => "not known",
        value => value,
    }
}

/// Arguments of a kernel without those that say by which program it was loaded, and whether for one
/// boot only.
fn without_loader(arguments: &str) -> String {
    let of_the_loader = |word: &&str| {
        word.starts_with("BOOT_IMAGE=") || word.starts_with("initrd=") || reboot::is_of_once(word)
    };
    let words = arguments.split_whitespace();
    let kept = words.filter(|word| !of_the_loader(word));
    kept.collect::<Vec<_>>().join(" ")
}

fn described(system: &System) -> Vec<(&'static str, String)> {
    let mut all = vec![
        ("the kernel", system.kernel_release.clone()),
        ("the kernel's build", system.kernel_version.clone()),
        (
            "the kernel's command line",
            without_loader(&system.kernel_command_line),
        ),
        ("the machine's name", system.hostname.clone()),
        ("the CPU", system.cpu_model.clone()),
        ("the number of CPUs", system.cpus.to_string()),
        ("the hypervisor", system.hypervisor.clone()),
    ];
    let fact = |name: &str| system.facts.get(name).cloned().unwrap_or_default();
    all.extend(FACTS.iter().map(|name| (*name, fact(name))));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(kernel: Option<&str>, release: &str) -> Machine {
        Machine {
            kernel: kernel.map(str::to_owned),
            system: System {
                kernel_release: release.to_owned(),
                ..System::default()
            },
        }
    }

    fn start(machines: Vec<Machine>) -> Start {
        Start {
            began: "2026-11-21T10:00:00Z".to_owned(),
            build: Build::default(),
            machines,
        }
    }

    #[test]
    fn another_kernel_is_named_with_the_one_before() {
        let before = [start(vec![machine(None, "6.12.1")])];
        assert_eq!(other_machine(&before, &machine(None, "6.12.1")), []);
        let problems = other_machine(&before, &machine(None, "6.13.0"));
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].object, "the kernel");
        assert!(problems[0].what.contains("6.12.1") && problems[0].what.contains("6.13.0"));
    }

    #[test]
    fn a_kernel_is_compared_with_the_last_time_that_it_came_up() {
        let sid = |release| machine(Some("debian:sid"), release);
        let before = [
            start(vec![machine(None, "6.12.1"), sid("6.18.1")]),
            start(vec![machine(None, "6.12.1")]),
        ];
        assert_eq!(other_machine(&before, &sid("6.18.1")), []);
        let problems = other_machine(&before, &sid("6.19.0"));
        assert_eq!(problems[0].object, "the kernel with debian:sid");
        assert_eq!(other_machine(&before, &machine(Some("host"), "6.1.0")), []);
    }

    #[test]
    fn another_microcode_or_build_of_schedlab_is_a_difference() {
        let before = [start(vec![machine(None, "6.12.1")])];
        let mut now = machine(None, "6.12.1");
        let facts = &mut now.system.facts;
        facts.insert("cpu.microcode".to_owned(), "0x2".to_owned());
        assert_eq!(other_machine(&before, &now)[0].object, "cpu.microcode");
        let mut build = Build::default();
        assert_eq!(other_build(&before, &build), None);
        build.commit = "abc".to_owned();
        let problem = other_build(&before, &build).unwrap();
        assert_eq!(problem.object, "schedlab itself");
    }
}
