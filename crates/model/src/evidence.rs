//! Proof that a trial ran under the arm that it is counted for.

use crate::arm::Role;
use crate::fact::Fact;
use crate::units::format_duration_ns;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// All evidence of one trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// When the agent looked, in time order.
    pub points: Vec<EvidencePoint>,
    /// Facts that were the same at each point that they were read at, and those that the
    /// target, which made the machine, knows for the whole trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<Fact>,
    /// The scheduler program that was started, where the arm has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler_binary: Option<SchedulerBinary>,
    /// Time that it took to put the arm in force, since the start of the trial; 0 if it was not measured.
    #[serde(default, skip_serializing_if = "is_no_time")]
    pub applied_ns: u64,
}

pub(crate) fn is_no_time(ns: &u64) -> bool {
    *ns == 0
}

impl Evidence {
    /// Why the trial is void: the first fact that is not what the arm needs.
    pub fn find_disagreement(&self) -> Option<String> {
        let throughout = self.facts.iter().find_map(Fact::find_disagreement);
        throughout.or_else(|| self.points.iter().find_map(EvidencePoint::disagrees))
    }

    /// Every fact, those of the whole trial first.
    pub fn all_facts(&self) -> impl Iterator<Item = &Fact> {
        let at_points = self.points.iter().flat_map(|point| &point.facts);
        self.facts.iter().chain(at_points)
    }

    /// Keeps a fact that is the same wherever it was read once for the whole trial.
    pub fn merge_facts(&mut self) {
        let mut subjects = Vec::new();
        // The first reading of each, and whether all others are like it.
        let mut first = BTreeMap::new();
        for fact in self.points.iter().flat_map(|point| &point.facts) {
            let (known, same) = first.entry(fact.subject()).or_insert_with(|| {
                subjects.push(fact.subject());
                (fact, true)
            });
            *same &= *known == fact;
        }
        let settled = subjects.iter().filter_map(|subject| {
            let (fact, same) = first[subject];
            same.then(|| fact.clone())
        });
        let settled: Vec<Fact> = settled.collect();
        let changed = first.into_iter().filter(|(_, (_, same))| !same);
        let changed = changed.map(|((what, role), _)| (what.to_owned(), role.cloned()));
        let changed: BTreeSet<(String, Option<Role>)> = changed.collect();
        for point in &mut self.points {
            let has_changed =
                |fact: &Fact| changed.contains(&(fact.what.clone(), fact.role.clone()));
            point.facts.retain(has_changed);
        }
        self.facts.splice(0..0, settled);
    }
}

/// Moment of a trial in relation to its measured window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// After the arm was applied, before the measured window opens.
    Before,
    /// Inside the window, at most once a second.
    During,
    /// After the window closed, before the arm is undone.
    After,
}

impl Phase {
    /// `before`, as in "before the window".
    pub fn name(self) -> &'static str {
        match self {
            Phase::Before => "before",
            Phase::During => "within",
            Phase::After => "after",
        }
    }
}

/// Readings of the kernel at one moment, without those that are in [`Evidence::facts`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvidencePoint {
    /// Moment at which the kernel was read.
    pub phase: Phase,
    /// Since the start of the trial, CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// Number of threads of the roles that were looked at.
    #[serde(default, skip_serializing_if = "is_none")]
    pub threads: u32,
    /// Facts as they were read at this moment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<Fact>,
}

fn is_none(threads: &u32) -> bool {
    *threads == 0
}

impl EvidencePoint {
    fn disagrees(&self) -> Option<String> {
        let why = self.facts.iter().find_map(Fact::find_disagreement)?;
        Some(format!("{why}, {}", self.place()))
    }

    /// `within the window, 2.1s after the start`.
    fn place(&self) -> String {
        format!(
            "{} the window, {} after the start",
            self.phase.name(),
            format_duration_ns(self.at_ns)
        )
    }
}

/// `/sys/kernel/sched_ext` (kernel/sched/ext.c).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedExt {
    /// `state`: `enabled`, `disabled`, `enabling`, `disabling`.
    pub state: String,
    /// `root/ops`: the scheduler in force; empty when none is.
    pub ops: String,
    /// `enable_seq`: attaches since boot.
    pub enable_seq: u64,
    /// `nr_rejected`: tasks that a scheduler refused since boot.
    pub nr_rejected: u64,
    /// `switch_all`: does the scheduler run all fair tasks, or only those in
    /// `SCHED_EXT`? `None` where it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch_all: Option<bool>,
}

/// Number of threads of a role that were found with one and the same policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RolePolicy {
    /// Role of the threads.
    pub role: Role,
    /// Policy as the kernel gave it.
    pub policy: crate::Policy,
    /// Number of threads with this policy.
    pub threads: u32,
}

/// Program file of the scheduler that a trial started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulerBinary {
    /// Path of the file.
    pub path: String,
    /// Arguments that it was started with.
    pub args: Vec<String>,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
    /// First line of `PROGRAM --version`, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(what: &str, found: &str) -> Fact {
        Fact::new(what, found).with_wanted("4")
    }

    fn evidence(points: &[&[(&str, &str)]]) -> Evidence {
        let point = |(second, facts): (usize, &&[(&str, &str)])| EvidencePoint {
            phase: Phase::During,
            at_ns: second as u64 * 1_000_000_000,
            threads: 1,
            facts: facts
                .iter()
                .map(|(what, found)| fact(what, found))
                .collect(),
        };
        Evidence {
            points: points.iter().enumerate().map(point).collect(),
            ..Evidence::default()
        }
    }

    #[test]
    fn what_is_the_same_at_all_points_is_kept_once() {
        let mut evidence = evidence(&[
            &[("slice", "4"), ("nice", "4")],
            &[("slice", "4"), ("nice", "4"), ("late", "4")],
            &[("nice", "5")],
        ]);
        evidence.merge_facts();
        assert_eq!(evidence.facts, [fact("slice", "4"), fact("late", "4")]);
        let at = |point: usize| evidence.points[point].facts.clone();
        assert_eq!([at(0), at(1)], [[fact("nice", "4")], [fact("nice", "4")]]);
        assert_eq!(at(2), [fact("nice", "5")]);
        let once = evidence.clone();
        evidence.merge_facts();
        assert_eq!(evidence, once);
    }

    #[test]
    fn a_fact_that_is_not_what_is_wanted_is_said_with_its_moment() {
        let mut differs = evidence(&[&[("nice", "4")], &[("nice", "5")]]);
        let why = "the nice was 5, not 4, within the window, 1s after the start";
        assert_eq!(differs.find_disagreement().as_deref(), Some(why));
        differs.points.remove(0);
        differs.merge_facts();
        assert_eq!(
            differs.find_disagreement().as_deref(),
            Some("the nice was 5, not 4")
        );
        assert_eq!(evidence(&[&[("nice", "4")]]).find_disagreement(), None);
    }
}
