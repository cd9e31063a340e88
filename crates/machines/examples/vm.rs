//! The program that the tests of guests put into one, and drive: as PID 1 it is init, with
//! `agent` an agent that only says hello, with `panic` or `flood` one that goes wrong, else
//! the host side. It is not schedlab, whose agent does not go wrong when it is asked to; and
//! cargo builds the examples of a package before its tests, but no other package's binary.
//!
//! `vm [--kernel NAME] [--cpus N] [COMMAND…]` boots a guest and runs a command in
//! it; `vm start|exec|stop NAME` and `vm status` keep one in the background.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a program that prints"
)]

use model::{Build, PROTOCOL_VERSION, Reply, Request, Reset};
use std::io::Write;
use std::process::ExitCode;
use vm::frame::{Exec, Exit, FrameKind, GUEST_VARIABLE};
use vm::{Options, Vm, VmSpec, init, manage};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<ExitCode, Failure> {
    if init::is_wanted() {
        init::main();
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some(manage::KEEPER_COMMAND) => return Ok(manage::keeper::main()),
        Some("agent") => agent()?,
        // What may go wrong in a guest, for the boot tests.
        Some("panic") if in_guest() => std::fs::write("/proc/sysrq-trigger", "c")?,
        Some("flood") if in_guest() => flood()?,
        Some("exec") if args.len() > 2 => return exec(&args[1], &args[2..]),
        Some("start") if args.len() > 1 => start(args)?,
        Some("stop") if args.len() == 2 => manage::stop(&args[1])?,
        Some("status") => println!("{:#?}", manage::status()?),
        _ => host(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn exec(name: &str, argv: &[String]) -> Result<ExitCode, Failure> {
    let exec = Exec {
        argv: argv.to_vec(),
        ..Exec::default()
    };
    Ok(ExitCode::from(manage::exec(name, &exec)?))
}

fn start(mut args: Vec<String>) -> Result<(), Failure> {
    let request = manage::StartRequest {
        name: args.remove(1),
        spec: spec(&mut args)?,
        options: Options::of_this_process()?,
    };
    println!("{:#?}", manage::start(&request)?);
    Ok(())
}

fn in_guest() -> bool {
    std::env::var_os(GUEST_VARIABLE).is_some()
}

fn flood() -> Result<(), Failure> {
    let line = [b'.'; 4000];
    loop {
        std::io::stderr().write_all(&line)?;
    }
}

/// Answers `Hello` and ends at `Bye`.
fn agent() -> Result<(), Failure> {
    let mut out = std::io::stdout();
    for line in std::io::stdin().lines() {
        let reply = match serde_json::from_str(&line?)? {
            Request::Hello { .. } => Reply::Hello {
                protocol: PROTOCOL_VERSION,
                build: Build {
                    version: std::fs::read_to_string("/proc/version")?,
                    commit: String::new(),
                },
            },
            Request::Bye => Reply::Bye,
            _ => Reply::Refused {
                why: "this agent only says hello".to_owned(),
            },
        };
        writeln!(out, "{}", serde_json::to_string(&reply)?)?;
        out.flush()?;
        if reply == Reply::Bye {
            break;
        }
    }
    Ok(())
}

fn host(mut args: Vec<String>) -> Result<(), Failure> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    let spec = spec(&mut args)?;
    let mut target = Vm::new(spec, Options::of_this_process()?);
    let guest = target.boot(None, false)?;
    eprintln!(
        "ready after {:?} ({} ms of guest time)",
        guest.boot_time,
        guest.ready.uptime_ns / 1_000_000
    );
    for (name, value) in target.facts() {
        eprintln!("{name} = {value}");
    }
    if args.is_empty() {
        args = ["uname", "-r"].map(str::to_owned).into();
    }
    let exec = Exec {
        argv: args,
        ..Exec::default()
    };
    for frame in guest.link.exec(&exec)? {
        match frame.kind {
            FrameKind::Output => std::io::stdout().write_all(&frame.payload)?,
            FrameKind::Errors => std::io::stderr().write_all(&frame.payload)?,
            FrameKind::Exit => eprintln!("{:?}", frame.parse::<Exit>()?),
            _ => {}
        }
    }
    eprint!("--- console\n{}", guest.machine.console.take_text());
    Ok(())
}

fn spec(args: &mut Vec<String>) -> Result<VmSpec, Failure> {
    Ok(VmSpec {
        architecture: None,
        agent: None,
        guests: 1,
        kernel: option(args, "--kernel").unwrap_or_else(|| "debian:sid".to_owned()),
        cpus: option(args, "--cpus").map_or(Ok(2), |n| n.parse())?,
        memory_bytes: 1 << 30,
        root: option(args, "--root").unwrap_or_else(|| "host".to_owned()),
        reset: Reset::None,
        snapshot: None,
        accel: option(args, "--accel"),
        topology: None,
        capacities: None,
        host_cpus: None,
        append: option(args, "--append"),
        expose: option(args, "--expose").into_iter().collect(),
        hypervisor: None,
        forwards: Vec::new(),
        clock: vm::Clock::Host,
    })
}

fn option(args: &mut Vec<String>, name: &str) -> Option<String> {
    let at = args.iter().position(|a| a == name)?;
    args.remove(at);
    (at < args.len()).then(|| args.remove(at))
}
