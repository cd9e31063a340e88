//! The ratio of an arm to its anchor over months, small enough to stand beside others.

use super::{WIDE, custom, draw_sized, line, log_y, tick_label};
use kuva::plot::BandPlot;
use kuva::prelude::{Layout, Plot, ReferenceLine, ScatterPlot, TextAnnotation};

const SIZE: [f64; 2] = [400.0, 230.0];
/// Room for the marks of the left axis, and on the right.
const SIDES: [f64; 2] = [54.0, 12.0];
/// Room above, and for the dates below.
const ENDS: [f64; 2] = [8.0, 30.0];
/// Room for the versions, in the chart: beyond its edge nothing is drawn.
const HEAD: f64 = 22.0;
/// Marks of the axis of time at most.
const MOST_TICKS: f64 = 4.0;
const HOUR: f64 = 3600.0;
const DAY: f64 = 24.0 * HOUR;
/// Distances between marks of the axis of time.
#[rustfmt::skip] // From hours over days to years.
const STEPS: [f64; 15] = [
    HOUR, 3.0 * HOUR, 6.0 * HOUR, 12.0 * HOUR, DAY, 2.0 * DAY, 7.0 * DAY, 14.0 * DAY, 28.0 * DAY, 56.0 * DAY,
    91.0 * DAY, 182.0 * DAY, 365.0 * DAY, 730.0 * DAY, 3650.0 * DAY,
];
/// Width of a character of a version, and the least distance between two versions.
const CHARACTER: f64 = 6.6;
const BETWEEN: f64 = 8.0;
/// Distance from the moment of a version to its words.
const BESIDE: f64 = 3.0;
const VERSION_SIZE: u32 = 11;

/// A run in a chart of months.
#[derive(Debug, Clone, PartialEq)]
pub struct RatioPoint {
    /// Beginning of the run, in seconds since 1970.
    pub at_s: f64,
    /// Ratio of the arm to its anchor.
    pub ratio: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Words that are shown when somebody points at it.
    pub words: String,
}

/// The mean of the runs between two changes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelSpan {
    /// First and last moment, in seconds since 1970.
    pub from_to_s: [f64; 2],
    /// Mean ratio.
    pub ratio: f64,
}

/// A line across the chart.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeMark {
    /// Moment in seconds since 1970.
    pub at_s: f64,
    /// Colour, as a variable of the style sheet: `var(--worse)`.
    pub color: &'static str,
    /// True for a line without gaps.
    pub is_solid: bool,
}

/// A version above the chart, from a moment on.
#[derive(Debug, Clone, PartialEq)]
pub struct VersionMark {
    /// Moment in seconds since 1970.
    pub at_s: f64,
    /// Short name of the version.
    pub name: String,
    /// True if it has its place before others: it stands at an alarm.
    pub is_first: bool,
}

/// All that is drawn of a series.
#[derive(Debug, Clone)]
pub struct MonthsChart {
    /// Runs in the order of time.
    pub points: Vec<RatioPoint>,
    /// Levels between changes.
    pub levels: Vec<LevelSpan>,
    /// Changes.
    pub changes: Vec<TimeMark>,
    /// Versions in the order of time.
    pub versions: Vec<VersionMark>,
    /// Words for a moment at this distance from the next mark, both in seconds.
    pub date_words: fn(f64, f64) -> String,
}

/// The chart, with as many versions as there is room for. None with fewer than two points.
pub fn draw_months(chart: &MonthsChart) -> Option<String> {
    let (first, last) = (chart.points.first()?.at_s, chart.points.last()?.at_s);
    if last <= first {
        return None;
    }
    let margin = 0.02 * (last - first);
    let times = [first - margin, last + margin];
    let range = find_range(chart);
    let plots = make_plots(chart, range);
    let mut layout = lay_out(chart, &plots, times, range);
    for change in &chart.changes {
        let dashes = if change.is_solid { "" } else { "5 3" };
        let mark = ReferenceLine::vertical(change.at_s).with_color(change.color);
        layout = layout.with_reference_line(mark.with_dasharray(dashes).with_stroke_width(1.6));
    }
    for (at_s, name) in place_versions(&chart.versions, times) {
        let words = TextAnnotation::new(name, at_s, range[1]).with_font_size(VERSION_SIZE);
        layout = layout.with_annotation(words);
    }
    Some(draw_sized(plots, layout, SIZE))
}

