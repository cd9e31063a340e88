//! The first screen: all comparisons with their intervals, and how the chosen one narrowed.

use super::chart::{self, Series, on_scale};
use super::text::{self, clean, cut, fit};
use crate::scene::Scene;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use report::picture::{CellPicture, ComparisonPicture, Picture};

/// Rows of the chart, where there is room for it.
const CHART_ROWS: u16 = 9;
/// Rows of troubles at most.
const MOST_TROUBLES: usize = 3;
/// Columns of the picture of an interval.
const BAR: usize = 15;
/// Changes beyond this factor, and its inverse, are at the edge of the picture.
const WIDEST: f64 = 3.0;

pub fn draw(frame: &mut Frame, area: Rect, scene: &Scene, chosen: usize) {
    let picture = &scene.picture;
    let troubles = troubles(picture, area.width.into());
    let chart_rows = match area.height >= CHART_ROWS + 7 {
        true => CHART_ROWS,
        false => 0,
    };
    let rows = u16::try_from(troubles.len()).unwrap_or(0);
    let [list, chart, below] = Layout::vertical([
        Constraint::Fill(1),
        Constraint::Length(chart_rows),
        Constraint::Length(rows),
    ])
    .areas(area);
    draw_list(frame, list, picture, chosen);
    if let Some((_, comparison)) = find_comparison(picture, chosen).filter(|_| chart_rows > 0) {
        draw_narrowing(frame, chart, picture, comparison);
    }
    frame.render_widget(Paragraph::new(troubles), below);
}

/// The comparison of this number over all cells, with its cell.
pub fn find_comparison(
    picture: &Picture,
    number: usize,
) -> Option<(&CellPicture, &ComparisonPicture)> {
    let cells = picture.cells.iter();
    let mut all = cells.flat_map(|cell| cell.comparisons.iter().map(move |c| (cell, c)));
    all.nth(number)
}

fn draw_list(frame: &mut Frame, area: Rect, picture: &Picture, chosen: usize) {
    let mut lines = Vec::new();
    let (mut number, mut chosen_line) = (0, 0);
    for cell in &picture.cells {
        let undecided = match cell.comparisons.is_empty() {
            true => ": nothing is compared yet",
            false => "",
        };
        let head = format!(" {}{undecided}", clean(&cell.name));
        lines.push(Line::styled(cut(&head, area.width.into()), text::bold()));
        for comparison in &cell.comparisons {
            if number == chosen {
                chosen_line = lines.len();
            }
            let width = usize::from(area.width);
            lines.push(line(picture, comparison, number == chosen, width));
            number += 1;
        }
    }
    // The chosen line stays in sight, and the name of its cell where that is near.
    let rows = usize::from(area.height);
    let first = (chosen_line + 2).saturating_sub(rows.max(2));
    let lines: Vec<Line> = lines.into_iter().skip(first).take(rows).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

/// `> wakeup_p99  batch  -44 % [-56 %, -30 %]  ├──●──┤┊  better  ▰▰▱▱▱ 12 of 20  5, 4 min more`.
fn line(picture: &Picture, c: &ComparisonPicture, is_chosen: bool, width: usize) -> Line<'static> {
    let mark = if is_chosen { " > " } else { "   " };
    let has_bar = width >= 76;
    let name_columns = if has_bar { 15 } else { 14 };
    let mut spans = vec![
        Span::raw(mark),
        Span::raw(fit(&c.metric, name_columns)),
        Span::raw(format!(" {}", fit(&c.arm, 10))),
        Span::styled(
            format!(" {:>8}", cut(&c.change, 8)),
            text::of_verdict(c.verdict),
        ),
    ];
    if has_bar {
        let bar = interval_bar(c, picture.smallest_effect);
        spans.push(Span::styled(
            format!(" {bar} "),
            text::of_verdict(c.verdict),
        ));
    }
    let said = match c.verdict {
        report::Verdict::Unknown => evidence(c.e_value, picture.decides),
        _ => c.verdict_word.clone(),
    };
    spans.push(Span::raw(format!(" {}", fit(&said, 9))));
    spans.push(Span::raw(format!(" {}", clean(&c.blocks))));
    Line::from(spans)
}

