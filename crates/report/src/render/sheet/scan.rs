//! Latency over the load, and the knee.

use super::{Sheet, SheetCell, SheetRow, no_interval, plain_cell};
use crate::quantity::with_unit;
use crate::table::across::Scan;
use crate::table::across::scan::{KNEE, ScanArm, ScanPoint};
use model::format_rate;

pub fn of_scan(scan: &Scan) -> Sheet {
    let arms = &scan.arms;
    let mut rates: Vec<f64> = arms
        .iter()
        .flat_map(|arm| &arm.unmeasured_per_sec)
        .copied()
        .collect();
    rates.extend(
        arms.iter()
            .flat_map(|arm| &arm.points)
            .map(|p| p.rate_per_sec),
    );
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let cell = |points: &[ScanPoint], rate: f64| {
        let found = points.iter().find(|p| p.rate_per_sec == rate);
        found.map_or_else(SheetCell::missing_value, |p| {
            scanned(p, &scan.measured.unit)
        })
    };
    let mut rows: Vec<SheetRow> = rates
        .iter()
        .map(|rate| SheetRow {
            labels: vec![format_rate(*rate)],
            cells: arms.iter().map(|arm| cell(&arm.points, *rate)).collect(),
        })
        .collect();
    rows.push(SheetRow {
        labels: vec!["knee".to_owned()],
        cells: arms.iter().map(knee).collect(),
    });
    Sheet {
        title: format!(
            "{}: {} over the offered rate",
            scan.workload, scan.measured.metric
        ),
        caption: scan_caption(),
        labels: vec!["offered".to_owned()],
        columns: arms.iter().map(|arm| arm.arm.clone()).collect(),
        rows,
        ..Sheet::default()
    }
}

/// Caption of a scan, for its table and its picture.
pub fn scan_caption() -> String {
    format!(
        "Geometric mean of the blocks, with its t-interval where the blocks are enough for one. \
         Overloaded: the load was not carried, \
         so the latency is that of a queue. The knee is where the latency rises above {KNEE} times \
         its lowest, or the load is no longer carried."
    )
}

fn scanned(point: &ScanPoint, unit: &str) -> SheetCell {
    let value = with_unit(point.latency.value, unit);
    if point.overloaded {
        return plain_cell("overloaded".to_owned(), format!("a queue of {value}"));
    }
    let detail = match point.latency.low.zip(point.latency.high) {
        Some((low, high)) => format!("{} to {}", with_unit(low, unit), with_unit(high, unit)),
        None => no_interval(point.latency.blocks),
    };
    plain_cell(value, detail)
}

fn knee(arm: &ScanArm) -> SheetCell {
    let (last, beyond) = (arm.knee.knee_per_sec, arm.knee.beyond_per_sec);
    let below = |rate: &&f64| beyond.is_none_or(|beyond| **rate < beyond);
    let hole = arm.unmeasured_per_sec.iter().rev().find(below);
    match (last, beyond, hole) {
        (Some(last), Some(beyond), _) => {
            let text = format!("{} to {}", format_rate(last), format_rate(beyond));
            plain_cell(text, String::new())
        }
        (None, Some(_), Some(hole)) => plain_cell(
            format!("not measured at {}", format_rate(*hole)),
            String::new(),
        ),
        (None, Some(beyond), None) => {
            plain_cell(format!("below {}", format_rate(beyond)), String::new())
        }
        _ => plain_cell("not reached".to_owned(), String::new()),
    }
}
