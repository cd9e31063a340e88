//! The pictures of each cell.

use super::view::color_of;
use crate::render::chart::{
    self, BlockDots, Estimate, NarrowingLine, PercentileLine, RateLine, TimeLine, TradeOff,
    TriedRates,
};
use crate::render::histogram::{self, Group, Merged};
use crate::render::search_rates::{Tried, read_attempts};
use crate::render::sheet::scan_caption;
use crate::table::across::scan::{ScanArm, ScanPoint};
use crate::table::across::{self, GeometricMean, Scan, Search};
use crate::table::{CellTable, Comparison, Standing, Table, clip_standings};
use model::Better;
use results::ResultSet;

/// The pictures of one cell, as SVG.
#[derive(Debug, Clone, Default)]
pub struct CellCharts {
    pub trade_off: Option<Figure>,
    pub percentiles: Vec<Figure>,
    pub blocks: Vec<Figure>,
    /// Histogram logs that could not be read, and why.
    pub problems: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct Figure {
    pub title: String,
    pub svg: String,
    pub caption: String,
}

/// One entry a cell of the table.
pub fn draw_cells(table: &Table, results: &ResultSet) -> Vec<CellCharts> {
    let mut cells: Vec<CellCharts> = table
        .cells
        .iter()
        .map(|cell| CellCharts {
            trade_off: trade_off_figure(table, cell),
            blocks: block_figures(table, cell),
            ..CellCharts::default()
        })
        .collect();
    let mut drawn = histogram::map_groups(results, |group, merged| {
        // The other logs have no requests that were never sent or answered.
        let overloaded =
            group.name == "request" && across::is_overloaded(results, group.cell, group.arm);
        line(table, group, merged, overloaded)
    });
    drawn.sort_by_key(|of| (of.cell, rank(&table.cells[of.cell], &of.name)));
    let same = |a: &Drawn, b: &Drawn| a.cell == b.cell && a.name == b.name;
    for figure in drawn.chunk_by(same) {
        let cell = &mut cells[figure[0].cell];
        cell.percentiles.extend(percentile_figure(figure));
        cell.percentiles.extend(time_figure(figure));
        let problems = figure.iter().flat_map(|drawn| drawn.problems.clone());
        cell.problems.extend(problems);
    }
    cells
}

/// Position of the first metric that comes from the log `name`: pictures have the
/// order of the metrics.
fn rank(cell: &CellTable, name: &str) -> usize {
    let prefix = format!("{name}_");
    let mut metrics = cell.metrics.iter();
    let position = metrics.position(|row| row.metric.starts_with(&prefix));
    position.unwrap_or(usize::MAX)
}

/// Lines that one arm adds to a percentile chart.
struct Drawn {
    cell: usize,
    name: String,
    arm: String,
    samples: u64,
    line: PercentileLine,
    over_time: TimeLine,
    problems: Vec<String>,
}

fn line(table: &Table, group: &Group, merged: Merged, overloaded: bool) -> Drawn {
    let arm = &table.arms[group.arm].name;
    Drawn {
        cell: group.cell,
        name: group.name.clone(),
        arm: arm.clone(),
        samples: merged.histogram.len(),
        line: PercentileLine {
            color: color_of(table, arm),
            merged: histogram::percentile_curve(&merged.histogram),
            blocks: merged.blocks,
            overloaded,
        },
        over_time: TimeLine {
            color: color_of(table, arm),
            points: merged.over_time.p99_points(),
            overloaded,
        },
        problems: merged.problems,
    }
}

fn percentile_figure(drawn: &[Drawn]) -> Option<Figure> {
    let lines: Vec<PercentileLine> = drawn.iter().map(|d| d.line.clone()).collect();
    let fewest = drawn.iter().map(|d| d.samples).min().unwrap_or(0);
    Some(Figure {
        title: format!("{} by percentile", of_log(&drawn[0].name)),
        svg: chart::draw_percentiles(&lines, &of_log(&drawn[0].name))?,
        caption: format!(
            "Strong: all trials of an arm merged, at least {} samples. Faint: single trials. A \
             curve ends where fewer than 10 samples lie beyond.{}",
            crate::quantity::with_unit(fewest as f64, "count"),
            overload_caption(
                drawn,
                "so the curve is that of a queue as long as the window"
            )
        ),
    })
}

/// Description of the contents of a histogram log.
fn of_log(name: &str) -> String {
    match name {
        "service" => "service time".to_owned(),
        "generator-lateness" => "generator lateness".to_owned(),
        name => format!("{name} latency"),
    }
}

fn time_figure(drawn: &[Drawn]) -> Option<Figure> {
    let lines: Vec<TimeLine> = drawn.iter().map(|d| d.over_time.clone()).collect();
    Some(Figure {
        title: format!("{} over time, p99", of_log(&drawn[0].name)),
        svg: chart::over_time(&lines, "p99")?,
        caption: format!(
            "Each second of the window, all trials of an arm merged; seconds with fewer than 1000 \
             samples are left out.{}",
            overload_caption(drawn, "so the last seconds fall")
        ),
    })
}

/// Meaning of hollow circles; empty without any.
fn overload_caption(drawn: &[Drawn], so: &str) -> String {
    let overloaded = drawn.iter().filter(|d| d.line.overloaded);
    let arms: Vec<&str> = overloaded.map(|d| d.arm.as_str()).collect();
    match arms.is_empty() {
        true => String::new(),
        false => format!(
            " Hollow circles: {} overloaded; requests without an answer count with their age at \
             the end, {so}.",
            arms.join(", ")
        ),
    }
}

/// The first deciding throughput against the first deciding latency, where a cell
/// has both.
fn trade_off_figure(table: &Table, cell: &CellTable) -> Option<Figure> {
    let throughput = cell
        .deciding_comparisons()
        .find(|c| c.better == Better::Higher)?;
    let latency = cell
        .deciding_comparisons()
        .find(|c| c.better == Better::Lower && c.unit == "ns")?;
    let points: Vec<TradeOff> = table
        .arms
        .iter()
        .filter_map(|arm| {
            let of = |metric: &str| {
                let mut found = cell.deciding_comparisons();
                estimate(found.find(|c| c.metric == metric && c.arm == arm.name)?)
            };
            Some(TradeOff {
                color: color_of(table, &arm.name),
                name: arm.name.clone(),
                throughput: of(&throughput.metric)?,
                latency: of(&latency.metric)?,
            })
        })
        .collect();
    let labels = (throughput.metric.as_str(), latency.metric.as_str());
    Some(Figure {
        title: format!("{} against {}", latency.metric, throughput.metric),
        svg: chart::trade_off(&points, labels, table.experiment.smallest_effect)?,
        caption: format!(
            "{} is at the crossing. Right is more throughput, down is less latency; the bars are \
             the intervals of both. Grey: changes below {} %.",
            throughput.baseline,
            crate::quantity::format_percent(table.experiment.smallest_effect)
        ),
    })
}

/// The pictures of the scans over rates.
pub fn draw_scans(table: &Table) -> Vec<Figure> {
    let scans = table.across.scans.iter();
    scans.filter_map(|scan| scan_figure(table, scan)).collect()
}

/// The pictures of what searches tried.
pub fn draw_searches(table: &Table, results: &ResultSet) -> Vec<Figure> {
    let searches = table.across.searches.iter();
    let figure = |search| search_figure(table, results, search);
    searches.filter_map(figure).collect()
}

fn search_figure(table: &Table, results: &ResultSet, search: &Search) -> Option<Figure> {
    let arms = search.arms.iter().enumerate();
    let arms: Vec<TriedRates> = arms
        .map(|(index, arm)| tried_rates(results, (search.index, index), color_of(table, &arm.arm)))
        .collect();
    Some(Figure {
        title: format!("{}: what was tried", search.cell),
        svg: chart::tried_rates(&arms, search.below_ns as f64, &search.quantile)?,
        caption:
            "One point for each rate that a trial tried: filled where it held, hollow where it \
                  failed. The line is the limit; a rate can also fail by its errors, or by what \
                  was not answered."
                .to_owned(),
    })
}

fn tried_rates(results: &ResultSet, (cell, arm): (usize, usize), color: usize) -> TriedRates {
    let trials = results.trials.iter().filter(|stored| {
        let place = &stored.trial.place;
        stored.trial.is_ok() && (place.cell, place.arm) == (cell, arm)
    });
    let tried: Vec<Tried> = trials
        .flat_map(|stored| read_attempts(&stored.dir))
        .collect();
    let points = |held| {
        let tried = tried.iter().filter(|t| t.held == held);
        tried.map(|t| (t.rate_per_sec, t.quantile_ns)).collect()
    };
    TriedRates {
        color,
        held: points(true),
        failed: points(false),
    }
}

fn scan_figure(table: &Table, scan: &Scan) -> Option<Figure> {
    let line = |arm: &ScanArm| RateLine {
        color: color_of(table, &arm.arm),
        name: arm.arm.clone(),
        runs: runs(arm),
        overloaded: overloaded(arm),
        knee_per_sec: arm.knee.knee_per_sec,
    };
    let lines: Vec<RateLine> = scan.arms.iter().map(line).collect();
    Some(Figure {
        title: format!(
            "{}: {} over the offered rate",
            scan.workload, scan.measured.metric
        ),
        svg: chart::draw_rates(&lines, &scan.measured.metric)?,
        caption: format!(
            "{} A hollow circle at the top is an overloaded rate, a vertical line the last rate \
             before the knee. No line joins points with an unmeasured rate between them.",
            scan_caption()
        ),
    })
}

/// The rates that were carried, apart where one between them was not measured.
fn runs(arm: &ScanArm) -> Vec<Vec<(f64, Estimate)>> {
    let hole = |a: &&ScanPoint, b: &&ScanPoint| {
        let mut unmeasured = arm.unmeasured_per_sec.iter();
        unmeasured.any(|rate| a.rate_per_sec < *rate && *rate < b.rate_per_sec)
    };
    let joined = |a: &&ScanPoint, b: &&ScanPoint| !hole(a, b) && a.overloaded == b.overloaded;
    let points: Vec<&ScanPoint> = arm.points.iter().collect();
    let runs = points.chunk_by(joined).filter(|run| !run[0].overloaded);
    runs.map(|run| run.iter().map(|p| drawn_point(p)).collect())
        .collect()
}

fn overloaded(arm: &ScanArm) -> Vec<f64> {
    let overloaded = arm.points.iter().filter(|p| p.overloaded);
    overloaded.map(|p| p.rate_per_sec).collect()
}

fn drawn_point(p: &ScanPoint) -> (f64, Estimate) {
    let GeometricMean {
        value, low, high, ..
    } = p.latency;
    let estimate = Estimate {
        ratio: value,
        low: low.unwrap_or(value),
        high: high.unwrap_or(value),
    };
    (p.rate_per_sec, estimate)
}

fn estimate(c: &Comparison) -> Option<Estimate> {
    Some(Estimate {
        ratio: c.ratio?,
        low: c.low?,
        high: c.high?,
    })
}

fn block_figures(table: &Table, cell: &CellTable) -> Vec<Figure> {
    let deciding: Vec<&Comparison> = cell.deciding_comparisons().collect();
    deciding
        .chunk_by(|a, b| a.metric == b.metric)
        .flat_map(|of_metric| {
            let figures = [
                block_figure(table, of_metric),
                narrowing_figure(table, of_metric),
            ];
            figures.into_iter().flatten()
        })
        .collect()
}

/// The way of the intervals. Differences have another unit than the chart.
fn narrowing_figure(table: &Table, comparisons: &[&Comparison]) -> Option<Figure> {
    let by_ratio = comparisons.iter().filter(|c| c.difference.is_none());
    let lines: Vec<NarrowingLine> = by_ratio
        .map(|c| NarrowingLine {
            color: color_of(table, &c.arm),
            points: clip_standings(&c.narrowing, false)
                .iter()
                .filter_map(narrowing_point)
                .collect(),
        })
        .collect();
    let first = comparisons.first()?;
    Some(Figure {
        title: format!("{}, how the interval narrowed", first.metric),
        svg: chart::draw_narrowing(&lines, &first.metric, table.experiment.smallest_effect)?,
        caption: "Change and interval as they stood after so many blocks. The interval holds at \
                  every look, so the run may end where it is narrow enough."
            .to_owned(),
    })
}

fn narrowing_point(standing: &Standing) -> Option<(f64, [f64; 3])> {
    let ends = [standing.change, standing.low?, standing.high?];
    Some((standing.blocks as f64, ends))
}

fn block_figure(table: &Table, comparisons: &[&Comparison]) -> Option<Figure> {
    let arms: Vec<BlockDots> = comparisons
        .iter()
        .map(|c| BlockDots {
            color: color_of(table, &c.arm),
            name: c.arm.clone(),
            points: c
                .block_ratios
                .iter()
                .map(|point| (f64::from(point.block), point.ratio))
                .collect(),
        })
        .collect();
    let first = comparisons.first()?;
    Some(Figure {
        title: format!("{}, every block against {}", first.metric, first.baseline),
        svg: chart::draw_blocks(&arms, &first.metric, table.experiment.smallest_effect)?,
        caption: format!(
            "One point a block, in the order of time; {}. Verdict and interval come from these \
             points. Grey: \
             changes below {} %.",
            crate::words::direction_word(first.better),
            crate::quantity::format_percent(table.experiment.smallest_effect)
        ),
    })
}
