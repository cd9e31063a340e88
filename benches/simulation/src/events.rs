//! Rare events: blocks of two windows whose order a coin draws, on machines that storm, whose events cause
//! others, and whose events end their windows.

use crate::protocol::ALPHA;
use crate::studies::Setup;
use crate::table::{Table, percent};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stats::events::{Block, Counted, Evidence, count_clusters};

const BLOCKS: u32 = 60;
/// Length of a window, and the time after an event that belongs to its cluster.
const WINDOW_MS: f64 = 60_000.0;
const CLUSTER_MS: u64 = 5_000;

/// A machine, by what its events are like.
#[derive(Debug, Clone, Copy)]
struct Kind {
    name: &'static str,
    /// Events of the baseline in a window.
    mean: f64,
    /// Chance that a window has ten times the events.
    storms: f64,
    /// Events that each causes within the next seconds.
    causes: f64,
    /// Time after an event that belongs to it.
    cluster_ms: u64,
    ends: bool,
}

const STEADY: Kind = Kind {
    name: "0.3 a window",
    mean: 0.3,
    storms: 0.0,
    causes: 0.0,
    cluster_ms: 0,
    ends: false,
};
const CAUSING: Kind = Kind {
    name: "each causes 3",
    causes: 3.0,
    ..STEADY
};
const KINDS: [Kind; 8] = [
    STEADY,
    Kind {
        name: "20 a window",
        mean: 20.0,
        ..STEADY
    },
    Kind {
        name: "1 a window, storms",
        mean: 1.0,
        storms: 0.2,
        ..STEADY
    },
    Kind {
        name: "20 a window, storms",
        mean: 20.0,
        storms: 0.2,
        ..STEADY
    },
    CAUSING,
    Kind {
        name: "the same, clusters",
        cluster_ms: CLUSTER_MS,
        ..CAUSING
    },
    Kind {
        name: "ends, 0.3 a window",
        ends: true,
        ..STEADY
    },
    Kind {
        name: "ends, 2 a window",
        mean: 2.0,
        ends: true,
        ..STEADY
    },
];

struct Machine {
    rng: ChaCha8Rng,
    kind: Kind,
}

impl Machine {
    fn new(kind: Kind, seed: u64, series: u32) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(u64::from(series));
        Machine { rng, kind }
    }

    /// A block of an arm that has `factors` of the events of the machine, the baseline's first.
    fn block(&mut self, factors: [f64; 2]) -> Block {
        let moods = [self.mood(), self.mood()];
        let arm_is_first: bool = self.rng.random();
        let of = |arm: bool| moods[usize::from(arm != arm_is_first)] * factors[usize::from(arm)];
        let [baseline, arm] = [of(false), of(true)].map(|mean| self.window(mean));
        Block {
            baseline,
            arm,
            full_exposure: self.kind.ends.then_some(WINDOW_MS),
        }
    }

    fn mood(&mut self) -> f64 {
        match self.rng.random::<f64>() < self.kind.storms {
            true => 10.0 * self.kind.mean,
            false => self.kind.mean,
        }
    }

    fn window(&mut self, mean: f64) -> Counted {
        let mut moments = Vec::new();
        let mut at = 0.0;
        loop {
            at += self.wait() * WINDOW_MS / mean;
            if at >= WINDOW_MS || mean == 0.0 {
                break;
            }
            if self.kind.ends {
                return Counted {
                    count: 1,
                    exposure: at,
                };
            }
            moments.push(whole_ms(at));
            self.cause_others(at, &mut moments);
        }
        moments.sort_unstable();
        Counted {
            count: count_clusters(&moments, self.kind.cluster_ms),
            exposure: WINDOW_MS,
        }
    }

    fn cause_others(&mut self, at: f64, moments: &mut Vec<u64>) {
        let goes_on = self.kind.causes / (1.0 + self.kind.causes);
        while self.rng.random::<f64>() < goes_on {
            let later = at + CLUSTER_MS as f64 * self.rng.random::<f64>();
            if later < WINDOW_MS {
                moments.push(whole_ms(later));
            }
        }
    }

    /// Exponential, of mean 1.
    fn wait(&mut self) -> f64 {
        -(1.0 - self.rng.random::<f64>()).ln()
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a moment is within its window"
)]
fn whole_ms(at: f64) -> u64 {
    at as u64
}

