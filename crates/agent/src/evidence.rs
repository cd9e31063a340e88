//! What is in force now, read from the kernel.

use collect::tasks::{self, Pid};
use model::{Arm, EvidencePoint, Phase, Policy, Role, RolePolicy};
use std::path::Path;

/// Threads that are looked at within the window. Before and after it: all.
const SAMPLE_LIMIT: usize = 32;

/// Reads one point. `leaders` are the processes of the roles, also as zombies.
pub fn point(
    root: &Path,
    arm: &Arm,
    leaders: &[(Role, Pid)],
    server_weight: Option<u32>,
    (phase, at_ns): (Phase, u64),
) -> EvidencePoint {
    EvidencePoint {
        phase,
        at_ns,
        kernel_release: collect::system::kernel_release(),
        sched_ext: collect::sched_ext::read(root),
        tunables: crate::arm::tunables::read(root, &arm.tunables),
        policies: policies(root, leaders, phase),
        server_weight,
    }
}

fn policies(root: &Path, leaders: &[(Role, Pid)], phase: Phase) -> Vec<RolePolicy> {
    let limit = match phase {
        Phase::During => SAMPLE_LIMIT,
        Phase::Before | Phase::After => usize::MAX,
    };
    let mut found = Vec::new();
    for (role, leader) in leaders {
        for tid in tasks::threads_of_tree(root, *leader, limit) {
            // A thread that ended meanwhile has no policy.
            if let Ok(policy) = collect::policy::read(tid) {
                count(&mut found, role, policy);
            }
        }
    }
    found
}

fn count(found: &mut Vec<RolePolicy>, role: &Role, policy: Policy) {
    let same = |entry: &&mut RolePolicy| entry.role == *role && entry.policy == policy;
    match found.iter_mut().find(same) {
        Some(entry) => entry.threads += 1,
        None => found.push(RolePolicy {
            role: role.clone(),
            policy,
            threads: 1,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Class;

    #[test]
    fn the_policies_of_a_process_are_counted() {
        let arm = Arm::unchanged("default");
        let own = std::process::id() as Pid;
        let leaders = [(Role::Load, own)];
        let point = point(Path::new("/"), &arm, &leaders, None, (Phase::Before, 7));
        let threads: u32 = point.policies.iter().map(|p| p.threads).sum();
        assert!(threads >= 1);
        assert!(
            point
                .policies
                .iter()
                .any(|p| p.policy.class == Class::Other)
        );
        assert!(!point.kernel_release.is_empty());
    }
}
