//! Placement of the processes of a role: CPU set, nice value or policy, cgroup. All of it is
//! inherited, so it is given to the first process before it runs its program.

use super::cgroup::{Cgroup, Quota, Settings};
use crate::arm::{cpus, policy, quota};
use collect::tasks::Pid;
use load::{Launch, SELF};
use model::{Arm, Class, Placement, Policy, Role};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::path::Path;

/// Placement of a role under an arm: CPUs and weight of the arm take the place of its own.
pub fn placement_under(placement: &Placement, role: &Role, arm: &Arm) -> Placement {
    let cpus = cpus::of_role(arm, role).map(str::to_owned);
    Placement {
        cpus: cpus.or_else(|| placement.cpus.clone()),
        weight: arm.weight_of(role).or(placement.weight),
        ..placement.clone()
    }
}

/// Settings of the cgroup of a role under an arm: the arm's quota takes the place of its own.
pub fn group(placement: &Placement, role: &Role, arm: &Arm) -> Settings {
    let own = placement.quota_percent.map(Quota::of_percent);
    Settings {
        weight: placement.weight,
        quota: quota::of_role(arm, role).or(own),
    }
}

/// Settings that an arm asks of the cgroup of a role.
pub fn of_arm(role: &Role, arm: &Arm) -> Settings {
    Settings {
        weight: arm.weight_of(role),
        quota: quota::of_role(arm, role),
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
    fn the_weight_of_an_arm_takes_the_place_of_that_of_its_role() {
        let own = Placement {
            weight: Some(50),
            nice: Some(5),
            ..Placement::default()
        };
        let mut arm = Arm::unchanged("heavy");
        assert_eq!(placement_under(&own, &Role::Server, &arm), own);
        arm.weight = Some(1000);
        let placed = placement_under(&own, &Role::Server, &arm);
        assert_eq!((placed.weight, placed.nice), (Some(1000), Some(5)));
        assert_eq!(placement_under(&own, &Role::Antagonist, &arm), own);
        arm.to = Role::Antagonist;
        let placed = placement_under(&own, &Role::Antagonist, &arm);
        assert_eq!(placed.weight, Some(1000));
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
