//! CPU time and peak memory of a run on many machines, where it was started.
//!
//! ```text
//! cargo run --release -p fleet [-- MACHINES SECONDS]
//! ```
//! The machines are fakes whose trials take one second and differ too little for a verdict, so all
//! blocks are measured and judged. Results are written as always. What a real machine takes besides,
//! its line and the messages on it, is not in the figure; a trial of one second is shorter than most,
//! so the rest of the work comes more often than in a real run.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "what it measured goes to stdout"
)]

use machines::fake::{FakeTarget, Fate};
use model::{
    Arm, Better, Build, Experiment, Kind, Measurement, Observe, StopRule, TargetSpec, TrialSpec,
    Workload,
};
use results::{FORMAT, Manifest, RunState, Writer};
use runner::{Member, Options, Pool};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Time that a trial takes.
const TRIAL: Duration = Duration::from_secs(1);

fn main() -> Outcome<()> {
    let numbers = std::env::args().skip(1).map(|arg| arg.parse());
    let numbers: Vec<u64> = numbers.collect::<Result<_, _>>()?;
    let (machines, seconds) = match numbers.as_slice() {
        [] => (64, 60),
        [machines, seconds] => (*machines, *seconds),
        _ => return Err("usage: fleet [MACHINES SECONDS]".into()),
    };
    let experiment = experiment();
    let plan = schedule::plan_blocks(&experiment);
    let pool = Pool::new(&experiment, &plan);
    let dir = tempfile::tempdir()?;
    let stop = AtomicBool::new(false);
    let began = (Instant::now(), cpu_seconds()?);
    let trials = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..machines)
            .map(|machine| {
                let (member, stop) = (pool.add_member(&[]), &stop);
                let (experiment, dir) = (&experiment, dir.path());
                scope.spawn(move || one(machine, experiment, member, dir, stop))
            })
            .collect();
        std::thread::sleep(Duration::from_secs(seconds));
        stop.store(true, Ordering::Relaxed);
        let counts = threads.into_iter().map(|thread| match thread.join() {
            Ok(count) => count,
            Err(_) => Err("a machine's thread died".into()),
        });
        counts.sum::<Outcome<usize>>()
    })?;
    let (elapsed, cpu) = (began.0.elapsed().as_secs_f64(), cpu_seconds()? - began.1);
    println!(
        "{machines} machines, {trials} trials in {elapsed:.0} s: {:.1} % of a CPU, {:.1} ms for a trial, \
         peak memory {} MiB",
        100.0 * cpu / elapsed,
        1000.0 * cpu / trials.max(1) as f64,
        peak_mib()?
    );
    Ok(())
}

/// The run of one machine, until it is told to stop: the number of its trials.
fn one(
    machine: u64,
    experiment: &Experiment,
    member: Member,
    dir: &Path,
    stop: &AtomicBool,
) -> Outcome<usize> {
    let experiment = Experiment {
        seed: schedule::machine_seed(experiment.seed, &machine.to_string()),
        ..experiment.clone()
    };
    let plan = schedule::plan_blocks(&experiment);
    let dir = dir.join(machine.to_string());
    let mut writer = Writer::create(&dir, manifest(&experiment), None, &experiment, &plan)?;
    let mut trials = 0;
    let mut target = FakeTarget::new(move |spec| {
        std::thread::sleep(TRIAL);
        Fate::Ok(measured(machine, spec))
    });
    let options = Options {
        controller: None,
        interrupted: stop,
        done: Vec::new(),
        calibrations: BTreeMap::new(),
        began: String::new(),
        build: Build::default(),
        anyway: false,
        continues: false,
        away: Duration::ZERO,
        left_out: Default::default(),
        pool: Some(member),
    };
    let mut count = |event: runner::Event| {
        trials += usize::from(matches!(event, runner::Event::TrialEnded { .. }));
    };
    runner::run_plan(
        &experiment,
        &plan,
        &mut target,
        &mut writer,
        options,
        &mut count,
    )?;
    Ok(trials)
}

/// As many figures as a trial of schbench has, without a difference between the arms.
fn measured(machine: u64, spec: &TrialSpec) -> Vec<Measurement> {
    let noise = spec
        .seed
        .wrapping_add(machine)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        >> 40;
    let of_arm = match spec.arm.name.as_str() {
        "default" => 0.0,
        "a" => (noise % 1013) as f64 / 1012.0 - 0.5,
        _ => (noise % 1511) as f64 / 1510.0 - 0.5,
    };
    let value = 1.0 + (noise % 1000) as f64 / 1e4 + of_arm / 10.0;
    let of = |metric: &str| Measurement {
        metric: metric.to_owned(),
        unit: "s".to_owned(),
        better: Better::Lower,
        value,
        own: None,
    };
    let further = (0..30).map(|number| of(&format!("figure_{number}")));
    std::iter::once(of("wall_time")).chain(further).collect()
}

fn experiment() -> Experiment {
    Experiment {
        name: "fleet".to_owned(),
        question: None,
        seed: 1,
        target: TargetSpec::local(),
        arms: ["default", "a", "b"].map(Arm::unchanged).to_vec(),
        baseline: 0,
        workloads: vec![Workload {
            name: "make".to_owned(),
            metrics: vec!["wall_time".to_owned()],
            time_limit_ns: 60_000_000_000,
            ..Workload::new(Kind::new("command").with_param("argv", vec!["make"]))
        }],
        pause_ns: 0,
        stop: StopRule {
            max_blocks: 10_000,
            smallest_effect: 1e-9,
            ..StopRule::default()
        },
        observe: Observe::default(),
        aa_arm: None,
    }
}

fn manifest(experiment: &Experiment) -> Manifest {
    Manifest {
        format: FORMAT,
        tool_version: String::new(),
        tool_commit: String::new(),
        name: experiment.name.clone(),
        seed: experiment.seed,
        created: String::new(),
        state: RunState::Running,
        warnings: Vec::new(),
        sources: Vec::new(),
        together: true,
    }
}

/// CPU time of this process, with its threads that have ended.
fn cpu_seconds() -> Outcome<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // proc_pid_stat(5): utime and stime are the 14th and 15th field, in ticks of a hundredth second;
    // the second, in parentheses, may have spaces.
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let mut fields = after_name.split_whitespace().skip(11);
    let mut ticks = || fields.next().unwrap_or_default().parse::<f64>();
    Ok((ticks()? + ticks()?) / 100.0)
}

fn peak_mib() -> Outcome<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    Ok(kib.ok_or("no VmHWM")?.parse::<u64>()? / 1024)
}
