//! Experiments in a guest, and what their trials say.

use model::{Fact, TrialResult};
use results::{ResultSet, StoredTrial};
use tests::Bench;

pub const KERNEL: &str = "debian:sid";

pub fn experiment(arms: &str, command: &str) -> String {
    format!(
        "[target]\nkind = \"vm\"\nkernel = \"{KERNEL}\"\nmemory = \"1G\"\n\
         [[arm]]\nname = \"eevdf\"\n{arms}\
         [[workload]]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"{command}\"]\n\
         [stop]\nmin-blocks = 1\nmax-blocks = 1\nmax-attempts = 1\n"
    )
}

pub fn trials(bench: &Bench) -> Vec<StoredTrial> {
    ResultSet::read(&bench.path("out"))
        .expect("readable")
        .trials
}

/// Facts that held for the whole trial.
pub fn fact<'a>(result: &'a TrialResult, what: &str) -> &'a Fact {
    let mut facts = result.evidence.facts.iter();
    let fact = facts.find(|fact| fact.what == what);
    fact.unwrap_or_else(|| panic!("{what}: {:?}", result.evidence))
}

pub fn of<'a>(trials: &'a [StoredTrial], arm: &str) -> &'a StoredTrial {
    let mut of_arm = trials.iter().filter(|t| t.trial.arm == arm);
    of_arm.next().unwrap_or_else(|| panic!("{arm} was tried"))
}
