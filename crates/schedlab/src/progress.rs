//! Display of a run while it goes on: one live line on a terminal, and a line that stays for
//! everything a person must know. Silent where there is no terminal.

use indicatif::{ProgressBar, ProgressStyle};
use model::printable::one_line;
use model::trial::headline;
use model::{Experiment, Plan, format_duration_ns};
use runner::Event;
use std::io::IsTerminal;
use std::time::Duration;

pub struct Display {
    bar: Option<ProgressBar>,
    head: String,
    state: String,
    cells: usize,
}

impl Display {
    pub fn new(experiment: &Experiment, plan: &Plan, quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(live_line);
        if let Some(bar) = &bar {
            say(
                bar,
                &format!(
                    "{}: {} arms × {} cells, at most {} blocks{}",
                    experiment.name,
                    experiment.arms.len(),
                    plan.cells.len(),
                    experiment.stop.max_blocks,
                    match experiment.stop.budget_ns {
                        Some(budget) => format!(" in {}", format_duration_ns(budget)),
                        None => String::new(),
                    }
                ),
            );
        }
        Display {
            bar,
            head: String::new(),
            state: String::new(),
            cells: plan.cells.len(),
        }
    }

    pub fn show(&mut self, event: &Event) {
        let Some(bar) = &self.bar else {
            return;
        };
        match event {
            Event::Ready { warnings } => {
                for warning in *warnings {
                    say(bar, &format!("note: {}", warning.what));
                }
            }
            Event::TrialStarted {
                place,
                cell,
                arm,
                attempt,
            } => {
                let again = if *attempt > 1 {
                    format!(", attempt {attempt}")
                } else {
                    String::new()
                };
                self.head = format!("block {} · {cell} · {arm}{again}", place.block);
                show(bar, &format!("{}{}", self.head, self.state));
            }
            Event::Step { step } if self.head.is_empty() => show(bar, step),
            Event::Step { step } => show(bar, &format!("{} · {step}{}", self.head, self.state)),
            Event::TrialEnded { trial } => {
                let state = &trial.result.state;
                if let Some(why) = state.headline() {
                    let state = state.name();
                    say(
                        bar,
                        &format!("{state}: {}, {}: {why}", trial.cell, trial.arm),
                    );
                }
            }
            Event::GaveUp { cell, arm, .. } => {
                say(bar, &format!("gave up on {arm} in {cell}: it never worked"));
            }
            Event::Restarting { why } => {
                say(bar, &format!("starting the agent again: {}", headline(why)))
            }
            Event::BlockEnded { state } => self.block_ended(state),
        }
    }

    fn block_ended(&mut self, state: &runner::Progress) {
        let left = match state.left_ns {
            Some(ns) => format!(", at most {} left", rounded(ns)),
            None => String::new(),
        };
        let open = match state.open.as_slice() {
            [] => String::new(),
            [one] => format!(" · open: {}", so_far(one)),
            [one, rest @ ..] => {
                format!(" · open: {}, {} more", so_far(one), rest.len())
            }
        };
        // What matters most comes first: a narrow terminal cuts the end.
        let (decided, cells) = (state.decided, self.cells);
        self.state = format!(" │ {decided}/{cells} cells decided{left}{open}");
    }

    pub fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// `wakeup 200% wakeup_p99 rusty -44 % (e 12)`.
fn so_far(open: &runner::OpenComparison) -> String {
    let named = format!("{} {} {}", open.cell, open.metric, open.arm);
    match open.ratio {
        Some(ratio) => format!(
            "{named} {:+.0} % (e {:.1})",
            (ratio - 1.0) * 100.0,
            open.e_value
        ),
        None => named,
    }
}

/// A line that stays. Names and reasons are those of the experiment and of programs.
fn say(bar: &ProgressBar, line: &str) {
    bar.println(one_line(line));
}

/// The live line.
fn show(bar: &ProgressBar, line: &str) {
    bar.set_message(one_line(line).into_owned());
}

/// Whole seconds: a countdown in milliseconds says nothing more.
fn rounded(ns: u64) -> String {
    let seconds = ns.div_ceil(1_000_000_000);
    match seconds / 60 {
        0 => format!("{seconds}s"),
        minutes => format!("{minutes}m{:02}s", seconds % 60),
    }
}

/// Redrawn once a second: each wake-up disturbs what is measured.
fn live_line() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_secs(1));
    bar
}