/// Ends of the looks at one series, after each block.
struct Series {
    /// The block that brought a call, and true where the arm was called worse.
    called: Option<(u32, bool)>,
    /// Each event taken as a draw of its own, by its share of exposure, and called.
    called_by_share: bool,
    /// The true ratio was in the interval at every look.
    covered: bool,
}

fn look(kind: Kind, factors: [f64; 2], blocks: u32, (seed, series): (u64, u32)) -> Series {
    let mut machine = Machine::new(kind, seed, series);
    let shift = (factors[1] / factors[0]).ln();
    let (mut evidence, mut of_truth) = (Evidence::default(), Evidence::default());
    let mut by_share = ByShare::default();
    let mut sums = [Counted::default(); 2];
    let mut found = Series {
        called: None,
        called_by_share: false,
        covered: true,
    };
    for number in 1..=blocks {
        let block = machine.block(factors);
        evidence.push_shifted(&block, 0.0);
        by_share.push(&block);
        for (sum, side) in sums.iter_mut().zip([block.baseline, block.arm]) {
            sum.count += side.count;
            sum.exposure += side.exposure;
        }
        if found.called.is_none() && evidence.ln_e() >= -ALPHA.ln() {
            found.called = Some((number, sums[1].rate() > sums[0].rate()));
        }
        found.called_by_share |= by_share.ln_e() >= -ALPHA.ln();
        if shift.is_finite() {
            of_truth.push_shifted(&block, shift);
            found.covered &= of_truth.ln_e() < -ALPHA.ln();
        }
    }
    found
}

/// The test that schedlab does not use: every event is a draw, of the arm by its share of exposure.
#[derive(Default)]
struct ByShare {
    products: [[f64; 2]; 6],
}

impl ByShare {
    fn push(&mut self, block: &Block) {
        let exposure = block.arm.exposure + block.baseline.exposure;
        let share = block.arm.exposure / exposure;
        let [arm, baseline] = [block.arm, block.baseline].map(|side| f64::from(side.count));
        for (product, stake) in self.products.iter_mut().zip(crate::turns::STAKES) {
            for (product, ratio) in product
                .iter_mut()
                .zip([(2.0 * stake).exp(), (-2.0 * stake).exp()])
            {
                let of_all = ratio * share + 1.0 - share;
                *product += arm * ratio.ln() - (arm + baseline) * of_all.ln();
            }
        }
    }

    fn ln_e(&self) -> f64 {
        let all = self.products.as_flattened();
        let largest = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = all.iter().map(|product| (product - largest).exp()).sum();
        largest + (sum / all.len() as f64).ln()
    }
}

fn all_series(setup: &Setup, kind: Kind, factors: [f64; 2]) -> Vec<Series> {
    series_of(setup, kind, factors, BLOCKS)
}

fn series_of(setup: &Setup, kind: Kind, factors: [f64; 2], blocks: u32) -> Vec<Series> {
    let series = 0..setup.series;
    series
        .map(|series| look(kind, factors, blocks, (setup.seed, series)))
        .collect()
}

fn share(found: &[Series], is_counted: impl Fn(&&Series) -> bool) -> String {
    let count = found.iter().filter(is_counted).count();
    percent(count as f64 / found.len() as f64)
}

pub fn study_equal_arms(setup: &Setup) -> Table {
    let header = ["events", "false calls", "covered", "false calls by share"];
    let note = "60 blocks, a look after each. Covered: the interval holds the ratio 1 at every look. By share:\n\
                a test that takes each event as a draw of its own, of the arm by its share of exposure.";
    let header = header.map(str::to_owned).to_vec();
    let mut table = Table::new("Rare events under equal arms", header, note);
    for kind in KINDS {
        let found = all_series(setup, kind, [1.0, 1.0]);
        table.push(vec![
            kind.name.to_owned(),
            share(&found, |series| series.called.is_some()),
            share(&found, |series| series.covered),
            share(&found, |series| series.called_by_share),
        ]);
    }
    table
}

/// Events of the baseline and of the arm, in those of the machine.
const RATIOS: [(&str, [f64; 2]); 4] = [
    ("2", [1.0, 2.0]),
    ("5", [1.0, 5.0]),
    ("0.2", [5.0, 1.0]),
    ("only the arm", [0.0, 1.0]),
];

