//! Placement of the processes of a role: CPU set, nice value or policy, cgroup. All of it is
//! inherited, so it is given to the first process before it runs its program.

use super::cgroup::{Cgroup, Quota, Settings};
use crate::arm::policy;
use collect::tasks::Pid;
use load::{Launch, SELF};
use model::{Class, Placement, Policy};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::path::Path;

/// Settings of the cgroup of a role by its own placement.
pub fn group_settings(placement: &Placement) -> Settings {
    Settings {
        weight: placement.weight,
        quota: placement.quota_percent.map(Quota::of_percent),
    }
}

/// Places a process that waits at its gate.
pub fn apply(pid: Pid, placement: &Placement, group: Option<&Cgroup>) -> Result<(), String> {
    if let Some(list) = &placement.cpus {
        pin(pid, list)?;
    }
    if let Some(group) = group {
        group.add_process(pid).map_err(|e| e.to_string())?;
    }
    if let Some(policy) = wanted_policy(placement) {
        policy::apply_before_exec(pid, &policy).map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// The policy of a placement; a nice value alone is one, too.
pub fn wanted_policy(placement: &Placement) -> Option<Policy> {
    let nice = || {
        placement.nice.map(|nice| Policy {
            nice: Some(nice),
            ..Policy::new(Class::Other)
        })
    };
    placement.policy.clone().or_else(nice)
}

/// Program that says where its own memory comes from and then becomes the one that it is given.
/// Only a process itself can say that.
pub const NUMACTL: &str = "numactl";

/// The launch with the memory node of the placement, if it names one.
pub fn with_memory(launch: &Launch, placement: &Placement, executable: &Path) -> Launch {
    let mut launch = launch.clone();
    let Some(node) = placement.memory_node else {
        return launch;
    };
    if let Some(program) = launch.argv.first_mut().filter(|word| *word == SELF) {
        *program = executable.to_string_lossy().into_owned();
    }
    let prefix = [
        NUMACTL.to_owned(),
        format!("--membind={node}"),
        "--".to_owned(),
    ];
    launch.argv.splice(0..0, prefix);
    launch
}

fn pin(pid: Pid, list: &str) -> Result<(), String> {
    let mut set = CpuSet::new();
    for cpu in model::choose_cpus(list, &load::allowed_cpus())? {
        if cpu as usize >= CpuSet::MAX_CPU {
            return Err(format!("CPU {cpu} is beyond what the agent can name"));
        }
        set.set(cpu as usize);
    }
    let pid = rustix::process::Pid::from_raw(pid);
    sched_setaffinity(pid, &set).map_err(|e| format!("run on CPUs {list}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nice_value_is_a_policy_of_the_fair_class() {
        let placement = Placement {
            nice: Some(5),
            ..Placement::default()
        };
        let policy = wanted_policy(&placement).unwrap();
        assert_eq!((policy.class, policy.nice), (Class::Other, Some(5)));
        assert_eq!(wanted_policy(&Placement::default()), None);
    }

    #[test]
    fn the_settings_of_an_arm_take_the_place_of_those_of_its_role() {
        let own = group_settings(&Placement {
            weight: Some(50),
            quota_percent: Some(30.0),
            ..Placement::default()
        });
        assert_eq!(own.overlaid(Settings::default()), own);
        let of_arm = Settings {
            weight: Some(1000),
            quota: None,
        };
        let both = own.overlaid(of_arm);
        assert_eq!((both.weight, both.quota), (Some(1000), own.quota));
    }

    #[test]
    fn a_memory_node_is_put_before_the_program() {
        let mut launch = Launch::new(vec![SELF.to_owned(), "serve".to_owned()]);
        let mut placement = Placement::default();
        let own = Path::new("/bin/schedlab");
        assert_eq!(with_memory(&launch, &placement, own), launch);
        placement.memory_node = Some(1);
        launch = with_memory(&launch, &placement, own);
        assert_eq!(
            launch.argv.join(" "),
            "numactl --membind=1 -- /bin/schedlab serve"
        );
    }

    #[test]
    fn cpus_that_are_not_there_cannot_be_run_on() {
        let own = std::process::id() as Pid;
        let error = pin(own, "1000").unwrap_err();
        assert!(error.starts_with("run on CPUs 1000: "), "{error}");
    }
}
