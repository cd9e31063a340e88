//! Does a report say what its results say? Every number is made again, from the
//! trials to the report and from the raw histograms to the trials.

mod histograms;
mod numbers;
mod outputs;
mod pages;
mod windows;

pub use histograms::{LogOf, verify_histograms};
pub use numbers::{verify_certificate, verify_report};
pub use outputs::{ReadAgain, verify_outputs};
pub use pages::first_difference;

use model::printable::one_line;
use std::collections::BTreeMap;

/// One place where what was said is not what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Path of the value in the report, such as `report.cells[0 wakeup 100%].block_ns`, or the
    /// trial and the metric that it belongs to.
    pub place: String,
    /// Value that was stored.
    pub said: String,
    /// Value that the results give now.
    pub found: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [place, said, found] = [&self.place, &self.said, &self.found].map(|t| one_line(t));
        write!(f, "{place}: says {said}, recomputed {found}")
    }
}

/// Numbers that were compared, and their differences.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verification {
    /// Numbers that were recomputed.
    pub numbers: usize,
    /// Figures that nothing can be compared with, and how many there are of each.
    pub taken: BTreeMap<String, usize>,
    /// Differences in the order in which the numbers are stored; of a report the first 200.
    pub differences: Vec<Difference>,
}

fn is_near(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * a.abs().max(b.abs())
}
