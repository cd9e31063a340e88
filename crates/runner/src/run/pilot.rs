//! Pilots: before the first block of a cell whose arms take turns if they can, short processes look
//! for the shortest windows in which they do, or find that each trial must be a process of its own.

use super::Run;
use super::attempts::{connected, prove};
use crate::trial::TrialEnd;
use crate::{Event, RunError};
use model::check::MOST_WINDOWS;
use model::turns::Span;
use model::{
    InPlace, Piloted, PlannedTrial, Reset, Scale, Severity, TakingTurns, TrialResult, TrialSpec,
    TrialState, Warning, Windows, Workload, format_duration_ns,
};
use results::turns::Process;
use stats::rank::mann_whitney_p;
use stats::summary::median;

const MS: u64 = 1_000_000;
/// Windows that are tried, in this order.
const WINDOWS_MS: [u64; 11] = [
    50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 40_000, 60_000,
];
/// A window is at least so many washouts long: at most a fifth of the time is thrown away.
const WASHOUTS: u64 = 4;
/// The washout in changes. Its first half must be enough for a change with its proof.
const CHANGES: u64 = 3;
/// Doublings of the washout after changes that came too late, before turns are given up.
const DOUBLINGS: u32 = 4;
/// Pairs that show whether a window is long enough for what decides.
const FEW_PAIRS: u32 = 2;
/// Pairs of short windows that are compared with those of long ones.
const PAIRS: u32 = 8;
/// Pairs of long windows.
const LONG_PAIRS: u32 = 6;
/// Long windows are longer by this factor, where that is not too long.
const LONGER: u64 = 10;
/// The least factor that can show what outlives a change.
const LEAST_LONGER: u64 = 3;
/// Time that the long windows may take.
const LONG_NS: u64 = 30_000 * MS;
/// Chance that the windows of a cell in which nothing outlives a change are said to disagree.
const ALPHA: f64 = 0.01;
/// Share of the windows that must have a figure.
const MOST: f64 = 0.9;

/// End of one process of a pilot.
enum Tried {
    /// Windows of each arm, in their order.
    Measured(Vec<Windows>),
    /// Reason for which it does not count.
    Nothing(String),
    Interrupted,
}

/// Lengths that will do, or why there are none.
type Chosen = Result<InPlace, String>;