/// The axes. That of ratios goes on above the highest as far as the versions need it.
fn lay_out(
    chart: &MonthsChart,
    plots: &[Plot],
    [from, to]: [f64; 2],
    [low, top]: [f64; 2],
) -> Layout {
    let step = STEPS
        .into_iter()
        .find(|step| (to - from) / step <= MOST_TICKS);
    let step = step.unwrap_or(STEPS[STEPS.len() - 1]);
    let date_words = chart.date_words;
    let layout = Layout::auto_from_plots(plots)
        .with_force_margins(SIDES[0], SIDES[1])
        .with_force_margins_y(ENDS[0], ENDS[1])
        .with_x_axis_min(from)
        .with_x_axis_max(to)
        .with_x_tick_step(step)
        .with_x_tick_format(custom(move |at| date_words(at, step)))
        .with_y_tick_format(custom(tick_label));
    let head = HEAD / (SIZE[1] - ENDS[0] - ENDS[1] - HEAD);
    let layout = match top / low > WIDE {
        true => log_y(layout, low, top * (top / low).powf(head)),
        false => layout
            .with_y_axis_min(low)
            .with_y_axis_max(top + (top - low) * head),
    };
    let no_change = ReferenceLine::horizontal(1.0).with_color("var(--axis)");
    match (low..top).contains(&1.0) {
        true => layout.with_reference_line(no_change),
        false => layout,
    }
}

/// The ratios with the intervals that are usual: a night of two blocks does not squeeze all others.
fn find_range(chart: &MonthsChart) -> [f64; 2] {
    let points = chart.points.iter();
    let mut widths: Vec<f64> = points.map(|point| point.high / point.low).collect();
    widths.sort_by(f64::total_cmp);
    let usual = widths[widths.len() / 2].sqrt().clamp(1.0001, WIDE);
    let ratios = chart.points.iter().map(|point| point.ratio);
    let (low, high) = ratios.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), ratio| {
        (low.min(ratio), high.max(ratio))
    });
    [low / usual.powf(1.2), high * usual.powf(1.2)]
}

fn make_plots(chart: &MonthsChart, [low, high]: [f64; 2]) -> Vec<Plot> {
    let points = &chart.points;
    let times = || points.iter().map(|point| point.at_s);
    let band = BandPlot::new(
        times(),
        points.iter().map(|point| point.low.clamp(low, high)),
        points.iter().map(|point| point.high.clamp(low, high)),
    );
    let band = band.with_color("var(--arm-1-faint)").with_opacity(0.8);
    let mut plots = vec![Plot::Band(band)];
    for level in &chart.levels {
        let ends = level.from_to_s.map(|at| (at, level.ratio));
        plots.push(Plot::Line(line(&ends, "var(--text)", 1.6)));
    }
    let dots = ScatterPlot::new()
        .with_data(times().zip(points.iter().map(|point| point.ratio)))
        .with_color("var(--arm-1)")
        .with_size(2.2)
        .with_tooltips()
        .with_tooltip_labels(points.iter().map(|point| point.words.clone()));
    plots.push(Plot::Scatter(dots));
    plots
}

