//! Arms that keep the threads of a role to some CPUs: sched_setaffinity(2), read back of every
//! thread that is looked at. A role starts with them, and they end with its processes, so there is
//! nothing to undo.

use super::ingredient::{Around, At, Change, Form, Ingredient, parse_text, problem, without_role};
use super::requirement::Asked;
use collect::tasks::{self, Pid};
use load::Keys;
use model::readings::CPUS;
use model::{Arm, Class, Fact, Invalid, KeyDef, Problem, Role, Workload, parse_cpu_list};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::BTreeSet;
use std::path::Path;

const KEY: &str = "cpus";
/// Threads that are looked at at once.
const SAMPLE_LIMIT: usize = 256;

pub struct RoleCpus;

impl Ingredient for RoleCpus {
    fn name(&self) -> &'static str {
        KEY
    }

    fn keys(&self) -> &'static [KeyDef] {
        const {
            &[KeyDef::new(
                "cpus",
                "list of CPUs",
                "",
                "CPUs that all threads of the role may run on, in place of those of its placement; read \
                     back of every thread.",
            )]
        }
    }

    fn read(&self, keys: &mut Keys, arm: &mut Arm) {
        if let Some(list) = keys.get::<String>(KEY) {
            arm.ingredients.insert(KEY.to_owned(), list.into());
        }
    }

    fn texts(&self) -> &'static [&'static str] {
        &[KEY]
    }

    fn forms(&self) -> &'static [Form] {
        &[(
            "cpus=LIST",
            "keeps all threads of the role to these CPUs: cpus=0, cpus=0-1,3",
        )]
    }

    fn parse(&self, change: &str, arm: &mut Arm) -> Option<Result<(), Invalid>> {
        parse_text(KEY, change, arm)
    }

    fn roles(&self) -> &'static [Role] {
        &Role::WITH_DAEMON
    }

    /// Other roles have the CPUs of their placements to go back to.
    fn in_place(&self, arm: &Arm) -> bool {
        matches!(arm.to, Role::Load | Role::Daemon)
    }

    fn name_in_all(&self, arms: &mut [Arm], _: &Workload) {
        if arms.iter().any(|arm| written(arm).is_some()) {
            let all = list(&load::allowed_cpus());
            for arm in arms.iter_mut().filter(|arm| written(arm).is_none()) {
                arm.ingredients.insert(KEY.to_owned(), all.clone().into());
            }
        }
    }

    fn check(&self, arm: &Arm, around: &Around) -> Result<(), Invalid> {
        let Some(text) = written(arm) else {
            return match arm.ingredients.contains_key(KEY) {
                true => {
                    Err(Invalid::new(KEY, "a list of CPUs is a text").with_remedy("cpus = \"0-1\""))
                }
                false => Ok(()),
            };
        };
        parse_cpu_list(text).map_err(|what| Invalid::new(KEY, what))?;
        if arm
            .policy
            .as_ref()
            .is_some_and(|p| p.class == Class::Deadline)
        {
            let what =
                "the kernel gives a deadline policy only to threads that may run on all CPUs";
            return Err(
                Invalid::new(KEY, what).with_remedy("leave out cpus, or take another policy")
            );
        }
        let pinned = |w: &&Workload| w.client.as_ref().is_some_and(|c| c.load_cpus.is_some());
        match around.workloads.iter().find(pinned) {
            Some(workload) if arm.to == Role::Load => Err(Invalid::new(
                KEY,
                format!(
                    "the workload `{}` has load-cpus, which pins each of its threads",
                    workload.name
                ),
            )
            .with_remedy("leave out load-cpus, or the cpus of the arm")),
            _ => Ok(()),
        }
    }

    fn require(&self, _: &Path, arm: &Arm, workloads: &[Workload]) -> Vec<Problem> {
        let Some(cpus) = of_arm(arm) else {
            return Vec::new();
        };
        let mut problems = Vec::new();
        let allowed = load::allowed_cpus();
        let missing: Vec<u32> = cpus
            .iter()
            .copied()
            .filter(|cpu| !allowed.contains(cpu))
            .collect();
        if !missing.is_empty() {
            let what = format!(
                "CPU {} is not one that the agent may use ({})",
                list(&missing),
                list(&allowed)
            );
            problems.push(problem(arm, what, "name CPUs of this machine"));
        }
        problems.extend(without_role(arm, KEY, workloads));
        problems
    }

    fn asked_facts(&self, arm: &Arm) -> Vec<Asked> {
        let cpus = of_arm(arm).map(|cpus| Asked::of_role(&arm.to, CPUS, list(&cpus)));
        cpus.into_iter().collect()
    }

    fn make_change<'a>(&self, arm: &'a Arm, _: &'a Workload) -> Option<Box<dyn Change + 'a>> {
        let list = written(arm)?;
        of_arm(arm)?;
        Some(Box::new(Kept {
            role: &arm.to,
            list,
        }))
    }
}

