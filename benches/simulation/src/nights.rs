//! Months of nights: when is a change of a ratio found, how often is there an alarm for nothing, and does what was
//! told stay?

use crate::machine::{normal, student_3};
use crate::rivals::{WINDOW, pass_threshold, split_by_energy, split_by_partition};
use crate::studies::Setup;
use crate::table::{Table, percent};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use stats::change::{Change, Limits, Reading, Since, find_changes};
use stats::summary::median;

/// Series for each figure, of the comparisons that other tables have.
const PART: u32 = 50;
const NIGHTS: usize = 60;
const OF_YEAR: usize = 365;
/// The night of a planted step.
const PLANTED: usize = 30;
/// Standard error of a night, and what nights scatter beyond it.
const ERROR: f64 = 0.006;
const SCATTER: f64 = 0.005;
/// Smallest change that is looked for.
const SMALLEST: f64 = 0.02;
/// A change that is told again so near is the same one.
const NEAR: usize = 3;

/// Ways to find changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// schedlab, with one false alarm a year.
    Detector,
    Energy,
    Partition,
    Threshold,
}

impl Way {
    pub const ALL: [Way; 4] = [Way::Detector, Way::Energy, Way::Partition, Way::Threshold];

    pub fn name(self) -> &'static str {
        match self {
            Way::Detector => "e-detector (schedlab)",
            Way::Energy => "E-divisive, Welch (Otava)",
            Way::Partition => "PELT, normal cost",
            Way::Threshold => "2 nights beyond 2 %",
        }
    }

    /// First nights of the changes that it tells of these.
    pub fn split(self, nights: &[Reading], smallest: f64) -> Vec<usize> {
        let values: Vec<f64> = nights.iter().map(|night| night.value).collect();
        match self {
            Way::Detector => {
                let changes = detect(nights, smallest);
                changes.iter().map(|change| change.first).collect()
            }
            Way::Energy => split_by_energy(&values, smallest),
            Way::Partition => split_by_partition(&values, smallest),
            Way::Threshold => pass_threshold(&values, smallest),
        }
    }
}

fn detect(nights: &[Reading], smallest: f64) -> Vec<Change> {
    let limits = Limits {
        smallest,
        values_to_false_alarm: OF_YEAR as f64,
    };
    find_changes(nights, Since::default(), limits)
}

/// Course of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Course {
    Nothing,
    Step(f64),
    /// So much a night from the planted one on.
    Drift(f64),
    /// One night that is 20 % off.
    FarNight,
    /// Scatter by Student's t with three degrees of freedom.
    HeavyTails,
    /// The machine is 10 % slower from night 20 to night 40, and the bare figure is followed. It is in no ratio.
    SlowLevel,
    /// A step of 5 %, and no nights in the week after it.
    MissingWeek,
}

impl Course {
    const ALL: [Course; 9] = [
        Course::Nothing,
        Course::HeavyTails,
        Course::FarNight,
        Course::SlowLevel,
        Course::Step(0.03),
        Course::Step(0.05),
        Course::Step(0.10),
        Course::MissingWeek,
        Course::Drift(0.001),
    ];

    fn name(self) -> String {
        match self {
            Course::Nothing => "nothing".to_owned(),
            Course::Step(size) => format!("a step of {:.0} %", 100.0 * size),
            Course::Drift(size) => format!("{:.1} % each night", 100.0 * size),
            Course::FarNight => "a night 20 % off".to_owned(),
            Course::HeavyTails => "heavy tails".to_owned(),
            Course::SlowLevel => "slow machine, bare figure".to_owned(),
            Course::MissingWeek => "5 %, a week missing".to_owned(),
        }
    }

    fn is_planted(self) -> bool {
        matches!(
            self,
            Course::Step(_) | Course::MissingWeek | Course::Drift(_)
        )
    }

    fn change(self, night: usize) -> f64 {
        let since = night.saturating_sub(PLANTED) as f64;
        match self {
            Course::Step(size) if night >= PLANTED => -size.ln_1p(),
            Course::MissingWeek if night >= PLANTED => -0.05f64.ln_1p(),
            Course::Drift(size) => -size * since,
            Course::FarNight if night == PLANTED => 0.2,
            Course::SlowLevel if (20..40).contains(&night) => -0.1,
            _ => 0.0,
        }
    }

    /// The nights of a series, from the first to the last.
    fn draw(self, setup: &Setup, stream: u32, nights: usize) -> Vec<Reading> {
        let mut rng = ChaCha8Rng::seed_from_u64(setup.seed);
        rng.set_stream(u64::from(stream));
        let mut draw = |night: usize| {
            let scatter = match self {
                Course::HeavyTails => student_3(&mut rng),
                _ => normal(&mut rng),
            };
            self.change(night) + SCATTER * scatter + ERROR * normal(&mut rng)
        };
        let all = (0..nights).map(|night| (night, draw(night)));
        let is_missing = |night: usize| {
            self == Course::MissingWeek && (PLANTED + 1..=PLANTED + 7).contains(&night)
        };
        let kept = all.filter(|(night, _)| !is_missing(*night));
        let reading = |(_, value)| Reading {
            value,
            error: ERROR,
        };
        kept.map(reading).collect()
    }
}

/// A year of nights without a change.
pub fn draw_quiet_nights(setup: &Setup, stream: u32) -> Vec<Reading> {
    Course::Nothing.draw(setup, stream, OF_YEAR)
}

/// Size of the first change that the detector tells if every one is of interest.
pub fn find_any_change(nights: &[Reading]) -> Option<f64> {
    detect(nights, 0.0).first().map(|change| change.size)
}

