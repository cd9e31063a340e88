//! The far machine restarted with a kernel that is installed there. Its own schedlab knows how; here
//! it is told so, and waited for.

use super::{Failure, FarTarget, Look, PAUSE};
use crate::reboots::{came_with_another, named_kernels};
use crate::{By, TargetError};
use model::{Experiment, Problem, format_duration_ns, whole_nanos};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Time for a step of its boot loader.
const STEP: Duration = Duration::from_secs(120);

impl FarTarget {
    /// Reasons for which the kernels of the arms cannot be booted there; empty where none is to be.
    pub(super) fn kernels_lacking(
        &mut self,
        look: &Look,
        experiment: &Experiment,
    ) -> Result<Vec<Problem>, Failure> {
        let Some((by, _)) = self.line.reboot_way() else {
            return Ok(Vec::new());
        };
        let said = self.boot_next(
            look,
            by,
            "check",
            &named_kernels(experiment).into_iter().collect::<Vec<_>>(),
        )?;
        let problems: Vec<Problem> = serde_json::from_str(&said)
            .map_err(|_| Failure::Final(TargetError::Garbled(said.clone())))?;
        let there = |problem: Problem| Problem {
            object: format!("{} on {}", problem.object, self.line.machine_name()),
            ..problem
        };
        Ok(problems.into_iter().map(there).collect())
    }

    /// Restarts the machine and waits until it is back with this kernel.
    pub(super) fn reboot_into(
        &mut self,
        kernel: &str,
        by: By,
        limit: Duration,
    ) -> Result<(), TargetError> {
        let before = self.patiently(FarTarget::look)?;
        match self.boot_next(&before, by, "restart", &[kernel]) {
            // It may have gone down before it could say so.
            Ok(_) | Err(Failure::Connection(_)) => {}
            Err(failure) => return Err(failure.into()),
        }
        let look = self.back(&before, limit)?;
        // The entry of one boot is to go also where another kernel came.
        self.patiently(|target| target.boot_next(&look, by, "clear", &[]))?;
        if look.release != kernel {
            return Err(came_with_another(kernel, &look.release));
        }
        if let Some(first) = &mut self.first {
            first.release = look.release.clone();
        }
        self.fresh = Some(look);
        Ok(())
    }

    /// Restarts the machine with its own kernel, where another was booted once. It is not waited for.
    pub(super) fn reboot_home(&mut self, by: By) -> Result<(), TargetError> {
        let look = self.patiently(FarTarget::look)?;
        self.patiently(|target| target.boot_next(&look, by, "home", &[]))?;
        Ok(())
    }

    /// The machine in its next boot.
    fn back(&mut self, before: &Look, limit: Duration) -> Result<Look, TargetError> {
        let since = Instant::now();
        loop {
            std::thread::sleep(PAUSE);
            // Until it is down it answers as before, or that it is going down.
            let last = match self.look() {
                Ok(look) if look.boot != before.boot => return Ok(look),
                Ok(_) => "it did not go down".to_owned(),
                Err(failure) => TargetError::from(failure).to_string(),
            };
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(TargetError::Interrupted);
            }
            if since.elapsed() >= limit {
                let limit = format_duration_ns(whole_nanos(limit));
                let what = format!("it was restarted and is not back after {limit}: {last}");
                let remedy = "see to the machine, then go on with: schedlab run --resume DIR; where it \
                              only takes longer: reboot-limit = \"30m\"";
                return Err(TargetError::Unmet(self.line.problem(what, remedy)));
            }
        }
    }

    /// What its own `schedlab boot-next` says.
    fn boot_next(
        &mut self,
        look: &Look,
        by: By,
        step: &str,
        kernels: &[&str],
    ) -> Result<String, Failure> {
        let line = Arc::clone(&self.line);
        let by = by.to_string();
        let words = [&["boot-next", step, "--by", &by][..], kernels].concat();
        let command = self.started(look, &words, true)?;
        let output = line.run_to_end(command, &[], STEP, &self.interrupted)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = model::printable::last_lines(&said, 3, "; ");
        Err(line
            .problem(said, "`schedlab target check` says what the machine lacks")
            .into())
    }
}
