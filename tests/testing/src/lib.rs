//! Jobs, output and programs for the unit tests of kinds of load.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "in a test a panic is the message"
)]

use load::{Driver, Job, NativeError, Output, Parsed, Phases, phase};
use model::{Kind, Load, Workload};
use std::io::{BufRead, BufReader, Write};
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
pub fn make_output(stdout: &str) -> Output {
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
#[derive(Debug)]
pub struct FakeProgram {
    _directory: tempfile::TempDir,
    path: String,
}

impl FakeProgram {
    /// A program of this name.
    pub fn new(name: &str, script: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        ::tests::write_program(&path, format!("#!/bin/sh\n{script}\n"));
        FakeProgram {
            path: path.to_str().unwrap().to_owned(),
            _directory: directory,
        }
    }

    /// Path of the program.
    pub fn path(&self) -> &str {
        &self.path
    }
}

/// A real run of a native generator in this process, spoken to as the agent does.
pub fn generate(driver: &dyn Driver, job: &Job) -> Result<Parsed, NativeError> {
    let (theirs, mut stdin) = std::io::pipe().unwrap();
    let (stdout, output) = std::io::pipe().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                match line.as_str() {
                    phase::READY => writeln!(stdin, "{}", phase::GO).unwrap(),
                    phase::END => writeln!(stdin, "{}", phase::SEEN).unwrap(),
                    _ => {}
                }
            }
        });
        driver.generate(job, &mut Phases::new(theirs, output).unwrap())
    })
}