/// Alarms of a series, night by night.
#[derive(Debug, Default)]
pub struct Told {
    /// Change, and the nights that there were when it was told.
    pub alarms: Vec<(usize, usize)>,
    /// An alarm that is not told any more, or at another night.
    pub is_moved: bool,
}

/// Alarms of a way that looks after each night.
pub fn tell_each_night(way: Way, nights: &[Reading]) -> Told {
    let mut told = Told::default();
    if way == Way::Detector {
        // More nights move nothing, as a test of `stats::change` holds, so one look says what all would.
        let changes = detect(nights, SMALLEST);
        told.alarms = changes.iter().map(|c| (c.first, c.seen + 1)).collect();
        return told;
    }
    let mut last = Vec::new();
    for count in 1..=nights.len() {
        let begin = count.saturating_sub(WINDOW);
        let found = way.split(&nights[begin..count], SMALLEST);
        last = found.into_iter().map(|at| begin + at).collect();
        for at in &last {
            let is_known = told
                .alarms
                .iter()
                .any(|(known, _)| known.abs_diff(*at) <= NEAR);
            if !is_known {
                told.alarms.push((*at, count));
            }
        }
    }
    // What left the window of a look, or is at its edge, is not looked for.
    let edge = nights.len().saturating_sub(WINDOW) + NEAR;
    let is_there = |at: usize| last.iter().any(|now| now.abs_diff(at) <= 1);
    let mut recent = told.alarms.iter().filter(|(at, _)| *at >= edge);
    told.is_moved = way != Way::Threshold && recent.any(|(at, _)| !is_there(*at));
    told
}

/// Sums over series.
#[derive(Debug, Default)]
struct Sums {
    series: u32,
    found: u32,
    exact: u32,
    moved: u32,
    false_alarms: u32,
    nights: f64,
    delays: Vec<f64>,
}

fn sum_series(way: Way, course: Course, nights: usize, setup: &Setup) -> Sums {
    let mut sums = Sums::default();
    for stream in 0..(setup.series / PART).max(1) {
        let values = course.draw(setup, stream, nights);
        let told = tell_each_night(way, &values);
        sums.series += 1;
        sums.moved += u32::from(told.is_moved);
        let planted = course.is_planted();
        let is_early = |count: usize| !planted || count <= PLANTED;
        let early = told.alarms.iter().filter(|(_, count)| is_early(*count));
        sums.false_alarms += u32::try_from(early.count()).unwrap_or(0);
        let first = told.alarms.iter().find(|(_, count)| !is_early(*count));
        sums.nights += if planted { PLANTED } else { values.len() } as f64;
        if let Some((at, count)) = first {
            sums.found += 1;
            sums.exact += u32::from(at.abs_diff(PLANTED) <= 1);
            sums.delays.push(*count as f64 - PLANTED as f64);
        }
    }
    sums
}

/// Changes of months, by each way.
pub fn study(setup: &Setup) -> Table {
    let header = [
        "course",
        "way",
        "found",
        "after",
        "night ±1",
        "for nothing a year",
        "moved",
    ];
    let note = "Nights with a standard error of 0.6 % and a scatter of 0.5 % beyond it; changes from 2 % on; 60 nights,\n\
                of which the 31st is the first of a change, and 365 of courses without one. Found: within the 60\n\
                nights; after: nights with the change until it was told (median); night: it was told at its night or\n\
                one beside it. For nothing: alarms before the change, or without any. Moved: what was told is not\n\
                told any more or more than a night away when the last has come. All but schedlab look at the last 60\n\
                nights again after each. A fiftieth as many series as comparisons elsewhere.";
    let header = header.map(str::to_owned).to_vec();
    let mut table = Table::new("Changes over months", header, note);
    for course in Course::ALL {
        for way in Way::ALL {
            table.push(row(way, course, setup));
        }
    }
    table
}

fn row(way: Way, course: Course, setup: &Setup) -> Vec<String> {
    let nights = match course.is_planted() {
        true => NIGHTS,
        false => OF_YEAR,
    };
    let sums = sum_series(way, course, nights, setup);
    let share = |part: u32| percent(f64::from(part) / f64::from(sums.series.max(1)));
    let where_planted = |text: String| match course.is_planted() {
        true => text,
        false => "-".to_owned(),
    };
    let delay = median(&sums.delays).map_or("-".to_owned(), |delay| format!("{delay:.0}"));
    vec![
        course.name(),
        way.name().to_owned(),
        where_planted(share(sums.found)),
        where_planted(delay),
        where_planted(share(sums.exact)),
        format!(
            "{:.2}",
            f64::from(sums.false_alarms) / sums.nights * OF_YEAR as f64
        ),
        share(sums.moved),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETUP: Setup = Setup {
        series: 1000,
        seed: 1,
    };

    #[test]
    fn the_detector_finds_steps_moves_nothing_and_seldom_cries_wolf() {
        let step = sum_series(Way::Detector, Course::Step(0.05), NIGHTS, &SETUP);
        assert_eq!(step.found, step.series, "{step:?}");
        let quiet = sum_series(Way::Detector, Course::Nothing, OF_YEAR, &SETUP);
        assert!(quiet.false_alarms <= quiet.series, "{quiet:?}");
        // What machines do is in levels, and a look at the same nights again moves what was told.
        let level = sum_series(Way::Detector, Course::SlowLevel, NIGHTS, &SETUP);
        assert!(level.false_alarms >= level.series, "{level:?}");
        let moved = sum_series(Way::Partition, Course::Step(0.03), NIGHTS, &SETUP);
        assert!(moved.moved > 0, "{moved:?}");
    }
}
