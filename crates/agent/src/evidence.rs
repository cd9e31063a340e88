//! Evidence of what is in force now, read from the kernel.

use crate::arm::changes::InForce;
use crate::arm::ingredient::At;
use crate::arm::table::asked_facts;
use crate::roles::Roles;
use collect::tasks::{self, Pid};
use model::readings::KERNEL_RELEASE;
use model::{EvidencePoint, Fact, Phase, Policy, Role, RolePolicy};
use std::path::Path;

/// Threads that are looked at within the window. Before and after it: all.
const SAMPLE_LIMIT: usize = 32;

/// Places of the evidence, and the roles and kernel that it should name beside what the arm
/// itself says.
pub struct Look<'a> {
    pub root: &'a Path,
    pub in_force: &'a InForce<'a>,
    /// The processes of the roles, also as zombies.
    pub leaders: &'a [(Role, Pid)],
    pub roles: &'a Roles,
    /// The kernel that the trial began on.
    pub kernel_release: &'a str,
}

/// Reads one point.
pub fn point(look: &Look, phase: Phase, at_ns: u64) -> EvidencePoint {
    let policies = policies(look.root, look.leaders, phase);
    let kernel = Fact::new(KERNEL_RELEASE, collect::machine::kernel_release());
    let mut facts = vec![kernel.with_wanted(look.kernel_release)];
    let at = At {
        root: look.root,
        policies: &policies,
        leaders: look.leaders,
        roles: look.roles,
    };
    facts.extend(look.in_force.facts(&at));
    for asked in asked_facts(look.in_force.arm) {
        facts.iter_mut().for_each(|fact| asked.put_into(fact));
    }
    EvidencePoint {
        phase,
        at_ns,
        threads: policies.iter().map(|entry| entry.threads).sum(),
        facts,
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
    use model::Arm;

    #[test]
    fn the_facts_of_a_process_have_what_its_arm_wants_beside_what_was_found() {
        let mut arm = Arm::unchanged("fifo");
        arm.policy = Some(Policy::new(model::Class::Fifo));
        let own = std::process::id() as Pid;
        let workload = crate::fixture::command();
        let look = Look {
            root: Path::new("/"),
            in_force: &InForce::new(&arm, &workload),
            leaders: &[(Role::Load, own), (Role::Server, own)],
            roles: &Roles::default(),
            kernel_release: "0.1",
        };
        let point = point(&look, Phase::Before, 7);
        assert!(point.threads >= 2);
        let of = |what: &str, role: Option<Role>| {
            let mut facts = point.facts.iter();
            let fact = facts.find(|f| f.subject() == (what, role.as_ref()));
            fact.unwrap_or_else(|| panic!("{what}: {:?}", point.facts))
        };
        let policy = of("policy", Some(Role::Load));
        assert_eq!(policy.wanted.as_deref(), Some("fifo:1"));
        assert_eq!(policy.found, "other");
        assert_eq!(of("policy", Some(Role::Server)).wanted, None);
        assert_eq!(of(KERNEL_RELEASE, None).wanted.as_deref(), Some("0.1"));
    }
}
