//! A wall of comparisons of equal arms under many kinds of noise: how often a difference is called where none is.

use crate::machine::Noise;
use crate::protocol::{ALPHA, Protocol};
use crate::studies::{NOISY, QUIET, Setup};
use crate::table::Table;
use crate::tally::{Case, Tally};
use crate::turns;
use stats::bounds::share_interval;

/// Comparisons of equal arms, and those of them in which a difference was called.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    comparisons: u32,
    called: u32,
}

impl Count {
    fn add(&mut self, other: Count) {
        self.comparisons += other.comparisons;
        self.called += other.called;
    }

    /// `2.1% [1.0, 3.9]`.
    fn share(self) -> String {
        let percent = |share: f64| 100.0 * share;
        let share = percent(f64::from(self.called) / f64::from(self.comparisons.max(1)));
        match share_interval(self.called, self.comparisons, ALPHA) {
            None => "-".to_owned(),
            Some(held) => format!(
                "{share:.1}% [{:.1}, {:.1}]",
                percent(held.low),
                percent(held.high)
            ),
        }
    }
}

/// Where arms meet, and under what noise.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Blocks(Noise),
    Turns(turns::Noise),
}

impl Kind {
    fn all() -> impl Iterator<Item = Kind> {
        let blocks = Noise::OF_THE_MACHINE.into_iter().map(Kind::Blocks);
        blocks.chain(turns::Noise::ALL.into_iter().map(Kind::Turns))
    }

    fn names(self) -> [String; 2] {
        match self {
            Kind::Blocks(noise) => [noise.name(), "whole trials".to_owned()],
            Kind::Turns(noise) => [noise.name().to_owned(), "in turns".to_owned()],
        }
    }

    fn count(self, comparisons: u32, seed: u64) -> Count {
        let called = match self {
            // Half of them on a machine whose blocks scatter more.
            Kind::Blocks(noise) => {
                let quiet = comparisons / 2;
                called_in_blocks(noise, QUIET, quiet, seed)
                    + called_in_blocks(noise, NOISY, comparisons - quiet, seed + 1)
            }
            Kind::Turns(noise) => {
                let is_called =
                    |series: &u32| turns::find_call(noise, 0.0, seed, *series).is_some();
                (0..comparisons)
                    .filter(is_called)
                    .count()
                    .try_into()
                    .unwrap_or(u32::MAX)
            }
        };
        Count {
            comparisons,
            called,
        }
    }
}

fn called_in_blocks(noise: Noise, pair_sd: f64, comparisons: u32, seed: u64) -> u32 {
    let effect = 0.0;
    let case = Case {
        noise,
        pair_sd,
        effect,
    };
    Tally::of(Protocol::Schedlab, case, comparisons, seed).count_calls()
}

fn count_each(setup: &Setup) -> Vec<(Kind, Count)> {
    let kinds: Vec<Kind> = Kind::all().collect();
    let each = setup.series / u32::try_from(kinds.len()).unwrap_or(u32::MAX);
    // No kind has the random numbers of another, so that all of them together are as many draws as comparisons.
    let seeds = (setup.seed..).step_by(2);
    let count = |(kind, seed): (Kind, u64)| (kind, kind.count(each.max(1), seed));
    kinds.into_iter().zip(seeds).map(count).collect()
}

fn total(counts: &[(Kind, Count)]) -> Count {
    let mut total = Count::default();
    counts.iter().for_each(|(_, count)| total.add(*count));
    total
}

pub fn study(setup: &Setup) -> Table {
    let header = [
        "noise",
        "arms",
        "comparisons",
        "false calls",
        "share, 95 % interval",
    ];
    let note = "All kinds together have as many comparisons as one figure of the other tables. Whole trials: at most\n\
                40 blocks with a standard deviation of 2 % in one half of them and 5 % in the other; in turns: at\n\
                most 200 pairs. A look after each. At most 5 % are promised, whatever the noise.";
    let header = header.map(str::to_owned).to_vec();
    let mut table = Table::new("A wall of equal arms", header, note);
    let counts = count_each(setup);
    for (kind, count) in &counts {
        table.push(row(kind.names(), *count));
    }
    table.push(row(["all".to_owned(), String::new()], total(&counts)));
    table
}

fn row(names: [String; 2], count: Count) -> Vec<String> {
    let counts = [count.comparisons, count.called].map(|count| count.to_string());
    let cells = names.into_iter().chain(counts);
    cells.chain([count.share()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Setup = Setup {
        series: 1600,
        seed: 1,
    };

    #[test]
    fn of_equal_arms_fewer_are_called_than_is_promised_with_certainty() {
        let counts = count_each(&SHORT);
        let all = total(&counts);
        let held = share_interval(all.called, all.comparisons, ALPHA).unwrap();
        assert!(held.high < ALPHA, "{all:?}: {held:?}");
        for (kind, count) in counts {
            // No kind is certainly worse than the promise.
            let held = share_interval(count.called, count.comparisons, ALPHA).unwrap();
            assert!(held.low < ALPHA, "{kind:?}: {count:?}");
        }
    }
}
