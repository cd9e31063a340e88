//! The third screen: the machines of a run on several.

use super::text::{self, cut, fit};
use crate::scene::{Life, Scene};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

pub fn draw(frame: &mut Frame, area: Rect, scene: &Scene) {
    let width = usize::from(area.width);
    let mut lines = vec![Line::styled(
        format!(" {} {:>8}  {}", fit("machine", 20), "trials", "now"),
        text::dim(),
    )];
    for node in &scene.nodes {
        let now = match (&node.now, node.life) {
            (Some(now), _) => format!(
                "block {} · {} · {} · {}",
                now.block, now.cell, now.arm, now.step
            ),
            (None, Life::UnderWay) => "starts".to_owned(),
            (None, Life::Ended) => "has ended".to_owned(),
            (None, Life::Lost) => "was killed".to_owned(),
        };
        let row = format!(" {} {:>8}  {now}", fit(&node.name, 20), node.trials);
        lines.push(Line::raw(cut(&row, width)));
    }
    if scene.nodes.is_empty() {
        lines.push(Line::raw(" This run is on one machine."));
    }
    frame.render_widget(Paragraph::new(lines), area);
}