/// Versions with the middle of their words, those at alarms first, then the newest, then from the left.
fn place_versions(versions: &[VersionMark], [from, to]: [f64; 2]) -> Vec<(f64, String)> {
    let room = SIZE[0] - SIDES[0] - SIDES[1];
    let mut order: Vec<usize> = (0..versions.len()).collect();
    let newest = versions.len().saturating_sub(1);
    order.sort_by_key(|index| (!versions[*index].is_first, *index != newest, *index));
    let mut placed: Vec<(f64, f64, String)> = Vec::new();
    for version in order.into_iter().map(|index| &versions[index]) {
        let half = 0.5 * CHARACTER * version.name.chars().count() as f64;
        // Right of the line at an alarm, if there is one; beyond the axes nothing is drawn.
        let begin = (version.at_s - from) / (to - from) * room + BESIDE;
        let middle = (begin + half).min(room - half).max(half);
        let is_free = |(other, width, _): &(f64, f64, String)| {
            (middle - other).abs() >= half + width + BETWEEN
        };
        if placed.iter().all(is_free) {
            placed.push((middle, half, version.name.clone()));
        }
    }
    let placed = placed.into_iter();
    placed
        .map(|(middle, _, name)| (from + middle / room * (to - from), name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(ratios: &[f64]) -> MonthsChart {
        let points = ratios.iter().enumerate().map(|(day, ratio)| RatioPoint {
            at_s: day as f64 * DAY,
            ratio: *ratio,
            low: ratio * 0.99,
            high: ratio * 1.01,
            words: format!("night {day}"),
        });
        MonthsChart {
            points: points.collect(),
            levels: Vec::new(),
            changes: Vec::new(),
            versions: Vec::new(),
            date_words: |at, _| format!("day {:.0}", at / DAY),
        }
    }

    fn version(day: f64, name: &str, is_first: bool) -> VersionMark {
        VersionMark {
            at_s: day * DAY,
            name: name.to_owned(),
            is_first,
        }
    }

    #[test]
    fn a_chart_has_each_run_with_its_words_and_the_changes_in_their_colours() {
        let mut chart = chart(&[1.05, 1.06, 0.98, 0.97]);
        chart.changes.push(TimeMark {
            at_s: 2.0 * DAY,
            color: "var(--worse)",
            is_solid: false,
        });
        chart.versions.push(version(2.0, "<b>&", true));
        let svg = draw_months(&chart).unwrap();
        for wanted in ["night 3", "day 1", "var(--worse)", "&lt;b&gt;&amp;"] {
            assert!(svg.contains(wanted), "{wanted} is not in {svg}");
        }
        assert!(svg.contains("viewBox=\"0 0 400 230\""), "{svg}");
        assert!(draw_months(&super::tests::chart(&[1.0])).is_none());
    }

    #[test]
    fn one_night_of_wide_noise_does_not_squeeze_the_others() {
        let mut chart = chart(&[1.0, 1.01, 0.99]);
        chart.points[1].low = 0.2;
        chart.points[1].high = 5.0;
        let [low, high] = find_range(&chart);
        assert!(low > 0.9 && high < 1.1, "{low} to {high}");
    }

    #[test]
    fn versions_at_alarms_have_their_place_first_and_none_covers_another() {
        let names: Vec<String> = (0..60).map(|day| format!("0123456{day:02}")).collect();
        let days = 0..60;
        let versions: Vec<VersionMark> = days
            .map(|day| version(f64::from(day), &names[day as usize], day == 31))
            .collect();
        let placed = place_versions(&versions, [0.0, 59.0 * DAY]);
        assert!(placed.iter().any(|(_, name)| *name == names[31]));
        assert!(placed.iter().any(|(_, name)| *name == names[59]));
        assert!((3..8).contains(&placed.len()), "{placed:?}");
        let room = SIZE[0] - SIDES[0] - SIDES[1];
        let mut middles: Vec<f64> = placed
            .iter()
            .map(|(at, _)| at / DAY / 59.0 * room)
            .collect();
        middles.sort_by(f64::total_cmp);
        let apart = 9.0 * CHARACTER + BETWEEN;
        assert!(
            middles
                .windows(2)
                .all(|pair| pair[1] - pair[0] >= apart - 1e-6),
            "{middles:?}"
        );
    }
}