impl Run<'_> {
    /// Finds out for each cell whose arms take turns if they can whether they do, and in which
    /// windows; `false` when interrupted.
    pub(super) fn run_pilots(&mut self) -> Result<bool, RunError> {
        let plan = self.plan;
        if self.experiment.arms.len() < 2 {
            return Ok(true);
        }
        for (index, cell) in plan.cells.iter().enumerate() {
            let workload = &self.experiment.workloads[cell.workload];
            let start = workload.in_place.filter(|lengths| lengths.pilot);
            let mut places = plan.trials.iter();
            let place = places.find(|place| place.cell == index && self.is_wanted(place));
            let (Some(start), Some(place)) = (start, place) else {
                continue;
            };
            let known = self.calibrations.get(&cell.name);
            if known.is_some_and(|known| known.piloted.is_some()) {
                continue;
            }
            let Some(chosen) = self.pilot(place, workload, start)? else {
                return Ok(false);
            };
            self.store_pilot(&cell.name, chosen)?;
            if self.target.abilities().reset != Reset::None {
                // The first trial of this place gets a machine that has seen no pilot.
                self.connection = None;
            }
        }
        Ok(true)
    }

    /// Lengths of the turns of a cell; `None` where each of its trials is a process of its own.
    pub(super) fn turn_lengths(&self, cell: usize) -> Option<InPlace> {
        let cell = &self.plan.cells[cell];
        let lengths = self.experiment.workloads[cell.workload].in_place?;
        if !lengths.pilot {
            return Some(lengths);
        }
        match self.calibrations.get(&cell.name)?.piloted? {
            Piloted::Turns { lengths } => Some(lengths),
            Piloted::Whole => None,
        }
    }

    fn store_pilot(&mut self, cell: &str, chosen: Chosen) -> Result<(), RunError> {
        let piloted = match &chosen {
            Ok(lengths) => Piloted::Turns { lengths: *lengths },
            Err(_) => Piloted::Whole,
        };
        let found = self.calibrations.entry(cell.to_owned()).or_default();
        found.piloted = Some(piloted);
        self.writer.write_calibrations(&self.calibrations)?;
        let what = match &chosen {
            Ok(lengths) => format!(
                "arms take turns in windows of {}",
                format_duration_ns(lengths.window_ns)
            ),
            Err(why) => format!("each trial is a process of its own, since {why}"),
        };
        (self.sink)(Event::FoundOut { cell, what: &what });
        if chosen.is_err() {
            self.writer.add_warnings(vec![Warning {
                severity: Severity::Note,
                what: format!("{cell}: {what}."),
                remedy: "in-place = \"never\" does the same without a pilot".to_owned(),
            }])?;
        }
        Ok(())
    }

    /// The pilot of one cell; `None` when interrupted.
    fn pilot(
        &mut self,
        place: &PlannedTrial,
        workload: &Workload,
        start: InPlace,
    ) -> Result<Option<Chosen>, RunError> {
        let lengths = match self.shortest(place, workload, start)? {
            Some(Ok(lengths)) => lengths,
            end => return Ok(end),
        };
        let Some(long) = longer(lengths, self.experiment.arms.len()) else {
            return Ok(Some(Ok(lengths)));
        };
        let mut both = Vec::new();
        for (lengths, pairs) in [(lengths, PAIRS), (long, LONG_PAIRS)] {
            match self.try_turns(place, lengths, pairs)? {
                Tried::Measured(arms) => both.push(arms),
                Tried::Nothing(why) => return Ok(Some(Err(why))),
                Tried::Interrupted => return Ok(None),
            }
        }
        let baseline = self.experiment.baseline;
        Ok(Some(
            match disagreement(&both[0], &both[1], baseline, &workload.metrics) {
                None => Ok(lengths),
                Some(what) => Err(format!(
                    "in windows of {} and of {} {what}",
                    format_duration_ns(lengths.window_ns),
                    format_duration_ns(long.window_ns)
                )),
            },
        ))
    }

    /// The shortest windows in which changes are proven in time and all that decides has figures.
    fn shortest(
        &mut self,
        place: &PlannedTrial,
        workload: &Workload,
        start: InPlace,
    ) -> Result<Option<Chosen>, RunError> {
        let process_ns = workload
            .duration_ns
            .saturating_mul(self.experiment.arms.len() as u64);
        let others = self.experiment.arms.len().saturating_sub(1).max(1) as u64;
        let mut washout_ns = start.washout_ns;
        let mut why = String::new();
        let mut tries = DOUBLINGS;
        let mut last = None;
        let mut longer = WINDOWS_MS.into_iter().peekable();
        while let Some(window_ms) = longer.peek().copied() {
            let lengths = InPlace {
                window_ns: (window_ms * MS).max(WASHOUTS.saturating_mul(washout_ns)),
                washout_ns,
                pilot: false,
            };
            let windows = process_ns / lengths.turn_ns() / 2;
            if last.replace(lengths) == Some(lengths) || windows > MOST_WINDOWS as u64 {
                longer.next();
                continue;
            }
            let pairs_ns = lengths
                .turn_ns()
                .saturating_mul(2 * others * u64::from(FEW_PAIRS));
            if pairs_ns > process_ns {
                break;
            }
            match self.try_turns(place, lengths, FEW_PAIRS)? {
                Tried::Interrupted => return Ok(None),
                Tried::Nothing(reason) if tries == 0 => return Ok(Some(Err(reason))),
                Tried::Nothing(reason) => {
                    // A change may have come too late for its window.
                    tries -= 1;
                    washout_ns = washout_ns.saturating_mul(2);
                    why = reason;
                }
                Tried::Measured(arms) => {
                    let change_ns = arms.iter().map(|arm| arm.change_ns).max().unwrap_or(0);
                    let needed_ns = washout_of(change_ns);
                    match lacking(&arms, &workload.metrics) {
                        _ if needed_ns > washout_ns => {
                            washout_ns = needed_ns;
                            why = format!("a change takes {}", format_duration_ns(change_ns));
                        }
                        None => return Ok(Some(Ok(lengths))),
                        Some(metric) => {
                            longer.next();
                            why = format!(
                                "windows of {} have too few requests for {metric}",
                                format_duration_ns(lengths.window_ns)
                            );
                        }
                    }
                }
            }
        }
        let room = format_duration_ns(process_ns);
        Ok(Some(Err(match why.as_str() {
            "" => format!("the shortest windows do not fit into a process of {room}"),
            why => format!("{why}, and longer ones do not fit into a process of {room}"),
        })))
    }

    /// One process in which the arms take turns, which is a trial that no block has.
    fn try_turns(
        &mut self,
        place: &PlannedTrial,
        lengths: InPlace,
        pairs: u32,
    ) -> Result<Tried, RunError> {
        let cell = &self.plan.cells[place.cell].name;
        (self.sink)(Event::Step {
            step: &format!(
                "pilot of {cell}: turns of {}",
                format_duration_ns(lengths.window_ns)
            ),
        });
        let turns = schedule::pilot_turns(self.experiment, self.plan, place, lengths, pairs);
        let end = self.pilot_trial(place, turns);
        Ok(match self.ended_aside(end)? {
            TrialEnd::Interrupted => Tried::Interrupted,
            TrialEnd::Result { result, arms, .. } => tried(&result, &arms),
            TrialEnd::Lost { why, .. } => Tried::Nothing(why),
        })
    }

    fn pilot_trial(
        &mut self,
        place: &PlannedTrial,
        turns: TakingTurns,
    ) -> Result<TrialEnd, RunError> {
        if let Some(end) = self.connect(place)? {
            return Ok(end);
        }
        let Some(spec) = self.spec(place)? else {
            return Ok(TrialEnd::Interrupted);
        };
        let mut end = self.trial(TrialSpec {
            label: format!("pilot of {}", self.plan.cells[place.cell].name),
            turns: Some(turns),
            observe: spec.observe.without_trace(),
            ..spec
        })?;
        if let TrialEnd::Result { result, arms, .. } = &mut end {
            let label = format!("pilot of {}", self.plan.cells[place.cell].name);
            if self.heed_rail(result.rail.clone(), &label)? {
                return Ok(TrialEnd::Interrupted);
            }
            let facts = connected(&mut self.connection)?.machine_facts();
            arms.iter_mut().for_each(|arm| prove(arm, facts.clone()));
            prove(result, facts);
        }
        Ok(end)
    }
}

