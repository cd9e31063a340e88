//! Calibrations: what is found once, before the first trial of a cell, and then holds for all arms.

use super::{Run, connected};
use crate::connection::Calibrated;
use crate::{Event, RunError};
use model::Calibration;

impl Run<'_> {
    /// Values that all trials of a cell share, found before its first trial; `None` when
    /// interrupted.
    pub(super) fn calibration(&mut self, cell: usize) -> Result<Option<Calibration>, RunError> {
        let cell = &self.plan.cells[cell];
        if let Some(found) = self.calibrations.get(&cell.name) {
            return Ok(Some(found.clone()));
        }
        if let Some(found) = self.of_another_load(cell.workload) {
            self.calibrations.insert(cell.name.clone(), found.clone());
            self.writer.write_calibrations(&self.calibrations)?;
            return Ok(Some(found));
        }
        let workload = &self.experiment.workloads[cell.workload];
        (self.sink)(Event::Step {
            step: &format!("calibrating {}", cell.name),
        });
        let known = self.of_the_kind(cell.workload);
        let connection = connected(match self.is_apart(workload) {
            true => &mut self.beside,
            false => &mut self.connection,
        })?;
        let calibrated =
            connection.calibrate(&cell.name, workload, cell.load, known, self.interrupted)?;
        let Calibrated::Found(found) = calibrated else {
            return Ok(None);
        };
        self.calibrations.insert(cell.name.clone(), found.clone());
        self.writer.write_calibrations(&self.calibrations)?;
        Ok(Some(found))
    }

    /// Values that were found for a workload of the same kind, or none.
    fn of_the_kind(&self, workload: usize) -> Calibration {
        let kind = |workload: usize| self.experiment.workloads[workload].kind.name();
        let cells = self.plan.cells.iter();
        let mut others = cells.filter(|cell| kind(cell.workload) == kind(workload));
        let found = others.find_map(|cell| self.calibrations.get(&cell.name));
        found.cloned().unwrap_or_default()
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
