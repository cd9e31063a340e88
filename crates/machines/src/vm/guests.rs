//! Several guests of one description at once, each with CPUs of this machine for itself.

use crate::{Fleet, Host, Leaving, Made, MadeFleet};
use ::vm::VmSpec;
use model::TargetSpec;

/// The guests by their numbers, from 1 on.
#[derive(Debug)]
struct Guests {
    of_all: TargetSpec,
    each: Vec<VmSpec>,
}

/// Guests that this machine has room for, or why it has not.
pub(super) fn find_room(of_all: &TargetSpec) -> MadeFleet {
    Ok(Box::new(Guests {
        of_all: of_all.clone(),
        each: VmSpec::from_target(of_all)?.find_room()?,
    }))
}

impl Fleet for Guests {
    fn machine_names(&self) -> Vec<String> {
        let numbers = 1..=self.each.len();
        numbers.map(|number| format!("guest-{number}")).collect()
    }

    fn machine_spec(&self, _: &str) -> TargetSpec {
        // The CPUs of a guest are among its facts, and may be others after a resume.
        self.of_all.clone()
    }

    fn make_target(&self, machine: &str, host: &Host) -> Made {
        let names = self.machine_names();
        let mut named = names.iter().zip(&self.each);
        let own = named.find(|(name, _)| *name == machine);
        let own = own.map_or_else(|| self.of_all.clone(), |(_, own)| TargetSpec::from(own));
        super::make_target(&own, host)
    }

    fn machines_to_leave(&self) -> Vec<Leaving> {
        Vec::new()
    }
}
