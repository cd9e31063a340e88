//! The second screen: one cell, with the points of its blocks and the figures of both arms.

use super::chart::{self, Series, on_scale};
use super::overview::find_comparison;
use super::text::{self, cut, fit};
use crate::scene::Scene;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use report::picture::{CellPicture, ComparisonPicture, HEIGHTS, Picture};

/// Rows of the two distributions with their axis and heading.
const DISTRIBUTIONS: u16 = 4;
/// Columns of the name of an arm or a metric.
const NAME: usize = 20;

pub fn draw(frame: &mut Frame, area: Rect, scene: &Scene, chosen: usize) {
    let picture = &scene.picture;
    let Some((cell, comparison)) = find_comparison(picture, chosen) else {
        return draw_levels(frame, area, picture, picture.cells.first());
    };
    let points = (area.height / 2).clamp(4, 12);
    let [points, distributions, levels] = Layout::vertical([
        Constraint::Length(points),
        Constraint::Length(DISTRIBUTIONS),
        Constraint::Fill(1),
    ])
    .areas(area);
    draw_points(frame, points, cell, comparison);
    draw_distributions(frame, distributions, picture, comparison);
    draw_levels(frame, levels, picture, Some(cell));
}

/// The change of every block.
fn draw_points(frame: &mut Frame, area: Rect, cell: &CellPicture, c: &ComparisonPicture) {
    let [head, body] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    let title = format!(" {}: {}, {}: every block", cell.name, c.metric, c.arm);
    frame.render_widget(
        Line::styled(cut(&title, area.width.into()), text::bold()),
        head,
    );
    let points = c.points.iter();
    let every_block = Series {
        points: points
            .map(|(block, change)| (f64::from(*block), on_scale(c, *change)))
            .collect(),
        style: text::of_verdict(c.verdict),
        joined: false,
    };
    chart::draw(frame, body, &[every_block], c);
}

/// Distributions of the values of the baseline and of the arm, on one scale.
fn draw_distributions(frame: &mut Frame, area: Rect, picture: &Picture, c: &ComparisonPicture) {
    let columns = usize::from(area.width).saturating_sub(NAME + 4);
    let all = || c.values.iter().flat_map(|(a, b)| [*a, *b]);
    let least = all().fold(f64::INFINITY, f64::min);
    let most = all().fold(f64::NEG_INFINITY, f64::max);
    if columns == 0 || !least.is_finite() {
        return;
    }
    let baseline = picture.arms.first().map_or("baseline", String::as_str);
    let row = |index: usize, name: &str, values: Vec<f64>| {
        let bars = distribution(&values, (least, most), columns);
        Line::from(vec![
            Span::raw(format!(" {} ", fit(name, NAME))),
            Span::styled(bars, text::of_arm(index)),
        ])
    };
    let in_words = |value: f64| report::with_unit(value, &c.unit);
    let (low, high) = (in_words(least), in_words(most));
    let gap = columns.saturating_sub(low.chars().count() + high.chars().count());
    let axis = format!(" {} {low}{}{high}", " ".repeat(NAME), " ".repeat(gap));
    let lines = vec![
        Line::raw(""),
        row(0, baseline, c.values.iter().map(|(a, _)| *a).collect()),
        row(1, &c.arm, c.values.iter().map(|(_, b)| *b).collect()),
        Line::styled(axis, text::dim()),
    ];
    frame.render_widget(Paragraph::new(lines), area);
}

/// A column for each part of the range, as high as it has values.
fn distribution(values: &[f64], (least, most): (f64, f64), columns: usize) -> String {
    let mut counts = vec![0usize; columns];
    for value in values {
        let share = match most > least {
            true => (value - least) / (most - least),
            false => 0.5,
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of the columns"
        )]
        let column = (share * (columns - 1) as f64).round() as usize;
        counts[column.min(columns - 1)] += 1;
    }
    let highest = counts.iter().copied().max().unwrap_or(0).max(1);
    let height = |count: &usize| match count {
        0 => ' ',
        count => HEIGHTS[(count * HEIGHTS.len()).div_ceil(highest) - 1],
    };
    counts.iter().map(height).collect()
}

/// Medians of all metrics, as far as there is room.
fn draw_levels(frame: &mut Frame, area: Rect, picture: &Picture, cell: Option<&CellPicture>) {
    let Some(cell) = cell else {
        return;
    };
    let arms = picture.arms.len().max(1);
    let column = (usize::from(area.width).saturating_sub(NAME + 4) / arms).clamp(8, 16);
    let head = picture.arms.iter().map(|arm| fit(arm, column));
    let head = format!(" {} {}", fit("median", NAME), head.collect::<String>());
    let width = usize::from(area.width);
    let mut lines = vec![Line::styled(cut(&head, width), text::dim())];
    for level in &cell.levels {
        let values: String = level.arms.iter().map(|value| fit(value, column)).collect();
        let row = format!(" {} {values}", fit(&level.metric, NAME));
        lines.push(Line::raw(cut(&row, width)));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_has_a_column_for_each_part_of_the_range() {
        let drawn = distribution(&[0.0, 0.0, 5.0, 10.0], (0.0, 10.0), 5);
        assert_eq!(drawn, "█ ▄ ▄");
        // All values alike are one column, in the middle.
        assert_eq!(
            distribution(&[3.0], (3.0, 3.0), 3),
            "  █".replace("  █", " █ ")
        );
        assert_eq!(distribution(&[], (0.0, 1.0), 3), "   ");
    }
}
