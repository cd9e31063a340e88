//! A search for the highest rate that ends where it began, or at its end, gives only a
//! bound, and marks it.
//!
//! Two bounds of the same kind say nothing about which rate is higher, so their block is
//! left out. A bound beside a rate that was found stays: the true ratio is further from
//! 1 than theirs, so a call that they differ is right, and says too little.

use model::Trial;

/// The mark that the search gives: -1, 0 or 1.
pub const MARK: &str = "slo_bound";
/// Metric that the mark belongs to.
pub const METRIC: &str = "slo_rate";

/// Direction in which the true rate is bounded by the one that was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The rate is lower than the one given.
    Lower,
    /// It is higher.
    Higher,
}

/// `None`: the metric is what it says.
pub fn find_bound(trial: &Trial, metric: &str) -> Option<Bound> {
    let mark = trial.metric(MARK).filter(|_| metric == METRIC)?;
    match mark.value {
        value if value < 0.0 => Some(Bound::Lower),
        value if value > 0.0 => Some(Bound::Higher),
        _ => None,
    }
}
