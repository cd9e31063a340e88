//! How long the tasks of a trial's roles wait in run queues: counted in the kernel
//! by BPF, for each role and CPU, between two lines on standard input.
//!
//! ```text
//! → begin ROLE:PROCESS ROLE:PROCESS+ …   a number below 4, and a process; with a
//! ← begun                                plus only what it forks from now on
//! → end
//! ← {"lost": 0, "waits": [{"role": 0, "cpu": 1, "counts": [[NS, COUNT], …]}, …]}
//! ```
//! `ready` comes first, once the BPF programs are attached; NS is the lowest wait of
//! a slot, which is at most a 64th of that wide.

mod bpf;
mod slots;

use bpf::{Collector, MAX_ROLES, ROLE_OF_CHILDREN};
use serde_json::json;
use std::error::Error;
use std::io::{BufRead, Write};
use std::process::ExitCode;

const USAGE: &str = "schedlab_runqueue: run-queue latency of roles, for schedlab\n\n\
    It is started by `schedlab run` where an experiment has collect = [\"runqueue\"].\n\
    By hand: echo 'begin 0:PID' and, later, 'end' on its standard input.";

fn main() -> ExitCode {
    let result = match std::env::args().nth(1).as_deref() {
        None => serve(),
        Some("--version") => {
            println!("schedlab_runqueue {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        Some("--help" | "-h") => {
            println!("{USAGE}");
            Ok(())
        }
        Some(other) => Err(format!("unknown argument {other}\n\n{USAGE}").into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Result<(), Box<dyn Error>> {
    let mut collector = Collector::load()?;
    say("ready")?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("begin", roles) => {
                collector.begin(&parse(roles)?)?;
                say("begun")?;
            }
            ("end", "") => {
                collector.end();
                return say(&answer(&collector)?);
            }
            _ => return Err(format!("unknown request: {line}").into()),
        }
    }
    Ok(())
}

fn say(line: &str) -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

fn parse(roles: &str) -> Result<Vec<(u8, u32)>, Box<dyn Error>> {
    roles.split_whitespace().map(parse_one).collect()
}

fn parse_one(word: &str) -> Result<(u8, u32), Box<dyn Error>> {
    let wrong = || format!("{word}: not ROLE:PROCESS with a role below {MAX_ROLES}");
    let (role, process) = word.split_once(':').ok_or_else(wrong)?;
    let role: u8 = role.parse().map_err(|_| wrong())?;
    let (process, flag) = match process.strip_suffix('+') {
        Some(process) => (process, ROLE_OF_CHILDREN),
        None => (process, 0),
    };
    let process = process.parse().map_err(|_| wrong())?;
    if role >= MAX_ROLES {
        return Err(wrong().into());
    }
    Ok((role | flag, process))
}

fn answer(collector: &Collector) -> Result<String, Box<dyn Error>> {
    let waits: Vec<_> = collector
        .waits()?
        .into_iter()
        .map(|w| json!({ "role": w.role, "cpu": w.cpu, "counts": w.counts }))
        .collect();
    Ok(json!({ "lost": collector.lost()?, "waits": waits }).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_numbers_with_processes() {
        assert_eq!(
            parse("0:12 2:7+").expect("right"),
            [(0, 12), (2 | ROLE_OF_CHILDREN, 7)]
        );
        for wrong in ["x", "4:1", "0:", "0:+", "-1:2", "0:1++"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
