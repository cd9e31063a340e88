//! What was compared, and what the truth is.

use crate::plan;
use model::{
    Arm, Cell, Class, CommandParams, Experiment, HackbenchParams, HackbenchTransport, Kind, Load,
    Plan, Policy, Severity, Stop, System, TargetSpec, TrialState, WakeupParams, Warning, Workload,
};
use std::collections::BTreeMap;

/// A run and its truth.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub experiment: Experiment,
    pub plan: Plan,
    pub system: System,
    pub warnings: Vec<Warning>,
    /// Index of the place in the plan, and how its first attempt ended.
    pub failed_attempts: Vec<(u32, TrialState)>,
    pub effects: Vec<Effect>,
    /// Samples in the histograms of a trial.
    pub samples: u32,
    /// Intervals in each histogram log.
    pub intervals: u32,
}

/// True ratio of an arm to the baseline.
#[derive(Debug, Clone)]
pub struct Effect {
    pub arm: &'static str,
    /// Start of the cell's name.
    pub cell: &'static str,
    pub throughput: f64,
    /// Of the middle of the latencies.
    pub latency: f64,
    /// Of the tail, on top of `latency`.
    pub tail: f64,
}

/// What the quickstart experiment leaves: two workloads, four arms (one is A/A).
pub fn quickstart() -> Scenario {
    let experiment = Experiment {
        name: "quickstart".to_owned(),
        question: Some(
            "Do SCHED_BATCH or a short slice beat the default for wake-ups and messages?"
                .to_owned(),
        ),
        seed: 7,
        target: TargetSpec::Local,
        arms: quickstart_arms(),
        baseline: 0,
        workloads: vec![wakeup(&[50.0, 100.0, 200.0]), hackbench()],
        stop: stop(),
        aa_arm: Some("default-again".to_owned()),
    };
    let (plan, system) = (plan_of(&experiment, 11), system());
    Scenario {
        plan,
        system,
        warnings: quickstart_warnings(),
        failed_attempts: vec![
            (
                21,
                void(
                    "the policy of 1 thread of role load was other, not batch, 2.1 s into the window",
                ),
            ),
            (
                58,
                failed(
                    "hackbench ended with exit status 1: fork(): Resource temporarily unavailable",
                ),
            ),
        ],
        effects: quickstart_effects(),
        experiment,
        samples: 4000,
        intervals: 5,
    }
}

fn quickstart_arms() -> Vec<Arm> {
    let batch = Arm {
        policy: Some(Policy::new(Class::Batch)),
        ..Arm::unchanged("batch")
    };
    let slice = Arm {
        policy: Some(Policy {
            slice_ns: Some(300_000),
            ..Policy::new(Class::Other)
        }),
        ..Arm::unchanged("slice=0.3ms")
    };
    vec![
        Arm::unchanged("default"),
        batch,
        slice,
        Arm::unchanged("default-again"),
    ]
}

fn quickstart_effects() -> Vec<Effect> {
    let effect = |arm, cell, throughput, latency, tail| Effect {
        arm,
        cell,
        throughput,
        latency,
        tail,
    };
    vec![
        effect("batch", "wakeup 100%", 1.015, 1.10, 1.25),
        effect("batch", "wakeup 200%", 1.06, 1.6, 2.4),
        effect("batch", "hackbench", 1.09, 1.0, 1.0),
        effect("slice=0.3ms", "wakeup 100%", 1.0, 0.9, 0.8),
        effect("slice=0.3ms", "wakeup 200%", 0.975, 0.7, 0.55),
        effect("slice=0.3ms", "hackbench", 0.96, 1.0, 1.0),
    ]
}

fn quickstart_warnings() -> Vec<Warning> {
    let warning = |severity, what: &str, remedy: &str| Warning {
        severity,
        what: what.to_owned(),
        remedy: remedy.to_owned(),
    };
    vec![
        warning(
            Severity::Serious,
            "Other processes used 38 % of the CPUs while this ran.",
            "Stop them, or pin them elsewhere, and measure again.",
        ),
        warning(
            Severity::Caution,
            "The frequency governor is schedutil: the clock follows the load, and so do the times.",
            "cpupower frequency-set -g performance",
        ),
        warning(
            Severity::Note,
            "Debugfs is locked down, so base_slice could not be read.",
            "",
        ),
    ]
}

