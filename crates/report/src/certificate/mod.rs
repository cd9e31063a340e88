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

use serde::Serialize;

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

/// Noise certificate of one results directory. As JSON it is written to [`FILE`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Certificate {
    /// Confidence of one comparison, and of the planned detection.
    confidence: f64,
    power: f64,
    /// Arms that are the same, the baseline included.
    arms: usize,
    /// Comparisons of an arm with itself, over all cells and deciding metrics.
    comparisons: u32,
    /// Those that were called better or worse.
    false_calls: u32,
    cells: Vec<CellNoise>,
}

/// One deciding metric of one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct CellNoise {
    cell: String,
    metric: String,
    comparisons: u32,
    false_calls: u32,
    /// Most blocks that two arms have in common.
    blocks: u32,
    /// Pairs of windows in a block, which is a process, where the arms took turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pairs: Option<u32>,
    /// Standard deviation of the log-ratio of a block, or of a pair of windows; none with fewer than two blocks.
    spread: Option<f64>,
    /// Interval of the true spread at 90 %, were the blocks normal.
    spread_low: Option<f64>,
    spread_high: Option<f64>,
    /// Mean time of one trial of the baseline and one of another arm.
    block_ns: u64,
    sees: Vec<Sight>,
}

/// The smallest change that is visible when a time is spent on this cell and one arm alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Sight {
    time_ns: u64,
    blocks: u32,
    /// Smallest gain that is called with the power of the certificate; none where
    /// so few blocks decide nothing.
    change: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::text::short_percent;
    use super::*;
    use results::ResultSet;

    fn of(scenario: &synthetic::Scenario) -> Option<Certificate> {
        let dir = tempfile::tempdir().unwrap();
        synthetic::write(dir.path(), scenario).unwrap();
        Certificate::from_results(&ResultSet::read(dir.path()).unwrap())
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
        let text = of(&synthetic::quickstart()).unwrap().to_text();
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
