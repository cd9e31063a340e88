//! The questions, and the table that answers each.

use crate::confirmations;
use crate::events;
use crate::flattery;
use crate::fleets;
use crate::forecasts;
use crate::futility;
use crate::machine::Noise;
use crate::nights;
use crate::protocol::Protocol;
use crate::race;
use crate::regret;
use crate::reports::many_cells;
use crate::searches;
use crate::sessions;
use crate::table::{Table, percent, whole_percent};
use crate::tally::{Case, Tally};
use crate::turns;
use crate::verdicts;
use crate::wall;

#[derive(Debug, Clone, Copy)]
pub struct Setup {
    pub series: u32,
    pub seed: u64,
}

impl Setup {
    pub fn tally(&self, protocol: Protocol, case: Case) -> Tally {
        Tally::of(protocol, case, self.series, self.seed)
    }
}

type Study = fn(&Setup) -> Table;

/// All studies by name, in the order of the document.
pub const ALL: [(&str, Study); 23] = [
    ("false-calls", false_calls),
    ("wall", wall::study),
    ("broken-assumptions", broken_assumptions),
    ("stopping", stopping),
    ("detection", detection),
    ("verdicts", verdicts::study),
    ("detection-by-noise", detection_by_noise),
    ("estimates-of-blocks", flattery::study_blocks),
    ("estimates-of-pairs", flattery::study_pairs),
    ("many-cells", many_cells),
    ("set-aside", futility::study),
    ("forecasts", forecasts::study),
    ("sessions", sessions::study),
    ("turns", turns::study),
    ("events-of-equal-arms", events::study_equal_arms),
    ("events-at-ratios", events::study_ratios),
    ("events-planted", events::study_planted_rates),
    ("races", race::races),
    ("searches", searches::study),
    ("recommendations", regret::recommendations),
    ("changes-over-months", nights::study),
    ("alarms-measured-again", confirmations::study),
    ("over-machines", fleets::study),
];

/// Standard deviations of a pair's log-ratio.
pub const QUIET: f64 = 0.02;
pub const NOISY: f64 = 0.05;

fn false_calls(setup: &Setup) -> Table {
    let note = "sd: of a pair's log-ratio. Columns: schedlab; the same blocks by the safe t-test; 3 and 10\n\
                runs a side, one arm after the other, and a mean that is 2 % off; the same runs with\n\
                Welch's and the Mann-Whitney test at 0.05; interleaved pairs with a t-test at 5 looks,\n\
                and after each pair.";
    let mut table = protocols("False calls between equal arms", note);
    for noise in Noise::OF_THE_MACHINE {
        for pair_sd in [QUIET, NOISY] {
            table.push(called(setup, noise, pair_sd));
        }
    }
    table
}

fn broken_assumptions(setup: &Setup) -> Table {
    let note = "Noise that sticks to an arm for many blocks (the memory layout of a long-lived process,\n\
                a boot) is a difference as far as the blocks of one run can tell, to any test. A fresh\n\
                process or boot in each block turns it into noise of the first table.";
    let mut table = protocols("False calls where noise belongs to an arm", note);
    for noise in Noise::OF_THE_ARM {
        table.push(called(setup, noise, QUIET));
    }
    table
}

fn protocols(title: &str, note: &str) -> Table {
    let first = ["noise", "sd"].map(str::to_owned).into_iter();
    let names = Protocol::ALL.iter().map(|protocol| protocol.name());
    Table::new(title, first.chain(names).collect(), note)
}

fn called(setup: &Setup, noise: Noise, pair_sd: f64) -> Vec<String> {
    let effect = 0.0;
    let case = Case {
        noise,
        pair_sd,
        effect,
    };
    let share = |protocol: &Protocol| percent(setup.tally(*protocol, case).called());
    let first = [noise.name(), whole_percent(pair_sd)].into_iter();
    first.chain(Protocol::ALL.iter().map(share)).collect()
}

fn stopping(setup: &Setup) -> Table {
    let header = [
        "equal arms",
        "sd",
        "called",
        "same",
        "unknown",
        "blocks",
        "covered",
        "mean e",
    ];
    let note = "What schedlab says of equal arms, and when. Covered: the interval at the stop holds\n\
                the true ratio. Mean e: average e-value at the stop; e-BH asks for at most 1.";
    let header = header.map(str::to_owned).to_vec();
    let mut table = Table::new("schedlab at its stop, equal arms", header, note);
    for noise in Noise::OF_THE_MACHINE {
        for pair_sd in [QUIET, NOISY] {
            table.push(at_the_stop(setup, noise, pair_sd));
        }
    }
    table
}

fn at_the_stop(setup: &Setup, noise: Noise, pair_sd: f64) -> Vec<String> {
    let effect = 0.0;
    let case = Case {
        noise,
        pair_sd,
        effect,
    };
    let tally = setup.tally(Protocol::Judged, case);
    vec![
        noise.name(),
        whole_percent(pair_sd),
        percent(tally.called()),
        percent(tally.same()),
        percent(1.0 - tally.called() - tally.same()),
        format!("{:.1}", tally.mean_blocks()),
        percent(tally.covered()),
        format!("{:.2}", tally.mean_e_value()),
    ]
}

fn detection(setup: &Setup) -> Table {
    let header = [
        "true change",
        "sd",
        "protocol",
        "found",
        "wrong",
        "same",
        "blocks",
    ];
    let note = "Found: called a gain. Wrong: called a loss. Same: said to be within ±2 %, which is\n\
                wrong for 3 % and 10 %. Blocks: trials of each arm, on average. Normal noise.";
    let header = header.map(str::to_owned).to_vec();
    let mut table = Table::new("Detection of a real change, and its cost", header, note);
    for effect in [0.03, 0.10] {
        for pair_sd in [QUIET, NOISY] {
            let noise = Noise::Normal;
            let case = Case {
                noise,
                pair_sd,
                effect,
            };
            for protocol in Protocol::ALL {
                let first = vec![
                    whole_percent(effect),
                    whole_percent(pair_sd),
                    protocol.name(),
                ];
                table.push([first, ends(&setup.tally(protocol, case))].concat());
            }
        }
    }
    table
}

/// Ends of comparisons of a changed arm, and the blocks that they took.
fn ends(tally: &Tally) -> Vec<String> {
    let shares = [tally.gains(), tally.losses(), tally.same()].map(percent);
    let blocks = format!("{:.1}", tally.mean_blocks());
    shares.into_iter().chain([blocks]).collect()
}

fn detection_by_noise(setup: &Setup) -> Table {
    let header = [
        "noise",
        "test",
        "3%: found",
        "wrong",
        "same",
        "blocks",
        "10%: found",
        "wrong",
        "same",
        "blocks",
    ];
    let note = "The coins that decide in schedlab beside the safe t-test on the same blocks; pairs with a\n\
                standard deviation of 2 % before outliers, drift, modes and the like.";
    let header = header.map(str::to_owned).to_vec();
    let title = "A real change under other noise, by coins and by the safe t-test";
    let mut table = Table::new(title, header, note);
    for noise in Noise::OF_THE_MACHINE {
        for protocol in [Protocol::Schedlab, Protocol::SafeT] {
            let case = |effect| Case {
                noise,
                pair_sd: QUIET,
                effect,
            };
            let of = |effect| ends(&setup.tally(protocol, case(effect)));
            let first = vec![noise.name(), protocol.name()];
            table.push([first, of(0.03), of(0.10)].concat());
        }
    }
    table
}
