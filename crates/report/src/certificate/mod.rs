//! The noise certificate: what is called where nothing differs, how far the blocks
//! of each cell vary, and so the smallest change that each cell can see.
//!
//! It comes from the arms that repeat the baseline under another name, as
//! `schedlab certify` and `aa = true` have them. All are the same, so each is
//! compared with each, not only with the baseline, and judged after every block:
//! whatever is called better or worse is a false call.

mod measure;
mod text;

pub(crate) use text::short_percent;

use serde::{Deserialize, Serialize};

/// The exported copy in a results directory, for programs.
pub const FILE: &str = "certificate.json";

const SECOND_NS: u64 = 1_000_000_000;
/// The times for which the smallest visible change is said.
const TIMES_NS: [u64; 4] = [
    60 * SECOND_NS,
    300 * SECOND_NS,
    1800 * SECOND_NS,
    7200 * SECOND_NS,
];

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// Confidence of one comparison, and of the planned detection.
    pub confidence: f64,
    pub power: f64,
    /// Arms that are the same, the baseline included.
    pub arms: usize,
    /// Comparisons of an arm with itself, over all cells and deciding metrics.
    pub comparisons: u32,
    /// Those that were called better or worse.
    pub false_calls: u32,
    pub cells: Vec<CellNoise>,
}

/// One deciding metric of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellNoise {
    pub cell: String,
    pub metric: String,
    pub comparisons: u32,
    pub false_calls: u32,
    /// Most blocks that two arms have in common.
    pub blocks: u32,
    /// Standard deviation of a block's log-ratio; none with fewer than two blocks.
    pub spread: Option<f64>,
    /// Interval of the true spread at 90 %, were the blocks normal.
    pub spread_low: Option<f64>,
    pub spread_high: Option<f64>,
    /// Mean time of one trial of the baseline and one of another arm.
    pub block_ns: u64,
    pub sees: Vec<Sight>,
}

/// The smallest change that is visible when a time is spent on this cell and one arm alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sight {
    pub time_ns: u64,
    pub blocks: u32,
    /// Smallest gain that is called with the power of the certificate; none where
    /// so few blocks decide nothing.
    pub change: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::text::short_percent;
    use super::*;
    use results::ResultSet;

    fn of(scenario: &synthetic::Scenario) -> Option<Certificate> {
        let dir = tempfile::tempdir().unwrap();
        synthetic::write(dir.path(), scenario).unwrap();
        Certificate::of(&ResultSet::read(dir.path()).unwrap())
    }

    #[test]
    fn an_experiment_with_an_aa_arm_has_one_row_for_each_deciding_metric() {
        let scenario = synthetic::quickstart();
        let certificate = of(&scenario).unwrap();
        let workloads = &scenario.experiment.workloads;
        let rows: usize = workloads
            .iter()
            .map(|w| w.loads.len() * w.metrics.len())
            .sum();
        assert_eq!(certificate.cells.len(), rows);
        assert_eq!(certificate.comparisons as usize, rows);
        assert_eq!(certificate.arms, 2);
    }

    #[test]
    fn a_run_without_a_repeated_baseline_has_none() {
        assert_eq!(of(&synthetic::one_arm()), None);
    }

    #[test]
    fn more_time_sees_smaller_changes() {
        let certificate = of(&synthetic::quickstart()).unwrap();
        for noise in &certificate.cells {
            let seen: Vec<f64> = noise.sees.iter().filter_map(|s| s.change).collect();
            assert!(seen.len() > 1, "{noise:?}");
            assert!(seen.windows(2).all(|w| w[0] > w[1]), "{noise:?}");
        }
    }

    #[test]
    fn no_line_is_wider_than_a_mailing_list_takes() {
        let text = of(&synthetic::quickstart()).unwrap().text();
        assert!(text.lines().all(|line| line.chars().count() < 78), "{text}");
        assert!(text.is_ascii());
    }

    #[test]
    fn changes_have_two_digits() {
        assert_eq!(short_percent(0.0052), "0.52%");
        assert_eq!(short_percent(0.031), "3.1%");
        assert_eq!(short_percent(0.274), "27%");
        assert_eq!(short_percent(1.4), "x2.4");
    }
}
