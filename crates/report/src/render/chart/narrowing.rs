//! The interval of a comparison over the blocks, which narrows.

use super::{arm_line, changes_up, custom, draw, line};
use kuva::prelude::{Layout, Plot};

/// One arm in a chart of intervals.
#[derive(Debug, Clone)]
pub struct NarrowingLine {
    /// Number of the arm's colour.
    pub color: usize,
    /// Blocks so far, with the ratio and the ends of its interval.
    pub points: Vec<(f64, [f64; 3])>,
}

impl NarrowingLine {
    fn plots(&self) -> [Plot; 3] {
        let of = |part: usize| -> Vec<(f64, f64)> {
            self.points.iter().map(|(x, all)| (*x, all[part])).collect()
        };
        let faint = format!("var(--arm-{}-faint)", self.color);
        let end = |part| Plot::Line(line(&of(part), &faint, 1.5));
        [end(1), end(2), arm_line(&of(0), self.color, 1.8)]
    }
}

/// Change and interval of arms over the number of blocks, with the band of changes that do not matter.
/// None with fewer than two points.
pub fn draw_narrowing(
    arms: &[NarrowingLine],
    metric: &str,
    smallest_effect: f64,
) -> Option<String> {
    let points = || arms.iter().flat_map(|arm| &arm.points);
    let plots: Vec<Plot> = arms.iter().flat_map(NarrowingLine::plots).collect();
    let first = points().map(|(x, _)| *x).fold(f64::INFINITY, f64::min);
    let last = points().map(|(x, _)| *x).fold(0.0, f64::max);
    if last <= first {
        return None;
    }
    let layout = Layout::auto_from_plots(&plots)
        .with_x_tick_format(custom(|blocks| format!("{blocks:.0}")))
        .with_x_tick_step(((last - first) / 8.0).ceil().max(1.0))
        .with_x_axis_min(first)
        .with_x_axis_max(last)
        .with_x_label("blocks so far");
    let ratios = points().flat_map(|(_, [_, low, high])| [*low, *high]);
    Some(draw(
        plots,
        changes_up(layout, ratios, metric, smallest_effect),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::chart::{COLORS, color};

    #[test]
    fn a_line_has_two_points_at_least() {
        let line = |points: &[(f64, [f64; 3])]| NarrowingLine {
            color: COLORS - 1,
            points: points.to_vec(),
        };
        let points = [(3.0, [1.1, 0.9, 1.4]), (4.0, [1.1, 1.0, 1.2])];
        let svg = draw_narrowing(&[line(&points)], "p99", 0.05).unwrap();
        assert!(
            svg.contains("change of p99") && svg.contains("blocks so far"),
            "{svg}"
        );
        assert!(draw_narrowing(&[line(&points[..1])], "p99", 0.05).is_none());
        assert!(svg.contains(&color(COLORS - 1)), "{svg}");
    }
}
