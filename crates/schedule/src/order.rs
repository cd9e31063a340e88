//! The order of trials: blocks in a seeded random order.
//!
//! A block is one trial of every arm of a cell. Within block number b, the boots
//! (arms grouped by kernel) come in random order; within a boot the cells, those of a workload
//! together where the target is started anew for each; within a cell the arms. With one kernel the arms of a cell are neighbours in time.

use model::{Cell, Experiment, Load, Plan, PlannedTrial, Reset};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// All blocks of an experiment, up to the maximum.
pub fn plan_blocks(experiment: &Experiment) -> Plan {
    let cells = list_cells(experiment);
    let mut random = ChaCha8Rng::seed_from_u64(experiment.seed);
    let mut trials = Vec::new();
    for block in 1..=experiment.stop.max_blocks {
        for (cell, arm) in block_order(experiment, &cells, &mut random) {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a checked experiment has at most model::check::MOST_PLACES trials"
            )]
            let index = trials.len() as u32;
            trials.push(PlannedTrial {
                index,
                block,
                cell,
                arm,
            });
        }
    }
    Plan {
        seed: experiment.seed,
        cells,
        trials,
    }
}

fn block_order(
    experiment: &Experiment,
    cells: &[Cell],
    random: &mut ChaCha8Rng,
) -> Vec<(usize, usize)> {
    let mut order = Vec::new();
    for arms in shuffled(boots(experiment), random) {
        for cell in shuffled_cells(experiment, cells, random) {
            for arm in shuffled(arms.clone(), random) {
                order.push((cell, arm));
            }
        }
    }
    order
}

fn shuffled_cells(experiment: &Experiment, cells: &[Cell], random: &mut ChaCha8Rng) -> Vec<usize> {
    let mut order = shuffled((0..cells.len()).collect(), random);
    if experiment.target.reset() == Reset::Workload {
        let of_workloads = shuffled((0..experiment.workloads.len()).collect(), random);
        let place = |cell: &usize| {
            of_workloads
                .iter()
                .position(|w| *w == cells[*cell].workload)
        };
        order.sort_by_key(place);
    }
    order
}

/// Arms grouped by the kernel that they need.
fn boots(experiment: &Experiment) -> Vec<Vec<usize>> {
    let mut boots: Vec<(Option<&str>, Vec<usize>)> = Vec::new();
    for (index, arm) in experiment.arms.iter().enumerate() {
        let kernel = arm.kernel.as_deref();
        match boots.iter_mut().find(|(k, _)| *k == kernel) {
            Some((_, arms)) => arms.push(index),
            None => boots.push((kernel, vec![index])),
        }
    }
    boots.into_iter().map(|(_, arms)| arms).collect()
}

fn shuffled<T>(mut items: Vec<T>, random: &mut ChaCha8Rng) -> Vec<T> {
    items.shuffle(random);
    items
}

/// The cells of an experiment: each load of each workload.
pub fn list_cells(experiment: &Experiment) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (workload, w) in experiment.workloads.iter().enumerate() {
        for load in &w.loads {
            let name = match load {
                Load::One => w.name.clone(),
                load => format!("{} {load}", w.name),
            };
            cells.push(Cell {
                workload,
                load: *load,
                name,
            });
        }
    }
    cells
}

/// Seed of a trial: the same for all arms of a block, so that they meet the same
/// random arrivals, and different in every block.
pub fn trial_seed(plan_seed: u64, place: &PlannedTrial) -> u64 {
    mixed(plan_seed ^ (u64::from(place.block) << 32) ^ place.cell as u64)
}

/// Seed of the plan of one of several machines that measure an experiment together: each draws its
/// own order of arms. It fits into 53 bits, for readers whose numbers are floating-point.
pub fn machine_seed(seed: u64, machine: &str) -> u64 {
    let mixed = |seed, byte: &u8| mixed(seed ^ u64::from(*byte));
    machine.as_bytes().iter().fold(seed, mixed) >> 11
}

/// SplitMix64's finaliser.
fn mixed(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
