//! Charts of arms that take turns inside one process.

use super::{
    BlockDots, WIDE, arm_line, color, custom, draw, labelled_dots, log_y, shape, tick_label,
};
use crate::quantity::with_unit;
use kuva::prelude::{Layout, LinePlot, Plot, ReferenceLine, ScatterPlot, ShadedRegion};

/// A figure over the time of a process, on a ribbon that shows whose turn it was. Points are (start of
/// a window in seconds, figure). `turn_s` is the
/// length of a turn in seconds. None without points.
pub fn draw_turns(arms: &[BlockDots], turn_s: f64, metric: &str, unit: &str) -> Option<String> {
    let points = || arms.iter().flat_map(|arm| &arm.points);
    let low = points().map(|point| point.1).fold(f64::INFINITY, f64::min);
    let high = points().map(|point| point.1).fold(0.0, f64::max);
    let last = points().map(|point| point.0).fold(0.0, f64::max) + turn_s;
    let plots: Vec<Plot> = arms.iter().map(|arm| window_dots(arm, unit)).collect();
    let unit = unit.to_owned();
    let mut layout = Layout::auto_from_plots(&plots)
        .with_x_axis_min(0.0)
        .with_x_axis_max(last)
        .with_x_label("seconds in the process")
        .with_y_label(metric)
        .with_y_tick_format(custom(move |value| with_unit(value, &unit)));
    layout = match low > 0.0 && high / low > WIDE {
        true => log_y(layout, low, high),
        false => {
            let margin = 0.1 * (high - low).max(high * 0.01);
            layout
                .with_y_axis_min((low - margin).max(0.0))
                .with_y_axis_max(high + margin)
        }
    };
    for arm in arms {
        for (start, _) in &arm.points {
            let ribbon = ShadedRegion::vertical(*start, start + turn_s)
                .with_color(format!("var(--arm-{}-faint)", arm.color))
                .with_opacity(0.35);
            layout = layout.with_shaded_region(ribbon);
        }
    }
    points().next().map(|_| draw(plots, layout))
}

fn window_dots(arm: &BlockDots, unit: &str) -> Plot {
    let labels = arm
        .points
        .iter()
        .map(|(start, value)| format!("{}, {start:.2} s: {}", arm.name, with_unit(*value, unit)));
    labelled_dots(arm, 3.5, labels)
}

/// The e-value after each pair, on a log axis, and the bar that decides. None without points.
pub fn draw_evidence(arms: &[BlockDots], bar: f64) -> Option<String> {
    let points = || arms.iter().flat_map(|arm| &arm.points);
    let low = points().map(|point| point.1).fold(0.5, f64::min).max(1e-3);
    let high = points()
        .map(|point| point.1)
        .fold(2.0 * bar, f64::max)
        .min(1e12);
    let last = points().map(|point| point.0).fold(1.0, f64::max);
    let plots: Vec<Plot> = arms
        .iter()
        .map(|arm| {
            let shown = arm
                .points
                .iter()
                .map(|(pair, e)| (*pair, e.clamp(low, high)));
            arm_line(&shown.collect::<Vec<_>>(), arm.color, 2.0)
        })
        .collect();
    let layout = log_y(Layout::auto_from_plots(&plots), low, high)
        .with_x_axis_min(0.0)
        .with_x_axis_max(last)
        .with_x_tick_format(custom(|pair| format!("{pair:.0}")))
        .with_x_label("pairs of windows")
        .with_y_label("e-value")
        .with_y_tick_format(custom(|e| with_unit(e, "count")))
        .with_reference_line(ReferenceLine::horizontal(bar).with_color("var(--axis)"));
    points().next().map(|_| draw(plots, layout))
}

/// The ratio of each pair in the second half of its windows over that in the first, with the line
/// on which both are the same. None without points.
pub fn draw_halves(arms: &[BlockDots]) -> Option<String> {
    let points = || arms.iter().flat_map(|arm| &arm.points);
    let all = || points().flat_map(|(first, second)| [*first, *second]);
    let (low, high) = all().fold((1.0, 1.0), |(low, high): (f64, f64), ratio| {
        (low.min(ratio), high.max(ratio))
    });
    let margin = 0.05 * (high - low).max(0.01);
    let (low, high) = (low - margin, high + margin);
    let same = LinePlot::new()
        .with_data([(low, low), (high, high)])
        .with_color("var(--axis)")
        .with_stroke_width(1.0);
    let mut plots = vec![Plot::Line(same)];
    plots.extend(arms.iter().map(|arm| {
        let dots = ScatterPlot::new()
            .with_data(arm.points.clone())
            .with_color(color(arm.color))
            .with_marker(shape(arm.color))
            .with_size(3.5);
        Plot::Scatter(dots)
    }));
    let layout = Layout::auto_from_plots(&plots)
        .with_x_axis_min(low)
        .with_x_axis_max(high)
        .with_y_axis_min(low)
        .with_y_axis_max(high)
        .with_x_tick_format(custom(tick_label))
        .with_y_tick_format(custom(tick_label))
        .with_x_label("change in the first half")
        .with_y_label("change in the second half");
    points().next().map(|_| draw(plots, layout))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dots(color: usize, points: &[(f64, f64)]) -> BlockDots {
        BlockDots {
            color,
            name: "batch".to_owned(),
            points: points.to_vec(),
        }
    }

    #[test]
    fn turns_have_a_ribbon_in_the_colours_of_their_arms() {
        let arm = |color, points: &[(f64, f64)]| BlockDots {
            color,
            name: format!("arm {color}"),
            points: points.to_vec(),
        };
        let arms = [arm(0, &[(0.0, 5e6), (0.3, 5.2e6)]), arm(2, &[(0.1, 6e6)])];
        let svg = draw_turns(&arms, 0.1, "wakeup_p99", "ns").unwrap();
        assert_eq!(svg.matches("var(--arm-0-faint)").count(), 2, "{svg}");
        assert_eq!(svg.matches("var(--arm-2-faint)").count(), 1, "{svg}");
        assert!(svg.contains("arm 2, 0.10 s"), "{svg}");
        assert_eq!(draw_turns(&[], 0.1, "wakeup_p99", "ns"), None);
    }

    #[test]
    fn evidence_has_its_bar_and_halves_have_the_line_of_no_carry_over() {
        let svg = draw_evidence(&[dots(1, &[(1.0, 1.0), (2.0, 400.0)])], 20.0).unwrap();
        assert!(
            svg.contains("var(--axis)") && svg.contains("var(--arm-1)"),
            "{svg}"
        );
        let svg = draw_halves(&[dots(1, &[(1.01, 1.3), (1.0, 1.2)])]).unwrap();
        assert!(svg.contains("change in the second half"), "{svg}");
        assert_eq!((draw_evidence(&[], 20.0), draw_halves(&[])), (None, None));
    }
}
