//! Trials in which arms take turns: one process that is a trial of each arm of its block.

use super::Run;
use super::attempts::Attempt;
use model::turns::arm_of_file;
use model::{PlannedTrial, TrialFile, TrialResult};
use results::TrialFiles;

impl Run<'_> {
    /// The places of the plan that a trial at this place measures, in the order of the arms: all of
    /// its cell in its block, where arms take turns.
    pub(super) fn places_of(&self, place: &PlannedTrial) -> Vec<PlannedTrial> {
        if self.turn_lengths(place.cell).is_none() {
            return vec![place.clone()];
        }
        let planned = self.plan.trials.iter();
        let here = planned.filter(|other| (other.block, other.cell) == (place.block, place.cell));
        let mut places: Vec<PlannedTrial> = here.cloned().collect();
        places.sort_by_key(|place| place.arm);
        places
    }
}

/// Results of all arms, each with its own files. Those of the whole process go to the first. A
/// result that came to nothing is that of every arm.
pub(super) fn of_arms(results: Vec<TrialResult>, files: TrialFiles, places: usize) -> Attempt {
    let results = results.into_iter().cycle().take(places);
    let mut attempt: Attempt = results
        .map(|result| (result, TrialFiles::default()))
        .collect();
    for file in files.texts {
        let (arm, name) = arm_of_file(&file.name).unwrap_or((0, &file.name));
        let name = name.to_owned();
        if let Some((_, files)) = attempt.get_mut(arm) {
            let text = file.text;
            files.texts.push(TrialFile { name, text });
        }
    }
    if let Some((_, first)) = attempt.first_mut() {
        first.kept = files.kept;
    }
    attempt
}
