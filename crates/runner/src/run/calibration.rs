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
        let connection = connected(match self.is_apart(workload) {
            true => &mut self.beside,
            false => &mut self.connection,
        })?;
        let calibrated = connection.calibrate(&cell.name, workload, cell.load, self.interrupted)?;
        let Calibrated::Found(found) = calibrated else {
            return Ok(None);
        };
        self.calibrations.insert(cell.name.clone(), found.clone());
        self.writer.write_calibrations(&self.calibrations)?;
        Ok(Some(found))
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
