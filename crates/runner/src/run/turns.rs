//! Trials in which arms take turns: one process that is a trial of each arm of its block.

use super::Run;
use super::attempts::Attempt;
use crate::cells::{CellState, Decisions, GivenUp};
use crate::trial::{TrialEnd, void_result};
use model::turns::arm_of_file;
use model::{PlannedTrial, SoFar, Trial, TrialFile, TrialResult, TrialState};
use results::TrialFiles;
use std::time::{Instant, SystemTime};

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

/// Look at a process in which arms still take turns.
pub(super) struct SoFarLook<'r, 'e> {
    decisions: &'r Decisions<'e>,
    given_up: &'r GivenUp,
    /// Places that the process measures, by arm.
    places: Vec<PlannedTrial>,
    /// Metrics that decide.
    metrics: Vec<String>,
    /// It judges beside the load, so the next look waits twenty times as long as the last one took.
    due: Instant,
    /// Numbers of turns after which it judged, and they were not enough.
    not_enough: Vec<u32>,
    has_enough: bool,
}

/// Pause after a look, in times of what it took.
const PAUSES: u32 = 20;

impl<'r, 'e> SoFarLook<'r, 'e> {
    pub fn new(
        decisions: &'r Decisions<'e>,
        given_up: &'r GivenUp,
        places: Vec<PlannedTrial>,
        metrics: Vec<String>,
    ) -> Self {
        SoFarLook {
            decisions,
            given_up,
            places,
            metrics,
            due: Instant::now(),
            not_enough: Vec::new(),
            has_enough: false,
        }
    }

    /// Numbers of turns after which the process went on by what was seen.
    pub fn into_not_enough(self) -> Vec<u32> {
        self.not_enough
    }

    /// Would the cell be decided if the process ended now? Only the process that may be the last one ends so: pairs of
    /// those before it are measured in any case.
    pub fn is_enough(&mut self, trials: &mut Vec<Trial>, arms: &[SoFar]) -> bool {
        let began = Instant::now();
        let has_all = |arm: &SoFar| {
            let mut metrics = self.metrics.iter();
            metrics.all(|name| arm.metrics.iter().any(|m| m.metric == *name))
        };
        // A metric that is not known yet is not open, and may be one at the end.
        if self.has_enough || began < self.due || !arms.iter().all(has_all) {
            return false;
        }
        self.has_enough = self.is_decided(trials, arms);
        if !self.has_enough {
            let last = arms.iter().filter_map(|arm| arm.windows.turns.last());
            self.not_enough.extend(last.max().map(|turn| turn + 1));
        }
        self.due = Instant::now() + began.elapsed() * PAUSES;
        self.has_enough
    }

    /// `trials` are as before afterwards.
    fn is_decided(&self, trials: &mut Vec<Trial>, arms: &[SoFar]) -> bool {
        let (before, began) = (trials.len(), (Instant::now(), SystemTime::now()));
        let so_far = self.places.iter().zip(arms).map(|(place, arm)| Trial {
            place: place.clone(),
            cell: String::new(),
            arm: String::new(),
            attempt: 1,
            start: 0,
            result: TrialResult {
                state: TrialState::Ok,
                metrics: arm.metrics.clone(),
                windows: Some(arm.windows.clone()),
                ..void_result(String::new(), began)
            },
        });
        trials.extend(so_far);
        let states = self.decisions.cell_states(trials, self.given_up);
        trials.truncate(before);
        let state = self.places.first().and_then(|place| states.get(place.cell));
        matches!(state, Some(CellState::Decided))
    }
}

/// Notes in the results of a process the looks at it after which it went on.
pub(super) fn note_looks(end: &mut TrialEnd, looks: &[u32]) {
    let TrialEnd::Result { result, arms, .. } = end else {
        return;
    };
    let results = arms.iter_mut().chain([&mut **result]);
    for windows in results.filter_map(|result| result.windows.as_mut()) {
        windows.looks = looks.to_vec();
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
