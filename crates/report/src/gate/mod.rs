//! A new run against a stored one, for a check that has to fail: did an arm become worse?
//!
//! Three things can be put beside each other ([`By`]). *Effects*, each arm over the baseline of
//! its own run: within a run arms are interleaved, so a machine that is slower on one day is slower
//! for both, and it falls out. *Levels*, the bare figures of one arm: what changed on the machine
//! between the runs is in them. *Trials*, one by one and exactly, of runs in virtual time, where the
//! same work gives the same figures.
//!
//! A call is made where the whole interval of the change lies beyond the smallest effect: a drift
//! that is smaller than what matters fails nobody's check.

mod events;
mod junit;
mod markdown;
mod text;
mod trials;
mod verdicts;

#[cfg(test)]
mod tests;

pub use verdicts::call_ratio;

use crate::compare::pairing::Matched;
use crate::compare::same_run;
use crate::lacks;
use crate::shift::Shift;
use model::Better;
use results::ResultSet;
use serde::Serialize;

/// Figures of the two runs that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// Each arm over the baseline of its own run.
    Effects,
    /// The bare figures of each arm.
    Levels,
    /// Each trial with its counterpart, exactly: virtual time.
    Trials,
}

/// The answer for one metric of one arm in one cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Call {
    /// Worse than in the stored run by more than the smallest effect.
    Regression,
    /// Better by more than the smallest effect.
    Improvement,
    /// Another figure in virtual time, by less than the smallest effect or without a better side.
    Changed,
    /// The change is smaller than the smallest effect; in virtual time: there is none.
    Same,
    /// Neither is shown.
    Unknown,
}

impl Call {
    /// Word for the call, as in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Call::Regression => "regression",
            Call::Improvement => "improvement",
            Call::Changed => "changed",
            Call::Same => "same",
            Call::Unknown => "unknown",
        }
    }
}

/// Calls that make the check fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailOn {
    /// A regression.
    Regression,
    /// Any call but `same` and `unknown`.
    Difference,
    /// A regression, or a comparison that is not decided.
    Unknown,
}

impl FailOn {
    /// Does the check fail on this call?
    pub fn is_failure(self, call: Call) -> bool {
        match self {
            FailOn::Regression => call == Call::Regression,
            FailOn::Difference => !matches!(call, Call::Same | Call::Unknown),
            FailOn::Unknown => matches!(call, Call::Regression | Call::Unknown),
        }
    }
}

/// One metric of one arm in one cell, new over stored.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// Cell, such as `wakeup 100%`.
    pub cell: String,
    /// Name of the metric; `all else` for what decides nothing, in virtual time.
    pub metric: String,
    /// Direction in which the metric improves.
    pub better: Better,
    /// Name of the arm.
    pub arm: String,
    /// New over stored; of effects: the effect now over the effect then. None where a figure rose
    /// from 0 or fell to 0.
    pub ratio: Option<f64>,
    /// Interval of the ratio; none where there is none to give.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// Change in the unit of the metric, where a figure is 0 or below it and has no ratio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Shift>,
    /// Answer.
    pub call: Call,
    /// The two figures, in words.
    pub figures: String,
}

/// A new run judged against a stored one. It serializes to the JSON of `schedlab gate`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gate {
    /// Name of the experiment.
    pub experiment: String,
    /// Start of the stored run.
    pub stored: String,
    /// Start of the new run.
    pub new: String,
    /// Figures that are compared.
    pub by: By,
    /// Smallest change that matters, as the stored run has it.
    pub smallest_effect: f64,
    /// Most that one call is false with, between 0 and 1.
    pub risk: f64,
    /// Condition under which the error rate holds, or another thing to know.
    pub notes: Vec<String>,
    /// Lacks: what was not measured, so that it could not be compared: a gate that has any does not pass.
    pub lacks: Vec<String>,
    /// Checks in the order of the cells.
    pub checks: Vec<Check>,
}

/// Why two runs cannot be judged against each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// Cells or arms that are not the same.
    #[error("the two are not results of the same experiment:\n  {}", .0.join("\n  "))]
    OtherExperiment(Vec<String>),
    /// One run twice.
    #[error("{0}")]
    SameRun(String),
    /// Trials can be compared one by one in virtual time only.
    #[error("{0} was not measured in virtual time, so that its figures are never exactly the same")]
    NotVirtual(&'static str),
    /// Runs of different seeds have different work.
    #[error("the stored run has seed {0}, the new one seed {1}: they had other work to do")]
    OtherSeed(u64, u64),
    /// Nothing to compare.
    #[error("the stored run has nothing that can be compared by {0}")]
    Nothing(&'static str),
}

impl GateError {
    /// Remedy.
    pub fn remedy(&self) -> &'static str {
        match self {
            GateError::OtherExperiment(_) => {
                "measure the stored experiment again: schedlab run --like BASELINE"
            }
            GateError::SameRun(_) => "give the results of a new run as the second",
            GateError::NotVirtual(_) => {
                "write clock = \"virtual\" in [target] of the experiment, or leave --virtual out"
            }
            GateError::OtherSeed(..) => "give the new run the seed of the stored one: --seed N",
            GateError::Nothing(_) => {
                "a baseline needs trials that count and metrics that decide; --by levels judges a \
                 single arm"
            }
        }
    }
}

