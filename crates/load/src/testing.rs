//! Jobs, output and programs for the tests of this crate.

use crate::{Job, Output};
use model::{Kind, Load, Workload};
use std::process::Command;

/// Two of the load, for 300 ms, on two CPUs.
pub fn job(kind: Kind) -> Job {
    let workload = Workload {
        duration_ns: 300_000_000,
        warmup_ns: 20_000_000,
        ..Workload::new(kind)
    };
    Job {
        seed: 1,
        ..Job::new(&workload, Load::Count(2), 2)
    }
}

/// Output of a program that succeeded.
pub fn printed(stdout: &str) -> Output {
    Output {
        stdout: stdout.to_owned(),
        success: true,
        status: "exit status 0".to_owned(),
        ..Output::default()
    }
}

/// A program's run for a calibration, without the limit.
pub fn run(argv: &[String], _limit_ns: u64) -> Result<Output, String> {
    let run = Command::new(&argv[0]).args(&argv[1..]).output();
    let output = run.map_err(|e| e.to_string())?;
    Ok(Output {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        success: output.status.success(),
        status: output.status.to_string(),
        ..Output::default()
    })
}

/// A shell script in a directory of its own, gone when dropped.
pub struct FakeProgram {
    _directory: tempfile::TempDir,
    path: String,
}

impl FakeProgram {
    pub fn new(name: &str, script: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        ::tests::write_program(&path, format!("#!/bin/sh\n{script}\n"));
        FakeProgram {
            path: path.to_str().unwrap().to_owned(),
            _directory: directory,
        }
    }

    pub fn path(&self) -> &str {
        &self.path
    }
}
