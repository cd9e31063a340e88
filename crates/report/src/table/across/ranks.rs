//! Ranks of the arms over all cells and deciding metrics, as far as the calls say.
//!
//! An arm is ahead of another if it is better somewhere and worse nowhere, by calls that hold when all are
//! looked at together. Its rank lies between one more than the arms that are ahead of it, and the number of
//! arms less those that it is ahead of.

use crate::table::across::rivals::verdict_among_all;
use crate::table::{CellTable, Comparison, Verdict};
use serde::Serialize;

/// Place of an arm among all, with its doubt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rank {
    /// Name of the arm.
    pub arm: String,
    /// Best rank that the calls leave open, from 1.
    pub best: usize,
    /// Worst rank that they leave open.
    pub worst: usize,
    /// Arms that it is ahead of: better somewhere, worse nowhere.
    pub ahead_of: Vec<String>,
    /// Arms that are better in one comparison and worse in another.
    pub mixed_with: Vec<String>,
}

/// A call on one arm against another, which holds among all.
#[derive(Debug, Clone, Copy)]
struct Call<'a> {
    baseline: &'a str,
    arm: &'a str,
    verdict: Verdict,
}

impl<'a> Call<'a> {
    fn of(comparison: &'a Comparison) -> Self {
        Call {
            baseline: &comparison.baseline,
            arm: &comparison.arm,
            verdict: verdict_among_all(comparison),
        }
    }

    fn says_better(&self, arm: &str, other: &str) -> bool {
        match self.verdict {
            Verdict::Better => (self.arm, self.baseline) == (arm, other),
            Verdict::Worse => (self.baseline, self.arm) == (arm, other),
            _ => false,
        }
    }
}

/// Ranks of the baseline and the other arms, the best first; none where the arms were not compared with each
/// other, or none is ahead of another.
pub fn rank_arms(baseline: &str, cells: &[CellTable], between: &[Comparison]) -> Vec<Rank> {
    if between.is_empty() {
        return Vec::new();
    }
    let with_baseline = cells.iter().flat_map(|cell| &cell.comparisons);
    let deciding = with_baseline.filter(|c| c.deciding && !c.aa);
    let calls: Vec<Call> = deciding.chain(between).map(Call::of).collect();
    rank_by_calls(baseline, &calls)
}

fn rank_by_calls(baseline: &str, calls: &[Call]) -> Vec<Rank> {
    let mut arms = vec![baseline];
    for call in calls {
        if !arms.contains(&call.arm) {
            arms.push(call.arm);
        }
    }
    let mut ranks: Vec<Rank> = arms.iter().map(|arm| rank_of(arm, &arms, calls)).collect();
    if ranks.iter().all(|rank| rank.ahead_of.is_empty()) {
        return Vec::new();
    }
    ranks.sort_by_key(|rank| (rank.best + rank.worst, rank.worst));
    ranks
}

fn rank_of(arm: &str, arms: &[&str], calls: &[Call]) -> Rank {
    let is_better = |arm: &str, other: &str| calls.iter().any(|call| call.says_better(arm, other));
    let mut rank = Rank {
        arm: arm.to_owned(),
        best: 1,
        worst: arms.len(),
        ahead_of: Vec::new(),
        mixed_with: Vec::new(),
    };
    for other in arms.iter().filter(|other| **other != arm) {
        match (is_better(arm, other), is_better(other, arm)) {
            (true, false) => {
                rank.worst -= 1;
                rank.ahead_of.push((*other).to_owned());
            }
            (false, true) => rank.best += 1,
            (true, true) => rank.mixed_with.push((*other).to_owned()),
            (false, false) => {}
        }
    }
    rank
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(baseline: &'static str, arm: &'static str, verdict: Verdict) -> Call<'static> {
        Call {
            baseline,
            arm,
            verdict,
        }
    }

    #[test]
    fn a_rank_is_as_sure_as_the_calls_are() {
        let calls = [
            call("default", "fast", Verdict::Better),
            call("fast", "slow", Verdict::Worse),
            call("slow", "default", Verdict::Better),
            call("default", "idle", Verdict::Better),
            call("default", "idle", Verdict::Worse),
            call("fast", "idle", Verdict::Unknown),
        ];
        let ranks = rank_by_calls("default", &calls);
        let found: Vec<(&str, usize, usize)> = ranks
            .iter()
            .map(|rank| (rank.arm.as_str(), rank.best, rank.worst))
            .collect();
        let expected = [
            ("fast", 1, 2),
            ("default", 2, 3),
            ("idle", 1, 4),
            ("slow", 3, 4),
        ];
        assert_eq!(found, expected);
        assert_eq!(ranks[1].mixed_with, ["idle"]);
        assert_eq!(ranks[0].ahead_of, ["default", "slow"]);
        let none = [call("default", "fast", Verdict::Unknown)];
        assert!(rank_by_calls("default", &none).is_empty());
    }
}
