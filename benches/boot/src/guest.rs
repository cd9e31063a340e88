//! schedlab's own guests.

use crate::Failure;
use machines::{Boot, Session, Target};
use model::{PROTOCOL_VERSION, Reply, Request};
use std::process::Command;
use std::time::{Duration, Instant};
use vm::{Options, Vm, VmSpec};

pub const KERNEL: &str = "debian:sid";
pub const CPUS: u32 = 2;
const MEMORY_BYTES: u64 = 1 << 30;
const ANSWER: Duration = Duration::from_secs(60);

/// A command in a guest.
pub struct Run {
    pub time: Duration,
    pub release: String,
}

/// The command as typed: start a guest in the background, run `uname -r` in it.
pub fn command(program: &str) -> Result<Run, Failure> {
    let name = format!("bench-{}", std::process::id());
    let vm = |args: &[&str]| -> Result<String, Failure> {
        let output = Command::new(program).arg("vm").args(args).output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    };
    let (cpus, memory) = (CPUS.to_string(), MEMORY_BYTES.to_string());
    let start = Instant::now();
    vm(&[
        "start", "--name", &name, "--kernel", KERNEL, "--cpus", &cpus, "--memory", &memory,
    ])?;
    let release = vm(&["exec", "--name", &name, "uname", "-r"]);
    let time = start.elapsed();
    vm(&["stop", "--name", &name])?;
    Ok(Run {
        time,
        release: release?,
    })
}

/// To the agent's first answer; the kernel and the initramfs are there.
pub fn agent(program: &str) -> Result<Duration, Failure> {
    let options = Options {
        program: std::fs::canonicalize(program)?,
        ..Options::of_this_process()?
    };
    let mut target = Vm::new(spec(), options);
    target.prepare(KERNEL)?;
    let start = Instant::now();
    let mut session = target.open_session(&Boot::default())?;
    greet(session.as_mut())?;
    Ok(start.elapsed())
}

/// The agent's answer to a greeting.
pub fn greet(session: &mut dyn Session) -> Result<(), Failure> {
    session.send_request(&Request::Hello {
        protocol: PROTOCOL_VERSION,
    })?;
    match session.receive_reply(ANSWER)? {
        Some(Reply::Hello { .. }) => Ok(()),
        other => Err(format!("the agent said {other:?}").into()),
    }
}

fn spec() -> VmSpec {
    VmSpec::new(KERNEL, CPUS, MEMORY_BYTES)
}
