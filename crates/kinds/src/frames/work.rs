//! Work of the frames: how much is the mean, and how it is spread.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

/// Frames after which the works come again.
const WORKS: u64 = 4096;
/// Stream of the seed; those of input events come before.
const STREAM: u64 = 1000;

/// Mean CPU time of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FrameWork {
    /// In percent of the time of a frame.
    Percent(f64),
    /// In nanoseconds.
    Ns(u64),
}

impl FrameWork {
    /// Nanoseconds where frames are so far apart.
    pub fn mean_ns(self, interval_ns: u64) -> u64 {
        match self {
            FrameWork::Percent(percent) => {
                model::truncate_to_u64(interval_ns as f64 * percent / 100.0)
            }
            FrameWork::Ns(ns) => ns,
        }
    }
}

/// `40%` of the time of a frame, or `5ms`.
fn parse_work(text: &str) -> Result<FrameWork, String> {
    if text.trim().ends_with('%') {
        return load::units::parse_percent(text).map(FrameWork::Percent);
    }
    let ns = load::units::parse_duration(text);
    ns.map(FrameWork::Ns).map_err(|_| {
        format!("`{text}` is no work of a frame; write \"40%\" of its time, or \"5ms\"")
    })
}

load::written!(
    WrittenWork,
    FrameWork,
    parse_work,
    "a share of the time of a frame, such as \"40%\", or a time, such as \"5ms\""
);

/// Law of the works of frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// All the same.
    Fixed,
    /// Evenly between the mean less the spread and the mean and the spread.
    Uniform,
    /// Many near the mean and some far above it; the spread is the standard deviation.
    #[default]
    Lognormal,
}

/// Rows of each frame, the same in every trial with the same seed.
#[derive(Debug)]
pub struct Works {
    rows: Vec<u64>,
}

impl Works {
    /// Works around `mean_rows`, with a spread in percent of that.
    pub fn draw(law: Distribution, spread_percent: f64, mean_rows: u64, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(STREAM);
        let spread = spread_percent / 100.0;
        let row = |_| {
            let factor = match law {
                Distribution::Fixed => 1.0,
                Distribution::Uniform => 1.0 + spread * (2.0 * rng.random::<f64>() - 1.0),
                Distribution::Lognormal => lognormal(spread, standard_normal(&mut rng)),
            };
            model::truncate_to_u64(mean_rows as f64 * factor).max(1)
        };
        Works {
            rows: (0..WORKS).map(row).collect(),
        }
    }

    /// Rows of the frame with this number, and a part of them more.
    pub fn rows_of(&self, frame: u64, more_percent: f64) -> u64 {
        let rows = self.rows[(frame % WORKS) as usize];
        let more = rows as f64 * more_percent / 100.0;
        model::truncate_to_u64((rows as f64 + more).max(0.0))
    }
}

/// Factor with mean 1 and this standard deviation, of a normal deviate.
fn lognormal(spread: f64, normal: f64) -> f64 {
    let variance = spread.powi(2).ln_1p();
    (variance.sqrt() * normal - variance / 2.0).exp()
}

/// Box and Muller's.
fn standard_normal(rng: &mut ChaCha8Rng) -> f64 {
    let (radius, angle): (f64, f64) = (rng.random(), rng.random());
    // 1 - radius lies in (0, 1], so the logarithm is finite.
    (-2.0 * (1.0 - radius).ln()).sqrt() * (TAU * angle).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and standard deviation.
    fn moments(law: Distribution) -> (f64, f64) {
        let rows = Works::draw(law, 30.0, 1_000_000, 7).rows;
        let rows = rows.into_iter().map(|rows| rows as f64 / 1e6);
        let count = WORKS as f64;
        let mean = rows.clone().sum::<f64>() / count;
        let squares = rows.map(|rows| (rows - mean).powi(2)).sum::<f64>();
        (mean, (squares / count).sqrt())
    }

    #[test]
    fn works_have_the_mean_and_the_spread_that_were_asked_for() {
        assert_eq!(moments(Distribution::Fixed), (1.0, 0.0));
        // An even spread of ± 0.3 has a standard deviation of 0.3/√3.
        for (law, sd) in [
            (Distribution::Uniform, 0.3 / 3.0_f64.sqrt()),
            (Distribution::Lognormal, 0.3),
        ] {
            let (mean, found) = moments(law);
            assert!((mean - 1.0).abs() < 0.02, "{law:?}: {mean}");
            assert!((found / sd - 1.0).abs() < 0.1, "{law:?}: {found}");
        }
    }

    #[test]
    fn a_seed_gives_the_same_works_and_another_one_others() {
        let draw = |seed| Works::draw(Distribution::Lognormal, 20.0, 1000, seed).rows;
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn more_work_is_a_part_of_that_of_the_frame() {
        let works = Works::draw(Distribution::Fixed, 0.0, 1000, 1);
        assert_eq!(works.rows_of(5, 25.0), 1250);
        assert_eq!(works.rows_of(WORKS + 5, -200.0), 0);
    }

    #[test]
    fn work_is_a_share_of_a_frame_or_a_time() {
        assert_eq!(parse_work("40%"), Ok(FrameWork::Percent(40.0)));
        assert_eq!(parse_work("5ms"), Ok(FrameWork::Ns(5_000_000)));
        assert_eq!(FrameWork::Percent(40.0).mean_ns(10_000), 4_000);
        assert!(parse_work("5").unwrap_err().contains("\"40%\""));
    }
}
