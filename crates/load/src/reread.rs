//! Figures read again out of what a program printed, which results keep beside them.

use crate::{Job, Output};
use model::{Calibration, Load, Measurement, Workload};

/// Output of its program that a trial kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Printed {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// Figures of a trial that stand in what its program printed; none where its kind has no such figures. The
/// error says what is missing there.
pub fn read_again(
    workload: &Workload,
    load: Load,
    cpus: u32,
    calibration: Option<&Calibration>,
    printed: Printed,
) -> Option<Result<Vec<Measurement>, String>> {
    let driver = crate::driver(&workload.kind).ok()?;
    let job = Job {
        calibration: calibration.cloned().unwrap_or_default(),
        ..Job::new(workload, load, cpus)
    };
    let output = Output {
        stdout: printed.stdout,
        stderr: printed.stderr,
        success: true,
        status: "exit status 0".to_owned(),
        ..Output::default()
    };
    driver.read_again(&job, &output)
}
