//! Evidence as results have it on disk. Up to format 1.1 a point had a field for each
//! thing that was read; now all of them are facts.

use crate::arm::Role;
use crate::evidence::{Evidence, EvidencePoint, Phase, RolePolicy, SchedExt, SchedulerBinary};
use crate::fact::Fact;
use crate::readings::{self, ATTACHES, KERNEL_RELEASE, NONE, SCHEDULER, WEIGHT};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Debug, Deserialize)]
pub struct StoredEvidence {
    points: Vec<StoredPoint>,
    #[serde(default)]
    facts: Vec<Fact>,
    #[serde(default)]
    scheduler_binary: Option<SchedulerBinary>,
    #[serde(default)]
    applied_ns: u64,
}

#[derive(Debug, Deserialize)]
struct StoredPoint {
    phase: Phase,
    at_ns: u64,
    #[serde(default)]
    threads: u32,
    #[serde(default)]
    facts: Vec<Fact>,
    /// There up to format 1.1, and so are the fields that follow.
    #[serde(default)]
    kernel_release: Option<String>,
    #[serde(default)]
    sched_ext: Option<SchedExt>,
    #[serde(default)]
    tunables: BTreeMap<String, String>,
    #[serde(default)]
    policies: Vec<RolePolicy>,
    #[serde(default)]
    server_weight: Option<u32>,
}

impl StoredPoint {
    fn read(self) -> EvidencePoint {
        let mut facts = self.facts;
        if let Some(release) = &self.kernel_release {
            facts.push(Fact::found(KERNEL_RELEASE, release));
            facts.push(readings::scheduler(self.sched_ext.as_ref()));
        }
        facts.extend(self.sched_ext.filter(|ext| !ext.ops.is_empty()).map(|ext| {
            let attaches = ext.enable_seq;
            Fact::found(ATTACHES, attaches.to_string())
        }));
        let tunables = self.tunables.into_iter();
        facts.extend(tunables.map(|(name, found)| Fact::found(readings::tunable(&name), found)));
        facts.extend(readings::policies(&self.policies));
        let weight = self.server_weight;
        facts.extend(weight.map(|w| Fact::found(WEIGHT, w.to_string()).of(&Role::Server)));
        EvidencePoint {
            phase: self.phase,
            at_ns: self.at_ns,
            threads: self.threads + self.policies.iter().map(|p| p.threads).sum::<u32>(),
            facts,
        }
    }
}

impl From<StoredEvidence> for Evidence {
    fn from(stored: StoredEvidence) -> Self {
        let old = stored
            .points
            .iter()
            .any(|point| point.kernel_release.is_some());
        let mut evidence = Evidence {
            points: stored.points.into_iter().map(StoredPoint::read).collect(),
            facts: stored.facts,
            scheduler_binary: stored.scheduler_binary,
            applied_ns: stored.applied_ns,
        };
        if old {
            want_the_first(&mut evidence);
            evidence.settle();
        }
        evidence
    }
}

/// Wants every later reading to be like the first: before format 1.2 a trial in which one of
/// these changed was void.
fn want_the_first(evidence: &mut Evidence) {
    for what in [KERNEL_RELEASE, SCHEDULER, ATTACHES] {
        let first = evidence.all_facts().find(|fact| fact.what == what);
        let first = first.map(|fact| fact.found.clone());
        let Some(first) = first.filter(|found| found != NONE) else {
            continue;
        };
        let points = evidence.points.iter_mut();
        let facts = points.flat_map(|point| &mut point.facts);
        for fact in facts.filter(|fact| fact.what == what) {
            fact.wanted = Some(first.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Evidence as format 1.1 has it.
    fn old(late: &str) -> Evidence {
        let point = |phase: &str, ops: &str| {
            serde_json::json!({
                "phase": phase, "at_ns": 7, "kernel_release": "6.18.0",
                "sched_ext": {"state": "enabled", "ops": ops, "enable_seq": 3, "nr_rejected": 0},
                "tunables": {"base_slice": "300000"},
                "policies": [{"role": "load", "policy": {"class": "batch", "nice": 0}, "threads": 4}],
                "server_weight": 250,
            })
        };
        let points = [point("before", "rusty"), point("after", late)];
        serde_json::from_value(serde_json::json!({ "points": points })).unwrap()
    }

    #[test]
    fn the_fields_of_old_points_are_facts() {
        let evidence = old("rusty");
        let said = |fact: &Fact| format!("{}: {}", fact.name(), fact.found);
        let said: Vec<String> = evidence.facts.iter().map(said).collect();
        let expected = [
            "sched_ext scheduler: rusty",
            "kernel release: 6.18.0",
            "tunable base_slice: 300000",
            "policy of the load: batch",
            "nice of the load: 0",
            "cgroup weight of the server: 250",
        ];
        for expected in expected {
            assert!(said.iter().any(|s| s == expected), "{expected}: {said:?}");
        }
        assert!(evidence.points.iter().all(|point| point.threads == 4));
        assert_eq!(evidence.disagrees(), None);
    }

    #[test]
    fn what_changed_within_an_old_trial_disagrees() {
        let why = old("lavd").disagrees().unwrap();
        assert!(
            why.contains("was lavd, not rusty, after the window"),
            "{why}"
        );
    }

    #[test]
    fn what_is_written_is_read_again_as_it_was() {
        let evidence = old("lavd");
        let text = serde_json::to_string(&evidence).unwrap();
        assert!(!text.contains("kernel_release"), "{text}");
        assert_eq!(serde_json::from_str::<Evidence>(&text).unwrap(), evidence);
    }
}
