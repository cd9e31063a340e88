//! A race made again from its stored trials: who was dropped when and why, who ran in each round, who was
//! confirmed, and with which effect.

use super::directory;
use super::neighbours::AtNeighbour;
use super::state::{Candidate, Chosen, Confirmation, State};
use crate::exit::CliError;
use plan::Space;
use report::race::{Confirmed, Goal, judge_confirmation};
use report::recommend::Source;
use results::ResultSet;
use std::path::{Path, PathBuf};

/// Outcome of a race that was made again.
pub struct Replay {
    /// Directories of its results, below that of the race.
    pub results: Vec<PathBuf>,
    /// Candidates of the race.
    pub candidates: usize,
    /// The race has a confirmation, or none is due.
    pub is_over: bool,
    /// Everything that differs from what was kept, a sentence each.
    pub differences: Vec<String>,
}

/// True of a directory of `schedlab tune`.
pub fn is_race(dir: &Path) -> bool {
    dir.join(directory::STATE).is_file()
}

/// Makes the race of a directory again.
pub fn replay_race(dir: &Path) -> Result<Replay, CliError> {
    let kept = directory::read_state(dir)?.ok_or_else(|| {
        let help = "name a directory of `schedlab tune`, or one of a run";
        CliError::usage(format!("{} holds no race", dir.display()), help)
    })?;
    let space = Space::parse(directory::STATE, &kept.vary)?;
    let goal = kept.read_goal()?;
    let mut again = State {
        candidates: State::first_candidates(&space, &kept.named),
        ..kept.clone()
    };
    let mut differences = Vec::new();
    let first = again.candidates.iter().map(|c| c.arm.clone()).collect();
    compare_round(dir, &kept, 0, Some(first), &mut differences)?;
    let mut race = None;
    for round in 1..=kept.rounds.len() {
        let Some(judged) = kept.judge_rounds(dir, round, &goal)? else {
            continue;
        };
        again.drop_losers(&judged, round);
        let smallest = read_smallest_effect(dir, &kept)?;
        if round < kept.rounds.len() {
            let arms = again.choose_round(&space, &judged, smallest, round);
            compare_round(dir, &kept, round, arms, &mut differences)?;
        }
        race = Some(judged);
    }
    compare_candidates(&kept.candidates, &again.candidates, &mut differences);
    let chosen = match &race {
        Some(race) => State::choose_winner(race, read_smallest_effect(dir, &kept)?),
        None => None,
    };
    if let Some(confirmation) = &kept.confirmation {
        compare_confirmation(dir, confirmation, chosen.as_ref(), &goal, &mut differences)?;
        for at in &kept.neighbours {
            compare_neighbour(dir, at, &goal, &confirmation.arm, &mut differences)?;
        }
    }
    let rounds = kept.rounds.iter().map(|round| round.results.clone());
    let confirmation = kept.confirmation.iter().map(|c| c.results.clone());
    let neighbours = kept.neighbours.iter().map(|at| at.results.clone());
    Ok(Replay {
        results: rounds.chain(confirmation).chain(neighbours).collect(),
        candidates: kept.candidates.len(),
        is_over: kept.confirmation.is_some() || (race.is_some() && chosen.is_none()),
        differences,
    })
}

fn read_smallest_effect(dir: &Path, kept: &State) -> Result<f64, CliError> {
    let first = kept.rounds.first().map(|round| dir.join(&round.results));
    match first {
        Some(first) => Ok(ResultSet::read(&first)?.experiment.stop.smallest_effect),
        None => Ok(0.0),
    }
}

/// Compares the arms of a round with those that are due, and with those that its results have.
fn compare_round(
    dir: &Path,
    kept: &State,
    index: usize,
    due: Option<Vec<String>>,
    differences: &mut Vec<String>,
) -> Result<(), CliError> {
    let Some(round) = kept.rounds.get(index) else {
        return Ok(());
    };
    let number = index + 1;
    let list = |arms: &[String]| match arms.is_empty() {
        true => "nobody".to_owned(),
        false => arms.join(", "),
    };
    let due = due.unwrap_or_default();
    if due != round.arms {
        let (said, due) = (list(&round.arms), list(&due));
        differences.push(format!("round {number}: {said} ran, and due was {due}"));
    }
    let results = ResultSet::read(&dir.join(&round.results))?;
    let arms = results.experiment.arms.iter().map(|arm| arm.name.clone());
    let arms: Vec<String> = arms.filter(|arm| *arm != kept.baseline).collect();
    if let Some(missing) = round.arms.iter().find(|arm| !arms.contains(arm)) {
        differences.push(format!("round {number}: its results have no {missing}"));
    }
    Ok(())
}

