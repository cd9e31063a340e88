//! `schedlab load`: the process of a native generator, of whatever kind.

use crate::{Job, NativeError, Phases, driver};
use std::io::{Read, Write};

/// Runs one generator from its job line to its result line.
pub fn native_main(stdin: impl Read + Send + 'static, stdout: impl Write) -> Result<(), String> {
    run(stdin, stdout).map_err(|e| e.to_string())
}

fn run(stdin: impl Read + Send + 'static, stdout: impl Write) -> Result<(), NativeError> {
    let mut phases = Phases::new(stdin, stdout)?;
    let job = phases.next_line()?;
    let job: Job =
        serde_json::from_str(&job).map_err(|e| NativeError::BadJob(format!("{e}: {job:?}")))?;
    if let Some(log) = &job.watch {
        crate::worst::watch(log);
    }
    crate::late::watch_bounds(&job.bounds);
    let driver = driver(&job.workload.kind).map_err(NativeError::BadJob)?;
    if let Some(turns) = job.turns.as_ref().filter(|_| job.tells) {
        phases.tell_of(turns, &job.workload.metrics);
    }
    let parsed = driver.generate(&job, &mut phases)?;
    phases.result(&parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_with(input: &str) -> Result<(), NativeError> {
        run(std::io::Cursor::new(input.to_owned()), Vec::new())
    }

    #[test]
    fn input_that_ends_before_the_job_means_that_the_agent_is_gone() {
        assert!(matches!(run_with(""), Err(NativeError::AgentGone)));
    }

    #[test]
    fn a_job_that_is_not_json_is_quoted() {
        let error = run_with("make it so\n").unwrap_err().to_string();
        assert!(error.contains("make it so"), "{error}");
    }
}
