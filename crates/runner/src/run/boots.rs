//! The machines of a run: opened where a trial needs them, looked at once, and put on record.

use super::Run;
use crate::check::{has_loads_apart, needed_boot, only_arms_of};
use crate::connection::{Connection, check_request, probe_request};
use crate::network;
use crate::same_machine;
use crate::trial::TrialEnd;
use crate::{Event, RunError};
use machines::Boot;
use model::{Machine, PlannedTrial, Problem, Reset, Severity, Side, Start, Trial, Warning};

impl Run<'_> {
    /// An agent on a kernel that comes up for the first time since the run was started: it must
    /// have what its arms need, and is put on record.
    fn open_and_look(&mut self, boot: &Boot) -> Result<(), RunError> {
        let side = self.side();
        let experiment = only_arms_of(self.experiment, boot);
        // The calibration comes first, so that what was asked before it changes nothing in it.
        let mut foreseen = Vec::from_iter(self.first_calibration());
        foreseen.extend([check_request(&experiment, side), probe_request(&experiment)]);
        let is_apart = has_loads_apart(&experiment, self.target) && side == Side::Target;
        let ask = |connection: &mut Connection| {
            let mut problems = connection.check_experiment(&experiment, side)?;
            let mut way = None;
            if is_apart {
                problems.extend(network::find_obstacle(&experiment, connection)?);
                way = network::way_in_words(&experiment, connection)?;
            }
            match problems.is_empty() {
                true => Ok((connection.probe_system(&experiment)?, way)),
                false => Err(RunError::Unmet(problems)),
            }
        };
        let (connection, (mut system, way)) =
            Connection::open_and_ask(self.target, boot, &self.build, &foreseen, ask)?;
        self.connection = Some(connection);
        system.facts.extend(self.target.facts());
        system
            .facts
            .extend(way.map(|way| (network::WAY.to_owned(), way)));
        self.record(Machine {
            kernel: boot.kernel.clone(),
            system,
        })?;
        Ok(self.writer.add_warnings(self.target.warnings())?)
    }

    /// The part of the checks that the target's agent makes.
    pub(super) fn side(&self) -> Side {
        match self.controller {
            Some(_) => Side::Target,
            None => Side::Both,
        }
    }

    /// A machine is stored only if its trials may stand beside those that are there.
    fn record(&mut self, machine: Machine) -> Result<(), RunError> {
        let mut differences = Vec::new();
        if self.trials.iter().any(Trial::is_ok) {
            let earlier = self.writer.earlier_starts();
            if self.looked_at.is_empty() {
                differences.extend(same_machine::other_build(earlier, &self.build));
            }
            differences.extend(same_machine::other_machine(earlier, &machine));
        }
        self.allow(differences)?;
        if self.start > 0 {
            let starts = self.writer.earlier_starts();
            let of_start = starts.last().map(|start| &start.machines[..]);
            let mut known = of_start.unwrap_or_default().iter();
            return match known.any(|earlier| earlier.kernel == machine.kernel) {
                true => Ok(()),
                false => Ok(self.writer.add_machine(machine)?),
            };
        }
        self.begin(vec![machine])
    }

    pub(super) fn begin(&mut self, machines: Vec<Machine>) -> Result<(), RunError> {
        self.start = self.writer.add_start(Start {
            began: self.began.clone(),
            build: self.build.clone(),
            machines,
        })?;
        Ok(())
    }

    /// Ends the run where it would mix what differs, unless that was asked for; then the
    /// results say it.
    pub(super) fn allow(&mut self, differences: Vec<Problem>) -> Result<(), RunError> {
        if !differences.is_empty() && !self.anyway {
            return Err(RunError::Mixed(differences));
        }
        let warnings = differences.iter().map(|difference| Warning {
            severity: Severity::Serious,
            what: format!(
                "The run went on although {} {}.",
                difference.object, difference.what
            ),
            remedy: "Start a new run: trials before and after the change are no repetitions."
                .to_owned(),
        });
        Ok(self.writer.add_warnings(warnings.collect())?)
    }

    /// An agent on the kernel that the place needs, fresh where the target resets. The end of
    /// the trial where its machine could not be made ready.
    pub(super) fn connect(&mut self, place: &PlannedTrial) -> Result<Option<TrialEnd>, RunError> {
        let boot = needed_boot(&self.experiment.arms[place.arm]);
        let turn = match self.target.abilities().reset {
            Reset::None => 0,
            Reset::Block => place.block,
            Reset::Workload => self.first_of_workload(place) + 1,
            Reset::Trial => place.index + 1,
            Reset::Snapshot | Reset::BlockSnapshot => return self.go_on(place, boot),
        };
        let fits = self.in_use.as_ref() == Some(&(boot.clone(), turn));
        if fits && self.connection.is_some() {
            return Ok(None);
        }
        self.open(&boot, turn)?;
        Ok(None)
    }

    /// Index of the first trial of those that are neighbours of this one in its block and have the
    /// same workload and the same boot.
    fn first_of_workload(&self, place: &PlannedTrial) -> u32 {
        let workload = |at: &PlannedTrial| self.plan.cells[at.cell].workload;
        let kernel = |at: &PlannedTrial| &self.experiment.arms[at.arm].kernel;
        let is_alike = |at: &&PlannedTrial| {
            at.block == place.block
                && workload(at) == workload(place)
                && kernel(at) == kernel(place)
        };
        let before = self.plan.trials.iter().rev();
        let before = before.skip_while(|at| at.index > place.index);
        before
            .take_while(is_alike)
            .last()
            .map_or(place.index, |first| first.index)
    }

    pub(super) fn open(&mut self, boot: &Boot, turn: u32) -> Result<(), RunError> {
        // The old one first: two must never share the machine.
        self.connection = None;
        (self.sink)(Event::Step {
            step: &self.target.opening_step(boot),
        });
        if self.looked_at.contains(boot) {
            self.connection = Some(Connection::open(self.target, boot, &self.build)?);
        } else {
            self.open_and_look(boot)?;
            self.looked_at.insert(boot.clone());
        }
        self.in_use = Some((boot.clone(), turn));
        Ok(())
    }
}
