//! The process of the load: its start under the arm, and its end.

use crate::collectors::switches;
use crate::files;
use crate::process::{Origin, Process};
use crate::spawn::SpawnError;
use crate::stop::Stop;
use crate::trial::Trial;
use collect::rusage::Usage;
use load::{Launch, Output};
use model::{Role, Severity, Warning};

/// What a process of the load's part is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It comes before the trial, with no more of the arm than its environment.
    Preparation,
    /// The load, whose instructions are counted.
    Load,
    /// A load beside that.
    CoRunner,
}

impl Trial<'_, '_> {
    /// Starts a process of the load's part. A load without phases has what the arm gives it before it runs its program.
    pub fn start_process(&mut self, launch: &Launch, purpose: Purpose) -> Result<Process, Stop> {
        let is_under_arm = purpose != Purpose::Preparation && !launch.phased;
        let Self {
            context,
            stage,
            in_force,
            ..
        } = self;
        let origin = Origin {
            executable: context.executable,
            fence: &stage.fence,
        };
        let (collectors, events) = (&mut stage.collectors, &mut stage.events);
        let group = stage.roles.load_group();
        let root = context.root;
        let launch = &in_force.launch(&Role::Load, launch);
        let started = Process::start(launch, origin, context.journal, |pid| {
            if purpose == Purpose::Load {
                collectors.before_exec(pid);
            }
            events.open(root, &Role::Load, pid)?;
            if let Some(group) = group {
                group.add_process(pid).map_err(|e| e.to_string())?;
            }
            match is_under_arm {
                true => in_force.before_exec(root, &Role::Load, pid),
                false => Ok(()),
            }
        });
        let mut process = started.map_err(|error| match error {
            SpawnError::Refused(why) => Stop::Void(why),
            error => Stop::Failed(error.to_string()),
        })?;
        if !stage.collectors.is_wanted(&switches::DEF) {
            process.counters = None;
        }
        let environments = &mut stage.roles.load_environments;
        environments.insert(process.pid, process.environment.clone());
        Ok(process)
    }

    /// Kill what is left of a process, and reap it. What has left its session and taken
    /// off its mark voids the trial: nothing is proven of it, and nobody can say what
    /// it did within the window.
    pub fn end_process(
        &mut self,
        process: Process,
        ended: Result<(), Stop>,
    ) -> Result<(Output, Usage), Stop> {
        self.end_load(process, ended, "")
    }

    /// The same of one of several loads, whose logs have names that begin so.
    pub fn end_load(
        &mut self,
        process: Process,
        ended: Result<(), Stop>,
        logs: &str,
    ) -> Result<(Output, Usage), Stop> {
        let fence = &self.stage.fence;
        let left = process.kill_rest(fence);
        let others = self.stage.others(self.context, &self.in_force);
        let strays = match &left {
            Ok(_) => fence.kill_strays(&others),
            // They would only be waited for once more.
            Err(_) => Ok(Vec::new()),
        };
        let reaped = process.reap();
        let unended = &mut self.stage.unended;
        unended.extend(left.as_ref().err().cloned());
        unended.extend(strays.as_ref().err().cloned());
        let (output, usage) = reaped.map_err(|e| {
            unended.push(e.to_string());
            Stop::Failed(format!("wait for the workload: {e}"))
        })?;
        files::send_output(self.context.say, &output, logs);
        ended?;
        self.warn_of_leftovers(left.map_err(Stop::Failed)?);
        match strays.map_err(Stop::Failed)?.as_slice() {
            [] => Ok((output, usage)),
            strays => Err(Stop::Void(format!(
                "something that the workload started outlived it: {} had left its session and \
                 environment; it was killed. Let the workload wait for what it starts",
                strays.join(", ")
            ))),
        }
    }

    fn warn_of_leftovers(&mut self, left: usize) {
        if left > 0 {
            self.warnings.push(Warning {
                severity: Severity::Note,
                what: format!(
                    "{left} processes were still running when the workload had ended; they were killed"
                ),
                remedy: "let the workload wait for what it starts".to_owned(),
            });
        }
    }
}