/// The way of the evidence to what decides: `▰▰▱▱▱ 40%`. Evidence is multiplied by each block, so its
/// logarithm is what grows.
fn evidence(e_value: f64, decides: f64) -> String {
    const STEPS: usize = 5;
    let share = (e_value.max(1.0).ln() / decides.ln()).clamp(0.0, 1.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a few steps"
    )]
    let full = (share * STEPS as f64) as usize;
    let bar: String = (0..STEPS)
        .map(|step| if step < full { '▰' } else { '▱' })
        .collect();
    format!("{bar} {:.0}%", 100.0 * share)
}

/// Place of a change on a scale on which no change is 0 and the widest are -1 and 1.
fn place(c: &ComparisonPicture, change: f64, smallest_effect: f64) -> f64 {
    let logarithm = match c.by_difference {
        true if c.smallest > 0.0 => change / c.smallest * smallest_effect.ln_1p(),
        true => 0.0,
        false => change.ln(),
    };
    (logarithm / WIDEST.ln()).clamp(-1.0, 1.0)
}

/// The interval as a picture, with a mark at no change.
fn interval_bar(c: &ComparisonPicture, smallest_effect: f64) -> String {
    let mut columns = [' '; BAR];
    let half = (BAR / 2) as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place within the bar"
    )]
    let column = |change: f64| (half + half * place(c, change, smallest_effect)).round() as usize;
    if let Some(last) = c.narrowing.last() {
        if let (Some(low), Some(high)) = (last.low, last.high) {
            let (left, right) = (column(low), column(high));
            columns[left..=right].fill('─');
            columns[left] = '├';
            columns[right] = '┤';
        }
        columns[column(last.change)] = '●';
    }
    let centre = &mut columns[BAR / 2];
    if !"●├┤".contains(*centre) {
        *centre = '┊';
    }
    columns.iter().collect()
}

fn draw_narrowing(frame: &mut Frame, area: Rect, picture: &Picture, c: &ComparisonPicture) {
    let baseline = picture.arms.first().map_or("", String::as_str);
    let levels = c.levels.as_ref();
    let levels = levels.map_or_else(String::new, |(from, to)| format!(", {from} → {to}"));
    let title = format!(
        " {}, {} against {baseline}: {} {}{levels}",
        c.metric, c.arm, c.change, c.interval
    );
    let [head, body] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    frame.render_widget(Line::raw(cut(&title, area.width.into())), head);
    let points: Vec<(f64, [f64; 3])> = c
        .narrowing
        .iter()
        .filter_map(|s| {
            let all = [s.low?, s.change, s.high?].map(|change| on_scale(c, change));
            Some((s.blocks as f64, all))
        })
        .collect();
    let of = |part: usize| Series {
        points: points.iter().map(|(x, all)| (*x, all[part])).collect(),
        style: text::of_verdict(c.verdict),
        joined: true,
    };
    if !chart::draw(frame, body, &[of(0), of(2), of(1)], c) {
        let waiting = "   The interval is not known yet.";
        frame.render_widget(Line::styled(waiting, text::dim()), body);
    }
}

/// Everything that spoils the figures, in a few lines.
fn troubles(picture: &Picture, width: usize) -> Vec<Line<'static>> {
    let all = [&picture.excluded, &picture.notices, &picture.worst];
    let all: Vec<&String> = all.into_iter().flatten().collect();
    let mut lines: Vec<Line> = all
        .iter()
        .take(MOST_TROUBLES)
        .map(|words| Line::styled(cut(&format!(" ! {words}"), width), text::trouble()))
        .collect();
    if all.len() > MOST_TROUBLES {
        lines.pop();
        let more = format!(" ! {} more, in the report", all.len() - MOST_TROUBLES + 1);
        lines.push(Line::styled(more, text::trouble()));
    }
    lines
}