fn compare_candidates(kept: &[Candidate], again: &[Candidate], differences: &mut Vec<String>) {
    for candidate in kept {
        let arm = &candidate.arm;
        match again.iter().find(|other| other.arm == *arm) {
            None => differences.push(format!("{arm} is no candidate of this race")),
            Some(other) if other == candidate => {}
            Some(other) => differences.push(format!(
                "{arm} is said to be {}, and by its trials it is {}",
                fate_text(candidate),
                fate_text(other)
            )),
        }
    }
    let lacking = again
        .iter()
        .filter(|other| !kept.iter().any(|c| c.arm == other.arm));
    differences.extend(lacking.map(|other| format!("{} is left out of the race", other.arm)));
}

fn fate_text(candidate: &Candidate) -> String {
    match &candidate.dropped {
        None => "in the race".to_owned(),
        Some((round, why)) => format!("dropped in round {round}: {why}"),
    }
}

fn compare_confirmation(
    dir: &Path,
    kept: &Confirmation,
    due: Option<&Chosen>,
    goal: &Goal,
    differences: &mut Vec<String>,
) -> Result<(), CliError> {
    let is_due = due.is_some_and(|due| due.arm == kept.arm && due.alike == kept.alike);
    if !is_due {
        let due = due.map_or("nobody", |due| due.arm.as_str());
        differences.push(format!(
            "{} was confirmed, and by the race it is {due}",
            kept.arm
        ));
    }
    let label = kept.results.display().to_string();
    let results = ResultSet::read(&dir.join(&kept.results))?;
    let source = Source {
        label: &label,
        results: &results,
    };
    let again = judge_confirmation(&source, goal, &kept.arm)?;
    if read_back(&again)? != kept.confirmed {
        let said = effect_text(&kept.confirmed);
        let found = effect_text(&again);
        differences.push(format!(
            "the confirmation of {} is said to be {said}, and by its trials it is {found}",
            kept.arm
        ));
    }
    Ok(())
}

fn compare_neighbour(
    dir: &Path,
    kept: &AtNeighbour,
    goal: &Goal,
    arm: &str,
    differences: &mut Vec<String>,
) -> Result<(), CliError> {
    let results = ResultSet::read(&dir.join(&kept.results))?;
    let again = AtNeighbour::judge(kept.loads, &results, goal, arm)?;
    let again = AtNeighbour {
        confirmed: read_back(&again.confirmed)?,
        ..again
    };
    if again != *kept {
        differences.push(format!(
            "at other loads {arm} is said to be: {}; by its trials it is: {}",
            kept.to_text(),
            again.to_text()
        ));
    }
    Ok(())
}

/// The same after the way through a file, in which the last digit of a number may be lost.
fn read_back(confirmed: &Confirmed) -> Result<Confirmed, CliError> {
    let text = crate::output::json_text(confirmed)?;
    serde_json::from_str(&text).map_err(|error| CliError::internal(error.to_string()))
}

fn effect_text(confirmed: &Confirmed) -> String {
    let change = confirmed.format_change().unwrap_or_default();
    let interval = confirmed.format_interval().unwrap_or_default();
    let not_held = confirmed.find_not_held().count();
    format!(
        "{} {change} {interval} ({} blocks, {not_held} of {} constraints not held, {} of {} others worse)",
        confirmed.verdict,
        confirmed.blocks,
        confirmed.constraints.len(),
        confirmed.costs.len(),
        confirmed.looked_at
    )
}

impl Replay {
    /// `16 candidates in 3 rounds`, with what is not known yet.
    pub fn summary_text(&self) -> String {
        let candidates = report::format_count(self.candidates, "candidate");
        let runs = report::format_count(self.results.len(), "run");
        match self.is_over {
            true => format!("{candidates} in {runs}"),
            false => format!("{candidates} in {runs}; the race has not ended"),
        }
    }
}
