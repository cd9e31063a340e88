//! The state of a race, and its decisions, which follow from the measured rounds alone: who is dropped, who
//! runs next, and who is confirmed. So a race can be made again from its results.

use super::neighbours::AtNeighbour;
use super::{BLOCKS, FIRST, JOINING, MOST_ROUNDS};
use crate::exit::CliError;
use plan::{Point, Space};
use report::race::{Confirmed, Goal, MOST_ARMS, Race, judge_race};
use report::recommend::{Mix, RecommendError, Source};
use results::ResultSet;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// State of a race, as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub baseline: String,
    pub vary: Vec<String>,
    pub weigh: String,
    #[serde(default)]
    pub objective: Option<String>,
    #[serde(default)]
    pub must_not_worsen: Vec<String>,
    /// Arms that were named beside the space.
    #[serde(default)]
    pub named: Vec<String>,
    pub candidates: Vec<Candidate>,
    pub rounds: Vec<Round>,
    /// Time that was measured so far.
    pub spent_ns: u64,
    pub confirmation: Option<Confirmation>,
    /// The winner at other loads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub neighbours: Vec<AtNeighbour>,
}

/// Setting that is tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The arm as a command line writes it, which is its name.
    pub arm: String,
    /// Its place in the space; none of an arm that was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<Point>,
    /// Round after which it was dropped, with the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<(u32, String)>,
    /// True if it was dropped since its trials failed.
    #[serde(default)]
    pub failed: bool,
    /// True if it was dropped since it cannot hold a constraint.
    #[serde(default)]
    pub breaks: bool,
}

/// A round that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Results directory, below that of the race.
    pub results: PathBuf,
    /// Candidates that ran.
    pub arms: Vec<String>,
}

/// Fresh measurement of the candidate that was ahead.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Confirmation {
    pub arm: String,
    /// Others of the race whose difference from the one that was ahead is surely too small to matter.
    pub alike: Vec<String>,
    pub results: PathBuf,
    pub confirmed: Confirmed,
    /// Answer of the referee, where the confirmation is a question of the ledger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ruling: Option<Ruled>,
}

/// Answer of the referee to the confirmation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ruled {
    pub accepted: bool,
    pub text: String,
}

impl Confirmation {
    /// True if the arm is better, by the referee where one was asked, and holds all constraints.
    pub fn is_winner(&self) -> bool {
        match &self.ruling {
            Some(ruling) => ruling.accepted && self.confirmed.find_not_held().next().is_none(),
            None => self.confirmed.is_winner(),
        }
    }
}

/// Candidate to confirm, with those that are alike.
#[derive(Debug, PartialEq)]
pub struct Chosen {
    pub arm: String,
    pub alike: Vec<String>,
}

impl State {
    /// The arms that were named, and the first points of the space.
    pub fn first_candidates(space: &Space, named: &[String]) -> Vec<Candidate> {
        let others = named.iter().map(|arm| Candidate::new(arm.clone(), None));
        let room = FIRST.saturating_sub(named.len()).max(1);
        let points = space.first_points(room).into_iter();
        others
            .chain(points.map(|point| Candidate::new(space.arm_text(&point), Some(point))))
            .collect()
    }

    pub fn read_goal(&self) -> Result<Goal, RecommendError> {
        let mix = Mix::parse_option(&self.weigh)?;
        Goal::new(mix, self.objective.as_deref(), &self.must_not_worsen)
    }

    /// The first rounds, so many of them, judged together; none before the first.
    pub fn judge_rounds(
        &self,
        dir: &Path,
        rounds: usize,
        goal: &Goal,
    ) -> Result<Option<Race>, CliError> {
        if rounds == 0 {
            return Ok(None);
        }
        let rounds = self.rounds.iter().take(rounds);
        let labels: Vec<String> = rounds.map(|r| r.results.display().to_string()).collect();
        let all = labels.iter().map(|label| ResultSet::read(&dir.join(label)));
        let all = all.collect::<Result<Vec<ResultSet>, _>>()?;
        let sources = labels.iter().zip(&all);
        let sources: Vec<Source> = sources
            .map(|(label, results)| Source { label, results })
            .collect();
        Ok(Some(judge_race(&sources, goal)?))
    }

