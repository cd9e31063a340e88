//! Loads that are shares of a highest rate: before the first block, each such rate is looked for
//! once, under the baseline, and then holds for all arms.

use super::Run;
use super::attempts::{connected, prove};
use crate::check::{needed_boot, only_arms_of};
use crate::connection::{Connection, with_last_lines};
use crate::trial::TrialEnd;
use crate::{Event, RunError};
use machines::{Boot, TargetError};
use model::{
    Calibration, Load, Problem, Severity, Side, TrialResult, TrialSpec, TrialState, Workload,
};
use results::{TrialFiles, bound};
use schedule::Search;

/// Table of the rates that a search tried, as its load names it.
const TABLE: &str = "search.csv";

/// End of a trial that no block has.
pub(super) enum Aside {
    Result(Box<TrialResult>, TrialFiles),
    Lost(String),
    Interrupted,
}

/// End of one attempt to find a rate.
enum Ended {
    /// In requests a second.
    Found(f64),
    /// Reason for which there is no rate; another attempt may find it.
    Again(String),
    /// Another attempt would end in the same way.
    Never(Problem),
    Interrupted,
}

impl Run<'_> {
    /// Finds the rates that are not known yet; `false` when interrupted.
    pub(super) fn find_rates(&mut self) -> Result<bool, RunError> {
        let searches = self.open_searches();
        for search in &searches {
            let Some(rate_per_sec) = self.find_rate(search)? else {
                return Ok(false);
            };
            self.store_rate(search.workload, rate_per_sec)?;
            (self.sink)(Event::RateFound {
                workload: &self.experiment.workloads[search.workload].name,
                slo: &search.slo,
                rate_per_sec,
            });
        }
        if !searches.is_empty() {
            self.check_rates()?;
            if self.target.abilities().reset.has_snapshot() {
                // No snapshot is of the machine that the search had.
                self.connection = None;
            }
        }
        Ok(true)
    }

    /// Checks the loads again, now that their rates are known: a window may be too short for what
    /// decides.
    fn check_rates(&mut self) -> Result<(), RunError> {
        let mut experiment = self.experiment.clone();
        for cell in &self.plan.cells {
            if let Some(found) = self.calibrations.get(&cell.name) {
                let loads = &mut experiment.workloads[cell.workload].loads;
                let written = loads.iter_mut().filter(|load| **load == cell.load);
                written.for_each(|load| *load = load.offered_load(found));
            }
        }
        let baseline = needed_boot(&experiment.arms[experiment.baseline]);
        let side = self.side();
        let target = connected(&mut self.connection)?;
        let mut problems = target.check_experiment(&only_arms_of(&experiment, &baseline), side)?;
        if let Some(beside) = &mut self.beside {
            problems.extend(beside.check_experiment(&experiment, Side::Controller)?);
        }
        match problems.is_empty() {
            true => Ok(()),
            false => Err(RunError::Unmet(problems)),
        }
    }

    /// Boot of the first search, if there is one.
    pub(super) fn boot_of_search(&self) -> Option<Boot> {
        let baseline = &self.experiment.arms[self.experiment.baseline];
        let searches = self.open_searches();
        searches.first().map(|_| needed_boot(baseline))
    }

    /// Searches whose rate is not stored and whose cells have something to measure.
    fn open_searches(&self) -> Vec<Search> {
        let mut searches = schedule::list_searches(self.experiment);
        searches.retain(|search| {
            let mut unknown = self.shares(search.workload);
            unknown.retain(|cell| {
                let found = self.calibrations.get(&self.plan.cells[*cell].name);
                found.is_none_or(|found| found.max_per_sec.is_none())
            });
            let mut places = self.plan.trials.iter();
            places.any(|place| unknown.contains(&place.cell) && self.is_wanted(place))
        });
        searches
    }

    /// Cells of a workload whose loads are shares.
    fn shares(&self, workload: usize) -> Vec<usize> {
        let cells = self.plan.cells.iter().enumerate();
        let shares = cells.filter(|(_, cell)| {
            cell.workload == workload && matches!(cell.load, Load::ShareOfMax(_))
        });
        shares.map(|(index, _)| index).collect()
    }

    /// The highest rate of the baseline; `None` when interrupted.
    fn find_rate(&mut self, search: &Search) -> Result<Option<f64>, RunError> {
        let experiment = self.experiment;
        let workload = &experiment.workloads[search.workload].name;
        (self.sink)(Event::SearchStarted {
            workload,
            arm: &experiment.arms[experiment.baseline].name,
            search,
        });
        if search.by_trials {
            return self.climb_to_rate(search);
        }
        let mut reason = String::new();
        for _ in 0..experiment.stop.max_attempts {
            match self.search(search)? {
                Ended::Found(rate_per_sec) => {
                    return self.find_sustained_rate(search, rate_per_sec);
                }
                Ended::Interrupted => return Ok(None),
                Ended::Never(problem) => return Err(RunError::Unmet(vec![problem])),
                Ended::Again(why) => {
                    (self.sink)(Event::SearchFailed {
                        workload,
                        why: &why,
                    });
                    reason = why;
                }
            }
        }
        Err(RunError::Unmet(vec![none_found(workload, reason, "")]))
    }

    /// One attempt, which is a trial of the baseline that no block has.
    fn search(&mut self, search: &Search) -> Result<Ended, RunError> {
        let workload = &self.experiment.workloads[search.workload].name;
        Ok(match self.run_aside(search, Load::MaxRate(search.slo))? {
            Aside::Interrupted => Ended::Interrupted,
            Aside::Result(result, files) => {
                let mut tables = files.texts.iter();
                if let Some(tried) = tables.find(|file| file.name == TABLE) {
                    self.writer.add_search(workload, &tried.text)?;
                }
                ended(workload, &result)
            }
            Aside::Lost(why) => Ended::Again(why),
        })
    }

    /// A trial of the baseline that no block has.
    pub(super) fn run_aside(&mut self, search: &Search, load: Load) -> Result<Aside, RunError> {
        let end = self.trial_aside(search, load);
        self.read_aside(end)
    }

    /// The end of such a trial, for whoever looks at its figures.
    pub(super) fn read_aside(
        &mut self,
        end: Result<TrialEnd, RunError>,
    ) -> Result<Aside, RunError> {
        Ok(match self.ended_aside(end)? {
            TrialEnd::Interrupted => Aside::Interrupted,
            TrialEnd::Result { result, files, .. } => Aside::Result(result, files),
            TrialEnd::Lost { why, .. } => Aside::Lost(why),
        })
    }

    /// The end of a trial that no block has. Where its machine was lost, the connection is closed,
    /// and the reason has the last lines of its console.
    pub(super) fn ended_aside(
        &mut self,
        end: Result<TrialEnd, RunError>,
    ) -> Result<TrialEnd, RunError> {
        let why = match end {
            Err(RunError::Target(TargetError::Gone { why, tail })) => with_last_lines(why, &tail),
            Ok(TrialEnd::Lost { why, .. }) => {
                let console = self.connection.as_mut().and_then(Connection::read_console);
                with_last_lines(why, &console.unwrap_or_default())
            }
            end => return end,
        };
        self.connection = None;
        Ok(TrialEnd::Lost {
            why,
            files: TrialFiles::default(),
            window: None,
        })
    }

    /// The machine of the baseline, which no trial of the plan gets where the target resets.
    pub(super) fn open_aside(&mut self, workload: usize) -> Result<(), RunError> {
        let boot = needed_boot(&self.experiment.arms[self.experiment.baseline]);
        let workload = &self.experiment.workloads[workload];
        if self.connection.is_none() || self.in_use.as_ref() != Some(&(boot.clone(), 0)) {
            self.open(&boot, 0)?;
        }
        if self.is_apart(workload) && self.beside.is_none() {
            self.open_controller()?;
        }
        Ok(())
    }

    /// The trial itself.
    fn trial_aside(&mut self, search: &Search, load: Load) -> Result<TrialEnd, RunError> {
        let experiment = self.experiment;
        let baseline = &experiment.arms[experiment.baseline];
        let workload = &experiment.workloads[search.workload];
        self.open_aside(search.workload)?;
        let time_limit_ns = match load {
            Load::MaxRate(slo) => schedule::search_limit_ns(workload, &slo),
            _ => workload.time_limit_ns,
        };
        let Some(calibration) = self.calibration_beside(search.workload)? else {
            return Ok(TrialEnd::Interrupted);
        };
        let limited = Workload {
            time_limit_ns,
            ..workload.clone()
        };
        let mut end = self.trial(TrialSpec {
            label: format!("highest rate of {} {}", workload.name, baseline.name),
            calibration,
            seed: self.plan.seed,
            observe: experiment.observe.clone().without_trace(),
            ..TrialSpec::new(baseline.clone(), limited, load)
        })?;
        if let TrialEnd::Result { result, .. } = &mut end {
            prove(result, connected(&mut self.connection)?.machine_facts());
        }
        Ok(end)
    }

    /// Calibration of the antagonists of a search: they do then what they do in the trials. `None` when
    /// interrupted.
    fn calibration_beside(&mut self, workload: usize) -> Result<Option<Calibration>, RunError> {
        let has_antagonists = !self.experiment.workloads[workload].antagonists.is_empty();
        match self.shares(workload).first() {
            Some(cell) if has_antagonists => self.find_calibration(*cell),
            _ => Ok(Some(Calibration::default())),
        }
    }

    /// The rate for all cells that are shares of it, on record so that a resume has the same.
    fn store_rate(&mut self, workload: usize, rate_per_sec: f64) -> Result<(), RunError> {
        let cells = self.shares(workload).into_iter();
        let names: Vec<String> = cells
            .map(|cell| self.plan.cells[cell].name.clone())
            .collect();
        let first = names.first().and_then(|name| self.calibrations.get(name));
        let common = first.cloned().unwrap_or_default();
        for name in names {
            let found = self
                .calibrations
                .entry(name)
                .or_insert_with(|| common.clone());
            found.max_per_sec = Some(rate_per_sec);
        }
        Ok(self.writer.write_calibrations(&self.calibrations)?)
    }
}

