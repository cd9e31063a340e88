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
    /// True if a line joins the points.
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
pub fn draw_labelled(series: &[Series], of: &Labelled) -> Option<String> {
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
    // Between counts there is nothing to read off.
    let layout = match points().all(|(x, _)| x.fract() == 0.0) {
        true => layout.with_x_tick_step(((last - first) / 8.0).ceil().max(1.0)),
        false => layout,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(places: &[f64]) -> Vec<String> {
        let at = |x: &f64| {
            let same = Estimate {
                ratio: 50.0,
                low: 40.0,
                high: 60.0,
            };
            (*x, same)
        };
        let series = Series {
            color: 0,
            name: "default".to_owned(),
            points: places.iter().map(at).collect(),
            joined: true,
        };
        let of = Labelled {
            x: "workers",
            y: "share",
            reference: None,
        };
        let svg = draw_labelled(&[series], &of).unwrap();
        let texts = svg
            .split("</text>")
            .filter_map(|text| text.rsplit('>').next());
        let numbers = texts.filter(|text| text.parse::<f64>().is_ok());
        numbers.map(str::to_owned).collect()
    }

    #[test]
    fn whole_numbers_have_whole_ticks_and_others_have_their_own() {
        let of_three = ticks(&[1.0, 2.0, 3.0]);
        assert_eq!(of_three[..3], ["1", "2", "3"], "{of_three:?}");
        let of_many = ticks(&[1.0, 20.0]);
        assert_eq!(
            of_many[..6],
            ["3", "6", "9", "12", "15", "18"],
            "{of_many:?}"
        );
        let of_halves = ticks(&[0.5, 1.0, 1.5]);
        assert!(
            of_halves.iter().any(|tick| tick.contains('.')),
            "{of_halves:?}"
        );
    }
}
