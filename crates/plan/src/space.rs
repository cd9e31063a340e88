//! A space of arms: what may be varied, as `--vary` and `[tune]` write it, and its points.
//!
//! `slice=0.1ms..10ms log`, `env.THREADS=1..8`, `nice=0,5,10`, `scx_lavd --slice-max-us=1000..20000 log`. A
//! range has some levels at first, and more where somebody asks for the neighbours of a point.

use crate::PlanError;
use crate::table::{own_keys, take_key};
use load::units::parse_duration;
use model::format_duration_ns;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::de::DeTable;

/// Points beyond which no race ends.
const MOST_POINTS: usize = 100_000;
/// Levels of a range at first.
const LEVELS: usize = 5;
/// Levels of a range at most, by halving the distances.
const MOST_LEVELS: usize = 257;

/// Value of each dimension, by its position among the finest levels.
pub type Point = Vec<usize>;

/// Table `[tune]` of a file.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tuning {
    /// Keys of arms with their values.
    #[serde(default)]
    pub vary: Vec<String>,
    /// Names of ready spaces.
    #[serde(default)]
    pub space: Vec<String>,
    /// What to make better, and where.
    pub objective: Option<String>,
    /// Metrics that a winner must not make worse.
    #[serde(default)]
    pub must_not_worsen: Vec<String>,
}

/// The `[tune]` table of a file; an empty one where there is none.
pub fn read_tuning(file_name: &str, text: &str) -> Result<Tuning, PlanError> {
    let read = || {
        let mut root = DeTable::parse(text)?;
        match take_key(root.get_mut(), "tune") {
            Some(table) => own_keys::<Tuning>(table, &[]),
            None => Ok(Tuning::default()),
        }
    };
    read().map_err(|error: PlanError| error.in_file(file_name, text))
}

/// Dimensions that are varied together.
#[derive(Debug, Clone, PartialEq)]
pub struct Space {
    dimensions: Vec<Dimension>,
}

/// One key with its values.
#[derive(Debug, Clone, PartialEq)]
struct Dimension {
    key: String,
    /// All values, in their order.
    values: Vec<String>,
    /// Positions of those that are tried at first.
    first: Vec<usize>,
    /// Values that lie between others, so that a point has neighbours.
    is_range: bool,
    /// An option without a value, which is there or not.
    is_flag: bool,
}

/// The kind of numbers of a range.
#[derive(Debug, Clone, PartialEq)]
enum Unit {
    /// A time in nanoseconds.
    Time,
    /// A number, whole or with decimals, before this text.
    Number { is_whole: bool, suffix: String },
}

impl Space {
    /// The space of these texts; `option` names in errors where they were written.
    pub fn parse(option: &str, texts: &[String]) -> Result<Space, PlanError> {
        let dimension = |text: &String| {
            Dimension::parse(text).map_err(|(what, help)| {
                PlanError::new(format!("{option} '{text}': {what}")).with_help(help)
            })
        };
        let dimensions: Vec<Dimension> = texts.iter().map(dimension).collect::<Result<_, _>>()?;
        let mut seen = BTreeMap::new();
        for dimension in &dimensions {
            if seen.insert(&dimension.key, ()).is_some() {
                let what = format!("{option}: `{}` is varied twice", dimension.key);
                return Err(PlanError::new(what).with_help("join its values in one"));
            }
        }
        let space = Space { dimensions };
        match space.count_points() {
            0 | 1 => Err(
                PlanError::new("the space is empty: there is nothing to vary").with_help(format!(
                    "{option} 'slice=0.1ms..10ms log', {option} 'env.THREADS=1..8'"
                )),
            ),
            points if points > MOST_POINTS => {
                let what = format!(
                    "the space has {points} points, and no race ends with more than {MOST_POINTS}"
                );
                let help =
                    "write long lists as ranges, of which a few levels are tried at first: 1..1000";
                Err(PlanError::new(what).with_help(help))
            }
            _ => Ok(space),
        }
    }

    /// Points that may be tried at first.
    pub fn count_points(&self) -> usize {
        let levels = self.dimensions.iter().map(|d| d.first.len());
        levels.fold(
            usize::from(!self.dimensions.is_empty()),
            usize::saturating_mul,
        )
    }

