//! Bounds of events that the baseline says: before the first block of a cell, trials of the baseline that no block
//! has measure the quantile. What they say is on record and holds for all arms, so that nobody can choose a bound
//! by what the arms did.

use super::Run;
use super::attempts::connected;
use super::capacity::{Aside, find_metric};
use crate::trial::TrialEnd;
use crate::{Event, RunError};
use model::{
    Calibration, Observe, Problem, RareEvent, Reset, Severity, TrialResult, TrialSpec, Warning,
    When, format_duration_ns,
};
use stats::summary::median;

/// Trials that say a bound; it is the median of theirs.
const TRIALS: u32 = 3;

/// The observations with the bounds of a cell in their places.
pub(super) fn with_bounds(observe: &Observe, found: &Calibration) -> Observe {
    let mut observe = observe.clone();
    for event in &mut observe.events {
        let known = found.bounds_ns.get(&event.name);
        if let (When::Latency { beyond_ns, .. }, Some(known)) = (&mut event.when, known) {
            *beyond_ns = *known;
        }
    }
    observe
}

impl Run<'_> {
    /// Finds the bounds that are not known yet; `false` when interrupted.
    pub(super) fn find_bounds(&mut self) -> Result<bool, RunError> {
        let plan = self.plan;
        for (index, cell) in plan.cells.iter().enumerate() {
            let mut places = plan.trials.iter();
            let unknown = self.unknown_bounds(&cell.name);
            if unknown.is_empty()
                || !places.any(|place| place.cell == index && self.is_wanted(place))
            {
                continue;
            }
            let Some(figures) = self.measure_baseline(index, &unknown)? else {
                return Ok(false);
            };
            for (event, values) in unknown.iter().zip(figures) {
                self.store_bound(&cell.name, event, &values)?;
            }
            if self.target.abilities().reset != Reset::None {
                // The first trial of the cell gets a machine that has seen none of these.
                self.connection = None;
            }
        }
        Ok(true)
    }

    /// Events of a cell that wait for their bounds.
    fn unknown_bounds(&self, cell: &str) -> Vec<RareEvent> {
        let known = self.calibrations.get(cell).map(|found| &found.bounds_ns);
        let is_unknown = |event: &&RareEvent| {
            event.when.metric_of_baseline().is_some()
                && known.is_none_or(|known| !known.contains_key(&event.name))
        };
        let events = self.experiment.observe.events.iter();
        events.filter(is_unknown).cloned().collect()
    }

    /// Quantiles of the baseline in trials of their own, for each event; `None` when interrupted.
    fn measure_baseline(
        &mut self,
        cell: usize,
        events: &[RareEvent],
    ) -> Result<Option<Vec<Vec<f64>>>, RunError> {
        let mut figures = vec![Vec::new(); events.len()];
        let (mut trial, mut failed) = (0, 0);
        while trial < TRIALS {
            let end = self.trial_of_baseline(cell, trial);
            let read = match self.read_aside(end)? {
                Aside::Interrupted => return Ok(None),
                Aside::Result(result, _) => read_bounds(&result, events),
                Aside::Lost(why) => Err(why),
            };
            match read {
                Ok(values) => {
                    trial += 1;
                    figures.iter_mut().zip(values).for_each(|(f, v)| f.push(v));
                }
                Err(why) => {
                    failed += 1;
                    if failed >= self.experiment.stop.max_attempts {
                        return Err(RunError::Unmet(vec![no_bound(&events[0], why)]));
                    }
                }
            }
        }
        Ok(Some(figures))
    }

    /// One trial of the baseline that counts no event.
    fn trial_of_baseline(&mut self, cell: usize, number: u32) -> Result<TrialEnd, RunError> {
        let experiment = self.experiment;
        let baseline = &experiment.arms[experiment.baseline];
        let planned = &self.plan.cells[cell];
        let workload = &experiment.workloads[planned.workload];
        self.open_aside(planned.workload)?;
        let Some(calibration) = self.find_calibration(cell)? else {
            return Ok(TrialEnd::Interrupted);
        };
        let load = planned.load.offered_load(&calibration);
        let observe = Observe {
            events: Vec::new(),
            ..experiment.observe.clone().without_trace()
        };
        let mut end = self.trial(TrialSpec {
            label: format!("bound of {} {}", planned.name, baseline.name),
            calibration,
            seed: self.plan.seed.wrapping_add(u64::from(number)),
            observe,
            ..TrialSpec::new(baseline.clone(), workload.clone(), load)
        })?;
        if let TrialEnd::Result { result, .. } = &mut end {
            super::attempts::prove(result, connected(&mut self.connection)?.machine_facts());
        }
        Ok(end)
    }

    /// The bound, on record so that a resume has the same.
    fn store_bound(
        &mut self,
        cell: &str,
        event: &RareEvent,
        values: &[f64],
    ) -> Result<(), RunError> {
        let value = median(values).unwrap_or_default();
        let bound_ns = model::truncate_to_u64(value).max(1);
        let found = self.calibrations.entry(cell.to_owned()).or_default();
        found.bounds_ns.insert(event.name.clone(), bound_ns);
        self.writer.write_calibrations(&self.calibrations)?;
        let what = format!(
            "the event `{}` is what takes longer than {}, by {TRIALS} trials of the baseline before the first \
             block",
            event.name,
            format_duration_ns(bound_ns)
        );
        (self.sink)(Event::FoundOut { cell, what: &what });
        Ok(self.writer.add_warnings(vec![Warning {
            severity: Severity::Note,
            what: format!("{cell}: {what}."),
            remedy: String::new(),
        }])?)
    }
}

/// The bound of each event by one trial, or why it says none.
fn read_bounds(result: &TrialResult, events: &[RareEvent]) -> Result<Vec<f64>, String> {
    if let Some(why) = result.state.why() {
        return Err(why.to_owned());
    }
    let bound = |event: &RareEvent| {
        let (metric, times) = event.when.metric_of_baseline()?;
        Some(find_metric(result, &metric)? * f64::from(times))
    };
    let all: Option<Vec<f64>> = events.iter().map(bound).collect();
    all.ok_or_else(|| "its window is too short for that quantile".to_owned())
}

/// A bound that no trial of the baseline says.
fn no_bound(event: &RareEvent, why: String) -> Problem {
    Problem {
        object: format!("event {}", event.name),
        what: format!("the baseline says no bound: {why}"),
        remedy: "choose a quantile that its trials have, a longer `duration`, or a bound of your own: request > \
                 100ms"
            .to_owned(),
    }
}
