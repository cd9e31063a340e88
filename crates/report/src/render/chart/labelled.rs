//! A chart of values with intervals over numbers.

use super::{Estimate, arm_line, color, custom, draw, shape};
use crate::quantity::with_unit;
use kuva::prelude::{Layout, Plot, ReferenceLine, ScatterPlot};

/// Values of one arm, or of a part of it.
#[derive(Debug, Clone)]
pub struct Series {
    /// Number of the arm's colour.
    pub color: usize,
    /// Name in the labels of the points.
    pub name: String,
    pub points: Vec<(f64, Estimate)>,
    /// Whether a line joins the points.
    pub joined: bool,
}

/// Quantities that the axes show.
#[derive(Debug, Clone)]
pub struct Labelled<'a> {
    pub x: &'a str,
    pub y: &'a str,
    /// A value to compare with.
    pub reference: Option<f64>,
}

/// The chart; none without points. The second axis begins at 0: shares are read off.
pub fn labelled(series: &[Series], of: &Labelled) -> Option<String> {
    let points = || series.iter().flat_map(|series| &series.points);
    let mut plots = Vec::new();
    for series in series {
        if series.joined {
            let middle: Vec<(f64, f64)> =
                series.points.iter().map(|(x, e)| (*x, e.ratio)).collect();
            plots.push(arm_line(&middle, series.color, 1.8));
        }
        plots.push(dots(series));
    }
    let first = points().map(|(x, _)| *x).fold(f64::INFINITY, f64::min);
    let last = points().map(|(x, _)| *x).fold(0.0, f64::max);
    let top = points()
        .map(|(_, e)| e.high)
        .fold(of.reference.unwrap_or(0.0), f64::max);
    let margin = 0.04 * (last - first).max(1.0);
    let layout = Layout::auto_from_plots(&plots)
        .with_x_label(of.x)
        .with_x_axis_min(first - margin)
        .with_x_axis_max(last + margin)
        .with_x_tick_format(custom(|x| with_unit(x, "count")))
        .with_y_label(of.y)
        .with_y_axis_min(0.0)
        .with_y_axis_max(top * 1.05)
        .with_y_tick_format(custom(|value| with_unit(value, "count")));
    let layout = match of.reference {
        Some(value) => {
            layout.with_reference_line(ReferenceLine::horizontal(value).with_color("var(--axis)"))
        }
        None => layout,
    };
    points().next().map(|_| draw(plots, layout))
}

fn dots(series: &Series) -> Plot {
    let labels = series.points.iter().map(|(x, e)| {
        let place = with_unit(*x, "count");
        format!("{}, {place}: {}", series.name, with_unit(e.ratio, "count"))
    });
    let dots = ScatterPlot::new()
        .with_data(series.points.iter().map(|(x, e)| (*x, e.ratio)))
        .with_y_err_asymmetric(series.points.iter().map(|(_, e)| e.arms()))
        .with_color(color(series.color))
        .with_marker(shape(series.color))
        .with_size(3.5)
        .with_tooltips()
        .with_tooltip_labels(labels);
    Plot::Scatter(dots)
}