    /// Candidates of the round after so many; none where the race has ended, whatever time is left.
    pub fn choose_round(
        &mut self,
        space: &Space,
        race: &Race,
        smallest_effect: f64,
        rounds: usize,
    ) -> Option<Vec<String>> {
        let round = u32::try_from(rounds).unwrap_or(u32::MAX);
        let runners = race.choose_runners(round);
        // Candidates near the one that is ahead of the first round are in the second.
        let is_settled = round > 1 && race.is_settled(smallest_effect);
        let is_hopeless = race.is_hopeless(smallest_effect, 2 * BLOCKS);
        let is_over = round >= MOST_ROUNDS || is_settled || is_hopeless;
        if runners.is_empty() || is_over {
            return None;
        }
        let mut arms: Vec<String> = runners.into_iter().map(str::to_owned).collect();
        arms.extend(self.join_neighbours(space, race));
        // One candidate alone has nobody to be told from, so its time goes to the confirmation.
        (arms.len() > 1).then_some(arms)
    }

    /// Marks those that the rounds so far drop. Who was behind somebody that turned out to break a constraint
    /// is in again.
    pub fn drop_losers(&mut self, race: &Race, rounds: usize) {
        let round = u32::try_from(rounds).unwrap_or(u32::MAX);
        for (name, runner) in race.names.iter().zip(&race.runners) {
            let Some(candidate) = self.candidates.iter_mut().find(|c| c.arm == *name) else {
                continue;
            };
            let failed = race.failed.get(name);
            let dropped = runner.dropped.as_ref();
            candidate.failed = failed.is_some();
            candidate.breaks = dropped.is_some_and(Race::breaks_limit);
            let why = failed
                .cloned()
                .or_else(|| dropped.map(|dropped| race.format_drop(dropped)));
            candidate.dropped = match (why, candidate.dropped.take()) {
                (Some(_), Some(before)) => Some(before),
                (why, _) => why.map(|why| (round, why)),
            };
        }
    }

    /// New candidates near the one that is ahead.
    fn join_neighbours(&mut self, space: &Space, race: &Race) -> Vec<String> {
        let front = race.find_front_runner();
        let candidates = &self.candidates;
        let point = candidates.iter().find(|c| Some(c.arm.as_str()) == front);
        let Some(point) = point.and_then(|c| c.point.clone()) else {
            return Vec::new();
        };
        let tried: Vec<Point> = candidates.iter().filter_map(|c| c.point.clone()).collect();
        let room = (MOST_ARMS - 1)
            .saturating_sub(candidates.len())
            .min(JOINING);
        let near = space.neighbours(&point, &tried).into_iter().take(room);
        let near: Vec<Candidate> = near
            .map(|point| Candidate::new(space.arm_text(&point), Some(point)))
            .collect();
        self.candidates.extend(near.iter().cloned());
        near.into_iter().map(|candidate| candidate.arm).collect()
    }

    /// The candidate that is measured anew; none where nobody is worth it.
    pub fn choose_winner(race: &Race, smallest_effect: f64) -> Option<Chosen> {
        let hopeless = race.is_hopeless(smallest_effect, 2 * BLOCKS);
        let front = race.find_front_runner().filter(|_| !hopeless)?;
        let mut all = race.find_alike(front, smallest_effect);
        all.insert(0, front);
        // The first of the simplest: the one that is ahead where the others are no simpler.
        let settings = |arm: &&str| arm.matches(['+', ' ']).count();
        let chosen = all.iter().copied().min_by_key(settings).unwrap_or(front);
        let alike = all.iter().filter(|arm| **arm != chosen);
        Some(Chosen {
            arm: chosen.to_owned(),
            alike: alike.map(|arm| (*arm).to_owned()).collect(),
        })
    }

    /// Numbers of candidates by why they were dropped.
    pub fn count_dropped(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for candidate in self.candidates.iter().filter(|c| c.dropped.is_some()) {
            let why = match (candidate.failed, candidate.breaks) {
                (true, _) => "failed",
                (false, true) => "breaks",
                (false, false) => "behind",
            };
            *counts.entry(why).or_default() += 1;
        }
        counts
    }
}

impl Candidate {
    fn new(arm: String, point: Option<Point>) -> Candidate {
        Candidate {
            arm,
            point,
            dropped: None,
            failed: false,
            breaks: false,
        }
    }
}
