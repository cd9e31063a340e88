//! The live lines of a terminal, and the room that they have.

use super::say_beside;
use ::live::cut_line;
use doors::shown::Stream;
use indicatif::style::ProgressTracker;
use indicatif::{HumanDuration, MultiProgress, ProgressBar, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Comparisons that have a live line; a terminal has not many.
const SHOWN: usize = 6;
const INDENT: &str = "  ";
/// A terminal echoes Ctrl-C as `^C` behind the last line. Where that has no room there, it begins another line,
/// and the one above it is not cleared any more.
const ECHO: usize = 3;

/// Columns that a line may have.
fn room() -> usize {
    let columns = Stream::Errors
        .terminal_columns()
        .unwrap_or(report::Options::USUAL_WIDTH);
    columns.saturating_sub(ECHO)
}

/// Parts of a line, the last of which is what happens now: where they do not fit, the first ones go, and then the
/// last one stands first.
fn in_room(parts: &[&str], room: usize) -> String {
    let parts: Vec<&str> = parts
        .iter()
        .copied()
        .filter(|part| !part.is_empty())
        .collect();
    let fewer = (0..parts.len().saturating_sub(1)).map(|from| parts[from..].join(" \u{b7} "));
    let fits = |line: &String| line.chars().count() <= room;
    match (fewer.into_iter().find(fits), parts.as_slice()) {
        (Some(line), _) => line,
        (None, [.., place, now]) => cut_line(&format!("{now} \u{b7} {place}"), room),
        (None, parts) => cut_line(&parts.concat(), room),
    }
}

/// Lines of a terminal that are drawn again: the run, and below it each comparison that is open.
pub(super) struct Live {
    pub(super) all: MultiProgress,
    run: ProgressBar,
    /// A line for each comparison that is shown.
    open: Vec<ProgressBar>,
    deadline: Deadline,
}

impl Live {
    /// Redrawn once a second: each wake-up disturbs what is measured.
    pub(super) fn new() -> Self {
        let (all, deadline) = (MultiProgress::new(), Deadline::default());
        let run = all.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed}{left} · {wide_msg}") {
            run.set_style(style.with_key("left", deadline.clone()));
        }
        run.enable_steady_tick(Duration::from_secs(1));
        Live {
            all,
            run,
            open: Vec::new(),
            deadline,
        }
    }

    /// The step under way, with what is known before it, as far as there is room.
    pub(super) fn show_step(&self, parts: &[&str]) {
        // `⠁ 12s, at most 1m40s left · `
        let elapsed = HumanDuration(self.run.elapsed());
        let before = format!("x {elapsed:#}{} · ", self.deadline.in_words());
        let room = room().saturating_sub(before.chars().count());
        say_beside(&self.run, &in_room(parts, room));
    }

    pub(super) fn set_left(&self, left_ns: Option<u64>) {
        self.deadline.set(left_ns);
    }

    pub(super) fn end_display(self) {
        self.open.iter().for_each(ProgressBar::finish_and_clear);
        self.run.finish_and_clear();
    }

    pub(super) fn show_open(&mut self, open: &[String]) {
        let room = room().saturating_sub(INDENT.len());
        let mut lines: Vec<String> = open.iter().map(|line| cut_line(line, room)).collect();
        if lines.len() > SHOWN {
            lines.truncate(SHOWN - 1);
            lines.push(format!("{} more", open.len() - lines.len()));
        }
        while self.open.len() > lines.len() {
            if let Some(bar) = self.open.pop() {
                bar.finish_and_clear();
                self.all.remove(&bar);
            }
        }
        while self.open.len() < lines.len() {
            let bar = self.all.add(ProgressBar::no_length());
            if let Ok(style) = ProgressStyle::with_template(&format!("{INDENT}{{wide_msg}}")) {
                bar.set_style(style);
            }
            self.open.push(bar);
        }
        for (bar, line) in self.open.iter().zip(&lines) {
            say_beside(bar, line);
        }
    }
}

/// Time until the run ends at the latest, which goes on between two blocks.
#[derive(Clone, Default)]
struct Deadline(Arc<AtomicU64>);

impl Deadline {
    /// Milliseconds since the first call; 0 is no deadline.
    fn now_ms() -> u64 {
        static START: OnceLock<Instant> = OnceLock::new();
        model::whole_nanos(START.get_or_init(Instant::now).elapsed()) / 1_000_000 + 1
    }

    /// `, at most 1m40s left`; nothing where it is not known.
    fn in_words(&self) -> String {
        match self.0.load(Ordering::Relaxed) {
            0 => String::new(),
            at => {
                let left_ns = at.saturating_sub(Self::now_ms()) * 1_000_000;
                format!(", {}", left_in_words(left_ns))
            }
        }
    }

    fn set(&self, left_ns: Option<u64>) {
        let at = left_ns.map(|ns| Self::now_ms() + ns / 1_000_000);
        self.0.store(at.unwrap_or(0), Ordering::Relaxed);
    }
}

impl ProgressTracker for Deadline {
    fn clone_box(&self) -> Box<dyn ProgressTracker> {
        Box::new(self.clone())
    }

    fn tick(&mut self, _: &ProgressState, _: Instant) {}

    fn reset(&mut self, _: &ProgressState, _: Instant) {}

    fn write(&self, _: &ProgressState, to: &mut dyn Write) {
        // A line on a terminal has no error to give.
        let _ = to.write_str(&self.in_words());
    }
}

/// Whole seconds: a countdown in milliseconds says nothing more.
pub(super) fn left_in_words(ns: u64) -> String {
    let seconds = ns.div_ceil(1_000_000_000);
    match seconds / 60 {
        0 => format!("at most {seconds}s left"),
        minutes => format!("at most {minutes}m{:02}s left", seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: [&str; 3] = [
        "0 of 1 cell decided",
        "block 2 · wakeup 100% · new",
        "measuring",
    ];

    #[test]
    fn a_line_keeps_what_happens_now_in_any_room() {
        let all = "0 of 1 cell decided · block 2 · wakeup 100% · new · measuring";
        assert_eq!(in_room(&PARTS, 80), all);
        let place = "block 2 · wakeup 100% · new · measuring";
        assert_eq!(in_room(&PARTS, 50), place);
        assert_eq!(in_room(&PARTS, 30), "measuring · block 2 · wakeup…");
        assert_eq!(in_room(&["", "", "booting the guest"], 12), "booting the…");
        assert_eq!(in_room(&["0 of 1 cell decided", "", ""], 80), PARTS[0]);
        assert_eq!(in_room(&["", "", ""], 80), "");
    }

    #[test]
    fn no_line_is_longer_than_its_room_or_ends_in_a_separator() {
        for room in 8..90 {
            for parts in [
                PARTS,
                ["", PARTS[1], PARTS[2]],
                [PARTS[0], "", ""],
                ["", PARTS[1], ""],
            ] {
                let line = in_room(&parts, room);
                assert!(line.chars().count() <= room, "{room}: {line}");
                assert!(!line.ends_with(['·', ' ']), "{room}: {line}");
            }
        }
    }

    #[test]
    fn time_that_is_left_is_in_whole_seconds_and_minutes() {
        assert_eq!(left_in_words(0), "at most 0s left");
        assert_eq!(left_in_words(1), "at most 1s left");
        assert_eq!(left_in_words(59_000_000_001), "at most 1m00s left");
        assert_eq!(left_in_words(3_723_000_000_000), "at most 62m03s left");
    }
}