/// Washout for changes that take so long, in whole milliseconds.
fn washout_of(change_ns: u64) -> u64 {
    let needed_ns = change_ns.saturating_mul(CHANGES);
    needed_ns.div_ceil(MS).saturating_mul(MS)
}

fn tried(result: &TrialResult, arms: &[TrialResult]) -> Tried {
    if let TrialState::Failed { why } | TrialState::Void { why } = &result.state {
        return Tried::Nothing(format!("the pilot does not count: {why}"));
    }
    let windows: Option<Vec<Windows>> = arms.iter().map(|arm| arm.windows.clone()).collect();
    match windows.filter(|windows| !windows.is_empty()) {
        Some(windows) => Tried::Measured(windows),
        None => Tried::Nothing("the pilot has no windows".to_owned()),
    }
}

/// Long windows to compare short ones with; `None` where they would take too long.
fn longer(lengths: InPlace, arms: usize) -> Option<InPlace> {
    let turns = 2 * u64::from(LONG_PAIRS) * arms.saturating_sub(1).max(1) as u64;
    let longest_ns = (LONG_NS / turns).saturating_sub(lengths.washout_ns);
    let window_ns = lengths.window_ns.saturating_mul(LONGER).min(longest_ns);
    let is_longer = window_ns >= lengths.window_ns.saturating_mul(LEAST_LONGER);
    is_longer.then_some(InPlace {
        window_ns,
        ..lengths
    })
}

/// A metric that too many windows of an arm do not have.
fn lacking<'m>(arms: &[Windows], metrics: &'m [String]) -> Option<&'m str> {
    let has = |arm: &Windows, metric: &str| {
        let figures = arm.by_pair(metric, Span::Whole).len();
        figures as f64 >= MOST * arm.pairs.len() as f64
    };
    let mut metrics = metrics.iter();
    let lacking = metrics.find(|metric| !arms.iter().all(|arm| has(arm, metric)));
    lacking.map(String::as_str)
}

