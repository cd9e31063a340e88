//! Findings across cells or arms, as sheets of text with a tint: the same rows in the terminal,
//! in markdown and on the page.

mod worst;

use crate::quantity::{change, count, factor, interval, percent, with_unit};
use crate::render::chart::tick;
use crate::render::requests;
use crate::table::across::grid::GridPoint;
use crate::table::across::interference::Slowdown;
use crate::table::across::scan::{KNEE, ScanArm, ScanPoint};
use crate::table::across::search::SearchArm;
use crate::table::across::sequential::{Level, Row};
use crate::table::across::{Grid, Interference, Measured, Scan, Search, Sequential};
use crate::table::why::{Change, Companion, Kind, Why};
use crate::table::{ArmInfo, Table, Verdict};
use model::{Better, format_rate};

/// A slowdown of this factor has the full tint.
const FULL_SLOWDOWN: f64 = 4.0;
/// A change of this factor has the full tint of a heat map: -50 % or x2.
const FULL_HEAT: f64 = 2.0;
/// Heat maps with more columns show colours only; the figures are in the tooltips.
const MOST_FIGURES: usize = 8;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sheet {
    pub title: String,
    pub caption: String,
    /// Word for the cells that are in brackets in text and hatched on the page; empty without
    /// such cells.
    pub doubt: &'static str,
    /// Changes and their tints, of a heat map.
    pub scale: Vec<SheetCell>,
    /// Too many columns for figures on a page.
    pub dense: bool,
    /// Columns that are read together: they stay in one line of text that has room for them.
    pub together: bool,
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

impl Sheet {
    /// The caption, with what doubt looks like where the reader is.
    pub fn caption(&self, mark: &str) -> String {
        match self.doubt {
            "" => self.caption.clone(),
            doubt => format!("{} {mark}: {doubt}.", self.caption),
        }
    }
}

impl SheetCell {
    pub fn missing() -> Self {
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
    let searches = across.searches.iter();
    let searches = searches.map(|search| of_search(search, table.experiment.confidence));
    let sequential = across.sequential.iter();
    let sequential = sequential.flat_map(|sequential| of_sequential(table, sequential));
    let worst = across.worst.iter().map(worst::of_worst);
    sequential
        .chain(interference)
        .chain(grids)
        .chain(scans)
        .chain(searches)
        .chain(worst)
        .chain(requests::sheets(table))
        .collect()
}

/// Most counters of a kind that are shown; the JSON report has all.
const MOST_COUNTERS: usize = 8;

/// The counters beside one call.
#[derive(Debug, Clone, PartialEq)]
pub struct Moved {
    /// Those that followed it from block to block.
    pub together: Option<Sheet>,
    /// `wakeup 100%, batch: changed without following wakeup_p99`; empty without any.
    pub alone: String,
    /// Those counters with their changes.
    pub others: Vec<String>,
}

/// Counters that moved beside a call, for each such call, in the order of the cells.
pub fn moved(table: &Table) -> Vec<Moved> {
    table.across.why.iter().map(of_why).collect()
}

/// Those of one cell.
pub fn moved_in(table: &Table, cell: &str) -> Vec<Moved> {
    let whys = table.across.why.iter();
    whys.filter(|why| why.cell == cell).map(of_why).collect()
}

fn of_why(why: &Why) -> Moved {
    let (together, alone): (Vec<&Companion>, Vec<&Companion>) = why
        .counters
        .iter()
        .partition(|companion| companion.kind == Kind::Together);
    let place = format!("{}, {}", why.cell, why.arm);
    let mut others: Vec<String> = alone.iter().take(MOST_COUNTERS).map(named).collect();
    let more = alone.len() - others.len();
    others.extend((more > 0).then(|| format!("and {more} more")));
    Moved {
        together: (!together.is_empty()).then(|| followers(why, &place, &together)),
        alone: match alone.is_empty() {
            true => String::new(),
            false => format!("{place}: changed without following {}", why.metric),
        },
        others,
    }
}

fn followers(why: &Why, place: &str, together: &[&Companion]) -> Sheet {
    let rows = together.iter().take(MOST_COUNTERS);
    let rows = rows.map(|companion| {
        let (text, detail) = change_of(companion);
        let tau = companion
            .tau
            .map_or_else(String::new, |tau| format!("{tau:+.2}"));
        SheetRow {
            labels: vec![companion.counter.clone()],
            cells: vec![plain(text, detail), plain(tau, String::new())],
        }
    });
    Sheet {
        title: format!("{place}: what moved with {}", why.metric),
        caption: format!(
            "How closely it went up and down with {} from block to block (Kendall's rank \
             correlation). This proves no cause: it says where to look.",
            why.metric
        ),
        labels: vec!["counter".to_owned()],
        columns: vec!["change".to_owned(), "how closely".to_owned()],
        rows: rows.collect(),
        ..Sheet::default()
    }
}

/// `voluntary_switches -9.0% [-12.2%, -5.6%]`.
fn named(companion: &&Companion) -> String {
    let (text, detail) = change_of(companion);
    format!("{} {text} {detail}", companion.counter)
}

/// The change and its interval.
fn change_of(companion: &Companion) -> (String, String) {
    let unit = &companion.unit;
    let signed = |value: f64| match value < 0.0 {
        true => format!("-{}", with_unit(-value, unit)),
        false => format!("+{}", with_unit(value, unit)),
    };
    match companion.change {
        Change::Ratio(e) => (change(e.mean), detail(e.interval, companion.blocks)),
        Change::Difference(e) => (
            signed(e.mean),
            e.interval.map_or_else(String::new, |(low, high)| {
                format!("[{}, {}]", signed(low), signed(high))
            }),
        ),
    }
}

/// A sheet for each arm beside the baseline and each metric of a benchmark; one for the baseline
/// where it is alone.
fn of_sequential(table: &Table, sequential: &Sequential) -> Vec<Sheet> {
    let is_other = |index: &usize| !table.arms[*index].baseline;
    let mut arms: Vec<usize> = (0..table.arms.len()).filter(is_other).collect();
    if arms.is_empty() {
        arms = vec![0];
    }
    let mut groups: Vec<(String, Vec<&Row>)> = Vec::new();
    for row in &sequential.rows {
        let title = format!("{} {}", row.benchmark(), row.measured.metric);
        match groups.iter_mut().find(|(known, _)| *known == title) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((title, vec![row])),
        }
    }
    let sheets = groups.iter().flat_map(|(title, rows)| {
        let arms = arms.iter();
        arms.map(move |arm| beside_baseline(table, title, rows, *arm))
    });
    let mut sheets: Vec<Sheet> = sheets.collect();
    if let Some(last) = sheets.last_mut() {
        last.caption = "Mean, standard deviation in percent of it, and runs of each arm; the ratio of \
                        the geometric means, and Welch's interval of it, which holds only if all runs \
                        are independent and nothing but the arm changed between them."
            .to_owned();
    }
    sheets
}

fn beside_baseline(table: &Table, title: &str, rows: &[&Row], arm: usize) -> Sheet {
    let is_baseline = |arm: &ArmInfo| arm.baseline;
    let baseline = table.arms.iter().position(is_baseline).unwrap_or(0);
    let name = &table.arms[arm].name;
    let alone = arm == baseline;
    let rows = rows.iter().map(|row| {
        let of = |arm: usize| level(row.arms.get(arm).copied().flatten(), &row.measured.unit);
        let mut cells = vec![of(baseline)];
        if !alone {
            cells.push(of(arm));
            cells.extend(apart(row, name));
        }
        let cell = row
            .cell
            .strip_prefix(row.benchmark())
            .unwrap_or(&row.cell)
            .trim();
        let cell = if cell.is_empty() { &row.cell } else { cell };
        SheetRow {
            labels: vec![cell.to_owned()],
            cells,
        }
    });
    let mut columns = vec![table.arms[baseline].name.clone()];
    if !alone {
        let interval = format!("{} % if independent", percent(table.experiment.confidence));
        columns.extend([name.clone(), "change".to_owned(), interval]);
    }
    Sheet {
        title: match alone {
            true => format!("{title}: {name}"),
            false => format!("{title}: {name} beside {}", columns[0]),
        },
        columns,
        labels: vec!["cell".to_owned()],
        rows: rows.collect(),
        ..Sheet::default()
    }
}

/// `12.3 s +-2.1% (10)`.
fn level(level: Option<Level>, unit: &str) -> SheetCell {
    let Some(level) = level else {
        return SheetCell::missing();
    };
    let mean = with_unit(level.mean, unit);
    let text = match level.std_percent.filter(|_| level.figures > 1) {
        Some(std) => format!("{mean} +-{std:.2}% ({})", level.runs),
        None => format!("{mean} ({})", level.runs),
    };
    plain(text, String::new())
}

fn apart(row: &Row, arm: &str) -> [SheetCell; 2] {
    let Some(found) = row.changes.iter().find(|change| change.arm == arm) else {
        return [SheetCell::missing(), SheetCell::missing()];
    };
    let ends = found.low.zip(found.high);
    let ends = ends.map_or_else(|| "-".to_owned(), |(low, high)| interval(low, high));
    let by = found.ratio.map_or_else(|| "-".to_owned(), change);
    [plain(by, String::new()), plain(ends, String::new())]
}

fn of_interference(matrix: &Interference) -> Sheet {
    let placed = matrix.rows.iter().any(|row| row.placement.is_some());
    let mut labels = vec!["beside".to_owned(), "load".to_owned()];
    labels.extend(placed.then(|| "placement".to_owned()));
    let rows = matrix.rows.iter().map(|row| {
        let mut labels = vec![row.beside.clone(), row.load.clone()];
        labels.extend(placed.then(|| row.placement.clone().unwrap_or_default()));
        let cells = row.arms.iter().map(|slowdown| match slowdown {
            Some(slowdown) => slowed(slowdown, &matrix.measured),
            None => SheetCell::missing(),
        });
        SheetRow {
            labels,
            cells: cells.collect(),
        }
    });
    Sheet {
        title: format!(
            "{} beside others: slowdown of {}",
            matrix.service, matrix.measured.metric
        ),
        caption: interference_caption(matrix),
        doubt: "no interval, or one that includes x1",
        columns: matrix.arms.clone(),
        rows: rows.collect(),
        labels,
        ..Sheet::default()
    }
}

fn interference_caption(matrix: &Interference) -> String {
    let cells = matrix.rows.iter().flat_map(|row| row.arms.iter().flatten());
    let by_goodput = cells
        .into_iter()
        .any(|s| s.metric != matrix.measured.metric);
    let goodput = match by_goodput {
        true => {
            " goodput: the load was not carried beside it or alone, so the slowdown is that of \
                 requests_per_sec."
        }
        false => "",
    };
    format!(
        "How many times as bad the service is beside the antagonist as alone, under the same arm \
         and within the same blocks: x1 is no slowdown. The worst rows first.{goodput}"
    )
}

fn slowed(slowdown: &Slowdown, measured: &Measured) -> SheetCell {
    let ends = slowdown.ends();
    let of = match slowdown.metric == measured.metric {
        true => "",
        false => " goodput",
    };
    SheetCell {
        text: format!("{}{of}", factor(slowdown.factor())),
        detail: match ends {
            Some((low, high)) => format!("[{}, {}]", factor(low), factor(high)),
            None => no_interval(slowdown.blocks),
        },
        tint: tint(slowdown.factor(), Better::Lower, FULL_SLOWDOWN),
        sure: ends.is_some_and(|(low, high)| low > 1.0 || high < 1.0),
    }
}

fn of_grid(table: &Table, grid: &Grid) -> Sheet {
    let fixed: Vec<String> = grid
        .fixed
        .iter()
        .map(|(k, v)| format!(", {k} {v}"))
        .collect();
    let better = grid.measured.better;
    let form = form(grid);
    let rows = grid.rows.iter().map(|row| SheetRow {
        labels: vec![row.value.clone()],
        cells: row
            .points
            .iter()
            .map(|point| heat(point.as_ref(), better, form))
            .collect(),
    });
    let down = grid.down.clone().unwrap_or_default();
    let dense = grid.columns.len() > MOST_FIGURES;
    let heads = grid.columns.iter().map(|value| match dense {
        true => value.clone(),
        false => format!("{} {value}", grid.across),
    });
    Sheet {
        title: format!("{}: {}{}", grid.cell, grid.measured.metric, fixed.concat()),
        caption: format!(
            "{} across{}, against {}.",
            grid.across,
            match down.as_str() {
                "" => String::new(),
                down => format!(", {down} down"),
            },
            table.baseline()
        ),
        doubt: "no verdict",
        scale: scale(better),
        dense,
        together: false,
        labels: vec![down],
        columns: heads.collect(),
        rows: rows.collect(),
    }
}

/// Form in which all changes of a grid are written: factors if one of them is a doubling or a
/// halving.
fn form(grid: &Grid) -> fn(f64) -> String {
    let points = grid.rows.iter().flat_map(|row| row.points.iter().flatten());
    let mut ratios = points.filter_map(|point| point.ratio);
    match ratios.any(|ratio| !(0.5..2.0).contains(&ratio)) {
        true => factor,
        false => change,
    }
}

fn heat(point: Option<&GridPoint>, better: Better, form: fn(f64) -> String) -> SheetCell {
    let Some(point) = point else {
        return SheetCell::missing();
    };
    SheetCell {
        text: point.ratio.map_or_else(|| "-".to_owned(), form),
        detail: match point.low.zip(point.high) {
            Some((low, high)) => format!("[{}, {}]", form(low), form(high)),
            None => no_interval(point.blocks),
        },
        tint: point.ratio.map_or(0, |r| tint(r, better, FULL_HEAT)),
        sure: point.verdict != Verdict::Unknown,
    }
}

/// The legend of a heat map, from the left end of its colours to the right one.
fn scale(better: Better) -> Vec<SheetCell> {
    const STEPS: [f64; 9] = [0.5, 0.65, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0];
    let step = |ratio: f64| SheetCell {
        text: tick(ratio),
        tint: tint(ratio, better, FULL_HEAT),
        sure: true,
        ..SheetCell::default()
    };
    STEPS.into_iter().map(step).collect()
}

fn of_scan(scan: &Scan) -> Sheet {
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
        found.map_or_else(SheetCell::missing, |p| scanned(p, &scan.measured.unit))
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

fn of_search(search: &Search, confidence: f64) -> Sheet {
    let row = |label: String, cell: fn(&SearchArm) -> String| SheetRow {
        labels: vec![label],
        cells: search
            .arms
            .iter()
            .map(|arm| plain(cell(arm), String::new()))
            .collect(),
    };
    let interval = format!("{} % interval", percent(confidence));
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
        return plain("overloaded".to_owned(), format!("a queue of {value}"));
    }
    let detail = match point.latency.low.zip(point.latency.high) {
        Some((low, high)) => format!("{} to {}", with_unit(low, unit), with_unit(high, unit)),
        None => no_interval(point.latency.blocks),
    };
    plain(value, detail)
}

fn knee(arm: &ScanArm) -> SheetCell {
    let (last, beyond) = (arm.knee.knee_per_sec, arm.knee.beyond_per_sec);
    let below = |rate: &&f64| beyond.is_none_or(|beyond| **rate < beyond);
    let hole = arm.unmeasured_per_sec.iter().rev().find(below);
    match (last, beyond, hole) {
        (Some(last), Some(beyond), _) => {
            let text = format!("{} to {}", format_rate(last), format_rate(beyond));
            plain(text, String::new())
        }
        (None, Some(_), Some(hole)) => plain(
            format!("not measured at {}", format_rate(*hole)),
            String::new(),
        ),
        (None, Some(beyond), None) => {
            plain(format!("below {}", format_rate(beyond)), String::new())
        }
        _ => plain("not reached".to_owned(), String::new()),
    }
}

/// Without a tint or a doubt.
pub fn plain(text: String, detail: String) -> SheetCell {
    SheetCell {
        text,
        detail,
        tint: 0,
        sure: true,
    }
}

fn detail(ends: Option<(f64, f64)>, blocks: usize) -> String {
    match ends {
        Some((low, high)) => interval(low, high),
        None => no_interval(blocks),
    }
}

fn no_interval(blocks: usize) -> String {
    format!("{}, no interval", count(blocks, "block"))
}

#[expect(clippy::cast_possible_truncation, reason = "between -100 and 100")]
fn tint(ratio: f64, better: Better, full: f64) -> i32 {
    let good = match better {
        Better::Higher => ratio.ln(),
        Better::Lower => -ratio.ln(),
        Better::Neither => 0.0,
    };
    (100.0 * (good / full.ln()).clamp(-1.0, 1.0)).round() as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::across::GeometricMean;
    use crate::table::across::grid::GridRow;

    #[test]
    fn a_tint_is_by_the_good_direction() {
        assert_eq!(tint(4.0, Better::Lower, 4.0), -100);
        assert_eq!(tint(2.0, Better::Higher, 4.0), 50);
        assert_eq!(tint(1.0, Better::Higher, 4.0), 0);
        assert_eq!(tint(1e9, Better::Neither, 4.0), 0);
    }

    #[test]
    fn the_scale_of_a_heat_map_runs_from_half_to_double() {
        let scale = scale(Better::Lower);
        let ends = [&scale[0], &scale[8]].map(|cell| (cell.text.as_str(), cell.tint));
        assert_eq!(ends, [("-50%", 100), ("x2", -100)]);
        assert_eq!((scale[4].text.as_str(), scale[4].tint), ("0", 0));
    }

    fn grid(ratios: &[f64]) -> Grid {
        let point = |ratio: &f64| {
            Some(GridPoint {
                arm: "mq".to_owned(),
                ratio: Some(*ratio),
                low: None,
                high: None,
                verdict: Verdict::Unknown,
                blocks: 1,
            })
        };
        Grid {
            cell: "wakeup".to_owned(),
            measured: Measured {
                metric: "request_p99".to_owned(),
                unit: "ns".to_owned(),
                better: Better::Lower,
            },
            across: "period".to_owned(),
            down: None,
            fixed: Default::default(),
            columns: ratios.iter().map(f64::to_string).collect(),
            rows: vec![GridRow {
                value: String::new(),
                points: ratios.iter().map(point).collect(),
            }],
        }
    }

    #[test]
    fn a_heat_map_writes_all_its_changes_in_one_form() {
        assert_eq!(form(&grid(&[0.8, 1.9]))(0.8), "-20.0%");
        assert_eq!(form(&grid(&[0.8, 15.0]))(0.8), "x0.80");
    }

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

    #[test]
    fn doubt_is_named_as_the_reader_sees_it() {
        let sheet = Sheet {
            caption: "Against default.".to_owned(),
            doubt: "no verdict",
            ..Sheet::default()
        };
        assert_eq!(
            sheet.caption("Hatched"),
            "Against default. Hatched: no verdict."
        );
        assert_eq!(Sheet::default().caption("Hatched"), "");
    }

    #[test]
    fn a_slowdown_is_a_factor_and_not_sure_with_x1_in_its_interval() {
        let measured = |metric: &str, better| Measured {
            metric: metric.to_owned(),
            unit: "ns".to_owned(),
            better,
        };
        let slowdown = |better, ratio, low, high| Slowdown {
            metric: "request_p99".to_owned(),
            better,
            ratio,
            low: Some(low),
            high: Some(high),
            blocks: 6,
        };
        let of = measured("request_p99", Better::Lower);
        let slower = slowed(&slowdown(Better::Lower, 1.5, 1.2, 1.9), &of);
        assert_eq!((slower.text.as_str(), slower.sure), ("x1.50", true));
        assert_eq!(slower.detail, "[x1.20, x1.90]");
        assert!(!slowed(&slowdown(Better::Lower, 1.5, 0.9, 2.5), &of).sure);
        let of = measured("wakeup_p99", Better::Lower);
        let less = slowed(&slowdown(Better::Higher, 0.5, 0.4, 0.8), &of);
        assert_eq!((less.text.as_str(), less.sure), ("x2 goodput", true));
        assert_eq!(less.detail, "[x1.25, x2.50]");
    }
}