fn written(arm: &Arm) -> Option<&str> {
    arm.ingredients.get(KEY)?.as_str()
}

/// The CPUs of the arm, sorted and each once.
pub fn of_arm(arm: &Arm) -> Option<Vec<u32>> {
    let cpus: BTreeSet<u32> = parse_cpu_list(written(arm)?).ok()?.into_iter().collect();
    Some(cpus.into_iter().collect())
}

/// Keeps every thread of a process tree to the CPUs of the arm. A thread that starts later
/// inherits them.
fn keep_tree(root: &Path, pid: Pid, text: &str) -> Result<(), String> {
    let threads = tasks::threads_of_tree(root, pid, usize::MAX);
    threads
        .into_iter()
        .try_for_each(|tid| keep_thread_on(tid, text))
}

/// Keeps one thread to these CPUs. One that has ended is fine.
pub fn keep_thread_on(tid: Pid, text: &str) -> Result<(), String> {
    let mut set = CpuSet::new();
    for cpu in parse_cpu_list(text)? {
        if cpu as usize >= CpuSet::MAX_CPU {
            return Err(format!("CPU {cpu} is beyond what the agent can name"));
        }
        set.set(cpu as usize);
    }
    match sched_setaffinity(rustix::process::Pid::from_raw(tid), &set) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(e) => Err(format!("run on CPUs {text}: {e}")),
    }
}

/// `0-1,3`, in the form of the kernel.
pub fn list(cpus: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *cpu => *last = *cpu,
            _ => runs.push((*cpu, *cpu)),
        }
    }
    let runs = runs.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    runs.collect::<Vec<_>>().join(",")
}

struct Kept<'a> {
    role: &'a Role,
    list: &'a str,
}

impl Change for Kept<'_> {
    fn before_exec(&self, root: &Path, role: &Role, pid: Pid) -> Result<(), String> {
        self.equip_threads(root, role, pid)
    }

    fn equip_threads(&self, root: &Path, role: &Role, leader: Pid) -> Result<(), String> {
        match role == self.role {
            true => keep_tree(root, leader, self.list),
            false => Ok(()),
        }
    }

    fn facts(&self, at: &At) -> Vec<Fact> {
        let leaders = at.leaders.iter().filter(|(role, _)| role == self.role);
        let threads =
            leaders.flat_map(|(_, pid)| tasks::threads_of_tree(at.root, *pid, SAMPLE_LIMIT));
        // A thread that ended meanwhile has no CPUs.
        let found: BTreeSet<String> = threads.filter_map(cpus_of).collect();
        let found: Vec<String> = found.into_iter().collect();
        match found.is_empty() {
            true => Vec::new(),
            false => vec![Fact::new(CPUS, found.join(" and ")).about_role(self.role)],
        }
    }
}

/// CPUs that a thread may run on; `None` if it has ended.
pub fn cpus_of(tid: Pid) -> Option<String> {
    let set = sched_getaffinity(rustix::process::Pid::from_raw(tid)).ok()?;
    let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
    let cpus: Vec<u32> = cpus.filter_map(|cpu| u32::try_from(cpu).ok()).collect();
    Some(list(&cpus))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(cpus: &str) -> Arm {
        let mut arm = Arm::unchanged("a");
        RoleCpus
            .parse(&format!("cpus={cpus}"), &mut arm)
            .unwrap()
            .unwrap();
        arm
    }

    #[test]
    fn lists_are_compared_in_the_form_of_the_kernel() {
        assert_eq!(list(&of_arm(&arm("3,0-1,1")).unwrap()), "0-1,3");
        assert_eq!(list(&[]), "");
    }

    #[test]
    fn wrong_lists_and_cpus_that_are_not_there_are_refused() {
        let around = Around {
            boots: false,
            reboots: false,
            workloads: &[],
        };
        let error = RoleCpus.check(&arm("1-0"), &around).unwrap_err();
        assert!(error.what.contains("is not a list of CPUs"), "{error}");
        let problems = RoleCpus.require(Path::new("/"), &arm("8191"), &[]);
        assert!(problems[0].what.contains("8191 is not one"), "{problems:?}");
        let mut twice = arm("0");
        assert!(RoleCpus.parse("cpus=1", &mut twice).unwrap().is_err());
    }

    #[test]
    fn a_tree_is_kept_to_its_cpus_and_that_is_read_back() {
        let first = load::allowed_cpus()[0];
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = Pid::try_from(child.id()).unwrap();
        keep_tree(Path::new("/"), pid, &first.to_string()).unwrap();
        let found = cpus_of(pid);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, Some(first.to_string()));
    }
}