pub fn study_ratios(setup: &Setup) -> Table {
    let header = ["events", "ratio", "found", "wrong", "blocks", "covered"];
    let note = "60 blocks, a look after each. Found: within these. Blocks: until the call, or 60. Covered: the\n\
                interval holds the ratio at every look; one that only the arm has is without an upper end.";
    let header = header.map(str::to_owned).to_vec();
    let mut table = Table::new("Rare events at ratios of rates", header, note);
    for kind in KINDS {
        for (name, factors) in RATIOS {
            let found = all_series(setup, kind, factors);
            let is_worse = factors[1] > factors[0];
            let calls = |worse: bool| share(&found, |s| s.called.is_some_and(|c| c.1 == worse));
            let blocks = found.iter().map(|s| s.called.map_or(BLOCKS, |call| call.0));
            let blocks = f64::from(blocks.sum::<u32>()) / found.len() as f64;
            table.push(vec![
                kind.name.to_owned(),
                name.to_owned(),
                calls(is_worse),
                calls(!is_worse),
                format!("{blocks:.1}"),
                match factors[0] > 0.0 {
                    true => share(&found, |series| series.covered),
                    false => "-".to_owned(),
                },
            ]);
        }
    }
    table
}

/// Rates of a hunt, in events a minute.
const RATES: [f64; 5] = [0.1, 0.3, 1.0, 3.0, 10.0];
/// Windows of a hunt in a minute of exposure, and seconds that a block of two of them takes.
const WINDOWS_A_MINUTE: f64 = 6.0;
const BLOCK_SECONDS: f64 = 25.0;
/// Blocks of a hunt of one hour, the usual budget, and of eight.
const HOUR: u32 = 144;
const NIGHT: u32 = 8 * HOUR;

pub fn study_planted_rates(setup: &Setup) -> Table {
    let header = [
        "a minute",
        "window",
        "arms",
        "found 1 h",
        "found 8 h",
        "missed",
        "false",
        "minutes",
        "covered",
    ];
    let note = "Hunts of blocks of two windows of 10 s, which take 25 s, with a look after each. Window: whole, or ended\n\
                by the event, as by an ejection. Arms: only one has events, it has five times those of the\n\
                baseline (whose rate is a fifth), or both have them at this rate. Missed: no call in 8 h. False: a\n\
                call that the rates do not bear out. Minutes: until the call, or 480. Covered: the interval holds\n\
                the ratio at every look.";
    let header = header.map(str::to_owned).to_vec();
    let mut table = Table::new("Planted rates", header, note);
    let arms = [
        ("only one", [0.0, 1.0]),
        ("5 to 1", [0.2, 1.0]),
        ("equal", [1.0, 1.0]),
    ];
    for (rate, ends) in RATES
        .iter()
        .flat_map(|rate| [(*rate, false), (*rate, true)])
    {
        for (name, factors) in arms {
            let kind = Kind {
                mean: rate / WINDOWS_A_MINUTE,
                ends,
                ..STEADY
            };
            let found = series_of(setup, kind, factors, NIGHT);
            table.push(planted_row((rate, ends, name), factors, &found));
        }
    }
    table
}

fn planted_row(
    (rate, ends, name): (f64, bool, &str),
    factors: [f64; 2],
    found: &[Series],
) -> Vec<String> {
    let differ = factors[0] < factors[1];
    let called = |by: u32| {
        let is_found = |s: &&Series| s.called.is_some_and(|(at, worse)| worse && at <= by);
        match differ {
            true => share(found, is_found),
            false => "-".to_owned(),
        }
    };
    let blocks = found.iter().map(|s| s.called.map_or(NIGHT, |call| call.0));
    let mean = f64::from(blocks.sum::<u32>()) / found.len() as f64;
    vec![
        rate.to_string(),
        if ends { "ended" } else { "whole" }.to_owned(),
        name.to_owned(),
        called(HOUR),
        called(NIGHT),
        match differ {
            true => share(found, |s| s.called.is_none()),
            false => "-".to_owned(),
        },
        share(found, |s| s.called.is_some_and(|call| !(differ && call.1))),
        match differ {
            true => format!("{:.0}", mean * BLOCK_SECONDS / 60.0),
            false => "-".to_owned(),
        },
        match factors[0] > 0.0 {
            true => share(found, |s| s.covered),
            false => "-".to_owned(),
        },
    ]
}
