//! Charts as SVG for a page: drawn by kuva, coloured by the page's style sheet.
//!
//! Every colour is a CSS variable of `templates/style.css`, so that one picture
//! fits light and dark.

mod bars;
mod months;
mod narrowing;
mod turns;
mod value_chart;

pub use bars::{Pair, Place, draw_pairs};
pub use months::{LevelSpan, MonthsChart, RatioPoint, TimeMark, VersionMark, draw_months};
pub use narrowing::{NarrowingLine, draw_narrowing};
pub use turns::{draw_evidence, draw_halves, draw_turns};
pub use value_chart::{Labelled, Series, draw_labelled};

use crate::quantity::{format_change, with_unit};
use crate::render::histogram::{Curve, MEDIAN};
use kuva::prelude::{
    Layout, LinePlot, LineStyle, MarkerShape, Plot, ReferenceLine, ScatterPlot, ShadedRegion,
    SvgBackend, Theme, TickFormat, render_multiple,
};
use std::sync::Arc;

const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 280.0;
/// Ratios that span more than this factor get a log axis.
const WIDE: f64 = 8.0;

/// Colours of the style sheet; arms beyond them share.
pub const COLORS: usize = 8;

/// One arm in a percentile chart.
#[derive(Debug, Clone)]
pub struct PercentileLine {
    /// Number of the arm's colour.
    pub color: usize,
    pub merged: Curve,
    pub blocks: Vec<Curve>,
    /// Marks the end of the curve: what it shows is a queue.
    pub overloaded: bool,
}

/// Latency over percentile, from the median on; faint lines are single blocks. None without
/// points.
pub fn draw_percentiles(lines: &[PercentileLine], label: &str) -> Option<String> {
    let placed: Vec<PercentileLine> = lines.iter().map(PercentileLine::placed).collect();
    let lines = placed.as_slice();
    let mut plots = Vec::new();
    for line in lines {
        let faint = format!("var(--arm-{}-faint)", line.color);
        let blocks = line.blocks.iter().filter(|curve| curve.len() > 1);
        plots.extend(blocks.map(|curve| Plot::Line(self::line(curve, &faint, 1.0))));
    }
    for line in lines.iter().filter(|line| line.merged.len() > 1) {
        plots.push(arm_line(&line.merged, line.color, 2.2));
        let end = line.merged.last().filter(|_| line.overloaded);
        plots.push(hollow_marks(line.color, end.into_iter().copied()));
    }
    let merged = || lines.iter().flat_map(|line| &line.merged);
    let end = merged().map(|point| point.0).fold(1.0, f64::max).ceil();
    let drawn = || {
        lines
            .iter()
            .flat_map(|line| line.blocks.iter().flatten().chain(&line.merged))
    };
    let low = drawn().map(|point| point.1).fold(f64::INFINITY, f64::min);
    let high = drawn().map(|point| point.1).fold(1.0, f64::max);
    let layout = log_y(Layout::auto_from_plots(&plots), low, high)
        .with_x_axis_min(0.0)
        .with_x_axis_max(end)
        .with_x_tick_step(1.0)
        .with_x_tick_format(custom(percentile))
        .with_x_label("percentile")
        .with_y_label(label)
        .with_y_tick_format(custom(|ns| with_unit(ns, "ns")));
    (!plots.is_empty()).then(|| draw(plots, layout))
}

impl PercentileLine {
    /// With places on the axis: 0 is the median, 1 is 90 %, 2 is 99 %.
    fn placed(&self) -> PercentileLine {
        let place = |x: f64| match x < 1.0 {
            true => (x - MEDIAN) / (1.0 - MEDIAN),
            false => x,
        };
        let placed = |curve: &Curve| curve.iter().map(|(x, y)| (place(*x), *y)).collect();
        PercentileLine {
            merged: placed(&self.merged),
            blocks: self.blocks.iter().map(placed).collect(),
            ..self.clone()
        }
    }
}

/// `99.9%` for 3.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a mark of an axis that ends after some nines"
)]
fn percentile(x: f64) -> String {
    match x.round() as i32 {
        0 => "50%".to_owned(),
        1 => "90%".to_owned(),
        nines => {
            let decimals = (nines - 2).max(0) as usize;
            format!("{:.decimals$}%", 100.0 - 100.0 * 10f64.powi(-nines))
        }
    }
}

