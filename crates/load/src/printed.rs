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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn again(kind: &crate::KindDef, stdout: &str) -> Option<Vec<f64>> {
        let kind = kind.read(&mut crate::Keys::new(serde_json::Map::new()));
        let job = testing::job(kind);
        let printed = Printed {
            stdout: stdout.to_owned(),
            stderr: String::new(),
        };
        let read = read_again(&job.workload, job.load, 2, None, printed)?;
        Some(read.unwrap().iter().map(|m| m.value).collect())
    }

    #[test]
    fn a_time_of_hackbench_is_in_what_it_printed_and_latencies_of_wakeups_are_not() {
        let hackbench = again(&crate::hackbench::KIND, "Time: 0.600\n");
        assert_eq!(hackbench, Some(vec![0.6]));
        assert_eq!(again(&crate::wakeup::KIND, "Time: 0.600\n"), None);
    }
}
