//! Results directories with known effects, seeded: what a run would have left,
//! without running. For tests of the report, its pictures, and its speed.
//!
//! Files are written plainly, not synced one by one as [`results::Writer`] does:
//! ten thousand trials would take minutes.

#![allow(clippy::disallowed_methods)]

mod events;
mod figures;
mod scenario;

pub use figures::Figures;
pub use scenario::{
    Effect, EventRate, Scenario, few_blocks, many, one_arm, quickstart, thrown_out,
};

use figures::Noise;
use model::{
    Build, Evidence, EvidencePoint, Fact, Machine, Phase, Plan, PlannedTrial, Start, Trial,
    TrialFile, TrialResult, TrialState, readings,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use results::{FORMAT, Manifest, RunState};
use serde::Serialize;
use std::fs;
use std::io;
use std::path::Path;

/// 2026-11-21T19:16:06Z, when the trials of every synthetic run seem to start.
const STARTED_UNIX_NS: u64 = 1_795_288_566_000_000_000;
const TRIAL_NS: u64 = 6_200_000_000;

/// Writes the results directory of `scenario`; `dir` is made.
pub fn write(dir: &Path, scenario: &Scenario) -> io::Result<()> {
    fs::create_dir_all(dir.join("trials"))?;
    write_json(&dir.join("experiment.json"), &scenario.experiment)?;
    write_json(&dir.join("plan.json"), &scenario.plan)?;
    write_json(&dir.join("system.json"), &scenario.system)?;
    write_json(&dir.join("starts.json"), &[start(scenario)])?;
    for planned in &scenario.plan.trials {
        write_place(dir, scenario, planned)?;
    }
    write_json(&dir.join("manifest.json"), &manifest(scenario))
}

/// The one start of the run.
fn start(scenario: &Scenario) -> Start {
    Start {
        began: scenario.began.clone(),
        build: Build {
            version: "0.1.0".to_owned(),
            commit: String::new(),
        },
        machines: vec![Machine {
            kernel: None,
            system: scenario.system.clone(),
        }],
    }
}

fn manifest(scenario: &Scenario) -> Manifest {
    Manifest {
        format: FORMAT,
        tool_version: "0.1.0".to_owned(),
        tool_commit: String::new(),
        name: scenario.experiment.name.clone(),
        seed: scenario.experiment.seed,
        created: scenario.began.clone(),
        state: RunState::Done,
        warnings: scenario.warnings.clone(),
        sources: Vec::new(),
        together: false,
    }
}

/// The trial of one place of the plan, and before it the attempt that failed,
/// where the scenario has one.
fn write_place(dir: &Path, scenario: &Scenario, planned: &PlannedTrial) -> io::Result<()> {
    let mut attempt = 1;
    for (index, state) in &scenario.failed_attempts {
        if *index == planned.index {
            let trial = excluded(scenario, planned, attempt, state.clone());
            write_trial(dir, &trial, &[])?;
            attempt += 1;
        }
    }
    let (trial, files) = measured(scenario, planned, attempt);
    write_trial(dir, &trial, &files)
}

fn measured(scenario: &Scenario, planned: &PlannedTrial, attempt: u32) -> (Trial, Vec<TrialFile>) {
    // The noise of a block is shared by its arms, that of a trial is its own.
    let block = u64::from(planned.block) << 16 | planned.cell as u64;
    let common = Noise {
        block: rng(scenario.experiment.seed, block),
        trial: rng(scenario.experiment.seed ^ 0xA5A5, u64::from(planned.index)),
    };
    let figures = figures::measure(scenario, planned, common);
    let mut trial = excluded(scenario, planned, attempt, TrialState::Ok);
    trial.result.metrics = figures.metrics;
    trial.result.warnings = figures.warnings;
    let chance = rng(scenario.experiment.seed ^ 0x5A5A, u64::from(planned.index));
    events::count(scenario, &mut trial, chance);
    (trial, figures.files)
}

fn rng(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    rng
}

/// A trial with everything but figures.
fn excluded(scenario: &Scenario, planned: &PlannedTrial, attempt: u32, state: TrialState) -> Trial {
    let arm = &scenario.experiment.arms[planned.arm];
    Trial {
        place: planned.clone(),
        cell: scenario.plan.cells[planned.cell].name.clone(),
        arm: arm.name.clone(),
        attempt,
        start: 1,
        result: TrialResult {
            state,
            started_unix_ns: STARTED_UNIX_NS + u64::from(planned.index) * TRIAL_NS,
            elapsed_ns: TRIAL_NS,
            window_start_ns: 1_100_000_000,
            window_end_ns: 6_100_000_000,
            evidence: evidence(scenario, planned),
            metrics: Vec::new(),
            warnings: Vec::new(),
            for_good: false,
            trace: None,
            windows: None,
            events: Vec::new(),
            rail: None,
        },
    }
}

fn evidence(scenario: &Scenario, planned: &PlannedTrial) -> Evidence {
    let arm = &scenario.experiment.arms[planned.arm];
    let point = |phase, at_ns| EvidencePoint {
        phase,
        at_ns,
        threads: 0,
        facts: Vec::new(),
    };
    let release = &scenario.system.kernel_release;
    let kernel = Fact::new(readings::KERNEL_RELEASE, release).with_wanted(release);
    let tunables = arm.tunables.iter();
    let tunables = tunables.map(|(name, value)| {
        Fact::new(readings::tunable_fact_name(name), value).with_wanted(value)
    });
    Evidence {
        points: vec![
            point(Phase::Before, 900_000_000),
            point(Phase::During, 2_100_000_000),
            point(Phase::After, 6_150_000_000),
        ],
        facts: [kernel, readings::scheduler_fact(None)]
            .into_iter()
            .chain(tunables)
            .collect(),
        ..Evidence::default()
    }
}

fn write_trial(dir: &Path, trial: &Trial, files: &[TrialFile]) -> io::Result<()> {
    let name = format!("{:05}-a{}", trial.place.index, trial.attempt);
    let place = dir.join("trials").join(name);
    fs::create_dir_all(&place)?;
    for file in files {
        fs::write(place.join(&file.name), &file.text)?;
    }
    write_json(&place.join("trial.json"), trial)
}

fn write_json<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    fs::write(path, serde_json::to_vec_pretty(value)?)
}

/// Blocks of every cell one after the other, the arms in rotating order.
pub(crate) fn plan(seed: u64, cells: Vec<model::Cell>, arms: usize, blocks: u32) -> Plan {
    let mut trials = Vec::new();
    for block in 1..=blocks {
        for cell in 0..cells.len() {
            for turn in 0..arms {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "as many as a test writes down"
                )]
                let index = trials.len() as u32;
                trials.push(PlannedTrial {
                    index,
                    block,
                    cell,
                    arm: (turn + block as usize + cell) % arms,
                });
            }
        }
    }
    Plan {
        seed,
        cells,
        trials,
    }
}