/// One arm in a chart of blocks or of windows.
#[derive(Debug, Clone)]
pub struct BlockDots {
    /// Number of the arm's colour.
    pub color: usize,
    pub name: String,
    /// (block, ratio), unless the chart says otherwise.
    pub points: Vec<(f64, f64)>,
}

/// The ratio of every block in the order of time, with the band of changes that do
/// not matter. Blocks are independent, so no line joins them. None without points.
pub fn draw_blocks(arms: &[BlockDots], metric: &str, smallest_effect: f64) -> Option<String> {
    let points = || arms.iter().flat_map(|arm| &arm.points);
    let plots: Vec<Plot> = arms.iter().map(dots).collect();
    let last = points().map(|p| p.0).fold(1.0, f64::max);
    let layout = Layout::auto_from_plots(&plots)
        .with_x_tick_format(custom(|block| format!("{block:.0}")))
        .with_x_tick_step((last / 8.0).ceil())
        .with_x_axis_min(0.5)
        .with_x_axis_max(last + 0.5)
        .with_x_label("block");
    let layout = changes_up(layout, points().map(|p| p.1), metric, smallest_effect);
    points().next().map(|_| draw(plots, layout))
}

/// The changes of a metric from the bottom to the top, always with "no change" and the band
/// around it.
fn changes_up(
    layout: Layout,
    ratios: impl Iterator<Item = f64>,
    metric: &str,
    smallest_effect: f64,
) -> Layout {
    let (low, high) = with_no_change(ratios, smallest_effect);
    let layout = layout
        .with_y_label(format!("change of {metric}"))
        .with_y_tick_format(custom(tick_label))
        .with_shaded_region(band(smallest_effect))
        .with_reference_line(ReferenceLine::horizontal(1.0).with_color("var(--axis)"));
    match high / low > WIDE {
        true => log_y(layout, low, high),
        false => {
            let margin = 0.05 * (high - low);
            let layout = layout.with_y_axis_min(low - margin);
            layout.with_y_axis_max(high + margin)
        }
    }
}

/// The least and the greatest of ratios, of 1, and of the band around it.
fn with_no_change(ratios: impl Iterator<Item = f64>, smallest_effect: f64) -> (f64, f64) {
    let band = 1.0 + smallest_effect;
    let ends = (1.0 / band, band);
    ratios.fold(ends, |(low, high), ratio| (low.min(ratio), high.max(ratio)))
}

/// A change on an axis: `+5%`, `0`.
pub fn tick_label(ratio: f64) -> String {
    match format_change(ratio).as_str() {
        "0.00%" => "0".to_owned(),
        text => text.replace(".0%", "%"),
    }
}

/// One arm over the seconds of a window.
#[derive(Debug, Clone)]
pub struct TimeLine {
    pub color: usize,
    pub points: Vec<(f64, f64)>,
    /// Marks every second: what it shows is a queue.
    pub overloaded: bool,
}

/// A latency over the time within the window. None without points.
pub fn over_time(lines: &[TimeLine], label: &str) -> Option<String> {
    let drawn = lines.iter().filter(|line| line.points.len() > 1);
    let mut plots = Vec::new();
    for line in drawn.clone() {
        plots.push(arm_line(&line.points, line.color, 2.0));
        let marks = line.points.iter().copied().filter(|_| line.overloaded);
        plots.push(hollow_marks(line.color, marks));
    }
    let points = || drawn.clone().flat_map(|line| &line.points);
    let low = points().map(|point| point.1).fold(f64::INFINITY, f64::min);
    let high = points().map(|point| point.1).fold(0.0, f64::max);
    let last = points().map(|point| point.0).fold(1.0, f64::max);
    let layout = log_y(Layout::auto_from_plots(&plots), low, high)
        .with_x_axis_min(0.5)
        .with_x_axis_max(last + 0.5)
        .with_x_tick_step((last / 10.0).ceil())
        .with_x_tick_format(custom(|second| format!("{second:.0}")))
        .with_x_label("second of the window")
        .with_y_label(label)
        .with_y_tick_format(custom(|ns| with_unit(ns, "ns")));
    (!plots.is_empty()).then(|| draw(plots, layout))
}

/// One arm in a scan.
#[derive(Debug, Clone)]
pub struct RateLine {
    pub color: usize,
    pub name: String,
    /// (rate, value) of neighbouring rates that were carried: what a line may join.
    pub runs: Vec<Vec<(f64, Estimate)>>,
    /// Rates that were not carried.
    pub overloaded: Vec<f64>,
    pub knee_per_sec: Option<f64>,
}

