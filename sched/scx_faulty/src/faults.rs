//! The command line: which fault, and when.

use std::hash::{BuildHasher, RandomState};
use std::str::FromStr;
use std::time::Duration;

pub const USAGE: &str = "\
A sched_ext scheduler that fails in a chosen way.

Usage: scx_faulty [--fault FAULT[:SECONDS]]

Faults:
  none           schedule first in, first out, until told to stop (default)
  late:SECONDS   attach only after SECONDS
  stall:SECONDS  forget all tasks SECONDS after attaching; the kernel's watchdog ejects it
  error:SECONDS  report an error to the kernel SECONDS after attaching; the kernel ejects it
  random:SECONDS report an error after a time that is drawn, of this mean: 6 are ten ejections a minute
  never          run, but never attach
  exit:SECONDS   end with status 1 after SECONDS, without having attached

SECONDS may be a fraction and is 0 where it is left out.";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    Late,
    Stall,
    Error,
    Never,
    Exit,
}

/// A fault and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    pub fault: Fault,
    pub after: Duration,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    Run(Plan),
    Help,
    Version,
}

/// Reads the arguments after the program's name.
pub fn parse(args: &[String]) -> Result<Command, String> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        [] => "none".parse().map(Command::Run),
        ["--help" | "-h"] => Ok(Command::Help),
        ["--version" | "-V"] => Ok(Command::Version),
        ["--fault", fault] => fault.parse().map(Command::Run),
        [one] if one.starts_with("--fault=") => one["--fault=".len()..].parse().map(Command::Run),
        _ => Err(format!(
            "these arguments are not understood: {}",
            args.join(" ")
        )),
    }
}

impl FromStr for Plan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, seconds) = text.split_once(':').unwrap_or((text, "0"));
        let fault = match name {
            "none" => Fault::None,
            "late" => Fault::Late,
            "stall" => Fault::Stall,
            "error" | "random" => Fault::Error,
            "never" => Fault::Never,
            "exit" => Fault::Exit,
            _ => return Err(format!("there is no fault `{name}`")),
        };
        let after =
            parse_seconds(seconds).ok_or(format!("`{seconds}` is not a number of seconds"))?;
        let after = match name {
            "random" => Duration::try_from_secs_f64(after.as_secs_f64() * draw_wait())
                .unwrap_or(Duration::MAX),
            _ => after,
        };
        Ok(Plan { fault, after })
    }
}

/// Exponential, of mean 1, and never beyond 37: however long nothing has happened, it is as likely to happen next.
fn draw_wait() -> f64 {
    // Keys of a hasher come from the system's random numbers.
    let bits = RandomState::new().hash_one(0_u8) >> 11;
    let share = (bits as f64 + 1.0) / (1_u64 << 53) as f64;
    -share.ln()
}

fn parse_seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(args: &[&str]) -> Result<Command, String> {
        let args: Vec<String> = args.iter().map(|a| (*a).to_owned()).collect();
        parse(&args)
    }

    fn run(fault: Fault, seconds: f64) -> Result<Command, String> {
        let after = Duration::from_secs_f64(seconds);
        Ok(Command::Run(Plan { fault, after }))
    }

    #[test]
    fn without_arguments_it_schedules_without_a_fault() {
        assert_eq!(command(&[]), run(Fault::None, 0.0));
    }

    #[test]
    fn a_fault_may_have_a_time() {
        assert_eq!(command(&["--fault", "late:2.5"]), run(Fault::Late, 2.5));
        assert_eq!(command(&["--fault=stall"]), run(Fault::Stall, 0.0));
    }

    #[test]
    fn a_random_fault_is_an_error_after_about_its_mean() {
        let drawn = (0..1000).map(|_| "random:6".parse::<Plan>().unwrap());
        let drawn: Vec<Plan> = drawn.collect();
        assert!(drawn.iter().all(|plan| plan.fault == Fault::Error));
        let sum: f64 = drawn.iter().map(|plan| plan.after.as_secs_f64()).sum();
        // Five standard deviations of the mean.
        assert!((sum / 1000.0 - 6.0).abs() < 0.95, "{sum}");
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for args in [
            &["--fault"][..],
            &["--fault", "crash"],
            &["--fault", "late:x"],
            &["--fault", "late:-1"],
            &["extra"],
        ] {
            assert!(command(args).is_err(), "{args:?}");
        }
    }
}
