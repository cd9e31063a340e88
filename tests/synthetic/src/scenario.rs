//! Arms that were compared, and the truth about them.

use crate::plan;
use model::{
    Arm, Cell, Experiment, Load, Plan, RareEvent, Severity, System, TrialState, Warning, When,
};
use std::collections::BTreeMap;

/// A run and its truth.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Experiment with its arms and workloads.
    pub experiment: Experiment,
    /// Plan of the experiment.
    pub plan: Plan,
    /// Machine on which it seems to have been measured.
    pub system: System,
    /// Beginning of the run (RFC 3339).
    pub began: String,
    /// Warnings about the whole run.
    pub warnings: Vec<Warning>,
    /// Index of the place in the plan, and how its first attempt ended.
    pub failed_attempts: Vec<(u32, TrialState)>,
    /// True effects; an arm without one in a cell is as the baseline.
    pub effects: Vec<Effect>,
    /// True rates of events; an event of the experiment without one never happens.
    pub event_rates: Vec<EventRate>,
    /// Samples in the histograms of a trial.
    pub samples: u32,
    /// Intervals in each histogram log.
    pub intervals: u32,
}

/// True rate of an event under an arm.
#[derive(Debug, Clone)]
pub struct EventRate {
    /// Name of the event.
    pub event: &'static str,
    /// Name of the arm.
    pub arm: &'static str,
    /// Events a minute.
    pub per_minute: f64,
}

/// True ratio of an arm to the baseline.
#[derive(Debug, Clone)]
pub struct Effect {
    /// Name of the arm.
    pub arm: &'static str,
    /// Start of the cell's name.
    pub cell: &'static str,
    /// Effect on the throughput.
    pub throughput: f64,
    /// Effect on the middle of the latencies.
    pub latency: f64,
    /// Effect on the tail, on top of `latency`.
    pub tail: f64,
}

/// Results of the quickstart experiment: two workloads, four arms (one is A/A).
pub fn quickstart() -> Scenario {
    let experiment = experiment();
    Scenario {
        plan: plan_of(&experiment, 11),
        system: system(),
        began: "2026-11-21T19:16:06Z".to_owned(),
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
        event_rates: Vec::new(),
        experiment,
        samples: 4000,
        intervals: 2,
    }
}

/// Kept as a run would store it, so that new fields of the model have their
/// defaults here too.
#[allow(clippy::expect_used)]
fn experiment() -> Experiment {
    serde_json::from_str(include_str!("quickstart.json")).expect("quickstart.json is an experiment")
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

/// An arm that is faster in hackbench and whose scheduler is thrown out six times a minute; requests beyond a
/// bound come as often under both arms.
pub fn thrown_out() -> Scenario {
    let mut scenario = quickstart();
    let experiment = &mut scenario.experiment;
    experiment.name = "thrown-out".to_owned();
    experiment.question = None;
    experiment.aa_arm = None;
    experiment.arms.truncate(2);
    experiment.workloads.remove(0);
    experiment.observe.events = vec![
        event("ejected", When::Ejected),
        event(
            "request > 100ms",
            When::Latency {
                log: "request".to_owned(),
                beyond_ns: 100_000_000,
                of_baseline: None,
            },
        ),
    ];
    let rate = |event, arm, per_minute| EventRate {
        event,
        arm,
        per_minute,
    };
    scenario.event_rates = vec![
        rate("ejected", "batch", 6.0),
        rate("request > 100ms", "default", 12.0),
        rate("request > 100ms", "batch", 12.0),
    ];
    scenario.plan = plan_of(&scenario.experiment, 40);
    scenario.failed_attempts.clear();
    scenario.warnings.clear();
    scenario
}

fn event(name: &str, when: When) -> RareEvent {
    RareEvent {
        cluster_ns: 1_000_000,
        ..RareEvent::new(name, when)
    }
}

/// One arm alone: nothing to compare.
pub fn one_arm() -> Scenario {
    let mut scenario = quickstart();
    let experiment = &mut scenario.experiment;
    experiment.arms.truncate(1);
    experiment.aa_arm = None;
    experiment.question = None;
    experiment.workloads.remove(0);
    experiment.workloads[0].metrics.clear();
    scenario.plan = plan_of(&scenario.experiment, 5);
    scenario.failed_attempts.clear();
    scenario.warnings.clear();
    scenario
}

/// Fewer blocks than a verdict needs.
pub fn few_blocks(blocks: u32) -> Scenario {
    let mut scenario = quickstart();
    scenario.experiment.workloads.remove(0);
    scenario.plan = plan_of(&scenario.experiment, blocks);
    scenario.failed_attempts.clear();
    scenario
}

/// At least `trials` trials in 20 cells of five arms.
pub fn many(trials: u32) -> Scenario {
    let mut scenario = quickstart();
    let experiment = &mut scenario.experiment;
    experiment.name = "many".to_owned();
    experiment.workloads.truncate(1);
    let percents = (1..=20).map(|n| f64::from(n) * 10.0);
    experiment.workloads[0].loads = percents.map(Load::PercentOfCpus).collect();
    experiment.arms.push(Arm::unchanged("other"));
    #[expect(
        clippy::cast_possible_truncation,
        reason = "twenty loads of three arms"
    )]
    let places = (experiment.arms.len() * 20) as u32;
    let blocks = trials.div_ceil(places);
    experiment.stop.max_blocks = blocks;
    scenario.plan = plan_of(experiment, blocks);
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
        ..System::default()
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
