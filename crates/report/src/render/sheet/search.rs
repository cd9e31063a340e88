//! The highest rate of each arm.

use super::{Sheet, SheetRow, plain_cell};
use crate::quantity::{format_percent, with_unit};
use crate::table::across::Search;
use crate::table::across::search::SearchArm;

pub fn of_search(search: &Search, confidence: f64) -> Sheet {
    let row = |label: String, cell: fn(&SearchArm) -> String| SheetRow {
        labels: vec![label],
        cells: search
            .arms
            .iter()
            .map(|arm| plain_cell(cell(arm), String::new()))
            .collect(),
    };
    let interval = format!("{} % interval", format_percent(confidence));
    let mut rows = vec![
        row("highest rate".to_owned(), highest_rate),
        row(interval, rate_interval),
        row("blocks".to_owned(), |arm| {
            arm.rate_per_sec.map_or(0, |mean| mean.blocks).to_string()
        }),
    ];
    let bounds = search.arms.iter().any(|arm| arm.lower + arm.higher > 0);
    rows.extend(bounds.then(|| row("only a bound".to_owned(), bounded)));
    Sheet {
        title: format!("{}: the highest rate of each arm", search.cell),
        caption: format!(
            "Geometric mean of the rates that the blocks found, with its t-interval.{}",
            match bounds {
                true => " Blocks that found only a bound are in neither.",
                false => "",
            }
        ),
        labels: vec![String::new()],
        columns: search.arms.iter().map(|arm| arm.arm.clone()).collect(),
        rows,
        ..Sheet::default()
    }
}

fn highest_rate(arm: &SearchArm) -> String {
    let mean = arm.rate_per_sec;
    mean.map_or_else(|| "-".to_owned(), |mean| with_unit(mean.value, "1/s"))
}

fn rate_interval(arm: &SearchArm) -> String {
    let ends = arm.rate_per_sec.and_then(|mean| mean.low.zip(mean.high));
    let rate = |value| with_unit(value, "1/s");
    ends.map_or_else(
        || "-".to_owned(),
        |(low, high)| format!("{} to {}", rate(low), rate(high)),
    )
}

/// Blocks whose rate lies beyond those that were tried.
fn bounded(arm: &SearchArm) -> String {
    match (arm.lower, arm.higher) {
        (0, 0) => "-".to_owned(),
        (lower, 0) => format!("{lower} lower"),
        (0, higher) => format!("{higher} higher"),
        (lower, higher) => format!("{lower} lower, {higher} higher"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::across::GeometricMean;

    #[test]
    fn each_arm_of_a_search_has_its_rate_and_what_is_only_a_bound() {
        let arm = |mean: Option<GeometricMean>, lower| SearchArm {
            arm: "default".to_owned(),
            rate_per_sec: mean,
            lower,
            higher: 0,
        };
        let mean = GeometricMean {
            value: 12_000.0,
            low: Some(11_000.0),
            high: Some(13_100.0),
            blocks: 5,
        };
        let search = Search {
            cell: "http".to_owned(),
            index: 0,
            quantile: "p99".to_owned(),
            below_ns: 1_000_000,
            arms: vec![arm(Some(mean), 0), arm(None, 3)],
        };
        let rows = of_search(&search, 0.95).rows;
        let texts = |row: usize| [0, 1].map(|arm: usize| rows[row].cells[arm].text.as_str());
        assert_eq!(texts(0), ["12k/s", "-"]);
        assert_eq!(rows[1].labels, ["95 % interval"]);
        assert_eq!(texts(1), ["11k/s to 13.1k/s", "-"]);
        assert_eq!(texts(3), ["-", "3 lower"]);
    }
}