pub(super) fn find_metric(result: &TrialResult, name: &str) -> Option<f64> {
    let mut metrics = result.metrics.iter();
    metrics.find(|m| m.metric == name).map(|m| m.value)
}

fn ended(workload: &str, result: &TrialResult) -> Ended {
    let rate = find_metric(result, bound::METRIC);
    match (&result.state, rate, find_metric(result, bound::MARK)) {
        (TrialState::Ok, Some(rate), Some(0.0)) => Ended::Found(rate),
        (TrialState::Ok, _, _) => Ended::Never(only_bound(workload, result)),
        (TrialState::Failed { why } | TrialState::Void { why }, _, _) => match result.for_good {
            true => Ended::Never(none_found(workload, why.clone(), "")),
            false => Ended::Again(why.clone()),
        },
    }
}

/// The search ended where it began, or at its end: its warning says which, and what to change.
fn only_bound(workload: &str, result: &TrialResult) -> Problem {
    let mut warnings = result.warnings.iter();
    let serious = warnings.find(|warning| warning.severity == Severity::Serious);
    match serious {
        Some(warning) => none_found(workload, warning.what.clone(), &warning.remedy),
        None => none_found(workload, "the search measured none".to_owned(), ""),
    }
}

/// A highest rate that could not be found, so that no load can be a share of it.
pub(super) fn none_found(workload: &str, why: String, remedy: &str) -> Problem {
    Problem {
        object: format!("workload {workload}"),
        what: format!("the highest rate, of which its loads are shares, was not found: {why}"),
        remedy: match remedy {
            "" => "measure it by hand and give loads = [\"500/s\"]".to_owned(),
            remedy => remedy.to_owned(),
        },
    }
}
