//! Words and styles of all screens.

use crate::scene::{Life, Scene};
use model::printable::one_line;
use model::{Pace, format_duration_ns};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use report::Verdict;
use std::time::Duration;

/// Words that anybody may have chosen, as one line without what a terminal would obey.
pub fn clean(words: &str) -> String {
    one_line(words).into_owned()
}

/// The words in at most so many columns; dots where something is missing.
pub fn cut(words: &str, columns: usize) -> String {
    let words = clean(words);
    match words.chars().count() <= columns {
        true => words,
        false => {
            let kept: String = words.chars().take(columns.saturating_sub(1)).collect();
            format!("{}…", kept.trim_end())
        }
    }
}

/// Exactly so many columns.
pub fn fit(words: &str, columns: usize) -> String {
    let words = cut(words, columns);
    let missing = columns.saturating_sub(words.chars().count());
    words + &" ".repeat(missing)
}

/// True unless the person wants no colours (no-color.org).
fn has_colours() -> bool {
    static ASKED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *ASKED.get_or_init(|| std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()))
}

fn coloured(colour: Color) -> Style {
    match has_colours() {
        true => Style::new().fg(colour),
        false => Style::new(),
    }
}

pub fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

pub fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

pub fn trouble() -> Style {
    coloured(Color::Yellow)
}

pub fn of_verdict(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Better => coloured(Color::Green),
        Verdict::Worse => coloured(Color::Red),
        Verdict::Same => coloured(Color::Cyan),
        Verdict::Unknown => Style::new(),
    }
}

/// The colour of one of two arms.
pub fn of_arm(index: usize) -> Style {
    coloured([Color::Blue, Color::Magenta][index % 2])
}

/// The three lines on top: the run, what it does now, and how its trial goes.
pub fn head(scene: &Scene, later: Duration, width: u16) -> Vec<Line<'static>> {
    let picture = &scene.picture;
    let state = match scene.life {
        Life::UnderWay => "under way".to_owned(),
        Life::Ended => format!("has ended ({})", picture.state),
        Life::Lost => "was killed: nobody measures any more".to_owned(),
    };
    let left = format!(" {} {state}{}", clean(&picture.name), times(scene, later));
    let room = usize::from(width).saturating_sub(picture.trials.chars().count() + 2);
    let first = Line::from(vec![
        Span::styled(fit(&left, room), bold()),
        Span::raw(format!(" {}", clean(&picture.trials))),
    ]);
    let now = cut(&format!(" {}", now_in_words(scene, later)), width.into());
    let pace = scene.now.as_ref().and_then(|now| now.pace.as_ref());
    let pace = pace.map(|pace| cut(&format!(" now: {}", pace_in_words(pace)), width.into()));
    let third = pace.unwrap_or_default();
    vec![first, Line::styled(now, dim()), Line::styled(third, dim())]
}

/// ` · 3m10s · at most 4m left`, where it is known.
fn times(scene: &Scene, later: Duration) -> String {
    let Some(now) = &scene.now else {
        return String::new();
    };
    let since = match now.block_unix_ns {
        0 => Duration::ZERO,
        at => scene.time_since(at) + later,
    };
    let since_ns = model::whole_nanos(since);
    let elapsed = match now.elapsed_ns {
        0 => String::new(),
        ns => format!(" · {}", seconds_in_words(ns.saturating_add(since_ns))),
    };
    let left = now.left_ns.map_or_else(String::new, |ns| {
        let left = seconds_in_words(ns.saturating_sub(since_ns) + ALMOST_A_SECOND);
        format!(" · at most {left} left")
    });
    elapsed + &left
}

/// `block 7 · wakeup 100% · batch · measuring, 4s`.
pub fn now_in_words(scene: &Scene, later: Duration) -> String {
    let Some(now) = &scene.now else {
        return scene.picture.conclusion.join(" ");
    };
    let block = match now.block {
        0 => String::new(),
        block => format!("block {block}"),
    };
    let again = match now.attempt {
        0 | 1 => String::new(),
        attempt => format!("attempt {attempt}"),
    };
    let since = scene.time_since(now.since_unix_ns) + later;
    let since = seconds_in_words(model::whole_nanos(since));
    let parts = [&block, &now.cell, &now.arm, &again, &now.step];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|part| !part.is_empty())
        .map(|part| clean(part))
        .collect();
    format!("{}, {since}", parts.join(" · "))
}

/// `request 900/s, mean 1.2 ms, 1.20 CPUs, run delay 3.1 ms/s, 5400 switches/s, 120 migrations/s`.
fn pace_in_words(pace: &Pace) -> String {
    let per_sec = |count: u64| format!("{:.0}", pace.per_sec(count));
    let latencies = pace.latencies.iter().map(|(log, latencies)| {
        let mean = latencies
            .mean_ns()
            .map(|ns| format!(", mean {}", format_latency(ns)));
        let rate = per_sec(latencies.count);
        format!("{} {rate}/s{}", clean(log), mean.unwrap_or_default())
    });
    let mut parts: Vec<String> = latencies.collect();
    parts.extend([
        format!("{:.2} CPUs", pace.per_sec(pace.run_ns) / 1e9),
        format!(
            "run delay {:.1} ms/s",
            pace.per_sec(pace.run_delay_ns) / 1e6
        ),
        format!("{} switches/s", per_sec(pace.switches)),
    ]);
    let migrations = pace.migrations;
    parts.extend(migrations.map(|count| format!("{} migrations/s", per_sec(count))));
    let events = pace.sched_ext.iter();
    parts.extend(events.map(|(name, count)| format!("{} {}/s", clean(name), per_sec(*count))));
    let told = pace.scheduler.iter();
    parts.extend(told.map(|(name, value)| format!("{} {}", clean(name), round_for_show(*value))));
    parts.join(", ")
}

/// `1290`, `2.57`: whole numbers as they are.
fn round_for_show(value: f64) -> String {
    match value.fract() == 0.0 {
        true => format!("{value:.0}"),
        false => format!("{value:.2}"),
    }
}

/// `81.2 us`, `1.2 ms`.
fn format_latency(ns: f64) -> String {
    match ns {
        ns if ns < 1e6 => format!("{:.1} us", ns / 1e3),
        ns => format!("{:.1} ms", ns / 1e6),
    }
}

const SECOND: u64 = 1_000_000_000;
/// Makes of whole seconds the next ones.
const ALMOST_A_SECOND: u64 = SECOND - 1;

/// Whole seconds.
fn seconds_in_words(ns: u64) -> String {
    format_duration_ns(ns / SECOND * SECOND)
}