/// A latency over the offered rate, both on log axes, with each arm's knee as a
/// vertical line. None without points.
pub fn draw_rates(lines: &[RateLine], label: &str) -> Option<String> {
    let points = || lines.iter().flat_map(|line| line.runs.iter().flatten());
    let low = points().map(|(_, e)| e.low).fold(f64::INFINITY, f64::min);
    let high = points().map(|(_, e)| e.high).fold(0.0, f64::max);
    let mut top = high * ABOVE;
    let mut plots = Vec::new();
    for line in lines {
        for run in &line.runs {
            let middle: Vec<(f64, f64)> = run.iter().map(|(x, e)| (*x, e.ratio)).collect();
            plots.push(arm_line(&middle, line.color, 1.8));
            plots.push(rate_dots(line, run));
        }
        top *= ABOVE;
        let overloaded = line.overloaded.iter().map(|rate| (*rate, top));
        plots.push(hollow_marks(line.color, overloaded));
    }
    let rates = || {
        let overloaded = lines.iter().flat_map(|line| &line.overloaded).copied();
        points().map(|(rate, _)| *rate).chain(overloaded)
    };
    let layout = log_y(Layout::auto_from_plots(&plots), low, top);
    let mut layout = over_rates(layout, rates(), label);
    for line in lines {
        if let Some(rate) = line.knee_per_sec {
            let knee = ReferenceLine::vertical(rate).with_color(color(line.color));
            layout = layout.with_reference_line(knee);
        }
    }
    points().next().map(|_| draw(plots, layout))
}

/// A latency over these offered rates, on a log axis.
fn over_rates(layout: Layout, rates: impl Iterator<Item = f64> + Clone, label: &str) -> Layout {
    let first = rates.clone().fold(f64::INFINITY, f64::min);
    let last = rates.fold(0.0, f64::max);
    layout
        .with_log_x()
        .with_x_axis_min(first / 1.1)
        .with_x_axis_max(last * 1.1)
        .with_x_tick_format(custom(model::format_rate))
        .with_x_label("offered rate")
        .with_y_label(label)
        .with_y_tick_format(custom(|ns| with_unit(ns, "ns")))
}

/// Factor by which the mark of an arm without a value lies above the highest value, and above
/// the mark of another such arm.
const ABOVE: f64 = 1.15;

fn rate_dots(line: &RateLine, run: &[(f64, Estimate)]) -> Plot {
    let labels = run.iter().map(|(rate, e)| {
        let value = with_unit(e.ratio, "ns");
        format!("{}, {}: {value}", line.name, model::format_rate(*rate))
    });
    let dots = ScatterPlot::new()
        .with_data(run.iter().map(|(x, e)| (*x, e.ratio)))
        .with_y_err_asymmetric(run.iter().map(|(_, e)| e.arms()))
        .with_color(color(line.color))
        .with_marker(shape(line.color))
        .with_size(3.5)
        .with_tooltips()
        .with_tooltip_labels(labels);
    Plot::Scatter(dots)
}

/// Rates that the searches of one arm tried: (rate, quantile).
#[derive(Debug, Clone, PartialEq)]
pub struct TriedRates {
    pub color: usize,
    pub held: Vec<(f64, f64)>,
    pub failed: Vec<(f64, f64)>,
}

/// The quantile at each rate that was tried, both on log axes, and its limit. None
/// without points.
pub fn tried_rates(arms: &[TriedRates], limit: f64, label: &str) -> Option<String> {
    let mut plots = Vec::new();
    for arm in arms {
        let held = ScatterPlot::new()
            .with_data(arm.held.iter().copied())
            .with_color(color(arm.color))
            .with_marker(shape(arm.color))
            .with_size(4.0);
        plots.push(Plot::Scatter(held));
        plots.push(hollow_marks(arm.color, arm.failed.iter().copied()));
    }
    let points = || {
        arms.iter()
            .flat_map(|arm| arm.held.iter().chain(&arm.failed))
    };
    let low = points().map(|point| point.1).fold(limit, f64::min);
    let high = points().map(|point| point.1).fold(limit, f64::max);
    let layout = log_y(Layout::auto_from_plots(&plots), low / ABOVE, high * ABOVE);
    let layout = over_rates(layout, points().map(|point| point.0), label)
        .with_reference_line(ReferenceLine::horizontal(limit).with_color("var(--axis)"));
    points().next().map(|_| draw(plots, layout))
}

