//! Changes over blocks, with a line at no change.

use super::text;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::symbols::Marker;
use ratatui::widgets::{Axis, Chart, Dataset, GraphType};
use report::picture::ComparisonPicture;

/// One series of a chart.
pub struct Series {
    /// Number of blocks, and the change on the scale of [`on_scale`].
    pub points: Vec<(f64, f64)>,
    pub style: Style,
    /// True if a line joins the points.
    pub joined: bool,
}

/// A change as it is drawn: a percentage, or a difference in the unit of the metric.
pub fn on_scale(c: &ComparisonPicture, change: f64) -> f64 {
    match c.by_difference {
        true => change,
        false => 100.0 * (change - 1.0),
    }
}

fn label(value: f64, c: &ComparisonPicture) -> String {
    match c.by_difference {
        true => report::signed_with_unit(value, &c.unit),
        false => format!("{value:+.1} %"),
    }
}

/// Draws the series on axes of their own; `false` where they have no point.
pub fn draw(frame: &mut Frame, area: Rect, series: &[Series], c: &ComparisonPicture) -> bool {
    let points = || series.iter().flat_map(|series| &series.points);
    let ends = |of: fn(&(f64, f64)) -> f64, first: f64, second: f64| {
        let all = points().map(of);
        all.fold((first, second), |(least, most), x| {
            (least.min(x), most.max(x))
        })
    };
    let (left, right) = ends(|(x, _)| *x, f64::INFINITY, f64::NEG_INFINITY);
    if left > right {
        return false;
    }
    let (low, high) = ends(|(_, y)| *y, 0.0, 0.0);
    let none = [(left, 0.0), (right.max(left + 1.0), 0.0)];
    let zero = Dataset::default()
        .marker(Marker::Braille)
        .graph_type(GraphType::Line)
        .style(text::dim())
        .data(&none);
    let drawn = series.iter().map(|series| {
        let dataset = Dataset::default().style(series.style).data(&series.points);
        match series.joined {
            true => dataset.marker(Marker::Braille).graph_type(GraphType::Line),
            false => dataset.marker(Marker::Dot),
        }
    });
    let chart = Chart::new([zero].into_iter().chain(drawn).collect())
        .x_axis(
            Axis::default()
                .bounds([left, right.max(left + 1.0)])
                .labels([left, right].map(|x| format!("{x:.0}"))),
        )
        .y_axis(
            Axis::default()
                .bounds([low, high.max(low + f64::MIN_POSITIVE)])
                .labels([low, high].map(|y| label(y, c))),
        );
    frame.render_widget(chart, area);
    true
}