/// Judges `new` against `stored`. Without `by`: by effects where there is more than one arm, else
/// by levels.
pub fn judge_gate(stored: &ResultSet, new: &ResultSet, by: Option<By>) -> Result<Gate, GateError> {
    let matched = Matched::new(stored, new);
    if !matched.unmatched.is_empty() {
        return Err(GateError::OtherExperiment(matched.unmatched));
    }
    let usual = match verdicts::has_effects(stored) {
        true => By::Effects,
        false => By::Levels,
    };
    let by = by.unwrap_or(usual);
    // Exact figures say the same of two runs and of one that is given twice.
    if let Some(said) = same_run(stored, new).filter(|_| by != By::Trials) {
        return Err(GateError::SameRun(said));
    }
    let checks = match by {
        By::Effects => verdicts::check_effects(&matched, stored, new),
        By::Levels => verdicts::check_levels(&matched, stored, new),
        By::Trials => trials::check_trials(&matched, stored, new)?,
    };
    if checks.is_empty() {
        return Err(GateError::Nothing(by.as_str()));
    }
    let lacks = by.lacks(&matched, stored, new, &checks);
    Ok(Gate {
        experiment: stored.manifest.name.clone(),
        stored: stored.manifest.created.clone(),
        new: new.manifest.created.clone(),
        by,
        smallest_effect: stored.experiment.stop.smallest_effect,
        risk: by.risk(stored, new),
        notes: by.notes(stored, new),
        lacks,
        checks,
    })
}

impl By {
    /// Word on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            By::Effects => "effects",
            By::Levels => "levels",
            By::Trials => "trials",
        }
    }

    /// Figures that could not be compared. In virtual time that is also every trial without its counterpart.
    fn lacks(
        self,
        matched: &Matched,
        stored: &ResultSet,
        new: &ResultSet,
        checks: &[Check],
    ) -> Vec<String> {
        let names = ["the stored run", "the new run"];
        let runs = [stored, new];
        let pair = lacks::Pair {
            matched,
            runs,
            names,
        };
        let mut lacks = pair.common_lacks();
        let lost = lacks::lost_places(new);
        lacks.extend(lost.map(|lost| format!("the new run: {lost}")));
        // Of what was measured in blocks, an interval that decides nothing is an answer; none at all is not.
        let is_apart = |check: &&Check| match self {
            By::Trials => check.call == Call::Unknown,
            By::Effects | By::Levels => check.ratio.is_none() && check.difference.is_none(),
        };
        let apart = checks.iter().filter(is_apart);
        lacks.extend(apart.map(|c| format!("{}, {}: {}: {}", c.cell, c.arm, c.metric, c.figures)));
        lacks
    }

    fn risk(self, stored: &ResultSet, new: &ResultSet) -> f64 {
        let [then, now] = [stored, new].map(|r| 1.0 - r.experiment.stop.confidence);
        match self {
            By::Effects => (then + now).min(1.0),
            By::Levels => then,
            By::Trials => 0.0,
        }
    }

    fn notes(self, stored: &ResultSet, new: &ResultSet) -> Vec<String> {
        let differing = crate::compare::what_differs(stored, new);
        let differing = (!differing.is_empty())
            .then(|| format!("besides the time, these differ: {}", differing.join(", ")));
        let said = match self {
            By::Effects => None,
            By::Levels => Some(
                "levels are of two times: the rate holds only where nothing but chance changed on the \
                 machine between them; effects need no such trust"
                    .to_owned(),
            ),
            By::Trials => Some(
                "virtual time: a difference has a cause in what ran, and says nothing about speed"
                    .to_owned(),
            ),
        };
        said.into_iter().chain(differing).collect()
    }
}

impl Gate {
    /// Checks that fail.
    pub fn failing_checks(&self, on: FailOn) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(move |c| on.is_failure(c.call))
    }

    /// Answer in a word or two: a gate that could not compare everything has not passed.
    pub fn answer_words(&self, on: FailOn) -> String {
        match (self.failing_checks(on).count(), self.lacks.is_empty()) {
            (0, true) => "passed".to_owned(),
            (0, false) => "NOT MEASURED".to_owned(),
            (n, _) => format!("FAILED on {n}"),
        }
    }

    /// Number of checks with this call.
    pub fn count_calls(&self, call: Call) -> usize {
        self.checks.iter().filter(|c| c.call == call).count()
    }

    /// `1 regression, 5 same of 6 comparisons`: the answer in a line.
    pub fn summary_line(&self) -> String {
        let calls = [
            Call::Regression,
            Call::Improvement,
            Call::Changed,
            Call::Same,
            Call::Unknown,
        ];
        let counts = calls.into_iter().map(|call| (self.count_calls(call), call));
        let counts = counts.filter(|(n, _)| *n > 0);
        let counts: Vec<String> = counts
            .map(|(n, call)| format!("{n} {}", call.as_str()))
            .collect();
        let all = crate::quantity::format_count(self.checks.len(), "comparison");
        format!("{} of {all}", counts.join(", "))
    }

    /// The error rate in words.
    pub fn error_rate(&self) -> String {
        if self.by == By::Trials {
            return "every figure is compared exactly: no error rate".to_owned();
        }
        #[expect(clippy::cast_precision_loss, reason = "a number of comparisons")]
        let all = (self.risk * self.checks.len() as f64).min(1.0);
        format!(
            "a call is false with at most {} % each, {} % for any of all",
            crate::quantity::format_percent(self.risk),
            crate::quantity::format_percent(all)
        )
    }
}