/// The mark of overload in every picture.
fn hollow_marks(number: usize, points: impl Iterator<Item = (f64, f64)>) -> Plot {
    let marks = ScatterPlot::new()
        .with_data(points)
        .with_color(color(number))
        .with_marker_opacity(0.0)
        .with_marker_stroke_width(HOLLOW)
        .with_size(5.0);
    Plot::Scatter(marks)
}

const HOLLOW: f64 = 1.7;

/// One arm in the trade-off picture: estimates with their intervals.
#[derive(Debug, Clone)]
pub struct TradeOff {
    pub color: usize,
    pub name: String,
    pub throughput: Estimate,
    pub latency: Estimate,
}

/// Ratios to the baseline.
#[derive(Debug, Clone, Copy)]
pub struct Estimate {
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
}

impl Estimate {
    /// An estimate without an interval.
    pub fn without_interval(value: f64) -> Self {
        Estimate {
            ratio: value,
            low: value,
            high: value,
        }
    }

    /// Distances of the ends, as error bars have them.
    fn arms(self) -> (f64, f64) {
        (self.ratio - self.low, self.high - self.ratio)
    }
}

/// Throughput against latency, both over the baseline, which is at (1, 1): to the
/// right and down is better. None without points.
pub fn trade_off(
    points: &[TradeOff],
    labels: (&str, &str),
    smallest_effect: f64,
) -> Option<String> {
    let plots: Vec<Plot> = points.iter().map(cross).collect();
    let high = 1.0 + smallest_effect;
    let wide = ShadedRegion::vertical(1.0 / high, high)
        .with_color("var(--band)")
        .with_opacity(1.0);
    let ends = |of: fn(&TradeOff) -> Estimate| {
        let estimates = points.iter().map(of);
        estimates.flat_map(|estimate| [estimate.low, estimate.high])
    };
    let (left, right) = with_no_change(ends(|point| point.throughput), smallest_effect);
    let margin = 0.05 * (right - left);
    let layout = Layout::auto_from_plots(&plots)
        .with_x_label(format!("change of {}", labels.0))
        .with_x_tick_format(custom(tick_label))
        .with_x_axis_min(left - margin)
        .with_x_axis_max(right + margin)
        .with_shaded_region(wide)
        .with_reference_line(ReferenceLine::vertical(1.0).with_color("var(--axis)"));
    let latencies = ends(|point| point.latency);
    let layout = changes_up(layout, latencies, labels.1, smallest_effect);
    (!plots.is_empty()).then(|| draw(plots, layout))
}

fn cross(point: &TradeOff) -> Plot {
    let TradeOff {
        throughput,
        latency,
        ..
    } = point;
    let label = format!(
        "{}: throughput {}, latency {}",
        point.name,
        format_change(throughput.ratio),
        format_change(latency.ratio)
    );
    let cross = ScatterPlot::new()
        .with_data([(throughput.ratio, latency.ratio)])
        .with_x_err_asymmetric([throughput.arms()])
        .with_y_err_asymmetric([latency.arms()])
        .with_color(color(point.color))
        .with_marker(shape(point.color))
        .with_size(4.5)
        .with_tooltips()
        .with_tooltip_labels([label]);
    Plot::Scatter(cross)
}

fn dots(arm: &BlockDots) -> Plot {
    let labels = arm
        .points
        .iter()
        .map(|(block, ratio)| format!("{}, block {block}: {}", arm.name, format_change(*ratio)));
    labelled_dots(arm, 4.5, labels)
}

/// Points of an arm, each with its label.
fn labelled_dots(arm: &BlockDots, size: f64, labels: impl Iterator<Item = String>) -> Plot {
    let dots = ScatterPlot::new()
        .with_data(arm.points.clone())
        .with_color(color(arm.color))
        .with_marker(shape(arm.color))
        .with_size(size)
        .with_tooltips()
        .with_tooltip_labels(labels);
    Plot::Scatter(dots)
}

/// From a bit below `low` to a bit above `high`; kuva would go on to whole decades.
fn log_y(layout: Layout, low: f64, high: f64) -> Layout {
    const MARGIN: f64 = 1.15;
    layout
        .with_log_y()
        .with_y_axis_min(low / MARGIN)
        .with_y_axis_max(high * MARGIN)
}

fn band(smallest_effect: f64) -> ShadedRegion {
    let high = 1.0 + smallest_effect;
    ShadedRegion::horizontal(1.0 / high, high)
        .with_color("var(--band)")
        .with_opacity(1.0)
}