    /// The first points, at most so many, spread over the space: steps of a fixed ratio, so that the same
    /// space gives the same points.
    pub fn first_points(&self, most: usize) -> Vec<Point> {
        let all = self.count_points();
        let wanted = all.min(most);
        let index = |number: usize| match all <= most {
            true => number,
            // Points of a regular sequence in each dimension, rather than neighbours in the last one.
            false => spread_index(number, all),
        };
        let mut points: Vec<Point> = Vec::new();
        for number in 0..all {
            let point = self.point_at(index(number));
            if !points.contains(&point) {
                points.push(point);
            }
            if points.len() == wanted {
                break;
            }
        }
        points
    }

    fn point_at(&self, mut index: usize) -> Point {
        let mut point = Vec::new();
        for dimension in &self.dimensions {
            let levels = dimension.first.len();
            point.push(dimension.first[index % levels]);
            index /= levels;
        }
        point
    }

    /// Points near this one: in each range halfway to the nearest tried level on both sides, one dimension at
    /// a time. `tried` are the points so far.
    pub fn neighbours(&self, point: &Point, tried: &[Point]) -> Vec<Point> {
        let mut found = Vec::new();
        for (axis, dimension) in self.dimensions.iter().enumerate() {
            if !dimension.is_range {
                continue;
            }
            let here = point[axis];
            let levels = tried.iter().map(|other| other[axis]);
            let below = levels.clone().filter(|level| *level < here).max();
            let above = levels.filter(|level| *level > here).min();
            for level in below.into_iter().chain(above) {
                let between = usize::midpoint(level, here);
                let mut near = point.clone();
                near[axis] = between;
                let is_new = between != level && between != here && !tried.contains(&near);
                if is_new && !found.contains(&near) {
                    found.push(near);
                }
            }
        }
        found
    }

    /// The arm of a point as a command line writes it: `slice=1ms+env.THREADS=4`.
    pub fn arm_text(&self, point: &Point) -> String {
        let mut parts: Vec<String> = Vec::new();
        let settings = self.dimensions.iter().zip(point);
        for (dimension, index) in settings {
            let value = &dimension.values[*index];
            match dimension.key.split_once(' ') {
                // Options of one scheduler stand behind its name, which is there once.
                Some((program, option)) => {
                    let head = format!("{program} ");
                    let is_own = |part: &String| part == program || part.starts_with(&head);
                    let option = dimension.option_text(option, value);
                    match parts.iter_mut().find(|part| is_own(part)) {
                        Some(part) => part.push_str(&option),
                        None => parts.push(format!("{program}{option}")),
                    }
                }
                None => parts.push(format!("{}={value}", dimension.key)),
            }
        }
        parts.join("+")
    }
}

/// A position for each number, each of them once in a while: multiples of the golden ratio.
#[expect(
    clippy::cast_possible_truncation,
    reason = "below the number of points"
)]
fn spread_index(number: usize, all: usize) -> usize {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let part = ((number as f64 + 0.5) * GOLDEN).fract();
    ((part * all as f64) as usize).min(all - 1)
}

/// Value of a flag that is not there.
const NO: &str = "no";

