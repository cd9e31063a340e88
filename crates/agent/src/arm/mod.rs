//! Kinds of arm, one file each: how to check, apply, read back and undo.

mod asked;
pub mod deadline;
pub mod policy;
pub mod scheduler;
pub mod tunables;

use asked::Asked;
use model::readings::WEIGHT;
use model::{Arm, Role};

/// All that an arm asks of the machine.
pub fn asks(arm: &Arm) -> Vec<Asked> {
    let mut asked = scheduler::asks(arm);
    asked.extend(tunables::asks(&arm.tunables));
    asked.extend(policy::asks(arm));
    let weight = arm.weight.map(|weight| weight.to_string());
    asked.extend(weight.map(|weight| Asked::of_role(&Role::Server, WEIGHT, weight)));
    asked
}
