//! False alarms that are measured again: how many of them end as confirmed?

use crate::machine::{Machine, Noise};
use crate::nights::{draw_quiet_nights, find_any_change};
use crate::protocol::{ALPHA, Call, compare_by};
use crate::studies::{NOISY, QUIET, Setup};
use crate::table::{Table, percent};
use stats::bounds::share_interval;
use stats::{Better, Params};

/// Alarms for each figure, of the comparisons that other tables have.
const PART: u32 = 5;
/// Nights in which an alarm that stays open is measured, with 40 blocks each.
const NIGHTS: u32 = 10;
/// False calls of all nights together, of which half have the direction of the alarm.
const FALSE_CALLS: f64 = 0.02;
const NOISES: [Noise; 4] = [
    Noise::Normal,
    Noise::HeavyTails,
    Noise::Bursts,
    Noise::TwoModes,
];

/// Reason of an alarm.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Alarm {
    /// Nights without a change, of which the detector tells one all the same.
    ByChance,
    /// Put there by hand, worse or better by so much.
    Planted(f64),
    /// So much is there.
    True(f64),
}

impl Alarm {
    const ALL: [Alarm; 4] = [
        Alarm::ByChance,
        Alarm::Planted(0.02),
        Alarm::Planted(0.05),
        Alarm::True(0.05),
    ];

    fn name(self) -> String {
        match self {
            Alarm::ByChance => "nothing, by chance".to_owned(),
            Alarm::Planted(size) => format!("nothing, {:.0} % by hand", 100.0 * size),
            Alarm::True(size) => format!("{:.0} % for the worse", 100.0 * size),
        }
    }

    /// Logarithm of the change that it tells.
    fn size(self, setup: &Setup, series: u32) -> f64 {
        let sign = if series.is_multiple_of(2) { -1.0 } else { 1.0 };
        match self {
            Alarm::ByChance => draw_false_alarm(setup, series),
            Alarm::Planted(size) => sign * size.ln_1p(),
            Alarm::True(size) => -size.ln_1p(),
        }
    }

    /// The change that is there.
    fn truth(self) -> f64 {
        match self {
            Alarm::True(size) => (-size.ln_1p()).exp_m1(),
            Alarm::ByChance | Alarm::Planted(_) => 0.0,
        }
    }
}

/// Size of the first alarm in nights without a change: most years have none, so there are as many as it takes.
fn draw_false_alarm(setup: &Setup, series: u32) -> f64 {
    let years = (0..).map(|year: u32| draw_quiet_nights(setup, series.wrapping_add(year << 20)));
    let mut sizes = years.filter_map(|nights| find_any_change(&nights));
    sizes.next().unwrap_or(0.0)
}

/// Ends of alarms.
#[derive(Debug, Default)]
struct Ends {
    alarms: u32,
    confirmed: u32,
    not_confirmed: u32,
    /// Those that ended in the first night.
    at_once: u32,
}

/// Measures the versions of an alarm beside each other night by night, as `history confirm` does. Gives the night that ended it,
/// and true if that confirms it.
fn confirm(size: f64, machine: &mut Machine) -> Option<(u32, bool)> {
    let measure = |night: u32| {
        let number = f64::from(night) + 1.0;
        let params = Params {
            alpha: FALSE_CALLS / (number * (number + 1.0)),
            // Half of the change tells one that is there from none.
            smallest_effect: (size.abs() / 2.0).exp_m1().max(0.001),
            better: Better::Higher,
        };
        match compare_by(machine, &params).call {
            Call::Nothing => None,
            Call::Gain => Some((night, size > 0.0)),
            Call::Loss => Some((night, size < 0.0)),
            Call::Same => Some((night, false)),
        }
    };
    (0..NIGHTS).find_map(measure)
}

fn measure_alarms(alarm: Alarm, noise: Noise, pair_sd: f64, setup: &Setup) -> Ends {
    let mut ends = Ends::default();
    for series in 0..(setup.series / PART).max(1) {
        let mut machine = Machine::new(noise, pair_sd, alarm.truth(), setup.seed, series);
        let size = alarm.size(setup, series);
        ends.alarms += 1;
        if let Some((night, is_confirmed)) = confirm(size, &mut machine) {
            ends.at_once += u32::from(night == 0);
            ends.confirmed += u32::from(is_confirmed);
            ends.not_confirmed += u32::from(!is_confirmed);
        }
    }
    ends
}

/// Alarms of equal versions, and of those that differ, measured again.
pub fn study(setup: &Setup) -> Table {
    let header = [
        "change",
        "noise",
        "sd",
        "alarms",
        "confirmed",
        "not confirmed",
        "open",
        "in one night",
    ];
    let note = "Both versions of an alarm in interleaved blocks until the answer is known, 40 at most in a night, in ten nights\n\
                at most, as `history confirm` asks: half of the change that the alarm tells is the smallest effect, and\n\
                the nights share 2 % of false calls. By chance: the detector tells it of nights without a change, with\n\
                every change of interest. By hand: every second one for the better. Confirmed: with its interval at 95 %.";
    let header = header.map(str::to_owned).to_vec();
    let mut table = Table::new("Alarms that are measured again", header, note);
    for alarm in Alarm::ALL {
        for noise in NOISES {
            for pair_sd in [QUIET, NOISY] {
                table.push(row(alarm, noise, pair_sd, setup));
            }
        }
    }
    table
}

fn row(alarm: Alarm, noise: Noise, pair_sd: f64, setup: &Setup) -> Vec<String> {
    let ends = measure_alarms(alarm, noise, pair_sd, setup);
    let share = |part: u32| percent(f64::from(part) / f64::from(ends.alarms));
    let (low, high) = share_interval(ends.confirmed, ends.alarms, ALPHA)
        .map_or((0.0, 1.0), |interval| (interval.low, interval.high));
    vec![
        alarm.name(),
        noise.name(),
        crate::table::whole_percent(pair_sd),
        ends.alarms.to_string(),
        format!(
            "{} [{:.1}, {:.1}]",
            share(ends.confirmed),
            100.0 * low,
            100.0 * high
        ),
        share(ends.not_confirmed),
        share(ends.alarms - ends.confirmed - ends.not_confirmed),
        share(ends.at_once),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_true_alarm_is_confirmed_and_a_false_one_seldom_is() {
        let setup = Setup {
            series: 300,
            seed: 1,
        };
        let found = measure_alarms(Alarm::True(0.05), Noise::Normal, QUIET, &setup);
        assert!(found.confirmed * 10 >= found.alarms * 9, "{found:?}");
        for alarm in [Alarm::ByChance, Alarm::Planted(0.05)] {
            let wrong = measure_alarms(alarm, Noise::Normal, QUIET, &setup);
            assert!(wrong.confirmed <= 1, "{alarm:?}: {wrong:?}");
        }
    }
}