/// The difference that short and long windows do not agree on, or why they cannot tell, in words.
fn disagreement(
    short: &[Windows],
    long: &[Windows],
    baseline: usize,
    metrics: &[String],
) -> Option<String> {
    let others: Vec<usize> = (0..short.len().min(long.len()))
        .filter(|arm| *arm != baseline)
        .collect();
    let alpha = ALPHA / (others.len() * metrics.len()).max(1) as f64;
    let ratios = |windows: &[Windows], arm: usize, metric: &str| {
        let process = Process {
            block: 0,
            baseline: &windows[baseline],
            arm: &windows[arm],
            metrics: &[],
        };
        process.pair_shifts(metric, Span::Whole, Scale::Ratio)
    };
    let mut pairs = others
        .iter()
        .flat_map(|arm| metrics.iter().map(move |metric| (*arm, metric)));
    pairs.find_map(|(arm, metric)| {
        let (short, long) = (ratios(short, arm, metric), ratios(long, arm, metric));
        if !short.is_empty() && !can_tell(short.len(), long.len()) {
            // Long windows lack what is still in a queue at their end.
            return Some(format!(
                "{} and {} pairs have {metric}, too few to see whether something outlives a change",
                short.len(),
                long.len()
            ));
        }
        let p = mann_whitney_p(&short, &long)?;
        let factor = |xs: &[f64]| median(xs).map(f64::exp);
        let (in_short, in_long) = (factor(&short)?, factor(&long)?);
        (p < alpha).then(|| {
            format!(
                "the factor of {metric} is {in_short:.3} and {in_long:.3}: something outlives a change \
                 of the arm"
            )
        })
    })
}

/// Would so many values be told apart if all of one kind were above all of the other?
fn can_tell(short: usize, long: usize) -> bool {
    let apart = |count: usize, level: f64| (0..count).map(move |n| level + n as f64);
    let low: Vec<f64> = apart(short, 0.0).collect();
    let high: Vec<f64> = apart(long, 1e6).collect();
    mann_whitney_p(&low, &high).is_some_and(|p| p < ALPHA)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn windows(values: &[f64]) -> Windows {
        let column = values.iter().copied().map(|x| (x > 0.0).then_some(x));
        Windows {
            pairs: (0..).take(values.len()).collect(),
            figures: BTreeMap::from([("p99".to_owned(), column.collect())]),
            ..Windows::default()
        }
    }

    #[test]
    fn windows_disagree_where_a_difference_grows_with_their_length() {
        let metrics = ["p99".to_owned()];
        let near = |level: f64, step: u32| {
            let noise = |k: u32| f64::from(k * step % 7) / 100.0;
            windows(&(0..8).map(|k| level + noise(k)).collect::<Vec<_>>())
        };
        let short = [near(1.0, 1), near(1.02, 3)];
        let same = [near(1.0, 2), near(1.03, 5)];
        assert_eq!(disagreement(&short, &same, 0, &metrics), None);
        let grown = [near(1.0, 2), near(1.5, 5)];
        let said = disagreement(&short, &grown, 0, &metrics).unwrap();
        assert!(said.starts_with("the factor of p99 is 1.0"), "{said}");
        // Where long windows end before their requests do, few of them have a figure.
        let queued = [near(1.0, 2), windows(&[1.5, 1.5, 0.0, 0.0, 0.0, 0.0])];
        let said = disagreement(&short, &queued, 0, &metrics).unwrap();
        assert!(
            said.starts_with("8 and 2 pairs have p99, too few"),
            "{said}"
        );
        // What is not measured is no disagreement.
        assert_eq!(disagreement(&short, &grown, 0, &["p50".to_owned()]), None);
    }

    #[test]
    fn a_figure_that_some_windows_lack_needs_longer_ones() {
        let metrics = ["p99".to_owned()];
        let whole = windows(&[1.0; 10]);
        assert_eq!(
            lacking(&[whole.clone(), windows(&[1.0; 10])], &metrics),
            None
        );
        let holes = windows(&[1.0, 0.0, 1.0, 0.0]);
        assert_eq!(lacking(&[whole, holes], &metrics), Some("p99"));
    }

    #[test]
    fn long_windows_are_left_out_where_they_would_take_minutes() {
        let short = InPlace::new(100 * MS);
        assert_eq!(
            longer(short, 2).map(|long| long.window_ns),
            Some(1_000 * MS)
        );
        assert!(longer(short, 6).is_some_and(|long| long.window_ns < 500 * MS));
        assert_eq!(longer(InPlace::new(2_000 * MS), 2), None);
    }
}