fn line(points: &[(f64, f64)], color: &str, width: f64) -> LinePlot {
    LinePlot::new()
        .with_data(points.iter().copied())
        .with_color(color)
        .with_stroke_width(width)
}

/// Line of an arm. Its dashes are its own, so that arms of equal figures do not hide each
/// other.
fn arm_line(points: &[(f64, f64)], number: usize, width: f64) -> Plot {
    const DASHES: [&str; COLORS] = [
        "", "9 4", "3 3", "9 3 3 3", "15 4", "5 2", "15 3 3 3", "2 5",
    ];
    let line = line(points, &color(number), width);
    Plot::Line(match DASHES[number] {
        "" => line,
        dashes => line.with_line_style(LineStyle::Custom(dashes.to_owned())),
    })
}

/// Marker of an arm. A glance can tell five shapes apart; further arms share them.
fn shape(number: usize) -> MarkerShape {
    const SHAPES: [MarkerShape; 5] = [
        MarkerShape::Circle,
        MarkerShape::Square,
        MarkerShape::Triangle,
        MarkerShape::Diamond,
        MarkerShape::TriangleDown,
    ];
    SHAPES[number % SHAPES.len()]
}

fn color(number: usize) -> String {
    format!("var(--arm-{number})")
}

fn custom(format: impl Fn(f64) -> String + Send + Sync + 'static) -> TickFormat {
    TickFormat::Custom(Arc::new(format))
}

fn draw(plots: Vec<Plot>, layout: Layout) -> String {
    draw_sized(
        plots,
        layout.with_force_margins_y(12.0, 46.0),
        [WIDTH, HEIGHT],
    )
}

fn draw_sized(plots: Vec<Plot>, layout: Layout, [width, height]: [f64; 2]) -> String {
    let layout = layout
        .with_theme(theme())
        .with_width(width)
        .with_height(height)
        .with_font_family("inherit")
        .with_tick_size(12)
        .with_label_size(12);
    let svg = SvgBackend::new().render_scene(&render_multiple(plots, layout));
    // The page chooses the width: kuva writes a fixed one and no view box.
    let size = format!("width=\"{width}\" height=\"{height}\"");
    svg.replacen(&size, &format!("viewBox=\"0 0 {width} {height}\""), 1)
}

/// kuva numbers its clip paths with a counter of the process. Here they are
/// numbered by their order on the page, so that equal results give equal bytes.
pub fn renumber_clips(page: &str) -> String {
    const NAME: &str = "kuva-clip-";
    let mut seen: Vec<&str> = Vec::new();
    let mut parts = page.split(NAME);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_digit());
        let (number, rest) = part.split_at(end.unwrap_or(part.len()));
        let position = seen.iter().position(|of| *of == number);
        let position = position.unwrap_or_else(|| {
            seen.push(number);
            seen.len() - 1
        });
        out.push_str(&format!("clip-{position}{rest}"));
    }
    out
}

