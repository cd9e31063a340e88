//! What is seen across cells or arms, as sheets of text with a tint: the same rows in
//! the terminal, in markdown and on the page.

use crate::across::interference::Slowdown;
use crate::across::scan::{KNEE, ScanPoint};
use crate::across::{Grid, Interference, Scan};
use crate::quantity::{change, interval, with_unit};
use crate::table::{Table, Verdict};
use crate::why::{Change, Companion, Kind, Why};
use model::{Better, format_rate};

/// A change of this factor has the full tint.
const FULL_TINT: f64 = 4.0;

#[derive(Debug, Clone, PartialEq)]
pub struct Sheet {
    pub title: String,
    pub caption: String,
    /// Heads of the labels, then of the cells.
    pub labels: Vec<String>,
    pub columns: Vec<String>,
    pub rows: Vec<SheetRow>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SheetRow {
    pub labels: Vec<String>,
    pub cells: Vec<SheetCell>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct SheetCell {
    pub text: String,
    /// The interval, or why there is none.
    pub detail: String,
    /// From -100 (bad) to 100 (good); 0 is plain.
    pub tint: i32,
    /// The interval leaves no doubt that there is a change, or that there is none.
    pub sure: bool,
}

impl SheetCell {
    fn missing() -> Self {
        SheetCell {
            text: "-".to_owned(),
            detail: "not measured".to_owned(),
            ..SheetCell::default()
        }
    }
}

/// In the order in which a report shows them.
pub fn sheets(table: &Table) -> Vec<Sheet> {
    let across = &table.across;
    let interference = across.interference.iter().map(of_interference);
    let grids = across.grids.iter().map(|grid| of_grid(table, grid));
    let scans = across.scans.iter().map(of_scan);
    let whys = across.why.iter().map(of_why);
    interference.chain(grids).chain(scans).chain(whys).collect()
}

/// So many counters are shown; the JSON report has all.
const MOST_COUNTERS: usize = 8;

fn of_why(why: &Why) -> Sheet {
    let rows = why.counters.iter().take(MOST_COUNTERS);
    let rows = rows.map(|companion| SheetRow {
        labels: vec![companion.counter.clone()],
        cells: vec![moved(companion), together(companion)],
    });
    Sheet {
        title: format!(
            "{}, {}: what moved beside {}",
            why.cell, why.arm, why.metric
        ),
        caption: format!(
            "With it: from block to block it went up and down with {} (Kendall's rank correlation); the \
             others only moved. Neither proves a cause; having only moved speaks against one.",
            why.metric
        ),
        labels: vec!["counter".to_owned()],
        columns: vec!["change".to_owned(), "with it".to_owned()],
        rows: rows.collect(),
    }
}

fn moved(companion: &Companion) -> SheetCell {
    let unit = &companion.unit;
    let signed = |value: f64| match value < 0.0 {
        true => format!("-{}", with_unit(-value, unit)),
        false => format!("+{}", with_unit(value, unit)),
    };
    let (text, detail) = match companion.change {
        Change::Ratio(e) => (change(e.mean), detail(e.interval, companion.blocks)),
        Change::Difference(e) => (
            signed(e.mean),
            e.interval.map_or_else(String::new, |(low, high)| {
                format!("[{}, {}]", signed(low), signed(high))
            }),
        ),
    };
    SheetCell {
        text,
        detail,
        tint: 0,
        sure: true,
    }
}

fn together(companion: &Companion) -> SheetCell {
    let text = match (companion.kind, companion.tau) {
        (Kind::Together, Some(tau)) => format!("{tau:+.2}"),
        _ => "only moved".to_owned(),
    };
    SheetCell {
        text,
        detail: String::new(),
        tint: 0,
        sure: true,
    }
}

fn of_interference(matrix: &Interference) -> Sheet {
    let placed = matrix.rows.iter().any(|row| row.placement.is_some());
    let mut labels = vec!["beside".to_owned(), "load".to_owned()];
    labels.extend(placed.then(|| "placement".to_owned()));
    let rows = matrix.rows.iter().map(|row| {
        let mut labels = vec![row.beside.clone(), row.load.clone()];
        labels.extend(placed.then(|| row.placement.clone().unwrap_or_default()));
        let cells = row.arms.iter().map(|slowdown| match slowdown {
            Some(slowdown) => slowed(slowdown, matrix.measured.better),
            None => SheetCell::missing(),
        });
        SheetRow {
            labels,
            cells: cells.collect(),
        }
    });
    Sheet {
        title: format!(
            "{} beside others: {}",
            matrix.service, matrix.measured.metric
        ),
        caption:
            "The service beside the antagonist over the same service alone, under the same arm and \
                  within the same blocks. The worst rows first."
                .to_owned(),
        columns: matrix.arms.clone(),
        rows: rows.collect(),
        labels,
    }
}

fn slowed(slowdown: &Slowdown, better: Better) -> SheetCell {
    let ends = slowdown.low.zip(slowdown.high);
    SheetCell {
        text: change(slowdown.ratio),
        detail: detail(ends, slowdown.blocks),
        tint: tint(slowdown.ratio, better),
        sure: ends.is_some_and(|(low, high)| low > 1.0 || high < 1.0),
    }
}

fn of_grid(table: &Table, grid: &Grid) -> Sheet {
    let fixed: Vec<String> = grid
        .fixed
        .iter()
        .map(|(k, v)| format!(", {k} {v}"))
        .collect();
    let rows = grid.rows.iter().map(|row| {
        let cells = row.points.iter().map(|point| match point {
            None => SheetCell::missing(),
            Some(point) => SheetCell {
                text: point.ratio.map_or_else(|| "-".to_owned(), change),
                detail: detail(point.low.zip(point.high), point.blocks),
                tint: point.ratio.map_or(0, |r| tint(r, grid.measured.better)),
                sure: point.verdict != Verdict::Unknown,
            },
        });
        SheetRow {
            labels: vec![row.value.clone()],
            cells: cells.collect(),
        }
    });
    let down = grid.down.clone().unwrap_or_default();
    Sheet {
        title: format!("{}: {}{}", grid.cell, grid.measured.metric, fixed.concat()),
        caption: format!(
            "{} across{}, against {}. A cell in brackets (hatched on the page) has no verdict.",
            grid.across,
            match down.as_str() {
                "" => String::new(),
                down => format!(", {down} down"),
            },
            table.baseline()
        ),
        labels: vec![down],
        columns: grid
            .columns
            .iter()
            .map(|value| format!("{} {value}", grid.across))
            .collect(),
        rows: rows.collect(),
    }
}

fn of_scan(scan: &Scan) -> Sheet {
    let mut rates: Vec<f64> = Vec::new();
    for point in scan.arms.iter().flat_map(|arm| &arm.points) {
        if !rates.contains(&point.rate_per_sec) {
            rates.push(point.rate_per_sec);
        }
    }
    rates.sort_by(f64::total_cmp);
    let cell = |points: &[ScanPoint], rate: f64| {
        let found = points.iter().find(|p| p.rate_per_sec == rate);
        found.map_or_else(SheetCell::missing, |p| scanned(p, &scan.measured.unit))
    };
    let mut rows: Vec<SheetRow> = rates
        .iter()
        .map(|rate| SheetRow {
            labels: vec![format_rate(*rate)],
            cells: scan
                .arms
                .iter()
                .map(|arm| cell(&arm.points, *rate))
                .collect(),
        })
        .collect();
    rows.push(SheetRow {
        labels: vec!["knee".to_owned()],
        cells: scan.arms.iter().map(|arm| knee(arm.knee_per_sec)).collect(),
    });
    Sheet {
        title: format!(
            "{}: {} over the offered rate",
            scan.workload, scan.measured.metric
        ),
        caption: scan_caption(),
        labels: vec!["offered".to_owned()],
        columns: scan.arms.iter().map(|arm| arm.arm.clone()).collect(),
        rows,
    }
}

/// Also for the picture.
pub fn scan_caption() -> String {
    format!(
        "Geometric mean of the blocks, with its t-interval. The knee is the last rate before the \
         latency is above {KNEE} times its lowest."
    )
}

fn scanned(point: &ScanPoint, unit: &str) -> SheetCell {
    let ends = point.low.zip(point.high);
    SheetCell {
        text: with_unit(point.value, unit),
        detail: match ends {
            Some((low, high)) => format!("{} to {}", with_unit(low, unit), with_unit(high, unit)),
            None => "one block".to_owned(),
        },
        tint: 0,
        sure: true,
    }
}

fn knee(rate: Option<f64>) -> SheetCell {
    SheetCell {
        text: rate.map_or_else(|| "-".to_owned(), format_rate),
        detail: match rate {
            Some(_) => String::new(),
            None => "not reached".to_owned(),
        },
        tint: 0,
        sure: true,
    }
}

fn detail(ends: Option<(f64, f64)>, blocks: usize) -> String {
    match ends {
        Some((low, high)) => interval(low, high),
        None => format!("{blocks} blocks, no interval"),
    }
}

fn tint(ratio: f64, better: Better) -> i32 {
    let good = match better {
        Better::Higher => ratio.ln(),
        Better::Lower => -ratio.ln(),
        Better::Neither => 0.0,
    };
    (100.0 * (good / FULL_TINT.ln()).clamp(-1.0, 1.0)).round() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tint_is_by_the_good_direction() {
        assert_eq!(tint(4.0, Better::Lower), -100);
        assert_eq!(tint(2.0, Better::Higher), 50);
        assert_eq!(tint(1.0, Better::Higher), 0);
        assert_eq!(tint(1e9, Better::Neither), 0);
    }

    #[test]
    fn a_slowdown_whose_interval_has_1_inside_is_not_sure() {
        let slowdown = |low, high| Slowdown {
            ratio: 1.5,
            low: Some(low),
            high: Some(high),
            blocks: 6,
        };
        assert!(slowed(&slowdown(1.2, 1.9), Better::Lower).sure);
        assert!(!slowed(&slowdown(0.9, 2.5), Better::Lower).sure);
    }
}
