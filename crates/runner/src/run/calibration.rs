//! Calibrations: what is found once, before the first trial of a cell, and then holds for all arms.

use super::Run;
use super::attempts::connected;
use crate::connection::Calibrated;
use crate::{Event, RunError};
use model::{Calibration, Cell, Request};
use std::collections::BTreeSet;

impl Run<'_> {
    /// Values that all trials of a cell share, found before its first trial; `None` when
    /// interrupted.
    pub(super) fn find_calibration(
        &mut self,
        cell: usize,
    ) -> Result<Option<Calibration>, RunError> {
        let cell = &self.plan.cells[cell];
        if let Some(found) = self.calibrations.get(&cell.name) {
            return Ok(Some(found.clone()));
        }
        if let Some(found) = self.of_another_load(cell.workload) {
            self.calibrations.insert(cell.name.clone(), found.clone());
            self.writer.write_calibrations(&self.calibrations)?;
            return Ok(Some(found));
        }
        (self.sink)(Event::Step {
            step: &format!("calibrating {}", cell.name),
        });
        let request = self.calibration_request(cell);
        let connection = connected(
            match self.is_apart(&self.experiment.workloads[cell.workload]) {
                true => &mut self.beside,
                false => &mut self.connection,
            },
        )?;
        let calibrated = connection.calibrate_cell(&cell.name, &request, self.interrupted)?;
        let Calibrated::Found(found) = calibrated else {
            return Ok(None);
        };
        self.calibrations.insert(cell.name.clone(), found.clone());
        self.writer.write_calibrations(&self.calibrations)?;
        Ok(Some(found))
    }

    fn calibration_request(&self, cell: &Cell) -> Request {
        let mut workload = self.experiment.workloads[cell.workload].clone();
        if self.is_apart(&workload) {
            // They run on the target, and find their values there in each trial.
            workload.antagonists.clear();
        }
        Request::Calibrate {
            workload: Box::new(workload),
            load: cell.load,
            known: self.known(cell.workload),
        }
    }

    /// The calibration that comes first, unless one was made already or the rate of its load is yet to be found.
    pub(super) fn first_calibration(&self) -> Option<Request> {
        if !self.calibrations.is_empty() || self.boot_of_search().is_some() {
            return None;
        }
        let first = self
            .plan
            .trials
            .iter()
            .find(|place| self.is_wanted(place))?;
        Some(self.calibration_request(&self.plan.cells[first.cell]))
    }

    /// Values that were found for any workload, those of the same kind first: one name is one
    /// property of the machine within a kind, and the unit of work of burning workers is so in all.
    fn known(&self, workload: usize) -> Calibration {
        let kind = |workload: usize| self.experiment.workloads[workload].kind.name();
        let is_same = |cell: &&Cell| kind(cell.workload) == kind(workload);
        let (same, others): (Vec<&Cell>, Vec<&Cell>) = self.plan.cells.iter().partition(is_same);
        let mut known = Calibration::default();
        let workloads = self.experiment.workloads.iter();
        let beside: BTreeSet<&String> = workloads
            .flat_map(|w| w.co_runners.iter().map(|co_runner| &co_runner.name))
            .collect();
        for cell in same.into_iter().chain(others) {
            let of = &self.experiment.workloads[cell.workload].name;
            let found = self.calibrations.get(&cell.name);
            for (name, value) in found.into_iter().flat_map(|found| &found.values) {
                known.values.entry(name.clone()).or_insert(*value);
                // Alone it is the same load as beside others.
                if beside.contains(of) {
                    let name = Calibration::name_beside(of, name);
                    known.values.entry(name).or_insert(*value);
                }
            }
        }
        known
    }

    /// Values that hold for all loads of the workload, where they were found at another one: cells
    /// are compared with each other, so they have the same.
    fn of_another_load(&self, workload: usize) -> Option<Calibration> {
        let cells = self.plan.cells.iter();
        let mut others = cells.filter(|cell| cell.workload == workload);
        let found = others.find_map(|cell| {
            let found = self.calibrations.get(&cell.name)?;
            found.of_all_loads.then_some(found)
        })?;
        Some(Calibration {
            values: found.values.clone(),
            of_all_loads: true,
            ..Calibration::default()
        })
    }
}