fn theme() -> Theme {
    Theme {
        background: "none".to_owned(),
        axis_color: "var(--axis)".to_owned(),
        grid_color: "var(--grid)".to_owned(),
        tick_color: "var(--axis)".to_owned(),
        text_color: "var(--muted)".to_owned(),
        legend_bg: "none".to_owned(),
        legend_border: "none".to_owned(),
        ..Theme::light()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clips_are_numbered_by_their_order_on_the_page() {
        let page = "id=\"kuva-clip-41\" url(#kuva-clip-41) id=\"kuva-clip-7\"";
        assert_eq!(
            renumber_clips(page),
            "id=\"clip-0\" url(#clip-0) id=\"clip-1\""
        );
    }

    #[test]
    fn percentiles_are_named_by_their_nines() {
        let names: Vec<String> = (0..5).map(|n| percentile(f64::from(n))).collect();
        assert_eq!(names, ["50%", "90%", "99%", "99.9%", "99.99%"]);
    }

    #[test]
    fn the_axis_of_percentiles_begins_at_the_median() {
        let line = PercentileLine {
            color: 1,
            merged: vec![(MEDIAN, 5.0), (1.0, 9.0), (2.0, 99.0)],
            blocks: Vec::new(),
            overloaded: false,
        };
        let places: Vec<f64> = line.placed().merged.iter().map(|point| point.0).collect();
        assert_eq!(places, [0.0, 1.0, 2.0]);
        let svg = draw_percentiles(&[line], "request latency").unwrap();
        assert!(
            svg.contains(">50%<") && svg.contains(">request latency<"),
            "{svg}"
        );
    }

    #[test]
    fn every_arm_has_a_line_of_its_own() {
        let dashes = |number| {
            let line = TimeLine {
                color: number,
                points: vec![(1.0, 5e6), (2.0, 4e6)],
                overloaded: false,
            };
            let svg = over_time(&[line], "p99").unwrap();
            let found = svg.split("stroke-dasharray=").nth(1);
            found
                .and_then(|rest| rest.split('"').nth(1))
                .map(str::to_owned)
        };
        let all: std::collections::BTreeSet<_> = (0..COLORS).map(dashes).collect();
        assert_eq!(all.len(), COLORS);
        assert_eq!(dashes(0), None);
    }

    #[test]
    fn nothing_to_draw_is_no_picture() {
        assert_eq!(draw_percentiles(&[], "latency"), None);
        assert_eq!(draw_blocks(&[], "wakeup_p99", 0.02), None);
    }

    #[test]
    fn no_change_is_on_the_axis_however_far_the_changes_are() {
        let arm = BlockDots {
            color: 1,
            name: "rusty".to_owned(),
            points: vec![(1.0, 0.55), (2.0, 0.62)],
        };
        let svg = draw_blocks(&[arm], "wakeup_p99", 0.05).unwrap();
        assert!(svg.contains(">0<") && svg.contains("var(--band)"), "{svg}");
        let far = |ratio: f64| Estimate {
            ratio,
            low: 0.9 * ratio,
            high: 1.1 * ratio,
        };
        let point = TradeOff {
            color: 1,
            name: "rusty".to_owned(),
            throughput: far(0.5),
            latency: far(0.4),
        };
        let svg = trade_off(&[point], ("requests_per_sec", "wakeup_p99"), 0.05).unwrap();
        assert_eq!(svg.matches(">0<").count(), 2, "{svg}");
    }

    #[test]
    fn rates_that_a_search_tried_are_filled_where_they_held() {
        let arm = TriedRates {
            color: 1,
            held: vec![(1e3, 5e5)],
            failed: vec![(2e3, 3e6), (1.5e3, 2e6)],
        };
        let svg = tried_rates(&[arm], 1e6, "p99").unwrap();
        assert_eq!(svg.matches(HOLLOW_STROKE).count(), 2);
        assert_eq!(tried_rates(&[], 1e6, "p99"), None);
    }

    #[test]
    fn an_overloaded_curve_is_marked() {
        let of = |overloaded| TimeLine {
            color: 1,
            points: vec![(1.0, 5e9), (2.0, 4e9)],
            overloaded,
        };
        let marks = |line| {
            over_time(&[line], "p99")
                .unwrap()
                .matches(HOLLOW_STROKE)
                .count()
        };
        assert_eq!((marks(of(false)), marks(of(true))), (0, 2));
    }

    #[test]
    fn rates_that_were_not_carried_are_hollow_marks_that_no_line_joins() {
        let at = |rate: f64| {
            let (ratio, low, high) = (1e6, 9e5, 1.1e6);
            (rate, Estimate { ratio, low, high })
        };
        let line = RateLine {
            color: 2,
            name: "batch".to_owned(),
            runs: vec![vec![at(1e3), at(2e3)]],
            overloaded: vec![4e3],
            knee_per_sec: Some(2e3),
        };
        let count = |line: RateLine, what: &str| {
            let svg = draw_rates(&[line], "request_p99").unwrap();
            svg.matches(what).count()
        };
        assert_eq!(count(line.clone(), HOLLOW_STROKE), 1);
        let runs = vec![vec![at(1e3)], vec![at(2e3)]];
        let (joined, apart) = (line.clone(), RateLine { runs, ..line });
        let strokes = |line: RateLine| count(line, " L");
        assert!(strokes(apart) < strokes(joined));
    }

    const HOLLOW_STROKE: &str = "stroke-width=\"1.7\"";

    #[test]
    fn a_picture_has_the_colours_of_the_page_and_no_fixed_width() {
        let arm = BlockDots {
            color: 3,
            name: "batch".to_owned(),
            points: vec![(1.0, 1.1), (2.0, 0.9)],
        };
        let svg = draw_blocks(&[arm], "wakeup_p99", 0.02).unwrap();
        assert!(svg.contains("var(--arm-3)"));
        assert!(svg.contains("viewBox=\"0 0 520 280\""));
        assert!(svg.contains("batch, block 2: -10.0%"));
    }
}