type Refused = (String, &'static str);

const RANGE: &str =
    "a range is LOW..HIGH, then `log` if its levels grow by factors: slice=0.1ms..10ms log";

impl Dimension {
    fn parse(text: &str) -> Result<Dimension, Refused> {
        let form = "write KEY=LOW..HIGH or KEY=VALUE,VALUE: nice=0,5,10";
        if let Some(key) = text.trim().strip_suffix('?') {
            return Dimension::of_flag(key.trim());
        }
        let (key, values) = text
            .split_once('=')
            .ok_or_else(|| ("it has no equals sign".to_owned(), form))?;
        let key = key.trim();
        if key.is_empty() || values.trim().is_empty() {
            return Err(("it needs a key and values".to_owned(), form));
        }
        let (ends, is_log) = match values.trim().strip_suffix(" log") {
            Some(ends) => (ends.trim(), true),
            None => (values.trim(), false),
        };
        match ends.split_once("..") {
            Some((low, high)) => Dimension::of_range(key, [low.trim(), high.trim()], is_log),
            None if is_log => Err(("a list has no levels that grow".to_owned(), RANGE)),
            None => Dimension::of_list(key, ends),
        }
    }

    /// An option of a scheduler that has no value: first without it, then with it.
    fn of_flag(key: &str) -> Result<Dimension, Refused> {
        match key.split_once(" -") {
            Some((program, _)) if !program.is_empty() && !key.contains('=') => Ok(Dimension {
                key: key.to_owned(),
                values: [NO, "yes"].map(str::to_owned).to_vec(),
                first: vec![0, 1],
                is_range: false,
                is_flag: true,
            }),
            _ => Err((
                "only an option of a scheduler can be there or not".to_owned(),
                "write PROGRAM OPTION?: scx_rusty --kthreads-local?",
            )),
        }
    }

    /// An option behind the name of its program.
    fn option_text(&self, option: &str, value: &str) -> String {
        match self.is_flag {
            true if value == NO => String::new(),
            true => format!(" {option}"),
            false => format!(" {option}={value}"),
        }
    }

    fn of_list(key: &str, text: &str) -> Result<Dimension, Refused> {
        let mut values: Vec<String> = Vec::new();
        for value in text.split(',').map(str::trim) {
            if value.is_empty() {
                return Err((
                    "a value of the list is empty".to_owned(),
                    "write KEY=VALUE,VALUE: nice=0,5,10",
                ));
            }
            if !values.iter().any(|known| known == value) {
                values.push(value.to_owned());
            }
        }
        Ok(Dimension {
            key: key.to_owned(),
            first: (0..values.len()).collect(),
            values,
            is_range: false,
            is_flag: false,
        })
    }

    fn of_range(key: &str, ends: [&str; 2], is_log: bool) -> Result<Dimension, Refused> {
        let (unit, low, high) = read_ends(ends)?;
        if low >= high {
            return Err(("its lower end is not below the upper one".to_owned(), RANGE));
        }
        if is_log && low <= 0.0 {
            return Err((
                "levels that grow by factors begin above 0".to_owned(),
                RANGE,
            ));
        }
        let level = |index: usize| {
            let part = index as f64 / (MOST_LEVELS - 1) as f64;
            match is_log {
                true => low * (high / low).powf(part),
                false => low + (high - low) * part,
            }
        };
        let mut values: Vec<String> = (0..MOST_LEVELS).map(|i| unit.format(level(i))).collect();
        values.dedup();
        let count = values.len();
        let levels = LEVELS.min(count);
        let first = (0..levels).map(|n| n * (count - 1) / (levels - 1).max(1));
        Ok(Dimension {
            key: key.to_owned(),
            first: first.collect(),
            values,
            is_range: true,
            is_flag: false,
        })
    }
}

fn read_ends([low, high]: [&str; 2]) -> Result<(Unit, f64, f64), Refused> {
    if let (Ok(low), Ok(high)) = (parse_duration(low), parse_duration(high)) {
        return Ok((Unit::Time, low as f64, high as f64));
    }
    let refused = || {
        (
            format!("`{low}..{high}` is no range of numbers or times"),
            RANGE,
        )
    };
    let split = |text: &str| {
        let end = text
            .char_indices()
            .find(|(at, c)| !(c.is_ascii_digit() || *c == '.' || (*at == 0 && *c == '-')));
        let end = end.map_or(text.len(), |(at, _)| at);
        let (number, suffix) = text.split_at(end);
        let value: f64 = number.parse().ok()?;
        let is_whole = !number.contains('.');
        Some((value, is_whole, suffix.to_owned()))
    };
    let (a, b) = (
        split(low).ok_or_else(refused)?,
        split(high).ok_or_else(refused)?,
    );
    // `1..8k` would be read by nobody as one thing.
    if a.2 != b.2 {
        return Err((
            format!("`{low}` and `{high}` have different units"),
            "give both ends the same unit",
        ));
    }
    let unit = Unit::Number {
        is_whole: a.1 && b.1,
        suffix: a.2,
    };
    Ok((unit, a.0, b.0))
}

impl Unit {
    fn format(&self, value: f64) -> String {
        match self {
            Unit::Time => format_duration_ns(model::truncate_to_u64(round_digits(value))),
            Unit::Number {
                is_whole: true,
                suffix,
            } => format!("{:.0}{suffix}", value.round() + 0.0),
            Unit::Number { suffix, .. } => format!("{}{suffix}", round_digits(value)),
        }
    }
}

/// Three digits, which is finer than anything that can be told apart.
fn round_digits(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(texts: &[&str]) -> Space {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        Space::parse("--vary", &texts).unwrap()
    }

    fn arms(space: &Space, most: usize) -> Vec<String> {
        let points = space.first_points(most);
        points.iter().map(|point| space.arm_text(point)).collect()
    }

    fn refused(texts: &[&str]) -> String {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        format!("{:?}", Space::parse("--vary", &texts).unwrap_err())
    }

    #[test]
    fn ranges_have_levels_and_lists_have_all_their_values() {
        let threads = space(&["env.THREADS=1..8"]);
        let expected = ["1", "2", "4", "6", "8"].map(|n| format!("env.THREADS={n}"));
        assert_eq!(arms(&threads, 16), expected);
        let slices = space(&["slice=0.1ms..10ms log"]);
        let expected = ["100us", "316us", "1ms", "3.16ms", "10ms"].map(|t| format!("slice={t}"));
        assert_eq!(arms(&slices, 16), expected);
        let nice = space(&["nice=0, 5,10,5"]);
        assert_eq!(arms(&nice, 16), ["nice=0", "nice=5", "nice=10"]);
        let few = space(&["env.N=3..4"]);
        assert_eq!(arms(&few, 16), ["env.N=3", "env.N=4"]);
    }

    #[test]
    fn options_of_one_scheduler_are_joined_and_other_keys_are_added() {
        let both = space(&["scx_x --a=1,2", "scx_x --b=3", "env.T=5"]);
        assert_eq!(
            arms(&both, 16),
            ["scx_x --a=1 --b=3+env.T=5", "scx_x --a=2 --b=3+env.T=5"]
        );
    }

    #[test]
    fn an_option_without_a_value_is_there_or_not() {
        let flags = space(&["scx_x --local?", "scx_x --a=1,2"]);
        assert_eq!(
            arms(&flags, 16),
            [
                "scx_x --a=1",
                "scx_x --local --a=1",
                "scx_x --a=2",
                "scx_x --local --a=2"
            ]
        );
        assert_eq!(
            arms(&space(&["scx_x --local?"]), 16),
            ["scx_x", "scx_x --local"]
        );
        assert!(refused(&["nice?"]).contains("only an option of a scheduler"));
    }

    #[test]
    fn a_large_space_gives_points_from_everywhere() {
        let large = space(&["env.A=1..100", "env.B=1..100", "env.C=1..100"]);
        assert_eq!(large.count_points(), 125);
        let found = arms(&large, 16);
        assert_eq!(found.len(), 16);
        for level in ["A=1+", "A=100+", "B=1+", "B=100+", "C=1", "C=100"] {
            assert!(
                found.iter().any(|arm| arm.contains(level)),
                "{level}: {found:?}"
            );
        }
    }

    #[test]
    fn neighbours_lie_between_a_point_and_the_levels_beside_it() {
        let threads = space(&["env.N=0..256", "nice=0,5"]);
        let tried = threads.first_points(16);
        let point = tried
            .iter()
            .find(|point| threads.arm_text(point) == "env.N=64+nice=0");
        let near = threads.neighbours(point.unwrap(), &tried);
        let near: Vec<String> = near.iter().map(|point| threads.arm_text(point)).collect();
        assert_eq!(near, ["env.N=32+nice=0", "env.N=96+nice=0"]);
    }

    #[test]
    fn what_is_no_space_is_refused_with_a_remedy() {
        assert!(refused(&[]).contains("the space is empty"));
        assert!(refused(&["nice=5"]).contains("the space is empty"));
        let numbers: Vec<String> = (0..1001).map(|n| n.to_string()).collect();
        let list = |key: &str| format!("env.{key}={}", numbers.join(","));
        let million = refused(&[&list("A"), &list("B")]);
        assert!(million.contains("1002001 points"), "{million}");
        assert!(refused(&["nice=1", "nice=2"]).contains("varied twice"));
        assert!(refused(&["nice=5..1"]).contains("lower end"));
        assert!(refused(&["slice=0ms..1ms log"]).contains("above 0"));
        assert!(refused(&["env.N=1..8k"]).contains("different units"));
        assert!(refused(&["env.N=a..b"]).contains("no range"));
        assert!(refused(&["nice"]).contains("no equals sign"));
        assert!(refused(&["nice=1,,2"]).contains("is empty"));
        assert!(refused(&["nice=1,2 log"]).contains("a list"));
    }
}
