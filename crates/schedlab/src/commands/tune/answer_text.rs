//! The answer of a race: one sentence, the confirmation, the race, and what to paste.

use super::neighbours::AtNeighbour;
use super::state::{Candidate, Confirmation, Ruled, State};
use report::race::{Confirmed, Elsewhere, FrontArm, Race, Runner};
use report::{format_count, wrap_text};
use serde::Serialize;
use std::fmt::Write;

/// The answer. It serializes to the JSON of `schedlab tune`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// `winner` or `baseline`.
    advice: &'static str,
    /// The arm to use.
    arm: String,
    /// The answer in one sentence.
    answer: String,
    /// Fresh measurement of the candidate that was ahead; none where none was.
    confirmation: Option<Checked>,
    /// The winner at other loads, beside the baseline.
    other_loads: Vec<AtNeighbour>,
    /// Candidates in the order of their gain in the race.
    candidates: Vec<Entry>,
    /// Arms that no other is ahead of in all objectives, in the race; empty with one objective.
    front: Vec<FrontArm>,
    rounds: usize,
    spent_ns: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Checked {
    arm: String,
    alike: Vec<String>,
    #[serde(flatten)]
    confirmed: Confirmed,
    /// Answer of the referee, where it was a question of the ledger.
    #[serde(skip_serializing_if = "Option::is_none")]
    ruling: Option<Ruled>,
}

/// A candidate in the race. Its gain is no result: who is ahead of many is so by luck, too.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Entry {
    arm: String,
    blocks: usize,
    /// Gain over the baseline in the race, as a share.
    race_gain: Option<f64>,
    /// Its standard error.
    error: Option<f64>,
    /// Round after which it was dropped.
    dropped_in: Option<u32>,
    why: Option<String>,
    failed: bool,
    /// Dropped for a constraint.
    breaks: bool,
}

impl Answer {
    pub fn from_state(state: &State, race: Option<&Race>) -> Answer {
        let runner = |name: &str| {
            let race = race?;
            let index = race.names.iter().position(|known| known == name)?;
            race.runners.get(index).copied()
        };
        let candidates = state.candidates.iter();
        let mut candidates: Vec<Entry> = candidates
            .map(|candidate| Entry::new(candidate, runner(&candidate.arm)))
            .collect();
        let gain = |entry: &Entry| entry.race_gain.unwrap_or(f64::NEG_INFINITY);
        candidates.sort_by(|a, b| gain(b).total_cmp(&gain(a)));
        let winner = state.confirmation.as_ref();
        let winner = winner.filter(|c| c.is_winner()).map(|c| &c.arm);
        Answer {
            advice: match winner {
                Some(_) => "winner",
                None => "baseline",
            },
            arm: winner.unwrap_or(&state.baseline).clone(),
            answer: answer_sentence(state),
            confirmation: state.confirmation.as_ref().map(|c| Checked {
                arm: c.arm.clone(),
                alike: c.alike.clone(),
                confirmed: c.confirmed.clone(),
                ruling: c.ruling.clone(),
            }),
            other_loads: state.neighbours.clone(),
            candidates,
            front: race.map(Race::find_front).unwrap_or_default(),
            rounds: state.rounds.len(),
            spent_ns: state.spent_ns,
        }
    }

    pub fn to_text(&self, width: usize) -> String {
        let width = width.clamp(60, 120);
        let mut lines = wrap_text(&self.answer, width, 0, 2);
        let checked = self.confirmation.as_ref();
        if let Some(ruling) = checked.and_then(|checked| checked.ruling.as_ref()) {
            lines.push(String::new());
            lines.extend(ruling.text.trim_end().lines().map(str::to_owned));
        }
        lines.extend(self.elsewhere_lines(width));
        if !self.other_loads.is_empty() {
            lines.extend([String::new(), "At other loads:".to_owned()]);
            let others = self.other_loads.iter().map(AtNeighbour::to_text);
            lines.extend(others.flat_map(|line| wrap_text(&line, width, 2, 4)));
        }
        lines.extend([
            String::new(),
            format!(
                "The race: {} in {}; its figures are no results",
                format_count(self.candidates.len(), "candidate"),
                format_count(self.rounds, "round")
            ),
        ]);
        for entry in &self.candidates {
            lines.extend(wrap_text(&entry.line(), width, 2, 4));
        }
        if !self.front.is_empty() {
            lines.extend([
                String::new(),
                "No other was ahead of these in all objectives (means of the race):".to_owned(),
            ]);
            let front = self.front.iter().map(front_line);
            lines.extend(front.flat_map(|line| wrap_text(&line, width, 2, 4)));
        }
        if self.advice == "winner" {
            lines.extend([
                String::new(),
                "To use it elsewhere, name it as an arm:".to_owned(),
            ]);
            lines.push(format!("  -a '{}'", self.arm));
        }
        lines.join("\n") + "\n"
    }

