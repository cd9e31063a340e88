//! One load from its threads to its figures.

use super::config::Config;
use super::figures::{self, Total};
use super::protocol::Protocol;
use super::search::{self, Step};
use super::tally::Tally;
use super::worker::Worker;
use load::gate::{Gate, Timing};
use load::latch::Latch;
use load::pacing::Share;
use load::phase::{NativeError, Phases};
use load::{Parsed, sys};
use model::Slo;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::Builder;
use std::time::SystemTime;

/// Name of the threads, as the agent sees it in `/proc/PID/task/TID/comm`.
pub const THREAD: &str = "load-client";

/// Those of a search stay until its end, and need little.
const STACK_BYTES: usize = 256 * 1024;

/// Runs the load that `config` asks for, in the phases that the agent gives.
/// `protocol` makes the requests of one thread.
pub fn generate<P: Protocol>(
    config: &Config,
    protocol: impl Fn(Share) -> P,
    phases: &mut Phases,
) -> Result<Parsed, NativeError> {
    if let Some(fault) = config.fault() {
        return Err(NativeError::Generator(fault));
    }
    sys::allow_files(u64::from(config.connections) + FILES_BESIDE)
        .map_err(NativeError::Generator)?;
    let stay = Arc::new(Latch::default());
    let parsed = match &config.search {
        Some(slo) => search_in_phases(config, slo, &protocol, &stay, phases),
        None => {
            let measure = |gate: &Gate| measure(config, gate, phases);
            load(config, &protocol, &stay, measure).and_then(|(opened, tallies)| {
                figures::compute_figures(config, tallies, opened).map_err(NativeError::Generator)
            })
        }
    };
    stay.open();
    parsed
}

/// The window is the whole search.
fn search_in_phases<P: Protocol>(
    config: &Config,
    slo: &Slo,
    protocol: &impl Fn(Share) -> P,
    stay: &Arc<Latch>,
    phases: &mut Phases,
) -> Result<Parsed, NativeError> {
    phases.report_ready()?;
    phases.begin_window(sys::now_ns())?;
    let mut steps = Vec::new();
    let found = search::climb(slo, |rate_per_sec| {
        let config = Config {
            rate_per_sec,
            ..config.clone()
        };
        let (_, tallies) = load(&config, protocol, stay, |gate| pass(&config, gate, phases))?;
        let total = Total::from_tallies(tallies);
        let step = Step::from_total(&config, slo, total).map_err(NativeError::Generator)?;
        let held = step.has_held();
        steps.push(step);
        Ok::<_, NativeError>(held)
    })?;
    phases.end_window(sys::now_ns())?;
    phases.wait_until_seen()?;
    if steps.iter().all(|step| step.achieved_percent == 0.0) {
        let why = "no request was answered at any rate".to_owned();
        return Err(NativeError::Generator(why));
    }
    Ok(search::compute_figures(slo, found, &steps))
}

/// One load from its threads to what they counted. `pass` opens the gate and waits
/// until the window has closed. The threads stay, so that what they used can be read.
fn load<P: Protocol, T>(
    config: &Config,
    protocol: &impl Fn(Share) -> P,
    stay: &Arc<Latch>,
    pass: impl FnOnce(&Gate) -> Result<T, NativeError>,
) -> Result<(T, Vec<Tally>), NativeError> {
    let gate = Arc::new(Gate::default());
    let tallies = start(config, protocol, &gate, stay);
    let measured = tallies.and_then(|tallies| {
        gate.gather(config.threads)
            .map_err(NativeError::Generator)?;
        Ok((pass(&gate)?, tallies))
    });
    if measured.is_err() {
        gate.stop();
    }
    let (passed, tallies) = measured?;
    let tallies = (0..config.threads)
        .map(|_| {
            let panicked = |_| Err("a thread of the load panicked".to_owned());
            tallies.recv().unwrap_or_else(panicked)
        })
        .collect::<Result<_, _>>();
    if tallies.is_err() {
        gate.stop();
    }
    Ok((passed, tallies.map_err(NativeError::Generator)?))
}

/// Open files that are no connections, with room to spare.
pub const FILES_BESIDE: u64 = 64;

/// Counts of each thread, or the reason why it could not count.
type Tallies = Receiver<Result<Tally, String>>;

fn start<P: Protocol>(
    config: &Config,
    protocol: &impl Fn(Share) -> P,
    gate: &Arc<Gate>,
    stay: &Arc<Latch>,
) -> Result<Tallies, NativeError> {
    let (counted, tallies) = channel();
    for share in config.shares() {
        let (config, counted) = (config.clone(), counted.clone());
        let (gate, stay) = (Arc::clone(gate), Arc::clone(stay));
        let protocol = protocol(share);
        let run = move || {
            // Nobody waits for it any more if the load could not be measured.
            let _ = counted.send(run_thread(&config, share, protocol, &gate));
            drop(counted);
            stay.wait();
        };
        Builder::new()
            .name(THREAD.to_owned())
            .stack_size(STACK_BYTES)
            .spawn(run)
            .map_err(|e| {
                NativeError::Generator(format!("start a {THREAD} thread: {e}; use fewer threads"))
            })?;
    }
    Ok(tallies)
}

fn run_thread<P: Protocol>(
    config: &Config,
    share: Share,
    protocol: P,
    gate: &Gate,
) -> Result<Tally, String> {
    let ready = prepare(config, share, protocol);
    match ready {
        Ok(worker) => worker.run(gate),
        Err(why) => {
            gate.fail(why.clone());
            Err(why)
        }
    }
}

fn prepare<P: Protocol>(config: &Config, share: Share, protocol: P) -> Result<Worker<P>, String> {
    sys::precise_timers();
    if let Some(cpu) = config.cpu(share.index) {
        sys::pin_to(cpu).map_err(|e| format!("run on CPU {cpu}: {e}"))?;
    }
    Worker::new(config, share, protocol)
}

/// Waits through the phases. The wall-clock time at which the window opened.
fn measure(config: &Config, gate: &Gate, phases: &mut Phases) -> Result<SystemTime, NativeError> {
    phases.report_ready()?;
    let timing = Timing::from_now(config.warmup_ns, config.duration_ns);
    gate.open(timing);
    if config.turns.is_some() {
        phases.announce_window(timing.window.begin_ns)?;
    }
    phases.begin_window(timing.window.begin_ns)?;
    let opened = SystemTime::now();
    phases.end_window(timing.window.end_ns)?;
    phases.wait_until_seen()?;
    Ok(opened)
}

/// One load of a search.
fn pass(config: &Config, gate: &Gate, phases: &mut Phases) -> Result<(), NativeError> {
    let timing = Timing::from_now(config.warmup_ns, config.duration_ns);
    gate.open(timing);
    phases.wait_until(timing.window.end_ns)
}