/// One arm alone: nothing to compare.
pub fn one_arm() -> Scenario {
    let mut scenario = quickstart();
    scenario.experiment.arms.truncate(1);
    scenario.experiment.aa_arm = None;
    scenario.experiment.workloads = vec![command()];
    scenario.experiment.question = None;
    scenario.plan = plan_of(&scenario.experiment, 5);
    scenario.failed_attempts.clear();
    scenario.warnings.clear();
    scenario
}

/// At least `trials` trials in 20 cells of five arms.
pub fn many(trials: u32) -> Scenario {
    let mut scenario = quickstart();
    let percents: Vec<f64> = (1..=20).map(|n| f64::from(n) * 10.0).collect();
    scenario.experiment.name = "many".to_owned();
    scenario.experiment.workloads = vec![wakeup(&percents)];
    scenario.experiment.arms.push(Arm::unchanged("other"));
    let places = (scenario.experiment.arms.len() * percents.len()) as u32;
    scenario.plan = plan_of(&scenario.experiment, trials.div_ceil(places));
    scenario.failed_attempts.clear();
    scenario
}

fn plan_of(experiment: &Experiment, blocks: u32) -> Plan {
    let cells = experiment.workloads.iter().enumerate();
    let cells = cells.flat_map(|(index, workload)| {
        workload.loads.iter().map(move |load| Cell {
            workload: index,
            load: *load,
            name: match load {
                Load::One => workload.name.clone(),
                load => format!("{} {load}", workload.name),
            },
        })
    });
    plan(
        experiment.seed,
        cells.collect(),
        experiment.arms.len(),
        blocks,
    )
}

fn wakeup(percents: &[f64]) -> Workload {
    Workload {
        name: "wakeup".to_owned(),
        kind: Kind::Wakeup(WakeupParams {
            message_threads: 1,
            workers: None,
            rate_per_sec: None,
            arrivals: Default::default(),
            sleep_ns: 100_000,
            operations: 5,
            footprint_bytes: 256 << 10,
            cpu_lock: true,
        }),
        loads: percents.iter().map(|p| Load::PercentOfCpus(*p)).collect(),
        duration_ns: 5_000_000_000,
        warmup_ns: 1_000_000_000,
        time_limit_ns: 60_000_000_000,
        metrics: vec!["wakeup_p99".to_owned(), "requests_per_sec".to_owned()],
    }
}

fn hackbench() -> Workload {
    Workload {
        name: "hackbench".to_owned(),
        kind: Kind::Hackbench(HackbenchParams {
            threads: false,
            transport: HackbenchTransport::Pipe,
            message_bytes: 100,
            fds: 20,
            loops: None,
        }),
        loads: vec![Load::Count(4)],
        duration_ns: 2_000_000_000,
        warmup_ns: 0,
        time_limit_ns: 60_000_000_000,
        metrics: vec!["wall_time".to_owned()],
    }
}

fn command() -> Workload {
    Workload {
        name: "make".to_owned(),
        kind: Kind::Command(CommandParams {
            argv: vec!["make".to_owned(), "-j4".to_owned()],
            directory: None,
            prepare: Vec::new(),
        }),
        loads: vec![Load::One],
        metrics: Vec::new(),
        ..hackbench()
    }
}

fn stop() -> Stop {
    Stop {
        budget_ns: Some(180_000_000_000),
        confidence: 0.95,
        smallest_effect: 0.02,
        min_blocks: 5,
        max_blocks: 40,
        max_attempts: 3,
    }
}

fn system() -> System {
    let facts = [
        ("cpu.governor", "schedutil"),
        ("cpu.smt", "off"),
        ("mitigation.retbleed", "Mitigation: untrained return thunk"),
        ("mitigation.spectre_v2", "Mitigation: Retpolines"),
        ("sched.base_slice", "2250000"),
        ("tool.hackbench", "rt-tests 2.4"),
    ];
    System {
        hostname: "lab".to_owned(),
        kernel_release: "6.12.57".to_owned(),
        kernel_version: "#1 SMP PREEMPT_DYNAMIC".to_owned(),
        kernel_command_line: "root=/dev/vda1 quiet".to_owned(),
        architecture: "x86_64".to_owned(),
        cpu_model: "AMD EPYC 7763".to_owned(),
        cpus: 2,
        memory_bytes: 8 << 30,
        sched_ext: false,
        root: true,
        hypervisor: "none".to_owned(),
        facts: facts
            .into_iter()
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .collect::<BTreeMap<_, _>>(),
    }
}

fn void(why: &str) -> TrialState {
    TrialState::Void {
        why: why.to_owned(),
    }
}

fn failed(why: &str) -> TrialState {
    TrialState::Failed {
        why: why.to_owned(),
    }
}
