//! The view on a terminal: three screens, drawn again once a second.

mod cell;
mod chart;
mod nodes;
mod overview;
mod text;

pub use text::cut as cut_line;

use crate::scene::{Scene, Source};
use doors::shown::raw_errors;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use ratatui::{Frame, backend::Backend};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time between two pictures: each wake-up disturbs what is measured.
const TICK: Duration = Duration::from_secs(1);
/// Rows from which on the figures of the trial that runs have one.
const ROWS_WITH_PACE: u16 = 20;
/// The smallest terminal that has room for a picture.
const SMALLEST: (u16, u16) = (40, 10);
const TO_A_PERSON: &str = "a picture on the terminal, of text that was cleaned";

/// Why a view has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// The person wants to see no more of it.
    Quit,
    /// The person typed Ctrl-C, which ends the run of this process.
    Interrupted,
    /// The run of this process has ended.
    RunEnded,
}

/// Shows scenes on the terminal of standard error until the person leaves, or `ended` is set.
///
/// # Errors
/// A terminal that cannot be drawn on, and what [`Source::look`] gives.
pub fn watch(source: &mut dyn Source, ended: &AtomicBool) -> io::Result<Left> {
    let mut screen = Screen::enter()?;
    let mut view = View::default();
    let left = run(&mut screen.terminal, source, &mut view, ended);
    drop(screen);
    left
}

fn run(
    terminal: &mut Terminal<impl Backend<Error = io::Error>>,
    source: &mut dyn Source,
    view: &mut View,
    ended: &AtomicBool,
) -> io::Result<Left> {
    loop {
        if ended.load(Ordering::Relaxed) {
            return Ok(Left::RunEnded);
        }
        if let Some(scene) = source.look()? {
            view.take_scene(scene);
        }
        terminal.draw(|frame| view.draw(frame))?;
        let next = Instant::now() + TICK;
        while event::poll(next.saturating_duration_since(Instant::now()))? {
            match event::read()? {
                Event::Key(key) if key.kind == KeyEventKind::Press => {
                    if let Some(left) = view.press(key) {
                        return Ok(left);
                    }
                    terminal.draw(|frame| view.draw(frame))?;
                }
                Event::Resize(..) => {
                    terminal.draw(|frame| view.draw(frame))?;
                }
                _ => {}
            }
        }
    }
}

/// The terminal in the state of a picture; it is as before when this is dropped.
struct Screen {
    terminal: Terminal<CrosstermBackend<io::Stderr>>,
}

impl Screen {
    fn enter() -> io::Result<Screen> {
        enable_raw_mode()?;
        let mut errors = raw_errors(TO_A_PERSON);
        let entered = execute!(errors, EnterAlternateScreen);
        let terminal = entered.and_then(|()| Terminal::new(CrosstermBackend::new(errors)));
        match terminal {
            Ok(terminal) => Ok(Screen { terminal }),
            Err(error) => {
                leave();
                Err(error)
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.terminal.show_cursor();
        leave();
    }
}

/// A terminal that is gone needs nothing.
fn leave() {
    let _ = execute!(raw_errors(TO_A_PERSON), LeaveAlternateScreen);
    let _ = disable_raw_mode();
}

/// The screen that is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Shown {
    /// All comparisons.
    #[default]
    Overview,
    /// The cell of the comparison that is chosen.
    Cell,
    /// The machines.
    Nodes,
}

/// A scene, and what the person looks at.
#[derive(Debug)]
struct View {
    scene: Option<Scene>,
    /// Time at which the scene came.
    came: Instant,
    shown: Shown,
    /// Number of the comparison that is chosen, over all cells.
    chosen: usize,
}

impl Default for View {
    fn default() -> Self {
        View {
            scene: None,
            came: Instant::now(),
            shown: Shown::default(),
            chosen: 0,
        }
    }
}

impl View {
    fn take_scene(&mut self, scene: Scene) {
        self.scene = Some(scene);
        self.came = Instant::now();
    }

    /// Number of comparisons over all cells.
    fn count(&self) -> usize {
        let cells = self.scene.iter().flat_map(|scene| &scene.picture.cells);
        cells.map(|cell| cell.comparisons.len()).sum()
    }

    fn press(&mut self, key: KeyEvent) -> Option<Left> {
        let last = self.count().saturating_sub(1);
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                return Some(Left::Interrupted);
            }
            KeyCode::Char('q') => return Some(Left::Quit),
            KeyCode::Up | KeyCode::Char('k') => self.chosen = self.chosen.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.chosen = (self.chosen + 1).min(last),
            KeyCode::Home => self.chosen = 0,
            KeyCode::End => self.chosen = last,
            KeyCode::Enter | KeyCode::Char('c') => self.shown = Shown::Cell,
            KeyCode::Char('n') => self.shown = Shown::Nodes,
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Char('o') => self.shown = Shown::Overview,
            _ => {}
        }
        None
    }

    fn draw(&self, frame: &mut Frame) {
        let area = frame.area();
        let (columns, rows) = SMALLEST;
        if area.width < columns || area.height < rows {
            let (width, height) = (area.width, area.height);
            let said = format!("{width} x {height} is too small: {columns} x {rows}. q leaves");
            let small = Paragraph::new(said).wrap(ratatui::widgets::Wrap { trim: true });
            return frame.render_widget(small, area);
        }
        let [head, body, keys] = Layout::vertical([
            Constraint::Length(self.head_rows(area.height)),
            Constraint::Fill(1),
            Constraint::Length(1),
        ])
        .areas(area);
        self.draw_head(frame, head);
        match (&self.scene, self.shown) {
            (None, _) => {}
            (Some(scene), Shown::Overview) => overview::draw(frame, body, scene, self.chosen),
            (Some(scene), Shown::Cell) => cell::draw(frame, body, scene, self.chosen),
            (Some(scene), Shown::Nodes) => nodes::draw(frame, body, scene),
        }
        let others = match self.shown {
            Shown::Overview => "enter cell   n machines",
            Shown::Cell | Shown::Nodes => "esc back",
        };
        let line = format!(" q leave the view, the run goes on   ↑↓ choose   {others}");
        frame.render_widget(Line::styled(line, text::dim()), keys);
    }

    /// The figures of the trial that runs have a row where there is room for one, whether they are there
    /// or not: the picture below does not jump.
    fn head_rows(&self, rows: u16) -> u16 {
        let is_under_way = self
            .scene
            .as_ref()
            .is_some_and(|s| s.life == crate::Life::UnderWay);
        match is_under_way && rows >= ROWS_WITH_PACE {
            true => 3,
            false => 2,
        }
    }

    fn draw_head(&self, frame: &mut Frame, area: Rect) {
        let Some(scene) = &self.scene else {
            let waiting = " Nothing is measured yet.";
            return frame.render_widget(Line::raw(waiting), area);
        };
        let lines = text::head(scene, self.came.elapsed(), area.width);
        frame.render_widget(Paragraph::new(lines), area);
    }
}

#[cfg(test)]
mod tests;
