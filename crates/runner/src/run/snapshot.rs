//! Trials on a target that resets to a snapshot: the machine is saved once for each boot and
//! workload, or once in each block for each of them, when its services have answered one whole load
//! under no arm, and every trial goes on from there. So all arms begin with the same heap, the same
//! compiled code, the same data.

use super::Run;
use crate::connection::Connection;
use crate::trial::TrialEnd;
use crate::{Event, RunError};
use machines::{Boot, Done};
use model::{Arm, PlannedTrial, Reset, TrialSpec, TrialState, Workload};

impl Run<'_> {
    /// A machine that goes on from the snapshot of this boot and workload, which is made where it
    /// is not there yet, or is that of another block where each has its own. The end of the trial
    /// where it could not be made.
    pub(super) fn go_on(
        &mut self,
        place: &PlannedTrial,
        boot: Boot,
    ) -> Result<Option<TrialEnd>, RunError> {
        let key = (boot, self.plan.cells[place.cell].workload);
        if self.target.abilities().reset == Reset::BlockSnapshot {
            // A state is as large as the memory of the guest.
            self.saved.retain(|_, (block, _)| *block == place.block);
        }
        let is_kept = self.target.recall_calibrations().is_some();
        if !is_kept
            && !self.saved.contains_key(&key)
            && let Some(end) = self.save(place, &key)?
        {
            return Ok(Some(end));
        }
        let Some((_, saved)) = self.saved.get(&key) else {
            return match self.target.recall_calibrations().is_some() {
                true => self.go_on_from_name(&key),
                false => Ok(None),
            };
        };
        // The old one first: two must never share the machine.
        self.connection = None;
        (self.sink)(Event::Step {
            step: "putting the guest back to its snapshot",
        });
        self.connection = Some(Connection::go_on(self.target, &key.0, saved)?);
        self.in_use = None;
        Ok(None)
    }

    /// A machine that goes on from the state that the target keeps under a name.
    fn go_on_from_name(&mut self, key: &(Boot, usize)) -> Result<Option<TrialEnd>, RunError> {
        let known = &self.calibrations;
        let mut cells = self.plan.cells.iter();
        let is_calibrated =
            !cells.any(|cell| cell.workload == key.1 && !known.contains_key(&cell.name));
        if !is_calibrated {
            // Nothing that a calibration leaves is there in a trial.
            self.open(&key.0, 0)?;
            if !self.calibrate_workload(key.1)? {
                return Ok(Some(TrialEnd::Interrupted));
            }
        }
        self.open(&key.0, 0)?;
        self.in_use = None;
        Ok(None)
    }

    /// Takes over the values that were found before the machine was saved: another calibration would end the
    /// services that are in it.
    pub(super) fn take_calibrations(&mut self) -> Result<(), RunError> {
        let Some(found) = self.target.recall_calibrations() else {
            return Ok(());
        };
        for cell in &self.plan.cells {
            if let Some(found) = found.get(&cell.name) {
                let known = self.calibrations.entry(cell.name.clone());
                known.or_insert_with(|| found.clone());
            }
        }
        Ok(self.writer.write_calibrations(&self.calibrations)?)
    }

    /// Calibrates all cells of a workload, on a machine that is not warm yet; false when interrupted.
    fn calibrate_workload(&mut self, workload: usize) -> Result<bool, RunError> {
        let cells = self.plan.cells.iter().enumerate();
        let cells: Vec<usize> = cells
            .filter_map(|(at, cell)| (cell.workload == workload).then_some(at))
            .collect();
        for cell in cells {
            if self.find_calibration(cell)?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Starts the services of a workload, lets them answer the load of this place, and saves the
    /// machine.
    fn save(
        &mut self,
        place: &PlannedTrial,
        key: &(Boot, usize),
    ) -> Result<Option<TrialEnd>, RunError> {
        if self.in_use.as_ref() != Some(&(key.0.clone(), 0)) || self.connection.is_none() {
            self.open(&key.0, 0)?;
        }
        if !self.calibrate_workload(key.1)? {
            return Ok(Some(TrialEnd::Interrupted));
        }
        let Some(spec) = self.spec(place)? else {
            return Ok(Some(TrialEnd::Interrupted));
        };
        let workload = before_saving(spec.workload);
        let mut end = self.trial(TrialSpec {
            label: format!("snapshot of {}", workload.name),
            workload,
            arm: Arm::unchanged("snapshot"),
            stays: true,
            observe: spec.observe.without_trace(),
            turns: None,
            seed: self.plan.seed,
            rest_ns: 0,
            ..spec
        })?;
        match &mut end {
            TrialEnd::Result { result, .. } if result.state == TrialState::Ok => {}
            TrialEnd::Result { result, .. } => {
                let (TrialState::Failed { why } | TrialState::Void { why }) = &mut result.state
                else {
                    return Ok(Some(end));
                };
                why.insert_str(0, "before the snapshot: ");
                // Its console is still to be read; the next trial gets another machine.
                self.in_use = None;
                return Ok(Some(end));
            }
            _ => return Ok(Some(end)),
        }
        (self.sink)(Event::Step {
            step: "saving the guest",
        });
        if let Some(connection) = self.connection.take() {
            let done = Done::new(&self.build, self.experiment, self.calibrations.clone());
            let saved = self.target.keep_state(connection.save_machine()?, done)?;
            self.saved
                .extend(saved.map(|saved| (key.clone(), (place.block, saved))));
        }
        Ok(None)
    }
}

/// A workload with the warm-up that it has before the machine is saved, and the time for it.
fn before_saving(workload: Workload) -> Workload {
    let Some(warmup_ns) = workload.snapshot_warmup_ns else {
        return workload;
    };
    let longer_ns = warmup_ns.saturating_sub(workload.warmup_ns);
    Workload {
        warmup_ns,
        time_limit_ns: workload.time_limit_ns.saturating_add(longer_ns),
        ..workload
    }
}