    /// Constraints of the confirmation, and what the arm costs elsewhere.
    fn elsewhere_lines(&self, width: usize) -> Vec<String> {
        let Some(Checked { confirmed, .. }) = &self.confirmation else {
            return Vec::new();
        };
        let entries = |entries: &[Elsewhere]| {
            let lines = entries.iter().map(Elsewhere::to_text);
            lines
                .flat_map(|line| wrap_text(&line, width, 2, 4))
                .collect::<Vec<String>>()
        };
        let mut lines = Vec::new();
        if !confirmed.constraints.is_empty() {
            lines.extend([String::new(), "Constraints:".to_owned()]);
            lines.extend(entries(&confirmed.constraints));
        }
        let others = format_count(confirmed.looked_at, "other metric");
        match confirmed.costs.is_empty() {
            _ if confirmed.looked_at == 0 => {}
            true => lines.extend([
                String::new(),
                format!("None of {others} is known to be worse."),
            ]),
            false => {
                lines.extend([
                    String::new(),
                    format!("What it costs elsewhere, of {others}:"),
                ]);
                lines.extend(entries(&confirmed.costs));
            }
        }
        lines
    }
}

fn front_line(point: &FrontArm) -> String {
    let gains = point.gains.iter();
    let gains: Vec<String> = gains
        .map(|(name, gain)| format!("{name} {:+.1} %", 100.0 * gain))
        .collect();
    format!("{}  {}", point.arm, gains.join(", "))
}

impl Entry {
    fn new(candidate: &Candidate, runner: Option<Runner>) -> Entry {
        Entry {
            arm: candidate.arm.clone(),
            blocks: runner.map_or(0, |runner| runner.blocks),
            race_gain: runner.and_then(|runner| runner.gain).map(f64::exp_m1),
            error: runner.and_then(|runner| runner.error),
            dropped_in: candidate.dropped.as_ref().map(|(round, _)| *round),
            why: candidate.dropped.as_ref().map(|(_, why)| why.clone()),
            failed: candidate.failed,
            breaks: candidate.breaks,
        }
    }

    fn line(&self) -> String {
        let mut line = self.arm.clone();
        if let Some(gain) = self.race_gain {
            let _ = write!(line, "  {:+.1} %", 100.0 * gain);
        }
        if let Some(error) = self.error {
            let _ = write!(line, " +- {:.1}", 100.0 * error);
        }
        let _ = write!(line, ", {}", format_count(self.blocks, "block"));
        match (&self.why, self.dropped_in, self.failed) {
            (Some(why), _, true) => {
                let _ = write!(line, "; dropped, its trials failed: {why}");
            }
            (Some(why), Some(round), false) => {
                let _ = write!(line, "; dropped in round {round}: {why}");
            }
            _ => {}
        }
        line
    }
}

fn answer_sentence(state: &State) -> String {
    let baseline = &state.baseline;
    let counts = state.count_dropped();
    let dropped = |why| counts.get(why).copied().unwrap_or(0);
    let tried = format_count(state.candidates.len(), "candidate");
    let lost = lost_sentences(dropped("failed"), dropped("breaks"));
    let Some(confirmation) = &state.confirmation else {
        let behind = dropped("behind");
        return format!(
            "Nothing beats {baseline}: of {tried}, {behind} were dropped as worse, and none of the others is \
             likely to be ahead by what matters{}.{lost}",
            match state.objective.is_some() || !state.must_not_worsen.is_empty() {
                true => " and to hold all constraints",
                false => "",
            }
        );
    };
    let confirmed = &confirmation.confirmed;
    let change = confirmed
        .format_change()
        .unwrap_or_else(|| "not known".to_owned());
    let interval = confirmed.format_interval().unwrap_or_default();
    let arm = &confirmation.arm;
    let blocks = format_count(confirmed.blocks, "block");
    if confirmation.is_winner() {
        let alike = alike_sentence(confirmation);
        return format!(
            "Take {arm}: measured anew, its gain over {baseline} is {change} {interval}, in {blocks} that nothing \
             was chosen by; count on the lower end.{alike}{lost}"
        );
    }
    if confirmed.find_not_held().next().is_some() && confirmed.is_better() {
        let not_held: Vec<String> = confirmed.find_not_held().map(Elsewhere::to_text).collect();
        return format!(
            "Stay with {baseline}: measured anew, the gain of {arm} is {change} {interval}, but not all \
             constraints are shown to hold ({}).{lost}",
            not_held.join("; ")
        );
    }
    format!(
        "Nothing beats {baseline}: of {tried}, {arm} was ahead in the race, and measured anew its gain is \
         {change} {interval} ({}, {blocks}).{lost}",
        confirmed.verdict
    )
}

fn lost_sentences(failed: usize, breaks: usize) -> String {
    let failed = match failed {
        0 => String::new(),
        1 => " One candidate failed in all its trials and was dropped.".to_owned(),
        failed => format!(" {failed} candidates failed in all their trials and were dropped."),
    };
    let breaks = match breaks {
        0 => String::new(),
        1 => " One candidate was dropped since it breaks a constraint.".to_owned(),
        breaks => format!(" {breaks} candidates were dropped since they break a constraint."),
    };
    failed + &breaks
}

fn alike_sentence(confirmation: &Confirmation) -> String {
    match confirmation.alike.as_slice() {
        [] => String::new(),
        others => format!(
            " {} more of the race differ from it by less than matters ({}); it is the simplest.",
            others.len(),
            others.join(", ")
        ),
    }
}
