//! A sched_ext scheduler that fails in a chosen way: it attaches late, stalls,
//! is ejected, never attaches, or ends at once. For tests of whoever must
//! notice that; see `faults.rs` for the choice and `bpf/` for the kernel's half.

mod bpf;
mod faults;

use bpf::Scheduler;
use faults::{Command, Fault, Plan};
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Exit status after wrong arguments, as clap and bash have it.
const USAGE_ERROR: u8 = 2;
const POLL: Duration = Duration::from_millis(50);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match faults::parse(&args) {
        Ok(Command::Help) => {
            println!("{}", faults::USAGE);
            return ExitCode::SUCCESS;
        }
        Ok(Command::Version) => {
            println!("scx_faulty {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Ok(Command::Run(plan)) => run(&plan),
        Err(why) => {
            eprintln!("error: {why}\n\n{}", faults::USAGE);
            return ExitCode::from(USAGE_ERROR);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(plan: &Plan) -> Result<(), Box<dyn Error>> {
    let stop = stop_on_signal()?;
    match plan.fault {
        Fault::Never => wait(&stop, Duration::MAX),
        Fault::Exit => {
            wait(&stop, plan.after);
            return Err("ending at once, as asked".into());
        }
        Fault::Late => {
            wait(&stop, plan.after);
            return schedule(plan, &stop);
        }
        Fault::None | Fault::Stall | Fault::Error => return schedule(plan, &stop),
    }
    Ok(())
}

/// Set by SIGINT and SIGTERM.
fn stop_on_signal() -> Result<Arc<AtomicBool>, std::io::Error> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// Returns early when told to stop.
fn wait(stop: &AtomicBool, time: Duration) {
    let start = Instant::now();
    while !stop.load(Ordering::Relaxed) && start.elapsed() < time {
        std::thread::sleep(POLL.min(time.saturating_sub(start.elapsed())));
    }
}

/// Attached until told to stop or until the kernel ejects it.
fn schedule(plan: &Plan, stop: &AtomicBool) -> Result<(), Box<dyn Error>> {
    if stop.load(Ordering::Relaxed) {
        return Ok(());
    }
    let scheduler = Scheduler::attach(plan)?;
    eprintln!("faulty scheduler attached, fault {:?}", plan.fault);
    while !stop.load(Ordering::Relaxed) {
        if let Some(exit) = scheduler.exit()? {
            return report(&exit);
        }
        wait(stop, POLL);
    }
    report(&scheduler.detach()?)
}

fn report(exit: &bpf::Exit) -> Result<(), Box<dyn Error>> {
    if exit.is_error() {
        return Err(exit.to_string().into());
    }
    eprintln!("{exit}");
    Ok(())
}
