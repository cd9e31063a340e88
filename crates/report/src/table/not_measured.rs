//! Arms of which no trial of a cell counts.

use crate::fold::is_alike;
use crate::table::NotMeasured;
use model::{Experiment, TrialState};
use results::ResultSet;

/// The arms of a cell of which no trial counts.
pub(super) fn find_not_measured(results: &ResultSet, cell: usize) -> Vec<NotMeasured> {
    let arms = results.experiment.arms.iter().enumerate();
    let found = arms.filter_map(|(index, arm)| {
        let all = results.trials.iter().map(|stored| &stored.trial);
        let mut states = all
            .filter(|t| t.place.cell == cell && t.place.arm == index)
            .map(|t| &t.result.state);
        let mut found = NotMeasured {
            arm: arm.name.clone(),
            void: 0,
            failed: 0,
            why: String::new(),
        };
        let mut reasons = Vec::new();
        let is_measured = states.any(|state| {
            match state {
                TrialState::Ok => return true,
                TrialState::Void { .. } => found.void += 1,
                TrialState::Failed { .. } => found.failed += 1,
            }
            reasons.extend(state.why().map(model::trial::first_line));
            false
        });
        found.why = most_common(&reasons);
        (!is_measured).then_some(found)
    });
    found.collect()
}

/// The first of the reasons that are most often alike; empty without any.
pub fn most_common(reasons: &[&str]) -> String {
    let often = |reason: &str| reasons.iter().filter(|r| is_alike(r, reason)).count();
    // The last of equal maxima is the first reason.
    let most = reasons.iter().rev().max_by_key(|reason| often(reason));
    most.copied().unwrap_or_default().to_owned()
}

/// Entries of an arm and of its baseline.
pub(super) fn of_both<'a>(
    experiment: &'a Experiment,
    both: [usize; 2],
    not_measured: &'a [NotMeasured],
) -> impl Iterator<Item = &'a NotMeasured> {
    let names = both.map(|index| &experiment.arms[index].name);
    not_measured.iter().filter(move |n| names.contains(&&n.arm))
}

pub(super) fn are_measured(
    experiment: &Experiment,
    both: [usize; 2],
    not_measured: &[NotMeasured],
) -> bool {
    of_both(experiment, both, not_measured).next().is_none()
}
