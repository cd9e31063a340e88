//! Reports of many comparisons: what e-BH keeps, by when a cell stops.

use crate::machine::{Machine, Noise};
use crate::protocol::{ALPHA, Call, MAX_BLOCKS, MIN_BLOCKS, call_of, params};
use crate::studies::{QUIET, Setup};
use crate::table::{Table, percent, whole_percent};
use stats::coins::find_first_decision;
use stats::randomization::{Prior, e_value};
use stats::{ebh, judge};

/// Comparisons in one simulated report, and those of them that have an effect.
const CELLS: u32 = 20;
const CHANGED: u32 = 3;

/// When a cell stops being measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Policy {
    /// At its own verdict.
    Verdict,
    /// At its own verdict, at the alpha of one of 20 comparisons.
    Bonferroni,
    /// At *same*, or at a call that survives e-BH over all cells so far.
    Survivor,
}

impl Policy {
    const ALL: [Policy; 3] = [Policy::Verdict, Policy::Bonferroni, Policy::Survivor];

    fn name(self) -> &'static str {
        match self {
            Policy::Verdict => "verdict",
            Policy::Bonferroni => "verdict at alpha/20",
            Policy::Survivor => "surviving e-BH",
        }
    }

    fn alpha(self) -> f64 {
        match self {
            Policy::Bonferroni => ALPHA / f64::from(CELLS),
            Policy::Verdict | Policy::Survivor => ALPHA,
        }
    }
}

#[derive(Debug)]
struct Cell {
    machine: Machine,
    xs: Vec<f64>,
    call: Call,
    e_value: f64,
    alpha: f64,
}

impl Cell {
    fn new(machine: Machine, alpha: f64) -> Cell {
        let mut cell = Cell {
            machine,
            xs: Vec::new(),
            call: Call::Nothing,
            e_value: 1.0,
            alpha,
        };
        (0..MIN_BLOCKS).for_each(|_| cell.measure());
        cell
    }

    fn measure(&mut self) {
        self.xs.push(self.machine.block());
        self.e_value = e_value(&self.xs, Prior::BLOCKS);
        let params = params(self.alpha);
        // What is not decided needs no interval.
        if find_first_decision(&self.xs, &params).is_some() {
            self.call = call_of(&judge(&self.xs, &params));
        }
    }

    fn blocks(&self) -> u32 {
        u32::try_from(self.xs.len()).unwrap_or(u32::MAX)
    }

    fn is_called(&self) -> bool {
        matches!(self.call, Call::Gain | Call::Loss)
    }

    fn is_open(&self, policy: Policy, survives: bool) -> bool {
        let undecided = self.call == Call::Nothing;
        let doubted = policy == Policy::Survivor && self.is_called() && !survives;
        self.blocks() < MAX_BLOCKS && (undecided || doubted)
    }
}

/// Sums over reports.
#[derive(Debug, Default)]
struct Sums {
    with_false_call: u32,
    with_false_survivor: u32,
    found: u32,
    survived: u32,
    blocks: u32,
}

impl Sums {
    fn add(&mut self, cells: &[Cell]) {
        let survives = survivors(cells);
        let called: Vec<bool> = cells.iter().map(Cell::is_called).collect();
        let kept: Vec<bool> = called
            .iter()
            .zip(&survives)
            .map(|(c, s)| *c && *s)
            .collect();
        let changed = CHANGED as usize;
        self.found += count(&called[..changed]);
        self.survived += count(&kept[..changed]);
        self.with_false_call += count(&called[changed..]).min(1);
        self.with_false_survivor += count(&kept[changed..]).min(1);
        self.blocks += cells.iter().map(Cell::blocks).sum::<u32>();
    }
}

pub fn many_cells(setup: &Setup) -> Table {
    let header = [
        "a cell stops at",
        "change",
        "false call",
        "after e-BH",
        "found",
        "after e-BH",
        "blocks",
    ];
    let note = "Reports of 20 comparisons, 3 of them changed; normal noise, pairs with a standard\n\
                deviation of 2 %. False call: reports with at least one. Found: of the real changes.\n\
                Blocks: of one comparison, on average. To survive alone among 20, a call needs an\n\
                e-value of 20/alpha; one that stopped at 1/alpha seldom has it.";
    let header = header.map(str::to_owned).to_vec();
    let mut table = Table::new("Reports of many comparisons", header, note);
    for effect in [0.03, 0.10] {
        for policy in Policy::ALL {
            table.push(row(setup, policy, effect));
        }
    }
    table
}

fn row(setup: &Setup, policy: Policy, effect: f64) -> Vec<String> {
    let count = (setup.series / CELLS).max(1);
    let mut sums = Sums::default();
    for report in 0..count {
        sums.add(&measure(setup, policy, effect, report));
    }
    let of_reports = |sum: u32| f64::from(sum) / f64::from(count);
    let of_changed = |sum: u32| percent(of_reports(sum) / f64::from(CHANGED));
    vec![
        policy.name().to_owned(),
        whole_percent(effect),
        percent(of_reports(sums.with_false_call)),
        percent(of_reports(sums.with_false_survivor)),
        of_changed(sums.found),
        of_changed(sums.survived),
        format!("{:.1}", of_reports(sums.blocks) / f64::from(CELLS)),
    ]
}

/// Measures one report, a block of every open cell at a time.
fn measure(setup: &Setup, policy: Policy, effect: f64, report: u32) -> Vec<Cell> {
    let cell = |index: u32| {
        let effect = if index < CHANGED { effect } else { 0.0 };
        let series = report * CELLS + index;
        let machine = Machine::new(Noise::Normal, QUIET, effect, setup.seed, series);
        Cell::new(machine, policy.alpha())
    };
    let mut cells: Vec<Cell> = (0..CELLS).map(cell).collect();
    loop {
        let survives = survivors(&cells);
        let open = cells.iter_mut().zip(survives);
        let measured = open
            .filter(|(cell, survives)| cell.is_open(policy, *survives))
            .map(|(cell, _)| cell.measure())
            .count();
        if measured == 0 {
            return cells;
        }
    }
}

fn survivors(cells: &[Cell]) -> Vec<bool> {
    let e_values: Vec<f64> = cells.iter().map(|cell| cell.e_value).collect();
    ebh::find_survivors(&e_values, ALPHA)
}

fn count(calls: &[bool]) -> u32 {
    calls.iter().map(|&called| u32::from(called)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETUP: Setup = Setup { series: 1, seed: 1 };

    #[test]
    fn a_report_ends_with_every_cell_decided_or_measured_to_the_end() {
        for policy in Policy::ALL {
            let cells = measure(&SETUP, policy, 0.10, 0);
            let survives = survivors(&cells);
            let open = |(cell, survives): (&Cell, &bool)| cell.is_open(policy, *survives);
            assert!(!cells.iter().zip(&survives).any(open), "{}", policy.name());
        }
    }

    #[test]
    fn measuring_until_calls_survive_lets_a_clear_change_survive() {
        let cells = measure(&SETUP, Policy::Survivor, 0.10, 0);
        assert_eq!(survivors(&cells)[..CHANGED as usize], [true; 3]);
    }
}
